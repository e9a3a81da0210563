#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# trace.sh: the tracepoints fire, and a message can be followed by them from end to
# end: over a clean path, and over one that loses and damages frames.

cd "$(dirname "$0")" || exit 1
. ../lib.sh
export PYTHONDONTWRITEBYTECODE=1

TRACEFS=/sys/kernel/tracing
PORT=19700

need ip rdma nft python3 ibv_rc_pingpong ibv_ud_pingpong
tap_start "tracepoints"
pair_up
mountpoint -q $TRACEFS || mount -t tracefs nodev $TRACEFS 2>/dev/null
[ -d $TRACEFS/events ] || skip_all "no tracefs in this kernel"
[ -d $TRACEFS/events/sroce ] || skip_all "the kernel traces no modules' events"

on_exit() {
	echo 0 >$TRACEFS/events/sroce/enable
	echo >$TRACEFS/trace
}

# traced WHAT READY SERVER CLIENT: run both; the trace of it goes to $TMP/trace
traced() {
	local what=$1 status=0

	shift
	echo 0 >$TRACEFS/tracing_on
	echo 24576 >$TRACEFS/buffer_size_kb
	echo mono >$TRACEFS/trace_clock		# one order of what all CPUs did
	echo >$TRACEFS/trace
	echo 1 >$TRACEFS/events/sroce/enable
	echo 1 >$TRACEFS/tracing_on
	pair_run "$@" || status=1
	echo 0 >$TRACEFS/tracing_on
	echo 0 >$TRACEFS/events/sroce/enable
	cat $TRACEFS/trace >"$TMP/trace"
	if [ $status = 0 ] && ! grep -h ^overrun $TRACEFS/per_cpu/*/stats | grep -qv ": 0$"; then
		ok "$what: traffic, and all of its events kept"
	else
		not_ok "$what: traffic, and all of its events kept" "$TMP/client.out" "$TMP/server.out"
	fi
}

# follow DESCRIPTION ARGUMENT...: what follow.py is to find in the trace
follow() {
	local what=$1

	shift
	check "$what" ./follow.py "$TMP/trace" "$@"
}

# pingpong PROGRAM OPTION...: the words of pair_run
pingpong() {
	local program=$1

	shift
	PORT=$((PORT + 1))
	SERVER="$program -p $PORT -d $DEV_B -g $GID4_B $*"
	CLIENT="$program -p $PORT -d $DEV_A -g $GID4_A $* $IP4_B"
}

# psn FILE: the PSN that a pingpong program begins with, by its own words
psn() { sed -n 's/.*local address:.*PSN 0x\([0-9a-f]*\),.*/\1/p' "$1"; }

pingpong ibv_rc_pingpong -s 3000 -n 5
traced "RC" "tcp $PORT" "$SERVER" "$CLIENT"
follow "RC: every message is seen requested, sent, received, acknowledged and completed" \
	--from $DEV_A --to $DEV_B --messages 5 --length 3000 --mtu 1024 \
	--psn "$(psn "$TMP/client.out")"
follow "RC: so is every answer of the other end" \
	--from $DEV_B --to $DEV_A --messages 5 --length 3000 --mtu 1024 \
	--psn "$(psn "$TMP/server.out")"
follow "RC: nothing else happened" --never sroce_retransmit sroce_nak sroce_drop

pingpong ibv_ud_pingpong -s 500 -n 5
traced "UD" "tcp $PORT" "$SERVER" "$CLIENT"
follow "UD: every datagram is seen requested, sent, received and completed" \
	--from $DEV_A --to $DEV_B --messages 5 --length 500 --mtu 1024 --datagrams

# But no ACK: for the last one the client does not stay, if it has to be asked for again
in_ns "$NS_B" nft -f - <<-EOT || bail "nftables rules"
	table inet sroce_trace {
		chain input {
			type filter hook input priority 0;
			udp dport 4791 @th,64,8 0x11 accept
			udp dport 4791 numgen inc mod 7 == 3 counter drop
			udp dport 4791 numgen inc mod 11 == 5 counter @th,128,16 set 0x1234
		}
	}
EOT
pingpong ibv_rc_pingpong -s 400000 -n 4
traced "loss" "tcp $PORT" "$SERVER" "$CLIENT"
in_ns "$NS_B" nft delete table inet sroce_trace
follow "loss: every message is still seen to arrive and be acknowledged" \
	--from $DEV_A --to $DEV_B --messages 4 --length 400000 --mtu 1024 \
	--psn "$(psn "$TMP/client.out")"
follow "loss: NAKs, repetitions and damaged packets are seen" --seen sroce_retransmit sroce_nak \
	"sroce_drop.*reason=rx_icrc_encapsulated" "sroce_nak:.* sent .*NAK_PSN" \
	"sroce_nak:.* received .*NAK_PSN"

echo >$TRACEFS/trace
echo 1 >$TRACEFS/tracing_on
pingpong ibv_rc_pingpong -s 3000 -n 5
pair_run "tcp $PORT" "$SERVER" "$CLIENT" || not_ok "traffic" "$TMP/client.out"
cat $TRACEFS/trace >"$TMP/trace"
follow "switched off, no event is recorded" --never sroce_
tap_done
