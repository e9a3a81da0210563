#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# ends.sh: make or remove the two ends that one subject of the benchmark is measured
# between, with what the tests use for that (selftests/lib.sh).
#
# usage: ends.sh up|down SUBJECT NUMBER PATH MTU
#
#   SUBJECT  sroce, sroce-own (this tree's provider), rxe, tcp
#   NUMBER   1 to 9, that of the subject: names and addresses come from it, so that the
#            ends of all subjects can be there at once
#   PATH     veth: two interfaces, each in a namespace of its own (rdma_rxe: see lib.sh);
#            lo: both ends are the loopback interface, in the initial namespace
#
# "up" prints NAME=VALUE lines: what lib.sh calls NS_A, DEV_A, IP4_A, GID4_A ...

ACTION=$1 SUBJECT=$2 NUMBER=$3 WAY=$4
export MTU=$5
case $SUBJECT in
sroce) DRIVER=sroce PROVIDER=rxe ;;
sroce-own) DRIVER=sroce PROVIDER=sroce ;;
rxe) DRIVER=rxe PROVIDER=rxe ;;
tcp) DRIVER=none PROVIDER=rxe ;;
esac
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"
tap_finished=1
# the ends are to stay when this script ends
trap 'rm -rf "$TMP"' EXIT

ns_of() {
	[ "$1" = rxe ] || echo "bench${NUMBER}${2#sr}"
}

names() {
	IF_A=bench${NUMBER}a            IF_B=bench${NUMBER}b
	DEV_A=${PROVIDER}_bench${NUMBER}a DEV_B=${PROVIDER}_bench${NUMBER}b
	IP4_A=10.78.$NUMBER.1           IP4_B=10.78.$NUMBER.2
	IP6_A=fd78:$NUMBER::1           IP6_B=fd78:$NUMBER::2
	MAC_A=02:78:00:00:0$NUMBER:01   MAC_B=02:78:00:00:0$NUMBER:02
	if [ "$WAY" = lo ]; then
		NS_A='' NS_B='' IF_A=lo IF_B=lo
		DEV_A=${PROVIDER}_bench${NUMBER}lo DEV_B=$DEV_A
		IP4_B=$IP4_A IP6_B=$IP6_A
	else
		NS_A=$(ns_of "$DRIVER" sr_a)
		NS_B=$(ns_of "$DRIVER" sr_b)
	fi
}

lo_up() {
	ip link set lo up &&
	ip addr replace "$IP4_A/32" dev lo &&
	ip -6 addr replace "$IP6_A/128" dev lo nodad || return 1
	[ "$DRIVER" != none ] || return 0
	link_add "" "$DEV_A" "$DRIVER" lo && wait_for 30 port_active "" "$DEV_A" && find_gids
}

lo_down() {
	rdma link delete "$DEV_A" 2>/dev/null
	ip addr del "$IP4_A/32" dev lo 2>/dev/null
	ip -6 addr del "$IP6_A/128" dev lo 2>/dev/null
}

up() {
	modprobe -qa ib_uverbs rdma_ucm
	[ "$DRIVER" = none ] || driver_loaded "$DRIVER" || { echo "no module for $DRIVER"; return 1; }
	[ "$PROVIDER" = rxe ] || [ -e "/etc/libibverbs.d/$PROVIDER.driver" ] ||
		{ echo "no provider $PROVIDER installed"; return 1; }
	if [ "$WAY" = lo ]; then
		lo_up
	elif [ "$DRIVER" = none ]; then
		netdev_pair
	else
		pair_up
	fi
}

names
if [ "$ACTION" = down ]; then
	if [ "$WAY" = lo ]; then lo_down; else pair_down; fi
	exit 0
fi
up || { echo "the ends of $SUBJECT over $WAY could not be made" >&2; exit 1; }
for name in NS_A NS_B IF_A IF_B DEV_A DEV_B IP4_A IP4_B IP6_A IP6_B GID4_A GID4_B GID6_A GID6_B; do
	echo "$name=${!name}"
done
