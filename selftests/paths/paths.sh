#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# paths.sh: what an address vector says, and what an administrator says of networks, is what
# happens to the packets: on the wire, in queueing disciplines, routes and filters.
#
# usage: paths.sh [PATTERN]    only the groups whose name matches (grep -E):
#   wire priority mqprio vlan filter mtu linklocal address route bond vrf
#
# Traffic is made by flow.c and Debian's programs.  Told what they saw are tshark, tc and nft.

cd "$(dirname "$0")" || exit 1
. ../lib.sh

ONLY=${1:-.}
PORT=19500
N=20
UP4_A=10.77.8.1 UP4_B=10.77.8.2
UP6_A=fd77:8::1 UP6_B=fd77:8::2
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

# queued_pair: like pair_up, A's end with four transmit queues
queued_pair() {
	NS_A=sr_a NS_B=sr_b
	ip netns add sr_a && ip netns add sr_b &&
	ip link add $IF_A address $MAC_A mtu "$MTU" netns sr_a numtxqueues 4 numrxqueues 4 \
		type veth peer name $IF_B address $MAC_B mtu "$MTU" netns sr_b &&
	end_up sr_a $IF_A $IP4_A $IP6_A $IP4_B $IP6_B $MAC_B &&
	end_up sr_b $IF_B $IP4_B $IP6_B $IP4_A $IP6_A $MAC_A &&
	devices_on $IF_A $IF_B && find_gids
}

# devices_on NETDEV_A NETDEV_B
devices_on() {
	link_add "$NS_A" $DEV_A "$DRIVER_A" "$1" && link_add "$NS_B" $DEV_B "$DRIVER_B" "$2" &&
	wait_for 30 port_active "$NS_A" $DEV_A && wait_for 30 port_active "$NS_B" $DEV_B
}

# upper NS NETDEV IP4 IP6: configure a netdev above another
upper() {
	in_ns "$1" sysctl -qw "net.ipv6.conf.$2.accept_dad=0" &&
	in_ns "$1" ip addr add "$3/24" dev "$2" && in_ns "$1" ip -6 addr add "$4/64" dev "$2" nodad &&
	in_ns "$1" ip link set "$2" up
}

# ------------------------------------------------ VLANs
# vlan_pair NETDEV: a pair with VLAN 7 above it, devices on this of both
vlan_pair() {
	netdev_pair &&
	on_a ip link add link $IF_A name sr_u type vlan id 7 egress-qos-map 0:1 3:5 6:7 &&
	on_b ip link add link $IF_B name sr_u type vlan id 7 &&
	upper "$NS_A" sr_u $UP4_A $UP6_A && upper "$NS_B" sr_u $UP4_B $UP6_B &&
	devices_on "$1" "${1/$IF_A/$IF_B}" &&
	UP_A=$(wait_gid "$NS_A" $DEV_A $UP4_A) && UP_B=$(wait_gid "$NS_B" $DEV_B $UP4_B)
}

# over OPTION...: over the addresses of what is above the pair
over() { flow "$UP_A" "$UP_B" $UP4_B "$@" || no_traffic "flow $*"; }

# pcp_of DESCRIPTION PRIORITY COMMAND...: VLAN priority of all that A sends
pcp_of() {
	local what=$1 expected=$2

	shift 2
	capture "$NS_B" $IF_B
	if "$@"; then
		captured
		expect "$what" "$(seen pcp $UP4_A)" "$expected"
	else
		captured
	fi
}

# ------------------------------------------------ traffic that goes on
# flow_start GID_A GID_B ADDRESS_B OPTION...: both ends, until flow_stop.  They try for half a
# minute, on a busy machine as well.
flow_start() {
	local a=$1 b=$2 to=$3

	shift 3
	PORT=$((PORT + 1))
	(in_ns_exec "$NS_B" "$TMP/flow" -d $DEV_B -g "$b" -p $PORT -n 0 -T 20 "$@") \
		>"$TMP/server.out" 2>&1 &
	flow_b=$!
	wait_for "$HANG" listening $flow_b tcp $PORT
	(in_ns_exec "$NS_A" "$TMP/flow" -d $DEV_A -g "$a" -p $PORT -n 0 -T 20 "$@" "$to") \
		>"$TMP/client.out" 2>&1 &
	flow_a=$!
	wait_for "$HANG" grep -q "^round" "$TMP/client.out"
}

