#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# counters.sh: counters have hardware's names and units, and agree with what nftables
# counts on the same interfaces.
#
# Segmentation offload is off on both ends: nftables sees packets, not super-packets, at
# the receiver; and at the sender what is queued, hence the packets of small messages.

cd "$(dirname "$0")" || exit 1
. ./lib.sh
. ./talkers.sh

PORT=19800

need ip rdma nft ethtool python3 cc ibv_rc_pingpong
tap_start "counters"
build group stack/group.c common/verbs.c
pair_up
for end in "$NS_A $IF_A" "$NS_B $IF_B"; do
	in_ns "${end% *}" ethtool -K "${end##* }" tx off tso off gso off gro off \
		tx-udp-segmentation off >"$TMP/ethtool.out" 2>&1 ||
		bail "switch segmentation offload off" "$TMP/ethtool.out"
done

# port END COUNTER, hw END COUNTER: the value of a counter, END is A or B
port() { value "$1" counters "$2"; }
hw() { value "$1" hw_counters "$2"; }
value() {
	local dev=DEV_$1

	# in the initial namespace: the core shows counters nowhere else
	cat "/sys/class/infiniband/${!dev}/ports/1/$2/$3"
}

# hold END: note all counters, so that grown can say by how much they grew
hold() {
	local dev=DEV_$1

	(cd "/sys/class/infiniband/${!dev}/ports/1" && grep -H . counters/* hw_counters/*) \
		>"$TMP/before_$1"
}
grown() {
	local before

	before=$(awk -F: -v "name=$2/$3" '$1 == name { print $2 }' "$TMP/before_$1")
	echo $(($(value "$@") - before))
}

for dev in $DEV_A $DEV_B; do	# else they are up to 10 ms old
	echo 0 >/sys/class/infiniband/$dev/ports/1/hw_counters/lifespan
done

# ------------------------------------------------ names
# What node_exporter's collector and mlx5's documentation call them; congestion
# control's and adaptive retransmission's are only there with these.
NAMES="duplicate_request implied_nak_seq_err local_ack_timeout_err out_of_buffer
	out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error
	req_remote_access_errors req_remote_invalid_request req_rnr_retries_exceeded
	req_transport_retries_exceeded resp_cqe_error resp_cqe_flush_error
	resp_local_length_error resp_remote_access_errors rnr_nak_retry_err
	rx_atomic_requests rx_icrc_encapsulated rx_read_requests rx_write_requests
	icrc_errors lifespan"
PORT_NAMES="VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery
	local_link_integrity_errors multicast_rcv_packets multicast_xmit_packets
	port_rcv_constraint_errors port_rcv_data port_rcv_errors port_rcv_packets
	port_rcv_remote_physical_errors port_rcv_switch_relay_errors
	port_xmit_constraint_errors port_xmit_data port_xmit_discards port_xmit_packets
	port_xmit_wait symbol_error unicast_rcv_packets unicast_xmit_packets"

all_there() {
	local name

	for name in $NAMES; do
		hw A "$name" || return
	done
	for name in $PORT_NAMES; do
		port A "$name" || return
	done
}
check "counters have hardware's names" all_there
named() { on_a rdma -j statistic show link "$DEV_A/1" | grep -q '"rnr_nak_retry_err":0'; }
check "rdma statistic shows them" named

# ------------------------------------------------ units
# nft_count NS: packets and bytes of RoCE in and out, by nftables
nft_rules() {
	in_ns "$1" nft -f - <<-EOT
		table inet sroce_count {
			counter in { }
			counter out { }
			chain input {
				type filter hook input priority 0;
				udp dport 4791 counter name in
			}
			chain output {
				type filter hook output priority 0;
				udp dport 4791 counter name out
			}
		}
	EOT
}
nft_count() {
	in_ns "$1" nft list counter inet sroce_count "$2" |
		sed -n 's/.*packets \([0-9]*\) bytes \([0-9]*\).*/\1 \2/p'
}

# agrees END DIRECTION COUNTERS HEADER: the port's counters with nftables'
agrees() {
	local ns=NS_$1 packets bytes data

	read -r packets bytes < <(nft_count "${!ns}" "$2")
	data=$(grown "$1" counters "port_$3_data")
	echo "nftables: $packets packets, $bytes bytes with headers of $4"
	echo "port_$3_packets $(grown "$1" counters "port_$3_packets"), port_$3_data $data"
	[ "$packets" -gt 0 ] && [ "$(grown "$1" counters "port_$3_packets")" = "$packets" ] &&
		[ "$(grown "$1" counters "unicast_$3_packets")" = "$packets" ] &&
		[ "$((data * 4))" = $((bytes - packets * $4)) ]
}

# pingpong FAMILY OPTION...: some messages, by the words of pair_run
pingpong() {
	local a=GID$1_A b=GID$1_B

	shift
	PORT=$((PORT + 1))
	pair_run "tcp $PORT" "ibv_rc_pingpong -p $PORT -d $DEV_B -g ${!b} $*" \
		"ibv_rc_pingpong -p $PORT -d $DEV_A -g ${!a} $* $IP4_B"
}

for family in 4 6; do
	header=$((family == 4 ? 28 : 48))
	nft_rules "$NS_A" && nft_rules "$NS_B" || bail "nftables rules"
	hold A
	hold B
	check "IPv$family: traffic" pingpong $family -s 700 -n 50
	check "IPv$family: sender: packets, and data in units of four octets" \
		agrees A out xmit $header
	check "IPv$family: receiver: likewise" agrees B in rcv $header
	check "IPv$family: and what came back" agrees A in rcv $header
	in_ns "$NS_A" nft delete table inet sroce_count
	in_ns "$NS_B" nft delete table inet sroce_count
done

# ------------------------------------------------ groups
N=20
(
	[ -z "$NS_B" ] || set -- ip netns exec "$NS_B"
	exec "$@" "$TMP/group" $DEV_B "$GID4_B" 239.77.8.1
) >"$TMP/member.out" 2>&1 &
member=$!
wait_for "$HANG" grep -q member "$TMP/member.out"
hold A
hold B
heard_all() { [ "$(grep -c ^message "$TMP/member.out")" -ge $N ]; }
multicast() {
	on_a timeout "$HANG" "$TMP/group" $DEV_A "$GID4_A" 239.77.8.1 $N || return
	wait_for 30 heard_all || return
	echo "sent $(grown A counters multicast_xmit_packets), received $(grown B counters multicast_rcv_packets)"
	[ "$(grown A counters multicast_xmit_packets)" = $N ] &&
		[ "$(grown B counters multicast_rcv_packets)" = $N ] &&
		[ "$(grown A counters unicast_xmit_packets)" = 0 ]
}
check "packets to a group are counted as such" multicast
kill $member
wait $member 2>/dev/null

# ------------------------------------------------ bound to queue pairs
# qp_counter FIELD: of the counter that rdma statistic shows, if there is just one
qp_counter() {
	on_a rdma -j statistic qp show link "$DEV_A/1" | python3 -c '
import json, sys
text = sys.stdin.read().strip()
found = [c for c in json.loads(text) if c] if text else []
if len(found) != 1:
    sys.exit(f"{len(found)} counters: {found}")
value = found[0][sys.argv[1]]
print(*value if isinstance(value, list) else [value])' "$1"
}
no_qp_counter() { ! qp_counter cntn >/dev/null 2>"$TMP/none.out" && grep -q '^0 counters' "$TMP/none.out"; }

qpn_of() {
	on_a rdma -j resource show qp link "$DEV_A/1" | python3 -c '
import json, sys
print(*[q["lqpn"] for q in json.load(sys.stdin) if q.get("comm") == "ibv_rc_pingpong"])'
}

# all_of_it BEFORE...: what the queue pair counted is what the port counted since then,
# in the core's sum and in the specification's counters
all_of_it() {
	echo "queue pair: $(qp_counter sent_pkts) and $(qp_counter rcvd_pkts) packets," \
	     "port: $(($(value A hw_counters sent_pkts) - $1)), $(($(port A unicast_xmit_packets) - $2))"
	[ "$(qp_counter sent_pkts)" -gt 0 ] &&
		[ "$(qp_counter sent_pkts)" = $(($(value A hw_counters sent_pkts) - $1)) ] &&
		[ "$(qp_counter sent_pkts)" = $(($(port A unicast_xmit_packets) - $2)) ] &&
		[ "$(qp_counter rcvd_pkts)" = $(($(value A hw_counters rcvd_pkts) - $3)) ]
}
now() { echo "$(value A hw_counters sent_pkts) $(port A unicast_xmit_packets) $(value A hw_counters rcvd_pkts)"; }

check "no queue pair has a counter of its own" no_qp_counter
check "counters by type are switched on" on_a rdma statistic qp set link $DEV_A/1 auto type on
# shellcheck disable=SC2046
set -- $(now)
if check "programs that go on talking" talkers_start; then
	talkers_halt
	bound() { [ -n "$(qpn_of)" ] && [ "$(qp_counter lqpn)" = "$(qpn_of)" ]; }
	check "a new queue pair is bound to one" bound
	check "which counts all it does, and the port's sum has it once" all_of_it "$@"
	sent=$(value A hw_counters sent_pkts)
	talkers_go
	check "they end" talkers_stop
	check "the counter went with the queue pair" no_qp_counter
	kept() { echo "$sent, now $(value A hw_counters sent_pkts)"; [ "$(value A hw_counters sent_pkts)" -ge "$sent" ]; }
	check "and the port keeps what it had" kept
fi
check "counters by type are switched off" on_a rdma statistic qp set link $DEV_A/1 auto off
if check "programs that go on talking, again" talkers_start; then
	talkers_halt
	check "no queue pair is bound by itself" no_qp_counter
	check "one is bound by its number" \
		on_a rdma statistic qp bind link $DEV_A/1 lqpn "$(qpn_of)"
	# shellcheck disable=SC2046
	set -- $(now)
	from=$(packets A)
	talkers_go
	check "they go on" wait_for 60 talked "$from"
	talkers_halt
	check "what it does from then on is counted" all_of_it "$@"
	check "it is unbound" on_a rdma statistic qp unbind link $DEV_A/1 \
		cntn "$(qp_counter cntn)" lqpn "$(qpn_of)"
	check "and has none" no_qp_counter
	sent=$(value A hw_counters sent_pkts)
	check "the port keeps what it had" kept
	talkers_go
	check "they end, again" talkers_stop
fi

# ------------------------------------------------ faults
in_ns "$NS_B" nft -f - <<-EOT || bail "nftables rules"
	table inet sroce_drop {
		chain input {
			type filter hook input priority 0;
			udp dport 4791 counter drop
		}
	}
EOT
hold A
# timeouts of a peer that never answers: the first time and seven repetitions
unanswered() {
	pingpong 4 -s 700 -n 1 && { echo "succeeded"; return 1; }
	echo "timeouts $(grown A hw_counters local_ack_timeout_err)"
	[ "$(grown A hw_counters req_transport_retries_exceeded)" = 1 ] &&
		[ "$(grown A hw_counters req_cqe_error)" = 1 ] &&
		[ "$(grown A hw_counters local_ack_timeout_err)" -ge 7 ]
}
check "no answer: timeouts, one request given up, one completion in error" unanswered
in_ns "$NS_B" nft delete table inet sroce_drop

in_ns "$NS_A" nft -f - <<-EOT || bail "nftables rules"
	table inet sroce_drop {
		chain output {
			type filter hook output priority 0;
			udp dport 4791 counter drop
		}
	}
EOT
hold A
discarded() {
	pingpong 4 -s 700 -n 1 && { echo "succeeded"; return 1; }
	echo "discards $(grown A counters port_xmit_discards), frames $(grown A hw_counters sent_frames)"
	[ "$(grown A counters port_xmit_discards)" -gt 0 ] &&
		[ "$(grown A counters port_xmit_discards)" = "$(grown A hw_counters sent_frames)" ]
}
check "what a filter stops is discarded" discarded
in_ns "$NS_A" nft delete table inet sroce_drop

hold A
on_a ip link set $IF_A down
down() { [ "$(grown A counters link_downed)" = 1 ] && [ "$(grown A hw_counters link_downed)" = 1 ]; }
check "a link that went down" wait_for 30 down
on_a ip link set $IF_A up
tap_done
