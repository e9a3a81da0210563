#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# teardown.sh: everything that can be taken away is, under running traffic.
#
# usage: teardown.sh [PATTERN]    only the ways whose name matches (grep -E)
# ROUNDS in the environment: times that each is done, default 20.

cd "$(dirname "$0")" || exit 1
. ./lib.sh

ONLY=${1:-.}
ROUNDS=${ROUNDS:-20}

need ip rdma cc ib_write_bw
tap_start "teardown under traffic"
for d in "$DRIVER_A" "$DRIVER_B"; do
	driver_loaded "$d" || skip_all "no module for driver $d in this kernel"
done
modprobe -a ib_uverbs rdma_ucm 2>/dev/null
module=$DRIVER_A
[ "$module" != rxe ] || module=rdma_rxe

build churn common/churn.c common/verbs.c

traffic=()

# busy NS OUT COMMAND...: a program of the traffic.  They poll, so that what takes things
# away from them would wait for a CPU most of the time were they not the last in turn.
busy() {
	local ns=$1 out=$2

	shift 2
	[ -z "$ns" ] || set -- ip netns exec "$ns" "$@"
	(exec nice -n 19 "$@") >"$out" 2>&1 </dev/null &
	traffic+=($!)
}

# start_traffic: streams that go on until something happens to them.
start_traffic() {
	local i tools=("ib_write_bw -q 4" "ib_send_bw -e" "ib_read_bw" "ib_send_bw -c UD -s 1024")

	traffic=()
	for i in "${!tools[@]}"; do
		busy "$NS_B" "$TMP/server$i.out" ${tools[i]} -F -D 600 -p $((18700 + i)) \
			-d $DEV_B -x $GID4_B
	done
	for i in "${!tools[@]}"; do
		wait_for 60 listening "${traffic[i]}" tcp $((18700 + i))
		busy "$NS_A" "$TMP/client$i.out" ${tools[i]} -F -D 600 -p $((18700 + i)) \
			-d $DEV_A -x $GID4_A $IP4_B
	done
	# and calls under way all the time
	for i in 1 2; do
		busy "$NS_B" /dev/null "$TMP/churn" $DEV_B "$GID4_B"
	done
	# it flows once packets have been counted
	wait_for 60 flowing
}

# flowing: the netdev of side A has sent a fair amount.
flowing() {
	[ "$(on_a cat /sys/class/net/$IF_A/statistics/tx_packets)" -gt 50 ]
}

# dead: no process of the traffic lives, defunct ones aside.
dead() {
	local p

	for p in "${traffic[@]}"; do
		[ ! -d "/proc/$p" ] || grep -q '^State:[[:space:]]*Z' "/proc/$p/status" || return 1
	done
}

