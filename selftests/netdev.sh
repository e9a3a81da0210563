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

has_gid() { gid_index "" $DEV "$1" >/dev/null; }
no_gid() { there $DEV && ! gid_index "" $DEV "$1" >/dev/null; }

# watch_start: note the events of $DEV from now on
watch_start() {
	stdbuf -oL ibv_asyncwatch -d $DEV >"$TMP/watch.out" 2>&1 &
	watch=$!
	wait_for 30 grep -q "$DEV" "$TMP/watch.out"
}

watch_end() {
	kill "$watch" 2>/dev/null
	wait "$watch" 2>/dev/null
	watch=
}

# event PATTERN [N]: an event like that came, N times; some have only a number there
event() { [ "$(grep -ciE "event_type.*($1)" "$TMP/watch.out")" -ge "${2:-1}" ]; }

# eui64 MAC: the link-local address made of it
eui64() {
	python3 - "$1" <<-'PY'
	import sys
	m = [int(x, 16) for x in sys.argv[1].split(':')]
	m = [m[0] ^ 2, *m[1:3], 0xff, 0xfe, *m[3:]]
	print('fe80::' + ':'.join('%02x%02x' % (m[i], m[i + 1]) for i in (0, 2, 4, 6)))
	PY
}

# self_traffic NAME ADDRESS: RC messages from $DEV to itself, in namespace $NS
self_traffic() {
	local gid

	if ! gid=$(wait_gid "" $DEV "$2"); then
		(rdma link; cd /sys/class/infiniband/$DEV/ports/1/gids &&
			grep -v :0000:0000:0000:0000$ ./*) >"$TMP/gids.out" 2>&1
		not_ok "$1: no GID for $2" "$TMP/gids.out"
		return
	fi
	PORT=$((PORT + 1))
	NS_A=$NS NS_B=$NS pair_test "$1" "tcp $PORT" \
		"ibv_rc_pingpong -p $PORT -d $DEV -g $gid -n 20 -s 10000" \
		"ibv_rc_pingpong -p $PORT -d $DEV -g $gid -n 20 -s 10000 127.0.0.1"
}

on_exit() {
	local l

	kill "$watch" 2>/dev/null
	for l in $(rdma link 2>/dev/null | sed -n 's/^link \(rxe_t[^/]*\).*/\1/p'); do
		rdma link delete "$l" 2>/dev/null
	done
	kill "$relay" 2>/dev/null
	for l in sr_t sr_t2 sr_t3 sr_k sr_ipip $(seq -f 'sr_t%g' 10 29); do
		ip link delete "$l" 2>/dev/null
	done
	ip netns delete sr_n 2>/dev/null
	rdma system set netns shared 2>/dev/null
}

need ip rdma ibv_devinfo ibv_rc_pingpong ibv_asyncwatch stdbuf python3
tap_start "netdev"
driver_loaded "$DRIVER" || skip_all "no module for driver $DRIVER in this kernel"
modprobe -a ib_uverbs 2>/dev/null
NS_A='' NS_B=sr_none NS=''

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
	# busy while a namespace is on its way out
	if check "devices of their own in net namespaces" \
		wait_for "$HANG" rdma system set netns exclusive; then
		ip netns add sr_n
		ip link add sr_t type dummy
		ip link set sr_t netns sr_n
		ip -n sr_n link set sr_t up
		check "exclusive: link add in a namespace" \
			ip netns exec sr_n rdma link add $DEV type "$DRIVER" netdev sr_t
		check "exclusive: the device is seen there" \
			ip netns exec sr_n test -e /sys/class/infiniband/$DEV
		check "exclusive: the device is not seen elsewhere" gone $DEV
		check "exclusive: link delete in the namespace" \
			ip netns exec sr_n rdma link delete $DEV
		eventually "exclusive: the device is gone there" \
			bash -c "! ip netns exec sr_n test -e /sys/class/infiniband/$DEV"
		ip netns exec sr_n rdma link add $DEV type "$DRIVER" netdev sr_t
		ip netns delete sr_n
		eventually "exclusive: the device goes with its namespace and netdev" \
			bash -c "! rdma dev | grep -q $DEV && ! ip link show sr_t >&2 2>/dev/null"
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
		eventually "exclusive: back when the namespace is gone" there $DEV
		ip link delete sr_t
		eventually "exclusive: gone with its netdev" gone $DEV
		check "shared again" wait_for 30 rdma system set netns shared
	fi
	if [ "$DRIVER" = rxe ]; then
		skip "shared: the device goes with its namespace" "rdma_rxe keeps to the initial one"
	else
		ip netns add sr_n
		ip link add sr_t type dummy
		ip link set sr_t netns sr_n
		ip netns exec sr_n rdma link add $DEV type "$DRIVER" netdev sr_t
		check "shared: the device is seen everywhere" \
			bash -c "test -e /sys/class/infiniband/$DEV &&
				ip netns exec sr_n test -e /sys/class/infiniband/$DEV"
		ip netns delete sr_n
		eventually "shared: the device goes with its namespace" gone $DEV

		# a netdev that moves takes its addresses along, and the device stays
		ip netns add sr_n
		ip link add sr_t type dummy
		ip link set sr_t up
		ip addr add 10.77.9.1/24 dev sr_t
		rdma link add $DEV type "$DRIVER" netdev sr_t
		eventually "shared: the netdev's address is there" has_gid 10.77.9.1
		ip link set sr_t netns sr_n
		eventually "shared: netdev moved: no GID" no_gid 10.77.9.1
		check "shared: netdev moved: the device stays" there $DEV
		ip -n sr_n addr add 10.77.9.2/24 dev sr_t
		ip -n sr_n link set lo up
		ip -n sr_n link set sr_t up
		eventually "shared: address in the new namespace: GID" has_gid 10.77.9.2
		NS=sr_n self_traffic "shared: RC in the new namespace" 10.77.9.2
		ip netns delete sr_n
		eventually "shared: it goes with the new namespace" gone $DEV
	fi
fi

# ------------------------------------------------ port state, MTU
if wanted port; then
	ip link add sr_t mtu 4200 type dummy
	ip link set sr_t up
	rdma link add $DEV type "$DRIVER" netdev sr_t
	eventually "up: port active" attr_is state PORT_ACTIVE
	watch_start
	ip link set sr_t down
	eventually "down: port down" attr_is state PORT_DOWN
	eventually "down: event port error" event "port[_ ]err"
	ip link set sr_t up
	eventually "up again: port active" attr_is state PORT_ACTIVE
	eventually "up: event port active" event "port[_ ]active"
	ip addr add 10.77.9.1/24 dev sr_t
	eventually "address: event GID table change" event "gid|\(18\)"
	ip link set sr_t mtu 300
	eventually "an MTU too small for any path MTU: port down" attr_is state PORT_DOWN
	eventually "an MTU too small: event port error" event "port[_ ]err" 2
	for m in "4200 4096" "1500 1024" "9000 4096" "2200 2048" "700 512" "400 256"; do
		ip link set sr_t mtu "${m% *}"
		eventually "netdev MTU ${m% *}: path MTU ${m#* }" attr_is active_mtu "${m#* }"
	done
	check "a large MTU again: port active" attr_is state PORT_ACTIVE
	eventually "a large MTU again: event port active" event "port[_ ]active" 2
	ip link delete sr_t
	eventually "gone with its netdev" gone $DEV
	eventually "gone: event device fatal" event "catastrophic|fatal|\(8\)"
	watch_end

	ip link add sr_t type veth peer name sr_t2
	ip link set sr_t up
	rdma link add $DEV type "$DRIVER" netdev sr_t
	eventually "no carrier: port down" attr_is state PORT_DOWN
	watch_start
	ip link set sr_t2 up
	eventually "carrier: port active" attr_is state PORT_ACTIVE
	eventually "carrier: event port active" event "port[_ ]active"
	ip link set sr_t2 down
	eventually "carrier lost: port down" attr_is state PORT_DOWN
	eventually "carrier lost: event port error" event "port[_ ]err"
	ip link delete sr_t2
	eventually "gone with the other end of the wire" gone $DEV
	watch_end
fi

# ------------------------------------------------ GIDs
if wanted gids; then
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
	ip addr add 10.77.9.1/24 dev sr_t
	eventually "the default GID is made of the MAC address" \
		has_gid "$(eui64 "$(cat /sys/class/net/sr_t/address)")"
	ip link set sr_t address 02:77:09:00:00:99
	eventually "MAC address changed: default GID" has_gid "$(eui64 02:77:09:00:00:99)"
	eventually "MAC address changed: IPv4 GID" has_gid 10.77.9.1
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
# kind NAME NETDEV: a device on it, with traffic to itself, and all that can happen to it
kind() {
	local name=$1 netdev=$2 mtu

	mtu=$(cat "/sys/class/net/$netdev/mtu")
	ip addr replace 10.77.9.1/24 dev "$netdev"
	ip link set "$netdev" mtu 1500 up
	if ! check "$name: link add" rdma link add $DEV type "$DRIVER" netdev "$netdev"; then
		rdma link delete $DEV 2>/dev/null
		return
	fi
	eventually "$name: port active" attr_is state PORT_ACTIVE
	self_traffic "$name: RC to itself" 10.77.9.1
	watch_start
	kind_changes "$name" "$netdev"
	kind_rename "$name" "$netdev"
	case $name in
	lo)
		check "$name: link delete" rdma link delete $DEV
		ip addr del 10.77.9.1/24 dev "$netdev"
		ip link set lo mtu "$mtu" up
		;;
	virtio-net)
		unbind "$netdev"
		;;
	*)
		ip link delete "$netdev"
		;;
	esac
	eventually "$name: gone with it" gone $DEV
	eventually "$name: event device fatal" event "catastrophic|fatal|\(8\)"
	watch_end
	[ "$name" != virtio-net ] || rebind
}

