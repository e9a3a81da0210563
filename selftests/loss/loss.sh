#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# loss.sh: over a network that loses, repeats, reorders, delays and damages packets, every
# byte arrives as it was sent and no request fails.
#
# usage: loss.sh [NAME]    only the test points whose name contains NAME
#
# Between the ends is a bridge (lib.sh, HOP) whose queueing disciplines do all that to single
# packets, in both directions unless the name says otherwise.  What moves and checks the bytes
# is the integrity test's program, its cases for RC; SEED varies it.

cd "$(dirname "$0")" || exit 1
HOP=1
. ../lib.sh

need ip rdma cc tc ethtool
tap_start "loss"
modprobe -q sch_netem
modprobe -q sch_tbf
build integrity ../integrity/{main,arena,end,serve,cases}.c ../common/verbs.c ../common/tap.c
pair_up
export PEER_DRIVER=$DRIVER_B	# whose known faults may be met

only=$1

# move CASES: the integrity test's CASES, between both ends.
move() {
	local cases=$1 options

	options=(-s "${SEED:-0x5eed}" -o "$cases")
	on_b timeout -k 5 3000 "$TMP/integrity" -d $DEV_B -g "$GID4_B" "${options[@]}" \
		>"$TMP/server.out" 2>&1 &
	wait_for "$HANG" on_b grep -q ":48A8 0*:0000 0A" /proc/net/tcp6 || return 1
	on_a timeout -k 5 3000 "$TMP/integrity" -d $DEV_A -g "$GID4_A" "${options[@]}" $IP4_B \
		>"$TMP/client.out" 2>&1 || { kill %% 2>/dev/null; wait; return 1; }
	wait
	grep -q '^ok' "$TMP/client.out"
}

# trouble: what the ends' counters say of it so far: a sum.  In the initial namespace: the core
# shows counters nowhere else.
trouble() {
	local dev name sum=0

	for dev in $DEV_A $DEV_B; do
		for name in out_of_sequence duplicate_request packet_seq_err implied_nak_seq_err \
			    local_ack_timeout_err rx_icrc_encapsulated; do
			sum=$((sum + $(cat /sys/class/infiniband/$dev/ports/1/hw_counters/$name \
				       2>/dev/null || echo 0)))
		done
	done
	echo $sum
}

# over WHAT CASES QDISC...: one test point.
over() {
	local what=$1 cases=$2 before after

	shift 2
	[[ "$what" = *"$only"* ]] || return 0
	hop_netem "$@" 2>"$TMP/tc.out" || { skip "$what" "tc: $(head -c 200 "$TMP/tc.out")"; return; }
	before=$(trouble)
	if ! move "$cases"; then
		not_ok "$what" "$TMP/client.out" "$TMP/server.out"
	elif after=$(trouble); [ "$after" = "$before" ] && [ -z "$QUIET" ]; then
		echo "the devices noticed nothing of it" >"$TMP/verify.out"
		not_ok "$what" "$TMP/verify.out"
	else
		ok "$what"
		echo "# $((after - before)) times noticed"
	fi
	hop_netem
}

mixture="RC mixture"
large="of 16 MB"

if [ "$DRIVER_A$DRIVER_B" != sroce"sroce" ]; then
	# rdma_rxe at 0.1 % hangs in mixtures of requests, also among its own kind, and does not
	# repeat the answer to a READ of nothing
	for percent in 0.1 1; do
		over "$percent % lost, large messages" "$large" netem limit 100000 loss $percent%
		over "$percent % lost, SEND of every size" "RC SEND, every size, path MTU 1024" \
			netem limit 100000 loss $percent%
	done
else
	over "0.1 % lost" "$mixture" netem limit 100000 loss 0.1%
	over "1 % lost" "$mixture" netem limit 100000 loss 1%
	over "1 % lost, large messages" "$large" netem limit 100000 loss 1%
	over "1 % lost, SEND of every size" "RC SEND, every size" netem limit 100000 loss 1%
	over "1 % lost, READ of every size" "RC READ, every size" netem limit 100000 loss 1%
	over "10 % lost" "$mixture" netem limit 100000 loss 10%
	over "bursts lost" "$mixture" netem limit 100000 loss gemodel 1% 20% 70% 0.1%
	over "reordered" "$mixture" netem limit 100000 delay 1ms reorder 75% 50%
	over "delayed by 1 to 3 ms, so reordered" "$mixture" netem limit 100000 delay 2ms 1ms
	over "10 % twice" "$mixture" netem limit 100000 duplicate 10%
	over "1 % damaged" "$mixture" netem limit 100000 corrupt 1%
	over "1 % lost, twice, damaged and reordered each" "$mixture" \
		netem limit 100000 delay 1ms loss 1% duplicate 1% corrupt 1% reorder 99%
	over "100 Mbit/s, a queue of 64 KB, large messages" "$large" \
		tbf rate 100mbit burst 16k limit 64k
	QUIET=1 over "50 ms each way, large messages" "$large" netem limit 100000 delay 50ms
	over "50 ms each way, 0.1 % lost, large messages" "$large" \
		netem limit 100000 delay 50ms loss 0.1%
fi
tap_done
