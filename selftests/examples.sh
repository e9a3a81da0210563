#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# examples.sh: the example programs of rdma-core, and qperf, over a veth pair.
#
# usage: examples.sh [PATTERN]    only the test points whose name matches (grep -E)

cd "$(dirname "$0")" || exit 1
. ./lib.sh

ONLY=${1:-.}
PORT=19000

# wanted NAME PROGRAM: false if this test point is not asked for or cannot run.
wanted() {
	echo "$1" | grep -qE -- "$ONLY" || return 1
	command -v "$2" >/dev/null || { skip "$1" "no $2 installed"; return 1; }
}

# has PROGRAM OPTION: the program's usage names the option.
has() {
	"$1" --help 2>&1 | grep -q -- "$2"
}

# verify_pingpong BYTES ITERATIONS: both ends counted all, and no content was wrong.
verify_pingpong() {
	local f bad=0

	for f in client server; do
		grep -q "^$1 bytes in " "$TMP/$f.out" ||
			{ echo "$f: no '$1 bytes in'"; bad=1; }
		grep -q "^$2 iters in " "$TMP/$f.out" ||
			{ echo "$f: no '$2 iters in'"; bad=1; }
	done
	if grep -h "invalid data" "$TMP/client.out" "$TMP/server.out"; then
		bad=1
	fi
	return $bad
}

# pingpong NAME GID_FAMILY SIZE ITERATIONS KIND [OPTION...]: ibv_KIND_pingpong.
pingpong() {
	local name=$1 family=$2 size=$3 n=$4 prog=ibv_$5_pingpong a b

	shift 5
	name="$prog $name"
	wanted "$name" "$prog" || return 0
	PORT=$((PORT + 1))
	case $family in
	4) a=$GID4_A b=$GID4_B ;;
	6) a=$GID6_A b=$GID6_B ;;
	esac
	has "$prog" "--chk" && set -- -c "$@"
	pair_test "$name" "tcp $PORT" \
		"$prog -p $PORT -d $DEV_B -g $b -s $size -n $n $*" \
		"$prog -p $PORT -d $DEV_A -g $a -s $size -n $n $* $IP4_B" \
		verify_pingpong $((size * n * 2)) $n
}

# says FILE PATTERN: the output has a line like that.
says() {
	grep -qE -- "$2" "$TMP/$1.out" || { echo "$1: no line like '$2'"; return 1; }
}

# rping's lines, in count: each ping is shown by both ends, with the data sent.
verify_rping() {
	local f n bad=0

	for f in client server; do
		n=$(grep -c "ping data: rdma-ping-" "$TMP/$f.out")
		[ "$n" = "$1" ] || { echo "$f: $n pings, expected $1"; bad=1; }
	done
	return $bad
}

# verify_cm_test: ucmatose, udaddy and mckey end with "test complete", "return status 0".
verify_cm_test() {
	says client "return status 0" && says server "return status 0"
}

# verify_qperf UNIT: qperf printed a figure with this unit.
verify_qperf() {
	says client "= +[0-9.,]*[1-9][0-9.,]* $1" || return 1
	if grep -iE "fail|error" "$TMP/client.out"; then return 1; fi
}

need ip rdma
tap_start "example programs over veth"
pair_up

# ------------------------------------------------ verbs
if wanted "ibv_devinfo -v" ibv_devinfo; then
	on_a ibv_devinfo -v -d $DEV_A >"$TMP/devinfo.out" 2>&1
	devinfo() { grep -qE "$1" "$TMP/devinfo.out" || { echo "no line like '$1'"; return 1; }; }
	info_ok() {
		devinfo "hca_id:.*$DEV_A" && devinfo "state:.*PORT_ACTIVE" &&
		devinfo "active_mtu:.*4096" && devinfo "link_layer:.*Ethernet" &&
		devinfo "GID\[ *$GID4_A\]:.*::ffff:$IP4_A" && devinfo "GID\[ *$GID6_A\]:.*$IP6_A" &&
		devinfo "atomic_cap:.*ATOMIC_(HCA|GLOB)" && devinfo "max_sge:[[:space:]]+(3[2-9]|[4-9][0-9]|[0-9]{3,})"
	}
	info_ok >"$TMP/verify.out" 2>&1 && ok "ibv_devinfo -v" ||
		not_ok "ibv_devinfo -v" "$TMP/verify.out" "$TMP/devinfo.out"
fi

for f in 4 6; do
	for k in rc uc srq; do
		pingpong "IPv$f" $f 4096 50 $k
	done
	pingpong "IPv$f" $f 2048 50 ud
done
pingpong "path MTU 256, 10007 bytes" 4 10007 30 rc -m 256
pingpong "path MTU 4096, 1 MB" 4 1048576 5 rc -m 4096
pingpong "path MTU 4096, 100001 bytes" 6 100001 20 uc -m 4096
pingpong "1 byte" 4 1 50 rc
for k in rc uc ud; do
	pingpong "events" 4 1024 50 $k -e
done
pingpong "events, 8 queue pairs" 4 1024 20 srq -e -q 8

# ------------------------------------------------ rdma_cm
rping() {
	local name="rping $1" addr=$2

	shift 2
	wanted "$name" rping || return 0
	PORT=$((PORT + 1))
	pair_test "$name" "cm $PORT" \
		"rping -s -a $addr -p $PORT -v -V -C 10 $*" \
		"rping -c -a $addr -p $PORT -v -V -C 10 $*" verify_rping 10
}
rping "IPv4" $IP4_B
rping "IPv6" $IP6_B
rping "60000 bytes" $IP4_B -S 60000