kind_changes() {
	local name=$1 netdev=$2

	ip addr add 10.77.9.2/24 dev "$netdev"
	eventually "$name: address added: GID" has_gid 10.77.9.2
	eventually "$name: event GID table change" event "gid|\(18\)"
	ip addr del 10.77.9.2/24 dev "$netdev"
	case $name-$(uname -r) in
	lo-6.1.* | tun-6.1.*)
		skip "$name: address removed: no GID" "this kernel cannot take it back" ;;
	*)
		eventually "$name: address removed: no GID" no_gid 10.77.9.2 ;;
	esac
	ip link set "$netdev" down
	eventually "$name: down: port down" attr_is state PORT_DOWN
	eventually "$name: event port error" event "port[_ ]err"
	ip link set "$netdev" up
	eventually "$name: up: port active" attr_is state PORT_ACTIVE
	eventually "$name: event port active" event "port[_ ]active"
	ip link set "$netdev" mtu 700
	eventually "$name: MTU 700: path MTU 512" attr_is active_mtu 512
	ip link set "$netdev" mtu 1500
	eventually "$name: MTU 1500: path MTU 1024" attr_is active_mtu 1024
}

# Some kernels rename only what is down; of a VLAN the Ethernet below is shown
kind_rename() {
	local name=$1 netdev=$2 shown=sr_t3

	[ "$name" != lo ] || return
	[ "$name" != VLAN ] || shown=sr_t
	ip link set "$netdev" down
	ip link set "$netdev" name sr_t3
	eventually "$name: renamed" bash -c "rdma link show $DEV/1 | grep -qE 'netdev $shown( |$)'"
	ip link set sr_t3 name "$netdev"
	ip link set "$netdev" up
}

