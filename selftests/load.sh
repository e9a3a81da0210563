#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# load.sh: "rdma link add" loads the module by itself, a message goes across with its
# contents intact, and when the links are gone the module can be unloaded.

cd "$(dirname "$0")" || exit 1
. ./lib.sh

PORT=19900

unload() {
	[ ! -d /sys/module/sroce ] || rmmod sroce
}

loads_by_itself() {
	[ ! -d /sys/module/sroce ] &&
	ip link add sr_dummy type dummy &&
	ip link set sr_dummy up &&
	rdma link add rxe_load type sroce netdev sr_dummy &&
	[ -d /sys/module/sroce ] &&
	rdma link delete rxe_load
}

on_exit() {
	ip link delete sr_dummy 2>/dev/null
}

tap_start 4
unload
check "rdma link add loads the module" loads_by_itself
pair_up
pair_test "a message goes across" "tcp $PORT" \
	"ibv_rc_pingpong -p $PORT -d $DEV_B -g $GID4_B -n 100 -c" \
	"ibv_rc_pingpong -p $PORT -d $DEV_A -g $GID4_A -n 100 -c $IP4_B"
pair_test "rdma_cm connects" "cm $PORT" \
	"rping -s -C 10 -v -a $IP4_B -p $PORT" \
	"rping -c -C 10 -v -a $IP4_B -p $PORT"
pair_down
check "the module can be unloaded" unload
tap_done
