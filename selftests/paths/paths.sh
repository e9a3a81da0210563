#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# paths.sh: what an address vector says, and what an administrator says of networks, is what
# happens to the packets: on the wire, in queueing disciplines, routes and filters.
#
# usage: paths.sh [PATTERN]    only the groups whose name matches (grep -E):
#   wire priority
#
# Traffic is made by flow.c and Debian's programs.  Told what they saw are tshark, tc and nft.

cd "$(dirname "$0")" || exit 1
. ../lib.sh

ONLY=${1:-.}
PORT=19500
N=20
CLASSES="1:1 1:2 1:3 1:4 1:5 1:6 1:7 1:8"

wanted() { echo "$1" | grep -qE -- "^($ONLY)"; }

# ------------------------------------------------ traffic
# flow GID_A GID_B ADDRESS_B OPTION...: both ends of flow.c with these options
flow() {
	local a=$1 b=$2 to=$3

	shift 3
	PORT=$((PORT + 1))
	pair_run "tcp $PORT" "$TMP/flow -d $DEV_B -g $b -p $PORT -n $N $*" \
		"$TMP/flow -d $DEV_A -g $a -p $PORT -n $N $* $to"
}

# flow4, flow6 OPTION...: over the pair's addresses; what fails is a test point
flow4() { flow "$GID4_A" "$GID4_B" $IP4_B "$@" || no_traffic "flow $*"; }
flow6() { flow "$GID6_A" "$GID6_B" $IP4_B "$@" || no_traffic "flow $*"; }

no_traffic() {
	not_ok "traffic: $1" "$TMP/client.out" "$TMP/server.out"
	return 1
}

# ------------------------------------------------ what is on the wire
# Columns of $TMP/packets
declare -A COLUMN=([src]=1 [dscp]=2 [hops]=3 [label]=4 [port]=5 [opcode]=6 [pcp]=7)

# capture NS NETDEV: from now on, what goes over a net device in both directions
capture() {
	(
		set -- "$1" tcpdump -i "$2" -B 65536 -U -w "$TMP/pcap" \
			"udp port 4791 or (vlan and udp port 4791)"
		[ -z "$1" ] || set -- "$1" ip netns exec "$@"
		shift
		exec "$@"
	) >"$TMP/tcpdump.out" 2>&1 &
	dump=$!
	wait_for "$HANG" grep -q listening "$TMP/tcpdump.out"
}

# captured: ends the capture, and has it decoded into lines of tab-separated columns
captured() {
	sleep 1
	kill -INT $dump
	wait $dump
	# an IPv4 packet has no columns of IPv6, so that either is empty
	tshark -r "$TMP/pcap" -Y infiniband -T fields -e ip.src -e ipv6.src -e ip.dsfield.dscp \
		-e ipv6.tclass.dscp -e ip.ttl -e ipv6.hlim -e ipv6.flow -e udp.srcport \
		-e infiniband.bth.opcode -e vlan.priority 2>"$TMP/tshark.out" |
		awk -F'\t' -v OFS='\t' '{ print $1 $2, $3 $4, $5 $6, $7, $8, $9, $10 }' >"$TMP/packets"
}

# seen COLUMN [SRC [OPCODES]]: the different values, of packets from an address, with an opcode
# that matches; in decimal
seen() {
	awk -F'\t' -v c="${COLUMN[$1]}" -v src="$2" -v ops="^(${3:-.*})$" '
		(src == "" || $1 == src) && $6 ~ ops { print $c }' "$TMP/packets" |
		while read -r v; do [ -z "$v" ] || echo $((v)); done | sort -un | xargs
}

# expect DESCRIPTION GOT WANTED
expect() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		{
			echo "got '$2', expected '$3'"
			sort "$TMP/packets" | uniq -c
		} >"$TMP/expect.out" 2>/dev/null
		not_ok "$1" "$TMP/expect.out"
	fi
}

# label_port LABEL: the UDP source port of a flow label
label_port() { echo $((((($1 & 0x3fff) ^ ($1 >> 14)) & 0x3fff) | 0xc000)); }

# qpn_port: that of a flow without label, between the queue pairs of the last flow
qpn_port() {
	local a b v

	read -r _ a b < <(grep ^qpn "$TMP/client.out")
	v=$((a * b))
	v=$((v ^ (v >> 20) ^ ((v ^ (v >> 20)) >> 40)))
	label_port $((v & 0xfffff))
}

