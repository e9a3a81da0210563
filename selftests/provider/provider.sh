#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# provider.sh: what this tree's provider adds to the stock one and rdma-core's own
# suite does not look at.
#
# usage: provider.sh [NAME]    only the test points whose name contains NAME

cd "$(dirname "$0")" || exit 1
PROVIDER=sroce
. ../lib.sh

need ip rdma cc
tap_start "our provider"
# -rdynamic: its write() stands before the C library's
build provider main.c -rdynamic ../errors/pair.c ../common/verbs.c ../common/tap.c
pair_up
# one process opens both devices, wherever they live
timeout -k 5 "$HANG" "$TMP/provider" $DEV_A "$GID4_A" $DEV_B "$GID4_B" ${1:+"$1"}
status=$?
[ $status -gt 1 ] || tap_finished=1
exit $status
