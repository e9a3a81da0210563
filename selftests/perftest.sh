#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# perftest.sh: Debian's perftest over a veth pair. It shows that the programs
# run and report every size with every iteration, not how fast.
#
# usage: perftest.sh [PATTERN]    only the test points whose name matches (grep -E)

cd "$(dirname "$0")" || exit 1
. ./lib.sh

ONLY=${1:-.}
N=${N:-20}
PORT=18515
ALL_SIZES=$(for ((i = 1; i <= 23; i++)); do echo -n "$((1 << i)) "; done)

# rows FILE: the lines "bytes iterations ..." of perftest's table.
rows() {
	awk '/^ *#bytes/ { table = 1; next }
	     /^---/ { table = 0 }
	     table && $1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= 4' "$1"
}

# verify_table ITERATIONS SIZE...: the client reported just these sizes and
# iterations (0: any). perftest exits with 0 after some failures, so its exit
# status alone says little.
verify_table() {
	local n=${1#0} bad=0 sizes

	shift
	sizes=$(rows "$TMP/client.out" | awk '{ print $1 }' | xargs)
	if [ "$sizes" != "$*" ]; then
		echo "sizes reported: '$sizes', expected '$*'"
		bad=1
	fi
	# not the figures: perftest's calibration of the clock fails under emulation,
	# and then it reports zeros
	if ! rows "$TMP/client.out" | awk -v n="$n" '
		n && $2 != n { print "size " $1 ": " $2 " iterations, expected " n; bad = 1 }
		END { exit bad }'; then
		bad=1
	fi
	if grep -hE 'Completion with error|Failed|fail to|Couldn.t|Unable' "$TMP/client.out" "$TMP/server.out"; then
		bad=1
	fi
	return $bad
}

# perf NAME FAMILY ITERATIONS "SIZES" TOOL [OPTION...]: one test point.
# FAMILY: 4 or 6 chooses the GID; R4 or R6 connects through rdma_cm instead.
perf() {
	local name=$1 family=$2 n=$3 sizes=$4 tool=$5 a b to ready rows

	shift 5
	name="$tool $name"
	echo "$name" | grep -qE -- "$ONLY" || return 0
	command -v "$tool" >/dev/null || { skip "$name" "no $tool installed"; return; }
	PORT=$((PORT + 1))
	ready="tcp $PORT"
	to=$IP4_B
	case $family in
	4) a="-x $GID4_A" b="-x $GID4_B" ;;
	6) a="-x $GID6_A" b="-x $GID6_B" ;;
	R4) a="-R" b="-R" ready="cm $PORT" ;;
	R6)
		# older ones connect to IPv4 addresses only
		if ! "$tool" --help 2>&1 | grep -q -- --ipv6-addr; then
			skip "$name" "this perftest has no --ipv6-addr"
			return
		fi
		a="-R --ipv6-addr" b=$a ready="cm $PORT" to=$IP6_B
		;;
	esac
	rows=$n
	case " $* " in *" -q "*) rows=$((n * $(echo " $* " | sed 's/.* -q \([0-9]*\) .*/\1/'))) ;; esac
	case " $* " in *" -D "*) rows=0 ;; esac
	case " $* " in *" -D "*) n='' ;; *) n="-n $n" ;; esac
	# shellcheck disable=SC2086
	pair_test "$name" "$ready" \
		"$tool -F -p $PORT -d $DEV_B $b $n $*" \
		"$tool -F -p $PORT -d $DEV_A $a $n $* $to" \
		verify_table $rows $sizes
}

need ib_write_bw ip rdma
tap_start "perftest over veth"
pair_up

# Every tool, transport and address family.
for f in 4 6; do
	for c in RC UC; do
		perf "$c IPv$f" $f "$N" 65536 ib_write_bw -c $c
		perf "$c IPv$f" $f "$N" 2 ib_write_lat -c $c
	done
	perf "RC IPv$f" $f "$N" 65536 ib_read_bw
	perf "RC IPv$f" $f "$N" 2 ib_read_lat
	for c in RC UC; do
		perf "$c IPv$f" $f "$N" 65536 ib_send_bw -c $c
		perf "$c IPv$f" $f "$N" 2 ib_send_lat -c $c
	done
	perf "UD IPv$f" $f "$N" 1024 ib_send_bw -c UD -s 1024
	perf "UD IPv$f" $f "$N" 2 ib_send_lat -c UD
	for t in FETCH_AND_ADD CMP_AND_SWAP; do
		perf "$t IPv$f" $f "$N" 8 ib_atomic_bw -A $t
		perf "$t IPv$f" $f "$N" 8 ib_atomic_lat -A $t
	done
done

# Connected by rdma_cm.
for f in R4 R6; do
	for t in ib_write ib_read ib_send; do
		perf "rdma_cm IPv${f#R}" $f "$N" 65536 ${t}_bw
		perf "rdma_cm IPv${f#R}" $f "$N" 2 ${t}_lat
	done
	perf "rdma_cm IPv${f#R}" $f "$N" 8 ib_atomic_bw
	perf "UD rdma_cm IPv${f#R}" $f "$N" 1024 ib_send_bw -c UD -s 1024
done

# The smallest and all other sizes.
for t in ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat; do
	perf "1 byte" 4 "$N" 1 $t -s 1
	perf "all sizes" 4 5 "$ALL_SIZES" $t -a