# wire_of FAMILY SERVICE: every field that an address vector has
wire_of() {
	local f=$1 q=$2 a b what="IPv$1 ${2^^}" from prefix

	a=IP${f}_A b=IP${f}_B
	capture "$NS_A" $IF_A
	flow$f -q $q -t 0x6a -l 0x12345 || { captured; return; }
	captured
	for from in A B; do
		b=IP${f}_$from
		expect "$what: DSCP of what $from sends" "$(seen dscp "${!b}")" 26
		expect "$what: source port of a flow label, from $from" "$(seen port "${!b}")" \
			"$(label_port 0x12345)"
		[ $f = 4 ] || expect "$what: flow label of what $from sends" \
			"$(seen label "${!b}")" $((0x12345))
	done
	if [ $q = rc ]; then
		b=IP${f}_B
		expect "$what: DSCP of ACKs" "$(seen dscp "${!b}" 17)" 26
		expect "$what: DSCP of READ responses" "$(seen dscp "${!b}" '1[3-6]')" 26
	fi

	# from here on without a label, and the route says how far
	if [ $f = 4 ]; then prefix=(10.77.0.0/24); else prefix=(fd77::/64 metric 256); fi
	on_a ip -$f route replace "${prefix[@]}" dev $IF_A proto kernel src "${!a}" hoplimit 7 \
		2>"$TMP/route.out" || not_ok "$what: set a route's hop limit" "$TMP/route.out"
	capture "$NS_A" $IF_A
	flow$f -q $q || { captured; return; }
	captured
	expect "$what: hop limit of the route" "$(seen hops "${!a}")" 7
	expect "$what: hop limit without one" "$(seen hops "${!b}")" 64
	expect "$what: no DSCP" "$(seen dscp)" 0
	if [ $q = ud ]; then
		expect "$what: one source port of a flow, among the dynamic ones" \
			"$(seen port "${!a}" | awk 'NF == 1 && $1 >= 49152 { print "yes" }')" yes
	else
		expect "$what: source port of the queue pairs" "$(seen port)" "$(qpn_port)"
	fi
	[ $f = 4 ] || expect "$what: no flow label" "$(seen label)" 0
}

# ------------------------------------------------ queueing disciplines
# class_packets NS NETDEV CLASS: how many packets a class of the root qdisc has sent
class_packets() {
	in_ns "$1" tc -s class show dev "$2" |
		awk -v c="$3" '$1 == "class" { on = $3 == c } on && $1 == "Sent" { print $4; exit }'
}

# classes NS NETDEV CLASS...: those that have sent anything
classes() {
	local ns=$1 dev=$2 c n

	shift 2
	for c in "$@"; do
		n=$(class_packets "$ns" "$dev" "$c")
		[ "${n:-0}" -lt $N ] || echo "$c"
	done | xargs
}

# by_class DESCRIPTION CLASSES COMMAND...: have A's priorities 0 to 7 in classes 1:1 to 1:8.  The
# control connection is in 1:1.
by_class() {
	local what=$1 expected=$2

	shift 2
	on_a tc qdisc replace dev $IF_A root handle 1: "${QDISC[@]}" 2>"$TMP/tc.out" ||
		{ skip "$what" "tc: $(head -c 200 "$TMP/tc.out")"; return; }
	if "$@"; then
		# shellcheck disable=SC2086
		expect "$what" "$(classes "$NS_A" $IF_A ${CLASSES#* })" "$expected"
		on_a tc -s class show dev $IF_A >"$TMP/packets"
	fi
	on_a tc qdisc delete dev $IF_A root
}

# connected OPTION...: two connections of rdma_cm, with ucmatose's options on the client
connected() {
	PORT=$((PORT + 1))
	pair_run "cm $PORT" "ucmatose -p $PORT -c 2 -C $N -S 1000" \
		"ucmatose -p $PORT -c 2 -C $N -S 1000 -s ${CM_B:-$IP4_B} $*" || no_traffic "ucmatose $*"
}

# priorities WHAT: one test point for each way to say a priority
priorities() {
	by_class "$1: nothing said" "" flow4
	by_class "$1: service level 3" 1:4 flow4 -s 3
	by_class "$1: TOS 0x10" 1:7 flow4 -t 0x10
	by_class "$1: TOS 0x08, IPv6, UD" 1:3 flow6 -q ud -t 0x08
	by_class "$1: service level 5, UC" 1:6 flow4 -q uc -s 5
	by_class "$1: service level 3 and DSCP 26" 1:4 flow4 -s 3 -t 0x68
	by_class "$1: rdma_set_option(TOS) 0x10" 1:7 connected -t 0x10
}

# ------------------------------------------------ set-up
need ip rdma cc tc ethtool tcpdump tshark python3 ucmatose
tap_start "paths"
[ "$DRIVER" != rxe ] || skip_all "rdma_rxe keeps to the initial net namespace"
build flow flow.c ../common/verbs.c
modprobe -aq sch_prio sch_ets

if wanted wire; then
	pair_up
	on_a ethtool -K $IF_A gso off tx-udp-segmentation off >/dev/null 2>&1
	on_b ethtool -K $IF_B gso off tx-udp-segmentation off >/dev/null 2>&1
	for family in 4 6; do
		for service in rc uc ud; do
			wire_of $family $service
		done
	done
	pair_down
fi

if wanted priority; then
	pair_up
	QDISC=(prio bands 8 priomap 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0)
	priorities prio
	QDISC=(ets bands 8 priomap 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0)
	by_class "ets: service level 3" 1:4 flow4 -s 3
	by_class "ets: TOS 0x10" 1:7 flow4 -t 0x10
	pair_down
fi

tap_done