cm_test() {
	local name="$1 $2" prog=$1 addr=$3

	shift 3
	wanted "$name" "$prog" || return 0
	PORT=$((PORT + 1))
	pair_test "$name" "cm $PORT" \
		"$prog -b $addr -p $PORT $*" \
		"$prog -s $addr -p $PORT $*" verify_cm_test
}
cm_test ucmatose "IPv4" $IP4_B -c 4 -C 10 -S 1000
cm_test ucmatose "IPv6" $IP6_B -f ipv6 -c 4 -C 10 -S 1000
cm_test ucmatose "migrate" $IP4_B -C 5 -m
# udaddy has no option for its port; -p is its port space
cm_test_ud() {
	local name="udaddy $1" addr=$2

	shift 2
	wanted "$name" udaddy || return 0
	pair_test "$name" "cm 7174" "udaddy -b $addr $*" "udaddy -s $addr $*" verify_cm_test
}
cm_test_ud "IPv4" $IP4_B -c 2 -C 10 -S 1000
cm_test_ud "IPv6" $IP6_B -f ipv6 -c 2 -C 10 -S 1000

# mckey prints as it goes; the receiver is ready when it has joined
if wanted "mckey" mckey; then
	mc_joined() { grep -q "joined dgid" "$TMP/server.out" || ! kill -0 "$1" 2>/dev/null; }
	mckey_test() {
		local name="mckey $1" group=$2 pid status

		(
			set -- timeout -k 5 "$HANG" stdbuf -oL mckey -m "$group" -b "$3" -C 10 -S 500
			[ -z "$NS_B" ] || set -- ip netns exec "$NS_B" "$@"
			exec "$@"
		) >"$TMP/server.out" 2>&1 &
		pid=$!
		wait_for "$HANG" mc_joined $pid
		on_a timeout -k 5 "$HANG" mckey -s -m "$group" -b "$4" -C 10 -S 500 >"$TMP/client.out" 2>&1
		status=$?
		echo "exit status $status" >>"$TMP/client.out"
		if [ $status != 0 ]; then
			sleep 1
			kill $pid 2>/dev/null
		fi
		# a datagram may be lost: then the receiver waits for ever
		wait $pid
		echo "exit status $?" >>"$TMP/server.out"
		if verify_cm_test >"$TMP/verify.out" 2>&1; then
			ok "$name"
		elif grep -q "failure joining: Unknown error 524" "$TMP/server.out"; then
			skip "$name" "this kernel's rdma_cm joins no IPv6 group over RoCE v2"
		else
			not_ok "$name" "$TMP/verify.out" "$TMP/client.out" "$TMP/server.out"
		fi
	}
	mckey_test "IPv4" 239.77.0.1 $IP4_B $IP4_A
	mckey_test "IPv6" ff15::77 $IP6_B $IP6_A
fi

rstream_test() {
	local name="rstream $1" addr=$2

	shift 2
	wanted "$name" rstream || return 0
	PORT=$((PORT + 1))
	pair_test "$name" "cm $PORT" \
		"rstream -b $addr -p $PORT -T v $*" "rstream -s $addr -p $PORT -T v $*" \
		says client "^[0-9]+[kmg]?_lat|bytes|[0-9]+ +[0-9]"
}
rstream_test "64 bytes" $IP4_B -S 64 -I 20 -C 5
rstream_test "64 KB" $IP4_B -S 65536 -I 5 -C 5
rstream_test "IPv6, 4 KB" $IP6_B -f ipv6 -S 4096 -I 10 -C 5

# It has either a server or, in later versions of rdma-core, a controller that all ends are told of.
cmtime_test() {
	wanted "cmtime" cmtime || return 0
	PORT=$((PORT + 1))
	if cmtime --help 2>&1 | grep -q controller_address; then
		pair_test "cmtime" "tcp $PORT" "cmtime -L -C $IP4_B -b $IP4_B -p $PORT -c 10" \
			"cmtime -C $IP4_B -b $IP4_A -p $PORT -c 10" says client "connect"
	else
		SERVER_STAYS=1 pair_test "cmtime" "cm $PORT" "cmtime -b $IP4_B -p $PORT -c 10" \
			"cmtime -s $IP4_B -p $PORT -c 10" says client "connect"
	fi
}

cmtime_test

# ------------------------------------------------ qperf
# Through rdma_cm only, which qperf uses for RC only: else it asks for queue
# pairs and address handles without a GRH, and RoCE has none such.
qperf_test() {
	local name="qperf $1" unit=$2 seconds

	wanted "$name" qperf || return 0
	# It first fills its queue with 64 MB. A slow machine has not done that in a
	# second, and nothing is counted yet: only then it is given more.
	for seconds in 1 30; do
		PORT=$((PORT + 1))
		SERVER_STAYS=1 pair_run "tcp $PORT" "qperf -lp $PORT" \
			"qperf -lp $PORT -cm1 -t $seconds $IP4_B $1" || break
		says client "= +0 " >"$TMP/verify.out" || break
	done
	if grep -q "^exit status 0: " "$TMP/client.out" && verify_qperf "$unit" >"$TMP/verify.out" 2>&1; then
		ok "$name"
	else
		not_ok "$name" "$TMP/verify.out" "$TMP/client.out" "$TMP/server.out"
	fi
}
for t in rc_bw rc_bi_bw rc_rdma_read_bw rc_rdma_write_bw; do
	qperf_test $t "[A-Za-z]*/sec"
done
for t in rc_lat rc_rdma_read_lat rc_rdma_write_lat rc_rdma_write_poll_lat; do
	qperf_test $t "[a-z]*s(ec)?"
done
for t in rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
	qperf_test $t "[A-Za-z]*/sec"
done

tap_done
