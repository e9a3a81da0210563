#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# speed.sh: over the same kind of veth pair in the same boot, 64 KB WRITE bandwidth and
# 2-byte SEND latency are no worse than rdma_rxe's.  Interleaved rounds, medians; only
# their ratio counts, so that a busy machine slows both.
#
# usage: speed.sh [ROUNDS]    default 3

cd "$(dirname "$0")" || exit 1
. ./lib.sh

ROUNDS=${1:-3}
PORT=19700

# measure DRIVER NAME QPERF-ARGUMENT...: one figure, in base units, to $TMP/DRIVER.NAME
measure() {
	local driver=$1 name=$2

	shift 2
	PORT=$((PORT + 1))
	SERVER_STAYS=1 pair_run "tcp $PORT" "qperf -lp $PORT" \
		"qperf -lp $PORT -cm1 -t 2 -u -uu $IP4_B $*" || {
		cat "$TMP/client.out"
		return 1
	}
	awk '$2 == "=" { gsub(",", "", $3); print $3 }' "$TMP/client.out" >>"$TMP/$driver.$name"
}

# round DRIVER: both figures of one driver, on a pair of its own
round() {
	DRIVER_A=$1 DRIVER_B=$1
	pair_up
	measure "$1" bandwidth -m 64K rc_rdma_write_bw && measure "$1" latency -m 2 rc_lat
	local status=$?
	pair_down
	return $status
}

median() {
	sort -g "$TMP/$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# no_worse NAME OPERATOR UNIT: compare the medians
no_worse() {
	local ours theirs

	ours=$(median "sroce.$1")
	theirs=$(median "rxe.$1")
	echo "# $1: sroce $ours, rdma_rxe $theirs $3 (medians of $ROUNDS rounds)"
	check "$1 is no worse than rdma_rxe's" \
		awk "BEGIN { exit !($ours + 0 > 0 && $theirs + 0 > 0 && $ours $2 $theirs) }"
}

command -v qperf >/dev/null || skip_all "no qperf installed"
driver_loaded rxe || skip_all "no rdma_rxe in this kernel"
tap_start 2
for ((i = 0; i < ROUNDS; i++)); do
	for driver in sroce rxe; do
		round $driver >"$TMP/round.out" 2>&1 || bail "measure $driver" "$TMP/round.out"
	done
done
no_worse bandwidth '>=' B/s
no_worse latency '<=' s
tap_done