in_ns_exec() {
	local ns=$1

	shift
	set -- timeout -k 5 "$HANG" "$@"
	[ -z "$ns" ] || set -- ip netns exec "$ns" "$@"
	exec "$@"
}

rounds() { grep -c "^round" "$TMP/client.out"; }

# went_on COUNT: so many rounds are done, or the flow has ended
went_on() { [ "$(rounds)" -ge "$1" ] || ! kill -0 $flow_a 2>/dev/null; }

# goes_on: rounds that begin from now on are completed
goes_on() {
	local n

	n=$(rounds)
	wait_for 60 went_on $((n + 2))
	[ "$(rounds)" -ge $((n + 2)) ]
}

# flow_goes_on DESCRIPTION: one test point
flow_goes_on() {
	if goes_on; then ok "$1"; else not_ok "$1" "$TMP/client.out" "$TMP/server.out"; fi
}

# flow_stop DESCRIPTION: ends it; nothing was wrong
flow_stop() {
	kill $flow_a $flow_b 2>/dev/null
	if wait $flow_a && wait $flow_b; then
		ok "$1"
	else
		not_ok "$1" "$TMP/client.out" "$TMP/server.out"
	fi
	wait $flow_b 2>/dev/null
}

# fails DESCRIPTION GID_A GID_B ADDRESS_B OPTION...: a flow's requests end in status 12, transport
# retries exhausted, and do not hang
fails() {
	local what=$1

	shift
	if flow "$@" -T 12 -r 2; then
		echo "it did not fail" >>"$TMP/client.out"
		not_ok "$what" "$TMP/client.out"
	elif grep -q "^status 12:" "$TMP/client.out"; then
		ok "$what"
	else
		not_ok "$what" "$TMP/client.out" "$TMP/server.out"
	fi
}

# flow_ends DESCRIPTION: one test point: its requests fail, transport retries exhausted
flow_ends() {
	wait_for 60 eval "! kill -0 $flow_a 2>/dev/null"
	kill $flow_a $flow_b 2>/dev/null
	wait $flow_a $flow_b 2>/dev/null
	if grep -q "^status 12:" "$TMP/client.out" "$TMP/server.out"; then
		ok "$1"
	else
		not_ok "$1" "$TMP/client.out" "$TMP/server.out"
	fi
}

# refused DESCRIPTION GID_A GID_B ADDRESS_B OPTION...: A's end cannot be brought up
refused() {
	local what=$1

	shift
	if ! flow "$@" && grep -q "cannot bring the queue pair up" "$TMP/client.out"; then
		ok "$what"
	else
		not_ok "$what" "$TMP/client.out"
	fi
}

# works DESCRIPTION GID_A GID_B ADDRESS_B OPTION...: and so it does not fail
works() {
	local what=$1

	shift
	if flow "$@"; then ok "$what"; else not_ok "$what" "$TMP/client.out" "$TMP/server.out"; fi
}

# ------------------------------------------------ filters
# matched NS: packets that the rule with the counter "rdma" saw
matched() { in_ns "$1" nft list counter inet sr rdma | awk '$1 == "packets" { print $2 }'; }

# table NS HOOK POLICY RULE...: a table of these rules
table() {
	local ns=$1 hook=$2 policy=$3 rule

	shift 3
	{
		echo "add table inet sr"
		echo "add counter inet sr rdma"
		echo "add chain inet sr c { type filter hook $hook priority 0; policy $policy; }"
		for rule; do echo "add rule inet sr c $rule"; done
	} | in_ns "$ns" nft -f -
}