# As if the NIC were pulled out
unbind() {
	unbound=$(basename "$(readlink -f "/sys/class/net/$1/device")")
	echo "$unbound" >/sys/bus/virtio/drivers/virtio_net/unbind
}

rebind() { echo "$unbound" >/sys/bus/virtio/drivers/virtio_net/bind; }

# on_base NAME MAKE...: a kind that is made, by MAKE, on sr_t, one end of a veth pair
on_base() {
	local name=$1

	shift
	ip link add sr_t type veth peer name sr_t2
	ip link set sr_t up
	ip link set sr_t2 up
	if made "$name" "$@"; then
		case $name in
		bridge) ip link set sr_t master sr_k ;;
		bond) ip link set sr_t down; ip link set sr_t master sr_k; ip link set sr_t up ;;
		esac
		kind "$name" sr_k
	fi
	ip link delete sr_t
}

if wanted kinds; then
	kind lo lo
	made dummy ip link add sr_k type dummy && kind dummy sr_k
	ip link add sr_k type veth peer name sr_t2
	ip link set sr_t2 up
	kind veth sr_k
	on_base VLAN ip link add link sr_t name sr_k type vlan id 7
	on_base macvlan ip link add link sr_t name sr_k type macvlan mode bridge
	on_base bridge ip link add sr_k type bridge
	on_base bond ip link add sr_k type bond mode active-backup miimon 100
	modprobe tun 2>/dev/null
	mkdir -p /dev/net
	[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
	for mode in tap tun; do
		stack/relay.py $mode sr_k sr_t2 >"$TMP/relay.out" 2>&1 &
		relay=$!
		made $mode wait_for 30 grep ready "$TMP/relay.out" && kind $mode sr_k
		kill $relay 2>/dev/null
		wait $relay 2>/dev/null
	done
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
