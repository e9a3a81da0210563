#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# dmabuf.sh: regions of memory that the kernel exports as a dma-buf (udmabuf, dma-heap),
# the way that a GPU's memory is registered.
#
# usage: dmabuf.sh [NAME]    only the test points whose name contains NAME

cd "$(dirname "$0")" || exit 1
PROVIDER=sroce
. ../lib.sh

need ip rdma cc
tap_start "dma-buf"
build dmabuf main.c ../errors/pair.c ../common/verbs.c ../common/tap.c
pair_up
# one process opens both devices, wherever they live
timeout -k 5 "$HANG" "$TMP/dmabuf" $DEV_A "$GID4_A" $DEV_B "$GID4_B" ${1:+"$1"}
status=$?
[ $status -gt 1 ] || tap_finished=1
exit $status
