#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# integrity.sh: every operation at every kind of size, alignment and list moves
# just the right bytes and completes with the right fields.
#
# usage: integrity.sh [NAME]    only the test points whose name contains NAME
# SEED and FAMILY (4 or 6) in the environment vary it; with DEMAND=1 memory is registered
# on demand, which of the services only RC can have written to.

cd "$(dirname "$0")" || exit 1
. ../lib.sh

need ip rdma cc
tap_start "payload integrity"
build integrity main.c arena.c end.c serve.c cases.c ../common/verbs.c ../common/tap.c
pair_up

family=${FAMILY:-4}
a=GID${family}_A
b=GID${family}_B
options=(-s "${SEED:-0x5eed}")
[ -z "$DEMAND" ] || { options+=(-D); set -- "${1:-RC}"; }
[ -z "$1" ] || options+=(-o "$1")
on_b timeout -k 5 3000 "$TMP/integrity" -d $DEV_B -g "${!b}" "${options[@]}" >"$TMP/server.out" 2>&1 &
sleep 0.2
wait_for "$HANG" on_b grep -q ":48A8 0*:0000 0A" /proc/net/tcp6
export PEER_DRIVER=$DRIVER_B	# whose known faults may be met
on_a timeout -k 5 3000 "$TMP/integrity" -d $DEV_A -g "${!a}" "${options[@]}" $IP4_B
status=$?
if [ $status -gt 1 ]; then
	# died or hung: then it printed no plan
	echo "# client: exit status $status; server:"
	tap_diag <"$TMP/server.out"
	exit 1
fi
tap_finished=1
exit $status
