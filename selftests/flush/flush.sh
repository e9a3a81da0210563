#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# flush.sh: RDMA FLUSH with a provider that has ibv_wr_flush() and a kernel whose regions
# can grant it (6.2), and the packets of it.

cd "$(dirname "$0")" || exit 1
. ../lib.sh
export PYTHONDONTWRITEBYTECODE=1

need ip rdma cc ethtool tcpdump python3
tap_start "RDMA FLUSH"
grep -q wr_flush /usr/include/infiniband/verbs.h || skip_all "no ibv_wr_flush() in this rdma-core"
build flush main.c ../errors/pair.c ../common/verbs.c ../common/tap.c
pair_up
for end in "$NS_A $IF_A" "$NS_B $IF_B"; do
	in_ns "${end% *}" ethtool -K "${end##* }" tx off tso off gso off gro off \
		tx-udp-segmentation off >"$TMP/ethtool.out" 2>&1 ||
		bail "switch segmentation offload off" "$TMP/ethtool.out"
done

(
	set -- tcpdump -i $IF_A -B 65536 -U -w "$TMP/pcap" udp port 4791
	[ -z "$NS_A" ] || set -- ip netns exec "$NS_A" "$@"
	exec "$@"
) >"$TMP/tcpdump.out" 2>&1 &
dump=$!
wait_for 30 grep -q listening "$TMP/tcpdump.out"
# one process opens both devices, wherever they live
timeout -k 5 "$HANG" "$TMP/flush" $DEV_A "$GID4_A" $DEV_B "$GID4_B" >"$TMP/flush.out" 2>&1
status=$?
sleep 1
kill -INT $dump
wait $dump
grep -v '^1\.\.' "$TMP/flush.out"
tap_count=$(grep -cE '^(not )?ok' "$TMP/flush.out")
tap_failed=$(grep -c '^not ok' "$TMP/flush.out")
[ $status -le 1 ] || not_ok "the program ended with status $status"
check "requests and answers on the wire" ./wire.py "$TMP/pcap" $IP4_A
tap_done
