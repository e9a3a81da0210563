#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# stack.sh: two net namespaces joined over every kind of netdev that can be stacked
# on an Ethernet, or be a wire itself: connections, and multicast by verbs alone.
#
# usage: stack.sh [PATTERN]    only the groups whose name matches (grep -E):
#   veth VLAN VLAN-GID macvlan bridge bond tap tun groups exclusive

cd "$(dirname "$0")" || exit 1
. ../lib.sh

ONLY=${1:-.}
UP4_A=10.77.8.1 UP4_B=10.77.8.2
UP6_A=fd77:8::1 UP6_B=fd77:8::2
PORT=19400
N=20

wanted() { echo "$1" | grep -qE -- "^($ONLY)"; }

# ------------------------------------------------ traffic
# member NAME NS COMMAND...: start a member of a group; its output goes to $TMP/NAME.out
member() {
	local name=$1 ns=$2

	shift 2
	# exec: the pid is that of the program
	(in_ns_exec "$ns" "$@") >"$TMP/$name.out" 2>&1 &
	members="$members $!"
	wait_for "$HANG" grep -q member "$TMP/$name.out"
}

in_ns_exec() {
	local ns=$1

	shift
	[ -z "$ns" ] || set -- ip netns exec "$ns" "$@"
	exec "$@"
}

members_end() {
	# shellcheck disable=SC2086
	[ -z "$members" ] || { kill $members; wait $members; } 2>/dev/null
	members=
}

# heard NAME: how many messages a member got
heard() { grep -c "^message" "$TMP/$1.out"; }
heard_all() { [ "$(heard "$1")" -ge $N ]; }

# group_test DESCRIPTION GROUP GID_A GID_B: what A sends to the group reaches B's member,
# and one on A's own device.
group_test() {
	local what=$1 group=$2

	if member b "$NS_B" "$TMP/group" $DEV_B "$4" "$group" &&
	   member a "$NS_A" "$TMP/group" $DEV_A "$3" "$group" &&
	   on_a timeout "$HANG" "$TMP/group" $DEV_A "$3" "$group" $N >"$TMP/send.out" 2>&1 &&
	   wait_for 30 heard_all b && wait_for 30 heard_all a; then
		ok "$what"
	else
		not_ok "$what" "$TMP/send.out" "$TMP/a.out" "$TMP/b.out"
	fi
	members_end
}

# traffic NAME IP4_A IP4_B IP6_A IP6_B: over the devices that there are
traffic() {
	local name=$1 f a b

	shift
	for f in 4 6; do
		if ! a=$(wait_gid "$NS_A" $DEV_A "$1") || ! b=$(wait_gid "$NS_B" $DEV_B "$2"); then
			show_gids >"$TMP/gids.out"
			not_ok "$name: GIDs of $1 and $2" "$TMP/gids.out"
			return
		fi
		PORT=$((PORT + 1))
		pair_test "$name: RC over IPv$f" "tcp $PORT" \
			"ibv_rc_pingpong -p $PORT -d $DEV_B -g $b -s 10000 -n 20" \
			"ibv_rc_pingpong -p $PORT -d $DEV_A -g $a -s 10000 -n 20 $CONTROL_B"
		if [ $f = 4 ]; then
			group_test "$name: IPv4 multicast" 239.77.8.1 "$a" "$b"
		else
			group_test "$name: IPv6 multicast" ff15::778 "$a" "$b"
		fi
		shift 2
	done
}