filters() {
	local f end ns hook a b

	for f in 4 6; do
		a=GID${f}_A b=GID${f}_B
		for end in "A output" "B input" "B output" "A input"; do
			hook=${end#* } ns=NS_${end% *}
			table "${!ns}" "$hook" accept "udp dport 4791 counter name rdma drop" ||
				{ not_ok "IPv$f: a rule for $end"; continue; }
			fails "IPv$f: dropped at $end: ends in an error" "${!a}" "${!b}" $IP4_B
			expect "IPv$f: dropped at $end: the rule counted" \
				"$([ "$(matched "${!ns}")" -gt 0 ] && echo yes)" yes
			in_ns "${!ns}" nft delete table inet sr
			works "IPv$f: no more dropped at $end" "${!a}" "${!b}" $IP4_B
		done
		table "$NS_B" input drop "ct state invalid drop" "meta l4proto ipv6-icmp accept" \
			"tcp dport 19500-19999 accept" "udp dport 4791 counter name rdma accept"
		works "IPv$f: all else dropped" "${!a}" "${!b}" $IP4_B
		expect "IPv$f: all else dropped: the rule counted" \
			"$([ "$(matched "$NS_B")" -ge $N ] && echo yes)" yes
		on_b nft delete table inet sr
	done
	flow_start "$GID4_A" "$GID4_B" $IP4_B
	table "$NS_B" input accept "udp dport 4791 counter name rdma drop"
	sleep 1
	expect "dropped for a second: the rule counted" \
		"$([ "$(matched "$NS_B")" -gt 0 ] && echo yes)" yes
	on_b nft delete table inet sr
	flow_goes_on "dropped for a second"
	flow_stop "dropped for a second: no error"
}

# ------------------------------------------------ MTU
mtu_changes() {
	local f a b

	flow_start "$GID4_A" "$GID4_B" $IP4_B -m 4096 -b 16384
	on_a ip link set $IF_A mtu 1500
	sleep 1
	on_a ip link set $IF_A mtu "$MTU"
	flow_goes_on "the net device's MTU too small for a second"
	flow_stop "the net device's MTU too small for a second: no error"
	for f in 4 6; do
		a=GID${f}_A b=GID${f}_B
		flow_start "${!a}" "${!b}" $IP4_B -m 4096 -b 16384 -T 12 -r 2
		on_a ip link set $IF_A mtu 1500
		flow_ends "IPv$f: the net device's MTU gets too small: ends in an error"
		refused "IPv$f: path MTU 4096 is refused on it" "${!a}" "${!b}" $IP4_B \
			-m 4096 -b 16384
		on_a ip link set $IF_A mtu "$MTU"
	done
	on_a ip link set $IF_A mtu 1500
	works "path MTU 1024 on it" "$GID4_A" "$GID4_B" $IP4_B -m 1024 -b 16384
	on_a ip link set $IF_A mtu "$MTU"
	works "path MTU 4096 again" "$GID4_A" "$GID4_B" $IP4_B -m 4096 -b 16384
}

# ------------------------------------------------ link-local addresses
link_local() {
	local a b

	a=$(on_a ip -6 -o addr show dev $IF_A scope link | awk '{ sub("/.*", "", $4); print $4 }')
	b=$(on_b ip -6 -o addr show dev $IF_B scope link | awk '{ sub("/.*", "", $4); print $4 }')
	if ! a=$(wait_gid "$NS_A" $DEV_A "$a") || ! b=$(wait_gid "$NS_B" $DEV_B "$b"); then
		not_ok "link-local addresses have GIDs"
		return
	fi
	for q in rc uc ud; do
		works "link-local addresses: ${q^^}" "$a" "$b" $IP4_B -q $q
	done
	expect "a link-local address has the first GID" "$a" 0
}

# ------------------------------------------------ addresses that go and come
address_returns() {
	flow_start "$GID4_A" "$GID4_B" $IP4_B
	on_a ip addr delete $IP4_A/24 dev $IF_A
	sleep 1
	on_a ip addr add $IP4_A/24 dev $IF_A
	flow_goes_on "no address for a second"
	flow_stop "no address for a second: no error"
}

# ------------------------------------------------ routes
# routers: A and B on two Ethernets, bridges in sr_r1, between which sr_r1 and sr_r2 route
routers() {
	local i

	NS_A=sr_a NS_B=sr_b
	for i in sr_a sr_b sr_r1 sr_r2; do
		ip netns add $i &&
		ip netns exec $i sysctl -qw net.ipv6.conf.default.accept_dad=0 \
			net.ipv6.conf.all.accept_dad=0 net.ipv4.ip_forward=1 \
			net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.accept_redirects=0 \
			net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 &&
		ip -n $i link set lo up || return
	done
	for i in 1 2; do
		ip -n sr_r1 link add br$i type bridge mcast_snooping 0 &&
		ip link add x$i netns sr_r1 type veth peer name y$i netns sr_r2 || return
	done
	ip link add $IF_A netns sr_a address $MAC_A type veth peer name e1 netns sr_r1 &&
	ip link add $IF_B netns sr_b address $MAC_B type veth peer name e2 netns sr_r1 || return
	for i in 1 2; do
		ip -n sr_r1 link set x$i master br$i && ip -n sr_r1 link set e$i master br$i || return
	done
	for i in x1 x2 e1 e2 br1 br2; do
		ip -n sr_r1 link set $i mtu "$MTU" up || return
	done
	for i in 1 2; do
		ip -n sr_r2 link set y$i mtu "$MTU" up
		ip -n sr_r1 addr add 10.77.1$i.253/24 dev br$i
		ip -n sr_r1 addr add fd77:1$i::253/64 dev br$i nodad
		ip -n sr_r2 addr add 10.77.1$i.254/24 dev y$i
		ip -n sr_r2 addr add fd77:1$i::254/64 dev y$i nodad
	done
	ip -n sr_a link set $IF_A mtu "$MTU" && ip -n sr_b link set $IF_B mtu "$MTU" &&
	upper sr_a $IF_A 10.77.11.1 fd77:11::1 && upper sr_b $IF_B 10.77.12.2 fd77:12::2 &&
	ip -n sr_a route add 10.77.12.0/24 via 10.77.11.253 &&
	ip -n sr_a route add fd77:12::/64 via fd77:11::253 &&
	ip -n sr_b route add 10.77.11.0/24 via 10.77.12.253 &&
	ip -n sr_b route add fd77:11::/64 via fd77:12::253 || return
	for i in 1 2; do
		table sr_r$i forward accept "ip saddr 10.77.11.1 udp dport 4791 counter name rdma" \
			"ip6 saddr fd77:11::1 udp dport 4791 counter name rdma" || return
	done
	devices_on $IF_A $IF_B &&
	GID4_A=$(wait_gid sr_a $DEV_A 10.77.11.1) && GID4_B=$(wait_gid sr_b $DEV_B 10.77.12.2) &&
	GID6_A=$(wait_gid sr_a $DEV_A fd77:11::1) && GID6_B=$(wait_gid sr_b $DEV_B fd77:12::2)
}

routers_down() {
	ip netns delete sr_r1 2>/dev/null
	ip netns delete sr_r2 2>/dev/null
}

# through COMMAND...: which routers forward for A while a command runs
through() {
	local i one two

	one=$(matched sr_r1) two=$(matched sr_r2)
	"$@" || { echo failed; return; }
	for i in 1 2; do
		[ "$(matched sr_r$i)" -lt $(($([ $i = 1 ] && echo "$one" || echo "$two") + N)) ] ||
			echo sr_r$i
	done | xargs
}

# routes FAMILY
routes() {
	local f=$1 a=GID$1_A b=GID$1_B to other mac table=100

	if [ "$f" = 4 ]; then
		to="10.77.12.0/24" other=10.77.11.254 first=10.77.11.253 own=10.77.11.1
	else
		to="fd77:12::/64" other=fd77:11::254 first=fd77:11::253 own=fd77:11::1
	fi
	set -- "${!a}" "${!b}" 10.77.12.2
	expect "IPv$f: by the router that the route names" "$(through flow "$@")" sr_r1
	flow_start "$@"
	on_a ip -$f route replace $to via $other
	sleep 0.5
	expect "IPv$f: the route changes while traffic runs" "$(through goes_on)" sr_r2
	on_a ip -$f route replace $to via $first
	sleep 0.5
	expect "IPv$f: and back" "$(through goes_on)" sr_r1
	mac=$(ip netns exec sr_r2 cat /sys/class/net/y1/address)
	on_a ip neigh replace $first lladdr "$mac" dev $IF_A nud permanent
	sleep 0.5
	expect "IPv$f: the router's Ethernet address changes" "$(through goes_on)" sr_r2
	on_a ip neigh delete $first dev $IF_A
	sleep 0.5
	expect "IPv$f: it has to be found again" "$(through goes_on)" sr_r1
	on_a ip -$f route delete $to
	on_a ip -$f route add unreachable $to
	sleep 1
	on_a ip -$f route delete unreachable $to
	on_a ip -$f route add $to via $first
	flow_goes_on "IPv$f: no route for a second"
	flow_stop "IPv$f: no error meanwhile"

	on_a ip -$f route add $to via $other table $table
	on_a ip -$f rule add pref 50 tos 0x10 lookup $table
	expect "IPv$f: rule by TOS, another TOS" "$(through flow "$@" -t 0x08)" sr_r1
	expect "IPv$f: rule by TOS" "$(through flow "$@" -t 0x10)" sr_r2
	on_a ip -$f rule delete pref 50
	on_a ip -$f rule add pref 50 from $own lookup $table
	expect "IPv$f: rule by source" "$(through flow "$@")" sr_r2
	on_a ip -$f rule delete pref 50
	expect "IPv$f: no rule any more" "$(through flow "$@")" sr_r1
	on_a ip -$f rule add pref 50 fwmark 7 lookup $table
	expect "IPv$f: rule by mark, no mark" "$(through flow "$@")" sr_r1
	on_a nft -f - <<-'NFT'
	add table inet sr
	add chain inet sr c { type route hook output priority -150; }
	add rule inet sr c udp dport 4791 meta mark set 7
	NFT
	expect "IPv$f: rule by mark" "$(through flow "$@")" sr_r2
	on_a nft delete table inet sr
	on_a ip -$f rule delete pref 50
	on_a ip -$f route flush table $table
}

# path_mtu: a router cannot pass on what the net device can
path_mtu() {
	ip -n sr_r1 link set br2 mtu 1500
	fails "a router's MTU is too small: ends in an error" \
		"$GID4_A" "$GID4_B" 10.77.12.2 -m 4096 -b 16384
	fails "the same over IPv6" "$GID6_A" "$GID6_B" 10.77.12.2 -m 4096 -b 16384
	works "a path MTU that the router has" "$GID4_A" "$GID4_B" 10.77.12.2 -m 1024 -b 16384
	works "the same over IPv6" "$GID6_A" "$GID6_B" 10.77.12.2 -m 1024 -b 16384
	ip -n sr_r1 link set br2 mtu "$MTU"
	on_a ip route flush cache	# where it has been learned, for ten minutes
	works "the router's MTU is large again" "$GID4_A" "$GID4_B" 10.77.12.2 -m 4096 -b 16384
}

# ------------------------------------------------ bonds
# bonded: A has two links to the Ethernet that B is on, and a bond over these
bonded() {
	netdev_pair && on_a ip addr flush dev $IF_A &&
	ip link add sr_va2 netns "$NS_A" mtu "$MTU" type veth peer name sr_ha2 mtu "$MTU" netns sr_hop &&
	ip -n sr_hop link set sr_ha2 master sr_br up &&
	on_a ip link add sr_u mtu "$MTU" type bond mode active-backup miimon 50 &&
	on_a ip link set $IF_A down && on_a ip link set $IF_A master sr_u &&
	on_a ip link set sr_va2 master sr_u &&
	upper "$NS_A" sr_u $UP4_A $UP6_A && upper "$NS_B" $IF_B $UP4_B $UP6_B &&
	devices_on sr_u $IF_B &&
	UP_A=$(wait_gid "$NS_A" $DEV_A $UP4_A) && UP_B=$(wait_gid "$NS_B" $DEV_B $UP4_B)
}

active() { on_a cat /sys/class/net/sr_u/bonding/active_slave; }
is_active() { [ "$(active)" = "$1" ]; }

failover() {
	local one two

	one=$(active) two=sr_va2
	[ "$one" = $IF_A ] || two=$IF_A
	flow_start "$UP_A" "$UP_B" $UP4_B
	ip -n sr_hop link set "$([ "$one" = $IF_A ] && echo sr_ha || echo sr_ha2)" down
	check "bond: the other link takes over" wait_for 30 is_active $two
	flow_goes_on "bond: traffic goes on over it"
	ip -n sr_hop link set "$([ "$one" = $IF_A ] && echo sr_ha || echo sr_ha2)" up
	ip -n sr_hop link set "$([ "$one" = $IF_A ] && echo sr_ha2 || echo sr_ha)" down
	check "bond: and back" wait_for 30 is_active "$one"
	flow_goes_on "bond: traffic goes on over the first"
	flow_stop "bond: no error meanwhile"
}

# ------------------------------------------------ VRF
# enslaved: B's net device is in a VRF
enslaved() {
	netdev_pair &&
	on_b sysctl -qw net.ipv4.tcp_l3mdev_accept=1 &&
	on_b ip link add sr_u type vrf table 50 && on_b ip link set sr_u up &&
	on_b ip link set $IF_B master sr_u &&
	{ on_b ip addr flush dev $IF_B; upper "$NS_B" $IF_B $IP4_B $IP6_B; } &&
	on_b ip neigh replace $IP4_A lladdr $MAC_A dev $IF_B &&
	on_b ip neigh replace $IP6_A lladdr $MAC_A dev $IF_B &&
	devices_on $IF_A $IF_B && find_gids
}

vrf() {
	local q

	for q in rc uc ud; do
		works "VRF: ${q^^} over IPv4" "$GID4_A" "$GID4_B" $IP4_B -q $q
		works "VRF: ${q^^} over IPv6" "$GID6_A" "$GID6_B" $IP4_B -q $q
	done
	# the VRF's table has the way to A, the main one a way to nowhere
	on_b ip route add unreachable $IP4_A
	works "VRF: by the VRF's routes" "$GID4_A" "$GID4_B" $IP4_B
}

on_exit() {
	kill $flow_a $flow_b 2>/dev/null
	routers_down
}

# ------------------------------------------------ set-up
need ip rdma cc tc nft ethtool tcpdump tshark python3 ucmatose
tap_start "paths"
[ "$DRIVER" != rxe ] || skip_all "rdma_rxe keeps to the initial net namespace"
build flow flow.c ../common/verbs.c
modprobe -aq sch_prio sch_ets sch_mqprio 8021q

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

if wanted mqprio; then
	CLASSES="1:1 1:2 1:3 1:4"
	queued_pair >"$TMP/up.out" 2>&1 || bail "a pair with four queues" "$TMP/up.out"
	QDISC=(mqprio num_tc 4 map 0 0 0 2 0 0 3 0 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 hw 0)
	by_class "mqprio: nothing said" "" flow4
	by_class "mqprio: service level 3" 1:3 flow4 -s 3
	by_class "mqprio: TOS 0x10" 1:4 flow4 -t 0x10
	by_class "mqprio: rdma_set_option(TOS) 0x10" 1:4 connected -t 0x10
	pair_down
fi

for under in sr_u $IF_A; do
	wanted vlan || break
	vlan_pair $under >"$TMP/up.out" 2>&1 || bail "VLANs, the devices over $under" "$TMP/up.out"
	what="VLAN, device on it"
	[ $under = sr_u ] || what="VLAN above the device"
	pcp_of "$what: nothing said" 1 over
	pcp_of "$what: service level 3" 5 over -s 3
	pcp_of "$what: TOS 0x10" 7 over -t 0x10
	pcp_of "$what: UD, TOS 0x10" 7 over -q ud -t 0x10
	CM_B=$UP4_B pcp_of "$what: rdma_set_option(TOS) 0x10" 7 connected -t 0x10
	pair_down
done

if wanted filter; then
	pair_up
	filters
	pair_down
fi

if wanted mtu; then
	pair_up
	mtu_changes
	pair_down
fi

if wanted linklocal; then
	pair_up
	link_local
	pair_down
fi

if wanted address; then
	pair_up
	address_returns
	pair_down
fi

if wanted route; then
	routers >"$TMP/up.out" 2>&1 || bail "two routers" "$TMP/up.out"
	for family in 4 6; do
		routes $family
	done
	path_mtu
	pair_down
	routers_down
fi

if wanted bond; then
	HOP=1
	bonded >"$TMP/up.out" 2>&1 || bail "a bond" "$TMP/up.out"
	failover
	pair_down
	HOP=
fi

if wanted vrf; then
	enslaved >"$TMP/up.out" 2>&1 || bail "a VRF" "$TMP/up.out"
	vrf
	pair_down
fi

tap_done
