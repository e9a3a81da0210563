#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# nvme.sh: NVMe over Fabrics, the kernel's target (nvmet-rdma) and host (nvme-rdma). Both
# live in the initial net namespace only. A RAM disk is exported; what is written
# through the fabric is compared with the RAM disk itself, and the other way round.

cd "$(dirname "$0")" || exit 1
. ./ulp.sh

NQN=nqn.2024-01.test.sroce:disk
CONFIG=/sys/kernel/config/nvmet
DISK=/dev/ram0
MB=32

target_up() {
	local subsys=$CONFIG/subsystems/$NQN port=$CONFIG/ports/1

	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || return 1
	mkdir "$subsys" &&
	echo 1 >"$subsys/attr_allow_any_host" &&
	mkdir "$subsys/namespaces/1" &&
	echo $DISK >"$subsys/namespaces/1/device_path" &&
	echo 1 >"$subsys/namespaces/1/enable" &&
	mkdir $port &&
	echo rdma >$port/addr_trtype &&
	echo ipv4 >$port/addr_adrfam &&
	echo $IP4_B >$port/addr_traddr &&
	echo 4420 >$port/addr_trsvcid &&
	ln -s "$subsys" "$port/subsystems/$NQN"
}

target_down() {
	rm -f "$CONFIG/ports/1/subsystems/$NQN"
	[ ! -d $CONFIG/ports/1 ] || rmdir $CONFIG/ports/1
	[ ! -d $CONFIG/subsystems/$NQN ] || rmdir $CONFIG/subsystems/$NQN/namespaces/1 \
		$CONFIG/subsystems/$NQN
}

# controller: the host's controller in sysfs
controller() {
	local c

	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn" 2>/dev/null)" = $NQN ] && echo "$c" && return
	done
	return 1
}

# state STATE: is the controller in it?
state() {
	[ "$(cat "$(controller)/state")" = "$1" ]
}

not_live() {
	! state live
}

gone() {
	! controller >/dev/null
}

# find_disk: sets REMOTE to the block device
find_disk() {
	REMOTE=$(ls -d "$(controller)"/nvme*n1 2>/dev/null)
	# with native multipath, the disk is the subsystem's
	REMOTE=/dev/$(basename "${REMOTE:-none}" | sed 's/c[0-9]*n/n/')
	[ -b "$REMOTE" ]
}

# connect [OPTION...]: and wait for the disk
connect() {
	timeout -k 5 "$HANG" nvme connect -t rdma -a $IP4_B -w $IP4_A -s 4420 -n $NQN \
		--reconnect-delay=1 --keep-alive-tmo=5 "$@" &&
	wait_for 60 state live && wait_for 60 find_disk
}

disconnect() {
	timeout -k 5 "$HANG" nvme disconnect -n $NQN && wait_for 60 gone
}

discover() {
	timeout -k 5 "$HANG" nvme discover -t rdma -a $IP4_B -w $IP4_A -s 4420 >"$TMP/discover" &&
	cat "$TMP/discover" && grep -q "$NQN" "$TMP/discover"
}

# The host gives the connection up while the link is down, and makes a new one after
flap() {
	fio_start "$REMOTE" --loops=3 || return 1
	link_down
	wait_for 120 not_live || { echo "still live without a link"; return 1; }
	link_up || { echo "the link does not come up"; return 1; }
	wait_for 120 state live || { cat "$(controller)/state"; return 1; }
	fio_ends
}

# The host's device goes, under traffic: so does the controller
removal() {
	fio_start "$REMOTE" --loops=100 &&
	rdma link delete $DEV_A || return 1
	wait_for 60 gone || { echo "the controller stays"; return 1; }
	! fio_ends
}

# listen_again: nvmet forgets a listener whose device has gone until it is set up anew
listen_again() {
	rm "$CONFIG/ports/1/subsystems/$NQN" &&
	ln -s "$CONFIG/subsystems/$NQN" "$CONFIG/ports/1/subsystems/$NQN"
}

# The target's device goes, under traffic, and comes back: the host connects again
target_removal() {
	connect && fio_start "$REMOTE" --loops=3 || return 1
	rdma link delete $DEV_B && wait_for 120 not_live &&
	rdma link add $DEV_B type "$DRIVER_B" netdev $IF_B &&
	wait_for 30 port_active "" $DEV_B && wait_for 30 gid_index "" $DEV_B $IP4_B &&
	listen_again && wait_for 120 state live && fio_ends && disconnect
}

on_exit() {
	[ -z "$REMOTE" ] || nvme disconnect -n $NQN >/dev/null 2>&1
	target_down
	modprobe -qr brd
}

need nvme fio ip rdma
ulp_start "NVMe over Fabrics" nvmet nvmet-rdma nvme-rdma
modprobe brd rd_nr=1 rd_size=65536 || skip_all "no module brd in this kernel"
check "the target listens" target_up
check "discovery" discover
check "connect" connect || tap_done
check "data to the target" to_target
check "data from the target" from_target
check "random sizes, verified" fio_verify "$REMOTE"
check "random sizes, several jobs at once" fio_verify "$REMOTE" --numjobs=4 --size=8M \
	--offset_increment=8M
check "disconnect" disconnect
check "connect again, with one queue" connect -i 1
check "data to the target by the new connection" to_target
check "a link flap under traffic" flap
check "data from the target after it" from_target
check "disconnect after it" disconnect
check "connect for removal" connect
check "the host's device is removed under traffic" removal
rdma link add $DEV_A type "$DRIVER_A" netdev $IF_A
wait_for 30 gid_index "" $DEV_A $IP4_A >/dev/null
check "the target's device is removed and comes back" target_removal
target_down
unload brd
ulp_end nvme_rdma nvmet_rdma nvmet nvme_fabrics
