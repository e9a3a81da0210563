#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# protocol.sh: hand-made packets to one device; its answers and completions.
#
# usage: protocol.sh [NAME]    only the test points whose name contains NAME

cd "$(dirname "$0")" || exit 1
. ../lib.sh
export PYTHONDONTWRITEBYTECODE=1

need ip rdma cc ethtool python3
tap_start "protocol"
build agent agent.c ../common/verbs.c
driver_loaded "$DRIVER_A" || skip_all "no module for driver $DRIVER_A in this kernel"
modprobe -a ib_uverbs 2>/dev/null

# The device's end as in pair_up; the other end is bare, so that nobody answers
# but the test. Segmentation is the stack's business: off, so that the test sees
# packets.
NS_A=$(ns_of "$DRIVER_A" sr_a)
NS_B=sr_b
{
	{ [ -z "$NS_A" ] || ip netns add "$NS_A"; } &&
	ip netns add $NS_B &&
	ip link add $IF_A address $MAC_A mtu "$MTU" type veth \
		peer name $IF_B address $MAC_B mtu "$MTU" netns $NS_B &&
	{ [ -z "$NS_A" ] || ip link set $IF_A netns "$NS_A"; } &&
	on_b sysctl -qw net.ipv6.conf.$IF_B.disable_ipv6=1 &&
	on_b ip link set $IF_B up &&
	end_up "$NS_A" $IF_A $IP4_A $IP6_A $IP4_B $IP6_B $MAC_B &&
	on_a ip neigh replace 10.77.0.3 lladdr $MAC_B dev $IF_A nud permanent &&
	on_a ip neigh replace fd77::3 lladdr $MAC_B dev $IF_A nud permanent &&
	on_a ethtool -K $IF_A tx off tso off gso off tx-udp-segmentation off &&
	link_add "$NS_A" $DEV_A "$DRIVER_A" $IF_A &&
	wait_for 30 port_active "$NS_A" $DEV_A &&
	GID4_A=$(wait_gid "$NS_A" $DEV_A $IP4_A) &&
	GID6_A=$(wait_gid "$NS_A" $DEV_A $IP6_A)
} >"$TMP/up.out" 2>&1 || bail "set up $DEV_A on a veth pair" "$TMP/up.out"

./protocol.py --agent "$TMP/agent" --device $DEV_A --namespace "$NS_A" \
	--gids "$GID4_A" "$GID6_A" --addresses $IP4_A $IP6_A --peers $IP4_B $IP6_B \
	--siblings 10.77.0.3 fd77::3 --interface $IF_B --wire-namespace $NS_B \
	--macs $MAC_A $MAC_B --only "$1"
status=$?
[ $status -gt 1 ] || tap_finished=1
exit $status
