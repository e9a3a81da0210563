#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# resource.sh: the details that "rdma -dd resource show" has of our objects are those of the
# programs, of the other end and of the wire.

cd "$(dirname "$0")" || exit 1
. ./lib.sh
. ./talkers.sh

need ip rdma nft python3 ibv_rc_pingpong
tap_start "resources"
pair_up
for dev in $DEV_A $DEV_B; do	# else they are up to 10 ms old
	echo 0 >"/sys/class/infiniband/$dev/ports/1/hw_counters/lifespan"
done

# show END KIND: its details of what belongs to the talkers, one object a line
show() {
	local ns=NS_$1 dev=DEV_$1 by=dev

	[ "$2" != qp ] || by=link
	in_ns "${!ns}" rdma -dd -j resource show "$2" $by "${!dev}" | python3 -c '
import json, sys
for o in json.load(sys.stdin):
    if o.get("comm") == "ibv_rc_pingpong":
        print(json.dumps({k.removeprefix("drv_"): v for k, v in o.items()}))'
}

# detail END KIND NAME: of the one object of the kind
detail() {
	show "$1" "$2" | python3 -c '
import json, sys
lines = sys.stdin.read().splitlines()
if len(lines) != 1 or sys.argv[1] not in json.loads(lines[0]):
    sys.exit(f"{len(lines)} objects: {lines}, not one with {sys.argv[1]}")
print(json.loads(lines[0])[sys.argv[1]])' "$3"
}

# is VALUE END KIND NAME: the detail is this
is() {
	local value

	value=$(detail "$2" "$3" "$4") || return
	echo "$3 of $2: $4 is $value, expected $1"
	[ "$value" = "$1" ]
}
all() {
	while [ $# -gt 0 ]; do
		is "$1" "$2" "$3" "$4" || return
		shift 4
	done
}

check "programs that go on talking" talkers_start -m 2048 -r 300 || tap_done
talkers_halt

# what one end sends next is what the other expects, and all was acknowledged
positions() {
	local end peer

	for end in A B; do
		peer=$([ $end = A ] && echo B || echo A)
		is "$(detail $end qp next_psn)" $peer qp expected_psn &&
			is "$(detail $end qp next_psn)" $end qp unacked_psn || return
	done
	[ "$(detail A qp next_psn)" != "$(detail B qp next_psn)" ]
}
check "queue pairs: what one sends next the other expects" positions
check "path MTU and state as asked for" all 2048 A qp path_mtu 2048 B qp path_mtu RTS A qp state
posted() {
	local n

	n=$(detail A qp rq_pending) && echo "$n receives of 300" && [ "$n" -gt 0 ] && [ "$n" -le 300 ] &&
		[ "$(detail A qp rq_size)" -ge 300 ] && is 0 A qp sq_pending
}
check "receives posted, sends done" posted
queue() {
	[ "$(detail A cq size)" -ge 301 ] && all no A cq overrun no A cq notify
}
check "the completion queue has the size asked for, and no overrun" queue
check "the region is a user's, to be written here only" \
	all user A mr type yes A mr valid yes A mr local_write no A mr remote_write no A mr remote_read

# ------------------------------------------------ the wire
in_ns "$NS_A" nft -f - <<-EOT || bail "nftables rules"
	table inet sroce_count {
		chain output {
			type filter hook output priority 0;
			udp dport 4791 udp sport $(detail A qp udp_sport) counter comment "own"
			udp dport 4791 udp sport != $(detail A qp udp_sport) counter comment "other"
		}
	}
EOT
from=$(packets A)
talkers_go
check "they go on" wait_for 60 talked "$from"
source_port() {
	in_ns "$NS_A" nft list table inet sroce_count >"$TMP/nft.out"
	cat "$TMP/nft.out"
	grep -q 'packets [1-9].*"own"' "$TMP/nft.out" && grep -q 'packets 0 .*"other"' "$TMP/nft.out"
}
check "the source port is the one on the wire" source_port

# ------------------------------------------------ one that does not poll
kill -STOP $talker_b
unpolled() {
	all 0 A cq waiting 0 A qp sq_pending idle A qp requester || return
	[ "$(detail B cq waiting)" -ge 1 ]
}
check "completions that nobody polls show at that end only" wait_for 30 unpolled
kill -CONT $talker_b
check "they end" talkers_stop
tap_done
