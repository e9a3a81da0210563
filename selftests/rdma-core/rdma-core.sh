#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# rdma-core.sh: rdma-core's own test suite, as Debian's python3-pyverbs ships it, on
# one device over an Ethernet interface that has a parent device.
#
# usage: rdma-core.sh [PATTERN]    only tests whose name matches (fnmatch)
#
# PROVIDER in the environment chooses the device's name and so the provider.
# NETDEV: the interface, default eth0.  What may be skipped is listed in the file
# "skips", and must be.

cd "$(dirname "$0")" || exit 1
. ../lib.sh

SUITE=/usr/share/doc/rdma-core/tests
NETDEV=${NETDEV:-eth0}
NAME=${PROVIDER}0
ADDRESS=10.88.0.1

on_exit() {
	rdma link delete "$NAME" 2>/dev/null
	ip addr del $ADDRESS/24 dev "$NETDEV" 2>/dev/null
	sysctl -qw vm.nr_hugepages=0
}

link_local() {
	ip -6 -o addr show dev "$NETDEV" scope link -tentative | grep -q fe80
}

device_up() {
	# the suite takes the first GID, the one of the link-local address
	sysctl -qw "net.ipv6.conf.$NETDEV.accept_dad=0" "net.ipv6.conf.$NETDEV.accept_ra=0" &&
	ip addr replace $ADDRESS/24 dev "$NETDEV" &&
	ip link set lo up &&
	ip link set "$NETDEV" up &&
	link_add "" "$NAME" "$DRIVER" "$NETDEV" &&
	wait_for 30 port_active "" "$NAME" &&
	wait_gid "" "$NAME" $ADDRESS >/dev/null &&
	wait_for 30 link_local
}

need ip rdma python3
[ -d $SUITE ] || skip_all "no $SUITE (Debian's rdma-core) installed"
/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null || skip_all "no python3-pyverbs installed"
[ -e "/sys/class/net/$NETDEV/device" ] || skip_all "no interface $NETDEV with a parent device"
driver_loaded "$DRIVER" || skip_all "no module for driver $DRIVER in this kernel"
provider_installed
modprobe -a ib_uverbs rdma_ucm 2>/dev/null
sysctl -qw vm.nr_hugepages=32
cp -r $SUITE "$TMP/tests" && gunzip -q "$TMP"/tests/*.gz
device_up >"$TMP/up.out" 2>&1 || { rdma link >>"$TMP/up.out"; bail "set up $NAME" "$TMP/up.out"; }

version=$(dpkg-query -W -f '${Version}' rdma-core)
/usr/bin/python3 suite.py "$TMP/tests" skips "$NAME" "$PROVIDER" "${version%%.*}" ${1:+"$1"}
status=$?
[ $status -gt 1 ] || tap_finished=1
exit $status
