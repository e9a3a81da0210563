#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rds.sh: Reliable Datagram Sockets over RDMA. They live in the initial net namespace
# only, and take no other transport: rds.py asks for this one.

cd "$(dirname "$0")" || exit 1
. ./ulp.sh

rds() {
	timeout -k 5 "$HANG" ./rds.py "$1" $IP4_A $IP4_B "${@:2}"
}

messages() {
	rds messages && crossed 25000000
}

# rdma_counted: both devices have seen READ and WRITE requests
rdma_counted() {
	local c

	for c in $DEV_A:rx_read_requests $DEV_A:rx_write_requests \
		 $DEV_B:rx_read_requests $DEV_B:rx_write_requests; do
		echo "$c $(counter "" "${c%:*}" "${c#*:}")"
		[ "$(counter "" "${c%:*}" "${c#*:}")" -ge 6 ] || return 1
	done
}

rdma_ops() {
	rds rdma && rdma_counted && crossed 6000000
}

# stream_start: in the background, until stream_ends; returns when data flows
stream_start() {
	local before

	rm -f "$TMP/enough"
	before=$(bytes_sent)
	rds stream "$TMP/enough" >"$TMP/stream.out" 2>&1 &
	stream=$!
	wait_for 60 flows $((before + 5000000)) || { cat "$TMP/stream.out"; return 1; }
}

stream_ends() {
	local rc

	touch "$TMP/enough"
	wait "$stream"
	rc=$?
	cat "$TMP/stream.out"
	return $rc
}

# The connection breaks without a link, and what was not delivered is sent again
flap() {
	stream_start || return 1
	link_down
	sleep 5
	link_up || { echo "the link does not come up"; return 1; }
	before=$(bytes_sent)
	wait_for 120 flows $((before + 5000000)) || echo "no data flows after the flap"
	stream_ends
}

removal() {
	stream_start || return 1
	rdma link delete $DEV_A &&
	rdma link add $DEV_A type "$DRIVER_A" netdev $IF_A &&
	wait_for 30 gid_index "" $DEV_A $IP4_A || return 1
	before=$(bytes_sent)
	wait_for 120 flows $((before + 5000000)) || echo "no data flows after the removal"
	stream_ends
}

need python3 ip rdma
ulp_start "RDS over RDMA" rds rds_rdma
check "messages of all sizes both ways" messages
check "RDMA both ways" rdma_ops
check "messages by new sockets" messages
check "a link flap under traffic" flap
check "messages after it" messages
check "a device is removed under traffic, and comes back" removal
check "messages after that" messages
check "RDMA after that" rdma_ops
ulp_end rds_rdma rds