done
perf "UC all sizes" 6 5 "$ALL_SIZES" ib_write_bw -a -c UC
perf "UD 4096 bytes" 4 "$N" 4096 ib_send_bw -c UD -s 4096

# Path MTUs.
for m in 256 512 1024 2048 4096; do
	for t in ib_write_bw ib_read_bw ib_send_bw; do
		perf "path MTU $m" 4 "$N" 65536 $t -m $m
	done
done

# Many queue pairs, both directions, posted in lists.
for t in ib_write_bw ib_read_bw ib_send_bw; do
	perf "16 queue pairs" 4 "$N" 16384 $t -q 16 -s 16384
	perf "bidirectional" 4 "$N" 65536 $t -b
	perf "lists of 4" 4 "$N" 4096 $t -l 4 -s 4096
done
perf "16 queue pairs" 4 "$N" 8 ib_atomic_bw -q 16
perf "bidirectional" 4 "$N" 8 ib_atomic_bw -b
perf "UD bidirectional" 4 "$N" 1024 ib_send_bw -c UD -b -s 1024
perf "bidirectional 4 queue pairs" 6 "$N" 16384 ib_send_bw -b -q 4 -s 16384

# Small messages that are posted together share frames.
frames() { on_a cat /sys/class/net/$IF_A/statistics/tx_packets; }

if [ "$DRIVER_A" = sroce ]; then
	before=$(frames)
	perf "lists of 32 small messages" 4 4992 64 ib_write_bw -s 64 -l 32
	sent=$(($(frames) - before))
	echo "$sent frames for 4992 messages" >"$TMP/frames.out"
	if [ $sent -gt 0 ] && [ $sent -lt 1000 ]; then
		ok "they share frames"
	elif echo "ib_write_bw lists of 32 small messages" | grep -qE -- "$ONLY"; then
		not_ok "they share frames" "$TMP/frames.out"
	fi
fi

# Shared receive queue.
perf "SRQ" 4 "$N" 65536 ib_send_bw --use-srq
perf "SRQ 8 queue pairs" 4 "$N" 4096 ib_send_bw --use-srq -q 8 -s 4096
perf "SRQ" 4 "$N" 2 ib_send_lat --use-srq
perf "UD SRQ" 4 "$N" 1024 ib_send_bw --use-srq -c UD -s 1024

# Completion events. A WRITE has none at the receiver, and the programs refuse it.
perf "events" 4 "$N" 65536 ib_read_bw -e
perf "events" 4 "$N" 2 ib_read_lat -e
perf "events" 4 "$N" 65536 ib_send_bw -e
perf "events" 4 "$N" 2 ib_send_lat -e
perf "UD events" 4 "$N" 2 ib_send_lat -e -c UD
perf "events" 4 "$N" 8 ib_atomic_lat -e

# Inline data.
perf "inline" 4 "$N" 64 ib_write_bw -I 64 -s 64
perf "inline" 4 "$N" 64 ib_write_lat -I 64 -s 64
perf "inline" 4 "$N" 64 ib_send_bw -I 64 -s 64
perf "inline" 4 "$N" 64 ib_send_lat -I 64 -s 64
perf "UC inline" 4 "$N" 64 ib_send_lat -I 64 -s 64 -c UC
perf "UD inline" 4 "$N" 64 ib_send_lat -I 64 -s 64 -c UD

# XRC, which the stock provider does not have.
if [ "$PROVIDER" != rxe ]; then
	for t in ib_write ib_read ib_send; do
		perf "XRC" 4 "$N" 65536 ${t}_bw -c XRC
		perf "XRC" 6 "$N" 2 ${t}_lat -c XRC
	done
	for t in FETCH_AND_ADD CMP_AND_SWAP; do
		perf "XRC $t" 4 "$N" 8 ib_atomic_bw -c XRC -A $t
	done
	perf "XRC 4 queue pairs" 4 "$N" 16384 ib_send_bw -c XRC -q 4 -s 16384
	perf "XRC bidirectional" 4 "$N" 65536 ib_write_bw -c XRC -b
fi

# perf_with OPTION: every operation with it, where this perftest has it
perf_with() {
	local t

	if ! ib_write_bw --help 2>&1 | grep -qE -- "$1( |\$)"; then
		skip "ib_write_bw $1" "this perftest has no $1"
		return
	fi
	for t in ib_write ib_read ib_send; do
		perf "$1" 4 "$N" 65536 ${t}_bw "$1"
		perf "$1" 6 "$N" 2 ${t}_lat "$1"
	done
	# perftest refuses atomics on demand
	[ "$1" = --odp ] || perf "$1" 4 "$N" 8 ib_atomic_bw "$1"
}

# Memory on demand, huge pages, and the older of the two ways to post.
perf_with --odp
huge_pages=$(sysctl -n vm.nr_hugepages)
on_exit() { sysctl -qw vm.nr_hugepages="$huge_pages"; }
sysctl -qw vm.nr_hugepages=16
perf_with --use_hugepages
on_exit
perf_with --use_old_post_send
perf "UD --use_old_post_send" 4 "$N" 1024 ib_send_bw --use_old_post_send -c UD -s 1024
perf "UC --use_old_post_send" 4 "$N" 65536 ib_write_bw --use_old_post_send -c UC

# By time.
perf "for 2 seconds" 4 "$N" 65536 ib_write_bw -D 2
perf "for 2 seconds" 4 "$N" 65536 ib_send_bw -D 2

tap_done