show_gids() {
	local d

	for d in $DEV_A $DEV_B; do
		rdma link show $d
		(cd /sys/class/infiniband/$d/ports/1/gids && grep -v :0000:0000:0000:0000$ ./*)
	done
	dmesg | tail -20
}

# ------------------------------------------------ set-up
# upper NS NETDEV IP4 IP6: configure a netdev on top of the veth
upper() {
	in_ns "$1" sysctl -qw "net.ipv6.conf.$2.accept_dad=0" &&
	in_ns "$1" ip link set "$2" up &&
	in_ns "$1" ip addr add "$3/24" dev "$2" &&
	in_ns "$1" ip -6 addr add "$4/64" dev "$2" nodad
}

# On one end: make sr_u on the veth end. They run in the namespace.
make_VLAN() { ip link add link "$1" name sr_u type vlan id 7; }
make_macvlan() { ip link add link "$1" name sr_u type macvlan mode bridge; }
make_bridge() { ip link add sr_u type bridge && ip link set "$1" master sr_u; }
make_bond() {
	ip link add sr_u type bond mode active-backup miimon 100 &&
		ip link set "$1" down && ip link set "$1" master sr_u && ip link set "$1" up
}

# stacked KIND DEVICE_ON: the pair with sr_u on both ends; RDMA devices on sr_u or the base
stacked() {
	local on_a=sr_u on_b=sr_u

	[ "$2" = upper ] || on_a=$IF_A on_b=$IF_B
	export -f "make_$1"
	netdev_pair &&
	on_a bash -c "make_$1 $IF_A" && on_b bash -c "make_$1 $IF_B" || return
	# A member of a bridge or bond has no use for addresses
	case $1 in
	bridge | bond) on_a ip addr flush dev $IF_A; on_b ip addr flush dev $IF_B ;;
	esac
	upper "$NS_A" sr_u $UP4_A $UP6_A && upper "$NS_B" sr_u $UP4_B $UP6_B &&
	link_add "$NS_A" $DEV_A "$DRIVER" $on_a && link_add "$NS_B" $DEV_B "$DRIVER" $on_b
}

# wire MODE: tun or tap devices, which are the wire
wire() {
	NS_A=sr_a NS_B=sr_b
	ip netns add sr_a && ip netns add sr_b || return
	./relay.py "$1" sr_ta sr_tb >"$TMP/relay.out" 2>&1 &
	relay=$!
	wait_for 30 grep -q ready "$TMP/relay.out" &&
	ip link set sr_ta mtu 1500 netns sr_a name sr_u && ip link set sr_tb netns sr_b name sr_u &&
	upper sr_a sr_u $UP4_A $UP6_A && upper sr_b sr_u $UP4_B $UP6_B &&
	link_add sr_a $DEV_A "$DRIVER" sr_u && link_add sr_b $DEV_B "$DRIVER" sr_u
}

down() {
	members_end
	pair_down
	[ -z "$relay" ] || { kill $relay; wait $relay; } 2>/dev/null
	relay=
	wait_for 30 eval "! ls /sys/class/infiniband | grep -q '^rxe_'"
}

on_exit() {
	members_end
	rdma link delete rxe_c 2>/dev/null
	[ -z "$relay" ] || kill $relay 2>/dev/null
	ip netns delete sr_a 2>/dev/null
	ip netns delete sr_b 2>/dev/null
	[ -z "$exclusive" ] || wait_for 30 rdma system set netns shared 2>/dev/null
}

# set_up NAME COMMAND...
set_up() {
	local name=$1

	shift
	"$@" >"$TMP/set_up.out" 2>&1 && return
	not_ok "$name: set up" "$TMP/set_up.out"
	down
	return 1
}

need ip rdma cc ibv_rc_pingpong python3
tap_start "netdevs on netdevs"
[ "$DRIVER" != rxe ] || skip_all "rdma_rxe keeps to the initial net namespace"
build group group.c ../common/verbs.c
driver_loaded "$DRIVER" || skip_all "no module for driver $DRIVER in this kernel"
modprobe -a ib_uverbs rdma_ucm tun 2>/dev/null
mkdir -p /dev/net
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
CONTROL_B=$UP4_B

for kind in VLAN macvlan bridge bond; do
	wanted $kind || continue
	set_up $kind stacked $kind upper || continue
	traffic $kind $UP4_A $UP4_B $UP6_A $UP6_B
	down
done

# As hardware has it: the device is the NIC's, an address is on a VLAN above
if wanted VLAN-GID && set_up VLAN-GID stacked VLAN base; then
	traffic "VLAN above the device" $UP4_A $UP4_B $UP6_A $UP6_B
	CONTROL_B=$IP4_B traffic "beside that VLAN" $IP4_A $IP4_B $IP6_A $IP6_B
	down
fi

for mode in tap tun; do
	wanted $mode || continue
	set_up $mode wire $mode || continue
	traffic $mode $UP4_A $UP4_B $UP6_A $UP6_B
	down
done

# ------------------------------------------------ groups
# second_wire: another veth pair beside the first, with the device rxe_c on B's end
second_wire() {
	on_a ip link add sr_wa type veth peer name sr_wb netns "$NS_B" &&
	upper "$NS_A" sr_wa $UP4_A $UP6_A && upper "$NS_B" sr_wb $UP4_B $UP6_B &&
	link_add "$NS_B" rxe_c "$DRIVER" sr_wb
}

frames() { cat "/sys/class/infiniband/$1/ports/1/hw_counters/rcvd_frames"; }

if wanted groups; then
	pair_up
	if set_up groups second_wire; then
		c=$(wait_gid "$NS_B" rxe_c $UP4_B)
		before_b=$(frames $DEV_B) before_c=$(frames rxe_c)
		if member b "$NS_B" "$TMP/group" $DEV_B "$GID4_B" 239.77.8.2 &&
		   member b2 "$NS_B" "$TMP/group" $DEV_B "$GID4_B" 239.77.8.2 &&
		   member c "$NS_B" "$TMP/group" rxe_c "$c" 239.77.8.2 &&
		   member socket "$NS_B" ./socket_member.py 239.77.8.2 $IP4_B; then
			ok "two members, one on another device, a UDP socket"
		else
			not_ok "two members, one on another device, a UDP socket" "$TMP"/{b,b2,c,socket}.out
		fi
		check "groups: send" on_a "$TMP/group" $DEV_A "$GID4_A" 239.77.8.2 $N
		check "groups: all messages reach a member" wait_for 30 heard_all b
		check "groups: and the other one" wait_for 30 heard_all b2
		check "groups: and the UDP socket" wait_for 30 heard_all socket
		check "groups: they are counted as frames" \
			[ $(($(frames $DEV_B) - before_b)) -ge 1 ]
		check "groups: not those of two queue pairs twice" \
			[ $(($(frames $DEV_B) - before_b)) -le $N ]
		# the device on the other wire would have had them by now
		check "groups: none reaches the device on another wire" \
			[ "$(heard c)-$(($(frames rxe_c) - before_c))" = 0-0 ]
		on_a rdma link add rxe_d type "$DRIVER" netdev sr_wa
		d=$(wait_gid "$NS_A" rxe_d $UP4_A)
		check "groups: send on the other wire" on_a "$TMP/group" rxe_d "$d" 239.77.8.2 $N
		check "groups: that reaches the device there" wait_for 30 heard_all c
		check "groups: and no other" [ "$(heard b)-$(heard b2)" = $N-$N ]
		members_end

		# IPv6 goes from a netdev whose MTU is below 1280, and all its groups with it
		member c "$NS_B" "$TMP/group" rxe_c "$c" ff15::779
		joined() { on_b ip maddr show dev sr_wb | grep -q ff15::779; }
		check "groups: joined" wait_for 30 joined
		on_b ip link set sr_wb mtu 1000
		check "groups: lost with IPv6" wait_for 30 eval "! joined"
		on_b ip link set sr_wb mtu 1500
		check "groups: joined again" wait_for 30 joined
		d=$(wait_gid "$NS_A" rxe_d $UP6_A)
		member_again() {
			on_a "$TMP/group" rxe_d "$d" ff15::779 1 >"$TMP/send.out" 2>&1
			[ "$(heard c)" -gt 0 ]
		}
		check "groups: and messages come" wait_for 30 member_again
		members_end
		check "groups: left when the last member is gone" wait_for 30 \
			eval "! on_b ip maddr show dev sr_wb | grep -qE '239.77.8|ff15::'"
	fi
	rdma link delete rxe_c
	rdma link delete rxe_d
	down
fi

# ------------------------------------------------ exclusive
if wanted exclusive; then
	# refused as long as other namespaces are there: those above go in their own time
	if wait_for "$HANG" rdma system set netns exclusive >"$TMP/exclusive.out" 2>&1; then
		exclusive=1
		pair_up
		there() { in_ns "$1" test -e "/sys/class/infiniband/$2"; }
		check "exclusive: A has its device" there "$NS_A" $DEV_A
		check "exclusive: B has its device" there "$NS_B" $DEV_B
		check "exclusive: A has not B's" eval "! there '$NS_A' $DEV_B"
		check "exclusive: B has not A's" eval "! there '$NS_B' $DEV_A"
		check "exclusive: nor has the initial namespace" \
			eval "! there '' $DEV_A && ! there '' $DEV_B"
		CONTROL_B=$IP4_B traffic exclusive $IP4_A $IP4_B $IP6_A $IP6_B
		if command -v rping >/dev/null; then
			PORT=$((PORT + 1))
			pair_test "exclusive: rdma_cm" "cm $PORT" \
				"rping -s -a $IP4_B -p $PORT -V -C 10" \
				"rping -c -a $IP4_B -p $PORT -V -C 10"
		fi
		ip netns delete "$NS_A"
		check "exclusive: A's device goes with its namespace and netdev" \
			wait_for 30 eval "! rdma dev | grep -q $DEV_A"
		check "exclusive: B's, whose netdev goes with the other end, too" \
			wait_for 30 eval "! on_b rdma dev | grep -q $DEV_B"
		down
		check "exclusive: shared again" wait_for 30 rdma system set netns shared
		exclusive=
	else
		not_ok "exclusive mode" "$TMP/exclusive.out"
	fi
fi

tap_done
