#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# faults.sh: whatever the driver allocates can fail: calls are refused and leave nothing
# behind, traffic goes on. Needs a kernel with fault injection: vm -b uml-debug.
#
# usage: faults.sh [NAME]    only the test points whose name contains NAME

cd "$(dirname "$0")" || exit 1
. ../lib.sh

DEBUG=/sys/kernel/debug
CAPABILITIES="failslab fail_page_alloc fail_usercopy"
SPARE=sr_spare

# filter FROM TO: faults only where a caller lies between these addresses.
filter() {
	local c

	for c in $CAPABILITIES; do
		echo 0 >$DEBUG/$c/probability
		echo 32 >$DEBUG/$c/stacktrace-depth
		echo "$1" >$DEBUG/$c/require-start
		echo "$2" >$DEBUG/$c/require-end
		echo 0 >$DEBUG/$c/verbose
		echo -1 >$DEBUG/$c/times
	done
	# those that may sleep fail as well, and of one page as well
	echo N >$DEBUG/failslab/ignore-gfp-wait
	echo N >$DEBUG/fail_page_alloc/ignore-gfp-wait
	echo 0 >$DEBUG/fail_page_alloc/min-order
}

# module_text: first and last address of the module's functions.
module_text() {
	awk '$4 == "[sroce]" && $2 ~ /[tT]/ { print $1 }' /proc/kallsyms | sort |
		sed -n '1p;$p' | sed 's/^/0x/' | paste -sd' '
}

# spare FUNCTION: no faults below this function of the kernel.
spare() {
	local start end c

	read -r start end < <(sort /proc/kallsyms | awk -v name="$1" '
		found { print start, $1; exit }
		$3 == name { start = $1; found = 1 }')
	[ "$end" ] || return 1
	for c in $CAPABILITIES; do
		echo "0x$start" >$DEBUG/$c/reject-start
		echo "0x$end" >$DEBUG/$c/reject-end
	done
}

# often PERCENT: so many of the allocations fail, whoever asks.
often() {
	echo "$1" >$DEBUG/failslab/probability
	echo "$1" >$DEBUG/fail_page_alloc/probability
}

# rings: how many there are.
rings() { grep -c sroce_ring /proc/vmallocinfo; }

objects() { rdma resource show; }

# traffic NAME...: these test points of the integrity test, while allocations fail.
traffic() {
	local name client server

	for name in "$@"; do
		on_b timeout -k 5 900 "$TMP/integrity" -d $DEV_B -g "$GID4_B" -o "$name" \
			>"$TMP/server.out" 2>&1 &
		server=$!
		wait_for "$HANG" on_b grep -q ":48A8 0*:0000 0A" /proc/net/tcp6
		on_a timeout -k 5 900 "$TMP/integrity" -d $DEV_A -g "$GID4_A" -o "$name" $IP4_B \
			>"$TMP/client.out" 2>&1
		client=$?
		wait $server
		cat "$TMP/client.out" "$TMP/server.out"
		[ $client = 0 ] && grep -q '^ok' "$TMP/client.out" || return 1
	done
}

# traffic_fails PERCENT NAME...: the same, with faults, and some did occur.
traffic_fails() {
	local percent=$1 status

	shift
	filter "$text_start" "$text_end"
	# the data path's, which may not sleep; a call that set things up would be refused
	echo Y >$DEBUG/failslab/ignore-gfp-wait
	echo Y >$DEBUG/fail_page_alloc/ignore-gfp-wait
	# it counts down
	echo 1000000 >$DEBUG/failslab/times
	often "$percent"
	traffic "$@"
	status=$?
	often 0
	[ "$(cat $DEBUG/failslab/times)" -lt 1000000 ] || { echo "no fault was injected"; return 1; }
	return $status
}

on_exit() {
	[ ! -e $DEBUG/failslab ] || filter 0 0xffffffffffffffff
	ip link delete $SPARE 2>/dev/null
}

need ip rdma cc
mount | grep -q " $DEBUG " || mount -t debugfs debugfs $DEBUG
for c in $CAPABILITIES; do
	[ -e $DEBUG/$c/require-start ] ||
		skip_all "no $c with a filter for stack traces in this kernel"
done
case $DRIVER_A$DRIVER_B in
*rxe*) skip_all "a test of sroce" ;;
esac

tap_start "faults"
build faults faults.c ../errors/pair.c ../common/verbs.c ../common/tap.c
build integrity ../integrity/{main,arena,end,serve,cases}.c ../common/verbs.c ../common/tap.c
pair_up
ip link add $SPARE type dummy
ip addr add 10.78.0.1/24 dev $SPARE
ip link set $SPARE up
read -r text_start text_end <<<"$(module_text)"
[ -n "$text_end" ] || bail "find the module's functions in /proc/kallsyms"

filter "$text_start" "$text_end"
objects >"$TMP/objects.before"
rings_before=$(rings)
# its plan is not the whole test's
timeout -k 5 3000 "$TMP/faults" $DEV_A "$GID4_A" $DEV_B "$GID4_B" $SPARE ${1:+"$1"} |
	tee "$TMP/faults.out" | sed -u '/^1\.\./d'
status=${PIPESTATUS[0]}
tap_count=$(grep -cE '^(not )?ok' "$TMP/faults.out")
tap_failed=$(grep -cE '^not ok' "$TMP/faults.out")
[ $status -le 1 ] || not_ok "faults ended with status $status"

objects >"$TMP/objects.after"
check "no object is left" diff "$TMP/objects.before" "$TMP/objects.after"
check "no ring is left" wait_for 30 eval "[ \$(rings) = $rings_before ]"

if [ -z "$1" ] || echo "traffic" | grep -q "$1"; then
	check "traffic while 5 % of the driver's allocations fail" traffic_fails 5 \
		"RC SEND, every size, path MTU 1024" "RC WRITE, every size, path MTU 4096" \
		"RC READ, every size, path MTU 256"
	check "traffic while 40 % of them fail" traffic_fails 40 \
		"RC WRITE, every size, path MTU 4096"
fi

if [ -z "$1" ] || echo "load the module" | grep -q "$1"; then
	pair_down
	ip link delete $SPARE
	module=$(modinfo -n sroce)
	rmmod sroce
	# its functions are not there yet: any allocation
	filter 0 0xffffffffffffffff
	# the tracer warns of each event file that it cannot make, and of it again at the end
	spare trace_module_notify
	check "load the module, each allocation failing once" timeout 1200 "$TMP/faults" -l "$module"
	modprobe sroce
fi
kernel_complaints >"$TMP/dmesg.out"
if [ -s "$TMP/dmesg.out" ]; then
	not_ok "the kernel complains" "$TMP/dmesg.out"
else
	ok "the kernel has nothing to complain of"
fi
tap_done
