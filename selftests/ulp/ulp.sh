# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash disable=SC2034 # variables are for lib.sh, and for tests
#
# ulp.sh - sourced by the tests of the kernel's own RDMA users (ULPs), from this
# directory; sources ../lib.sh.
#
# Most ULPs make their connections in the initial net namespace, whoever asks. So both
# devices are there, with policy routing that sends what goes from one address to the
# other through the veth pair: packets are built, leave one netdev and come in by the
# other. A ULP that lives in any namespace has ULP_NETNS=1 set before this is sourced,
# and gets the two namespaces of lib.sh.

. ../lib.sh

[ -n "$ULP_NETNS" ] || ns_of() { :; }

# ulp_start TITLE MODULE...: first line of output; skips all without these modules.
ulp_start() {
	local m

	tap_start "$1"
	shift
	for m in "$@"; do
		modprobe "$m" 2>"$TMP/modprobe.out" ||
			skip_all "no module $m in this kernel: $(head -c 200 "$TMP/modprobe.out")"
	done
	pair_up
	sent=$(bytes_sent)
}

# counter NS DEVICE NAME: one of a device's counters.
counter() {
	in_ns "$1" cat "/sys/class/infiniband/$2/ports/1/hw_counters/$3"
}

# bytes_sent: what both netdevs have sent, bytes.
bytes_sent() {
	local a b

	a=$(on_a cat /sys/class/net/$IF_A/statistics/tx_bytes)
	b=$(on_b cat /sys/class/net/$IF_B/statistics/tx_bytes)
	echo $((a + b))
}

# crossed BYTES: true if so many have gone over the wire since the last call.
crossed() {
	local now

	now=$(bytes_sent)
	echo "$((now - sent)) bytes on the wire, expected at least $1"
	[ $((now - sent)) -ge "$1" ] || return 1
	sent=$now
}

# link_down, link_up: side A's interface. What the kernel flushed is set up again, but
# for neighbours: those are asked for.
link_down() {
	on_a ip link set $IF_A down
}

link_up() {
	on_a ip link set $IF_A up &&
	on_a ip -6 addr replace $IP6_A/64 dev $IF_A nodad &&
	{ [ -n "$NS_A$NS_B" ] || {
		ip -4 route replace $IP4_B dev $IF_A src $IP4_A table 771 &&
		ip -6 route replace $IP6_B dev $IF_A src $IP6_A table 771; }; } &&
	wait_for 30 port_active "$NS_A" $DEV_A &&
	wait_for 30 port_active "$NS_B" $DEV_B &&
	wait_for 30 gid_index "$NS_A" $DEV_A $IP4_A >/dev/null
}

# random_file FILE MEGABYTES: different every time.
random_file() {
	dd if=/dev/urandom of="$1" bs=1M count="$2" status=none
}

# same_data A B BYTES: as cmp, of the first BYTES.
same_data() {
	cmp -n "$3" "$1" "$2"
}

# fio_verify FILE [OPTION...]: writes of all sizes at random, read back and verified.
fio_verify() {
	local file=$1

	shift
	# a disk that has gone is not to be replaced by a file in /dev
	[ ! -b "$file" ] || set -- --allow_file_create=0 "$@"
	timeout -k 5 "$HANG" fio --name=verify --filename="$file" --direct=1 --ioengine=libaio \
		--iodepth=16 --rw=randwrite --bsrange=512-256k --size=24M \
		--verify=crc32c --verify_fatal=1 --do_verify=1 "$@"
}

# fio_start FILE [OPTION...]: the same in the background, as $fio, with its output in
# $TMP/fio.out; returns when data flows.
fio_start() {
	local before

	before=$(bytes_sent)
	fio_verify "$@" >"$TMP/fio.out" 2>&1 &
	fio=$!
	wait_for 60 flows $((before + 2000000)) || { cat "$TMP/fio.out"; return 1; }
}

flows() {
	[ "$(bytes_sent)" -ge "$1" ]
}

# fio_ends: true if it ended well; its output is shown.
fio_ends() {
	local rc

	wait "$fio"
	rc=$?
	cat "$TMP/fio.out"
	return $rc
}

# to_target, from_target: $MB megabytes of noise across, to and from the disk $REMOTE here,
# compared with what is on $DISK behind it over there
to_target() {
	random_file "$TMP/noise" $MB &&
	dd if="$TMP/noise" of="$REMOTE" bs=1M oflag=direct status=none &&
	same_data "$TMP/noise" $DISK $((MB << 20)) && crossed $((MB << 20))
}

from_target() {
	random_file "$TMP/noise" $MB &&
	dd if="$TMP/noise" of=$DISK bs=1M oflag=direct status=none &&
	dd if="$REMOTE" of="$TMP/copy" bs=1M count=$MB iflag=direct status=none &&
	same_data "$TMP/noise" "$TMP/copy" $((MB << 20)) && crossed $((MB << 20))
}

# unloaded MODULE: true once the module is gone; its users may still be letting go.
unloaded() {
	modprobe -r "$1" 2>/dev/null
	[ ! -d "/sys/module/${1//-/_}" ]
}

# unload MODULE...: in this order; says who holds one that stays.
unload() {
	local m

	for m in "$@"; do
		wait_for 60 unloaded "$m" || {
			modprobe -r -v "$m"
			lsmod | grep "^${m//-/_} "
			return 1
		}
	done
}

# ulp_end MODULE...: the last two test points: the ULP's modules and ours go.
ulp_end() {
	check "the ULP's modules can be unloaded" unload "$@"
	pair_down
	[ "$DRIVER_A" = rxe ] || check "sroce can be unloaded" unload sroce
	tap_done
}
