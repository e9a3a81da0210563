#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# netdev.sh: creating devices on netdevs of every kind, and what becomes of a device
# when something happens to its netdev.
#
# usage: netdev.sh [PATTERN]    only the groups whose name matches (grep -E):
#   add netns port gids rename unregister kinds

cd "$(dirname "$0")" || exit 1
. ./lib.sh

ONLY=${1:-.}
DEV=rxe_t
PORT=19300

wanted() { echo "$1" | grep -qE -- "$ONLY"; }

# made NAME COMMAND...: set-up of a test point; if it fails, the point is skipped
# (this kernel has no such netdev).
made() {
	local name=$1

	shift
	"$@" >"$TMP/made.out" 2>&1 && return
	skip "$name" "$(head -1 "$TMP/made.out")"
	return 1
}

gone() { [ ! -e "/sys/class/infiniband/$1" ]; }
there() { [ -e "/sys/class/infiniband/$1" ]; }

# attr NAME: a line of ibv_devinfo about $DEV.
attr() {
	ibv_devinfo -d $DEV 2>/dev/null | sed -n "s/^[[:space:]]*$1:[[:space:]]*//p" | head -1
}

attr_is() { attr "$1" | grep -q "^$2"; }

# eventually DESCRIPTION COMMAND...: passes once COMMAND does.
eventually() {
	local what=$1

	shift
	if wait_for 30 "$@"; then
		ok "$what"
	else
		{
			echo "never true: $*"
			rdma link
			ibv_devinfo -d $DEV
			(cd /sys/class/infiniband/$DEV/ports/1/gids && grep -v :0000:0000:0000:0000$ ./*)
		} >"$TMP/eventually.out" 2>&1
		not_ok "$what" "$TMP/eventually.out"
	fi
}

# self_traffic NAME ADDRESS: RC messages from $DEV to itself.
self_traffic() {
	local gid

	if ! gid=$(wait_gid "" $DEV "$2"); then
		not_ok "$1: no GID for $2"
		return
	fi
	PORT=$((PORT + 1))
	NS_A='' NS_B='' pair_test "$1" "tcp $PORT" \
		"ibv_rc_pingpong -p $PORT -d $DEV -g $gid -n 20 -s 10000" \
		"ibv_rc_pingpong -p $PORT -d $DEV -g $gid -n 20 -s 10000 127.0.0.1"
}

on_exit() {
	local l

	kill "$watch" 2>/dev/null
	for l in $(rdma link 2>/dev/null | sed -n 's/^link \(rxe_t[^/]*\).*/\1/p'); do
		rdma link delete "$l" 2>/dev/null
	done
	for l in sr_t sr_t2 sr_vlan sr_br sr_bond sr_mac sr_tap sr_ipip $(seq -f 'sr_t%g' 10 29); do
		ip link delete "$l" 2>/dev/null
	done
	ip netns delete sr_n 2>/dev/null
	rdma system set netns shared 2>/dev/null
}

need ip rdma ibv_devinfo ibv_rc_pingpong
tap_start "netdev"
driver_loaded "$DRIVER" || skip_all "no module for driver $DRIVER in this kernel"
modprobe -a ib_uverbs 2>/dev/null
NS_A='' NS_B=sr_none

# ------------------------------------------------ link add and delete
if wanted add; then
	ip link add sr_t mtu 1500 type dummy
	ip link set sr_t up
	check_fails "a netdev that does not exist: refused" "No such device|not exist|Invalid" \
		rdma link add $DEV type "$DRIVER" netdev sr_nosuch
	check_fails "a link type that does not exist: refused" "." \
		rdma link add $DEV type nosuch netdev sr_t
	check "rdma link add" rdma link add $DEV type "$DRIVER" netdev sr_t
	eventually "the device is there" there $DEV
	check "rdma link names the netdev" bash -c "rdma link show $DEV/1 | grep -q 'netdev sr_t'"
	ip link add sr_t2 type dummy
	check_fails "a name in use: refused" "File exists" \
		rdma link add $DEV type "$DRIVER" netdev sr_t2
	check "rdma link delete" rdma link delete $DEV
	eventually "the device is gone" gone $DEV
	check_fails "deleting what is not there: refused" "." rdma link delete $DEV
	ip link set sr_t2 mtu 100
	check_fails "an MTU too small for a path MTU of 256: refused" "." \
		rdma link add $DEV type "$DRIVER" netdev sr_t2
	rdma link delete $DEV 2>/dev/null
	if made "a netdev that is no Ethernet: refused" ip link add sr_ipip type ipip \
		remote 10.9.9.9 local 10.9.9.8; then
		check_fails "a netdev that is no Ethernet: refused" "." \
			rdma link add $DEV type "$DRIVER" netdev sr_ipip
		rdma link delete $DEV 2>/dev/null
	fi
	twenty() {
		local i

		for i in $(seq 10 29); do
			ip link add sr_t"$i" type dummy || return 1
			ip link set sr_t"$i" up || return 1
			rdma link add $DEV"$i" type "$DRIVER" netdev sr_t"$i" || return 1
		done
		for i in $(seq 10 29); do
			there $DEV"$i" || return 1
			rdma link delete $DEV"$i" || return 1
			ip link delete sr_t"$i"
		done
	}
	check "twenty devices at once" twenty
	if [ "$DRIVER" != rxe ]; then
		autoload() {
			rmmod "$DRIVER" && rdma link add $DEV type "$DRIVER" netdev sr_t &&
				rdma link delete $DEV
		}
		if modinfo "$DRIVER" >/dev/null 2>&1; then
			check "rdma link add loads the module" autoload
		else
			skip "rdma link add loads the module" "the module is not installed"
		fi
	fi
	ip link delete sr_t
	ip link delete sr_t2
fi

# ------------------------------------------------ net namespaces
if wanted netns; then
	if made "devices of their own in net namespaces" rdma system set netns exclusive; then
		ip netns add sr_n
		ip link add sr_t type dummy
		ip link set sr_t netns sr_n
		ip -n sr_n link set sr_t up
		check "exclusive: link add in a namespace" \
			ip netns exec sr_n rdma link add $DEV type "$DRIVER" netdev sr_t
		check "exclusive: the device is seen there" \
			ip netns exec sr_n test -e /sys/class/infiniband/$DEV
		check "exclusive: the device is not seen elsewhere" gone $DEV
		check "exclusive: the device goes with its namespace" bash -c "
			ip netns exec sr_n rdma link delete $DEV && ip netns delete sr_n"
		ip netns add sr_n
		ip link add sr_t type dummy
		ip link set sr_t up
		check "exclusive: link add in the initial namespace" \
			rdma link add $DEV type "$DRIVER" netdev sr_t
		check "exclusive: rdma dev set netns" rdma dev set $DEV netns sr_n
		check "exclusive: the device has moved" bash -c "
			! test -e /sys/class/infiniband/$DEV &&
			ip netns exec sr_n test -e /sys/class/infiniband/$DEV"
		ip netns delete sr_n
		eventually "exclusive: back when the namespace is gone" \
			bash -c "rdma dev | grep -q $DEV || ! ls /sys/class/infiniband | grep -q $DEV"
		ip link delete sr_t
		check "shared again" rdma system set netns shared
	fi
	if [ "$DRIVER" = rxe ]; then
		skip "shared: the device goes with its namespace" "rdma_rxe keeps to the initial one"
	else
		ip netns add sr_n
		ip link add sr_t type dummy
		ip link set sr_t netns sr_n
		ip netns exec sr_n rdma link add $DEV type "$DRIVER" netdev sr_t
		there $DEV && ip netns delete sr_n
		eventually "shared: the device goes with its namespace" gone $DEV
	fi
fi

# ------------------------------------------------ port state, MTU
if wanted port; then
	ip link add sr_t mtu 4200 type dummy
	ip link set sr_t up
	rdma link add $DEV type "$DRIVER" netdev sr_t
	eventually "up: port active" attr_is state PORT_ACTIVE
	if command -v ibv_asyncwatch >/dev/null; then
		stdbuf -oL ibv_asyncwatch -d $DEV >"$TMP/watch.out" 2>&1 &
		watch=$!
		wait_for 30 grep -q "$DEV" "$TMP/watch.out"
	fi
	ip link set sr_t down
	eventually "down: port down" attr_is state PORT_DOWN
	ip link set sr_t up
	eventually "up again: port active" attr_is state PORT_ACTIVE
	if [ -n "$watch" ]; then
		eventually "down: event port error" grep -qiE "port[_ ]err" "$TMP/watch.out"
		eventually "up: event port active" grep -qiE "port[_ ]active" "$TMP/watch.out"
		kill $watch
		wait $watch 2>/dev/null
		watch=
	fi
	for m in "4200 4096" "1500 1024" "9000 4096" "2200 2048" "700 512" "400 256"; do
		ip link set sr_t mtu "${m% *}"
		eventually "netdev MTU ${m% *}: path MTU ${m#* }" attr_is active_mtu "${m#* }"
	done
	ip link delete sr_t
	eventually "gone with its netdev" gone $DEV
fi

# ------------------------------------------------ GIDs
if wanted gids; then
	has_gid() { gid_index "" $DEV "$1" >/dev/null; }
	no_gid() { ! gid_index "" $DEV "$1" >/dev/null; }
	ip link add sr_t type dummy
	ip link set sr_t up
	rdma link add $DEV type "$DRIVER" netdev sr_t
	ip addr add 10.77.9.1/24 dev sr_t
	eventually "IPv4 address added: GID" has_gid 10.77.9.1
	ip -6 addr add fd77:9::1/64 dev sr_t nodad
	eventually "IPv6 address added: GID" has_gid fd77:9::1
	ip addr del 10.77.9.1/24 dev sr_t
	eventually "IPv4 address removed: no GID" no_gid 10.77.9.1
	ip -6 addr del fd77:9::1/64 dev sr_t
	eventually "IPv6 address removed: no GID" no_gid fd77:9::1
	ip link delete sr_t
	wait_for 30 gone $DEV
fi

if wanted rename; then
	ip link add sr_t type dummy
	rdma link add $DEV type "$DRIVER" netdev sr_t
	ip link set sr_t name sr_t2
	eventually "netdev renamed: rdma link shows it" \
		bash -c "rdma link show $DEV/1 | grep -q 'netdev sr_t2'"
	check "the RDMA device can be renamed" rdma dev set $DEV name ${DEV}9
	eventually "its new name is there" there ${DEV}9
	rdma link delete ${DEV}9
	ip link delete sr_t2
fi

# ------------------------------------------------ kinds of netdev
# kind NAME NETDEV: a device on it, with traffic to itself.
kind() {
	ip addr replace 10.77.9.1/24 dev "$2"
	ip link set "$2" up
	if check "$1: link add" rdma link add $DEV type "$DRIVER" netdev "$2"; then
		self_traffic "$1: RC to itself" 10.77.9.1
		check "$1: link delete" rdma link delete $DEV
	else
		rdma link delete $DEV 2>/dev/null
	fi
	wait_for 30 gone $DEV
	ip addr del 10.77.9.1/24 dev "$2"
}

if wanted kinds; then
	kind lo lo
	made dummy ip link add sr_t type dummy && kind dummy sr_t
	if made VLAN ip link add link sr_t name sr_vlan type vlan id 7; then
		kind VLAN sr_vlan
		ip link delete sr_vlan
	fi
	if made macvlan ip link add link sr_t name sr_mac type macvlan mode bridge; then
		kind macvlan sr_mac
		ip link delete sr_mac
	fi
	if made bridge ip link add sr_br type bridge; then
		ip link set sr_t master sr_br
		kind bridge sr_br
		ip link set sr_t nomaster
		ip link delete sr_br
	fi
	if made bond ip link add sr_bond type bond mode active-backup; then
		ip link set sr_t down
		ip link set sr_t master sr_bond
		kind bond sr_bond
		ip link delete sr_bond
	fi
	ip link delete sr_t
	if made tap ip tuntap add sr_tap mode tap; then
		kind tap sr_tap
		ip link delete sr_tap
	fi
	virtio=
	for n in /sys/class/net/*; do
		case $(readlink -f "$n/device/driver") in *virtio_net) virtio=${n##*/} ;; esac
	done
	if [ -n "$virtio" ]; then
		kind virtio-net "$virtio"
	else
		skip "virtio-net: link add" "this guest has no virtio-net device"
	fi
fi

tap_done
