# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# lio.sh - sourced by the tests of SCSI over RDMA: the kernel's target (LIO) with a RAM
# disk behind it, and what is done with the disk at the initiator. Both live in the initial
# net namespace only.

CONFIG=/sys/kernel/config/target
STORE=$CONFIG/core/iblock_77/disk
SERIAL=5ca1ab1e
DISK=/dev/ram0
MB=32

# store_up, store_down: the RAM disk as the target's backing store
store_up() {
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config || return 1
	modprobe -a target_core_mod target_core_iblock sd_mod &&
	modprobe brd rd_nr=1 rd_size=65536 &&
	mkdir -p $STORE &&
	echo "udev_path=$DISK" >$STORE/control &&
	echo 1 >$STORE/enable &&
	echo $SERIAL >$STORE/wwn/vpd_unit_serial
}

store_down() {
	[ ! -d $STORE ] || rmdir $STORE ${STORE%/*}
}

# find_disk: set REMOTE to the initiator's disk
find_disk() {
	local d

	REMOTE=
	for d in /sys/block/sd*; do
		[ -e "$d/device/vpd_pg80" ] && grep -aq $SERIAL "$d/device/vpd_pg80" &&
			REMOTE=/dev/${d##*/}
	done
	[ -b "$REMOTE" ]
}

no_disk() {
	! find_disk
}
