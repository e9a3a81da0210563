#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# wire.sh: real traffic of every operation, captured and decoded by tshark, by scapy
# and by the oracle of the protocol tests.
#
# Segmentation offload is off on both ends: the capture shows packets as they are on
# a wire, not the super-packets that veth passes whole.

cd "$(dirname "$0")" || exit 1
. ../lib.sh
export PYTHONDONTWRITEBYTECODE=1

need ip rdma cc ethtool tcpdump tshark python3
tap_start "wire format"
build integrity ../integrity/{main,arena,end,serve,cases}.c ../common/verbs.c ../common/tap.c
pair_up
on_a ethtool -K $IF_A tx off tso off gso off gro off tx-udp-segmentation off >"$TMP/ethtool.out" 2>&1 ||
	bail "switch segmentation offload off" "$TMP/ethtool.out"
on_b ethtool -K $IF_B tx off tso off gso off gro off tx-udp-segmentation off >"$TMP/ethtool.out" 2>&1 ||
	bail "switch segmentation offload off" "$TMP/ethtool.out"

# traffic FAMILY NAME: have the integrity test points with this name run.
traffic() {
	local a=GID$1_A b=GID$1_B pid

	on_b timeout -k 5 "$HANG" "$TMP/integrity" -d $DEV_B -g "${!b}" >"$TMP/server.out" 2>&1 &
	pid=$!
	wait_for "$HANG" on_b grep -q ":48A8 0*:0000 0A" /proc/net/tcp6
	on_a timeout -k 5 "$HANG" "$TMP/integrity" -d $DEV_A -g "${!a}" -o "$2" $IP4_B \
		>>"$TMP/traffic.out" 2>&1 || return 1
	wait $pid
}

for family in 4 6; do
	pcap=$TMP/$family.pcap
	(
		set -- tcpdump -i $IF_A -B 65536 -U -w "$pcap" udp port 4791
		[ -z "$NS_A" ] || set -- ip netns exec "$NS_A" "$@"
		exec "$@"
	) >"$TMP/tcpdump.out" 2>&1 &
	dump=$!
	wait_for 30 grep -q listening "$TMP/tcpdump.out"
	: >"$TMP/traffic.out"
	if traffic $family "scatter/gather lists" && traffic $family CMP_SWAP &&
	   traffic $family FETCH_ADD; then
		ok "IPv$family: traffic to capture"
	else
		not_ok "IPv$family: traffic to capture" "$TMP/traffic.out" "$TMP/server.out"
	fi
	sleep 1
	kill -INT $dump
	wait $dump
	if grep -qE "^[1-9][0-9]* packets dropped by kernel" "$TMP/tcpdump.out"; then
		skip "IPv$family: decoding" "the capture lost packets"
		continue
	fi
	# its test points are this file's, so numbered on
	./wire.py "$pcap" "$family" "$tap_count" >"$TMP/wire.out" 2>"$TMP/wire.err"
	status=$?
	cat "$TMP/wire.out"
	tap_count=$((tap_count + $(grep -cE '^(not )?ok' "$TMP/wire.out")))
	tap_failed=$((tap_failed + $(grep -c '^not ok' "$TMP/wire.out")))
	[ $status -le 1 ] || not_ok "IPv$family: the decoder failed" "$TMP/wire.err"
done
tap_done