# stop_traffic: kill it; false, with the stacks, if a process does not die of that.
stop_traffic() {
	local p

	[ ${#traffic[@]} != 0 ] || return 0
	kill -9 "${traffic[@]}" 2>/dev/null
	if ! wait_for 120 dead; then
		for p in "${traffic[@]}"; do
			[ -d "/proc/$p" ] || continue
			echo "process $p does not die:"
			grep -E '^(Name|State)' "/proc/$p/status"
			cat "/proc/$p/stack"
		done
		traffic=()
		return 1
	fi
	wait "${traffic[@]}" 2>/dev/null
	traffic=()
}

on_exit() { [ ${#traffic[@]} = 0 ] || stop_traffic >/dev/null; }

unused() { [ "$(cat "/sys/module/$module/refcnt")" = 0 ]; }

# objects: what there is of objects of the devices under test.
objects() {
	rdma resource show 2>/dev/null | grep -E ": ($DEV_A|$DEV_B):"
}

# no_objects: no more than there was before the traffic.
no_objects() { [ "$(objects)" = "$idle" ]; }

# promptly NS COMMAND...: run it; it must not wait for the programs that use the device.
promptly() {
	local ns=$1 pid status

	shift
	in_ns "$ns" "$@" &
	pid=$!
	if wait_for 60 eval "! kill -0 $pid 2>/dev/null"; then
		wait $pid
		status=$?
		[ $status = 0 ] || echo "exit status $status: $*"
		return $status
	fi
	echo "waits for the programs that use the device: $*"
	stop_traffic
	wait $pid
	return 1
}

# One round of each way; says what went wrong.
round_kill() {
	stop_traffic || return 1
	wait_for 60 no_objects || {
		echo "objects before the traffic, and left after it:"
		echo "$idle"
		objects
		return 1
	}
}

round_link() {
	promptly "$NS_B" rdma link delete $DEV_B && promptly "$NS_A" rdma link delete $DEV_A
}

round_netdev() {
	# of a veth pair either end takes the other along
	promptly "$NS_A" ip link delete $IF_A
}

round_namespace() {
	local n

	for n in $NS_A $NS_B; do
		promptly "" ip netns delete "$n" || return 1
	done
	stop_traffic
}

round_down() {
	local i

	for i in 1 2 3; do
		on_a ip link set $IF_A down
		sleep 0.1
		on_a ip link set $IF_A up
		sleep 0.1
	done
}

round_module() {
	# in use: either refused, or all is taken away
	if rmmod "$module" 2>"$TMP/rmmod.out"; then
		return
	fi
	grep -q "in use" "$TMP/rmmod.out" || { cat "$TMP/rmmod.out"; return 1; }
}

# The link is made, deleted, and its netdev removed, all at once; what comes of each call
# is chance. Two of each, so that they also meet their like.
round_links() {
	local i pids=()

	for i in 1 2; do
		while [ ! -e "$TMP/stop" ]; do
			ip link add sr_race type dummy
			ip addr add "10.79.0.$i/24" dev sr_race
			ip link set sr_race up
			sleep "0.0$((RANDOM % 10))"
			ip link delete sr_race
		done >/dev/null 2>&1 &
		pids+=($!)
		while [ ! -e "$TMP/stop" ]; do
			rdma link add rxe_race type "$DRIVER_A" netdev sr_race
		done >/dev/null 2>&1 &
		pids+=($!)
		while [ ! -e "$TMP/stop" ]; do
			rdma link delete rxe_race
		done >/dev/null 2>&1 &
		pids+=($!)
	done
	sleep 5
	touch "$TMP/stop"
	wait "${pids[@]}"
	rm "$TMP/stop"
	ip link delete sr_race 2>/dev/null
	# the last one that was made may still be on its way out
	if ! wait_for 60 eval "[ ! -e /sys/class/infiniband/rxe_race ]"; then
		echo "a link is left without its netdev"
		return 1
	fi
	# and after all that, it works
	ip link add sr_race type dummy &&
	rdma link add rxe_race type "$DRIVER_A" netdev sr_race &&
	rdma link delete rxe_race &&
	ip link delete sr_race
}

# everything of this round is gone: devices, references to the module
all_gone() {
	[ ! -e /sys/class/infiniband/$DEV_A ] && [ ! -e /sys/class/infiniband/$DEV_B ] &&
		{ [ ! -d "/sys/module/$module" ] || unused; }
}

# intact: the devices are what they were before the round.
intact() { [ -e /sys/class/infiniband/$DEV_A ] && [ -e /sys/class/infiniband/$DEV_B ] && no_objects; }

# way NAME ROUND [KEEPS]: one test point; KEEPS: a round leaves the devices in place.
way() {
	local name=$1 round=$2 keeps=$3 kept= i

	echo "$name" | grep -qE -- "$ONLY" || return 0
	for ((i = 1; i <= ROUNDS; i++)); do
		echo "# $name: round $i of $ROUNDS"
		for d in "$DRIVER_A" "$DRIVER_B"; do driver_loaded "$d"; done
		[ -n "$kept" ] || pair_up
		idle=$(objects)
		if ! start_traffic; then
			cat "$TMP"/client*.out "$TMP"/server*.out >"$TMP/traffic.out"
			not_ok "$name, round $i: no traffic" "$TMP/traffic.out"
			stop_traffic
			pair_down
			return
		fi
		sleep "0.$((RANDOM % 5))"
		if ! { $round && stop_traffic; } >"$TMP/round.out" 2>&1; then
			not_ok "$name, round $i" "$TMP/round.out"
			stop_traffic
			pair_down
			return
		fi
		kept=
		if [ "$keeps" ] && [ $i != $ROUNDS ] && intact; then
			kept=1
			continue
		fi
		pair_down
		if ! wait_for 60 all_gone; then
			{
				echo "left after round $i: references to $module: $(cat /sys/module/$module/refcnt)"
				rdma link
				rdma resource show
			} >"$TMP/left.out" 2>&1
			not_ok "$name" "$TMP/left.out"
			return
		fi
	done
	kernel_complaints >"$TMP/dmesg.out"
	if [ -s "$TMP/dmesg.out" ]; then
		not_ok "$name, $ROUNDS times: the kernel complains" "$TMP/dmesg.out"
	else
		ok "$name, $ROUNDS times"
	fi
}

way "kill -9 of both ends" round_kill keeps
way "netdev down and up" round_down keeps
way "rdma link delete" round_link
way "netdev removed" round_netdev
way "links made, deleted and orphaned at once" round_links
if [ "$DRIVER_A" = rxe ] || [ "$DRIVER_B" = rxe ]; then
	skip "namespace removed" "rdma_rxe keeps to the initial one"
else
	way "namespace removed" round_namespace
fi
way "module unloaded" round_module keeps
for d in "$DRIVER_A" "$DRIVER_B"; do driver_loaded "$d"; done
check "the module can be unloaded at last" rmmod "$module"
modprobe "$module" 2>/dev/null

tap_done
