#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# errors.sh: errors, flushes, limits and events as the specification has them.
#
# usage: errors.sh [NAME]    only the test points whose name contains NAME

cd "$(dirname "$0")" || exit 1
. ../lib.sh

need ip rdma cc
tap_start "errors"
build errors main.c pair.c completions.c states.c resources.c events.c races.c \
	streams.c garbage.c ../common/verbs.c ../common/tap.c
pair_up

case $DRIVER_A$DRIVER_B in
*rxe*) export NO_GARBAGE="rdma_rxe does not survive it" ;;
esac
# one process opens both devices, wherever they live
timeout -k 5 3000 "$TMP/errors" $DEV_A "$GID4_A" $DEV_B "$GID4_B" ${1:+"$1"}
status=$?
[ $status -gt 1 ] || tap_finished=1
exit $status
