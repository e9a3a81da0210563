#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# raw.sh: raw packet queue pairs and flow steering, with packet sockets at the other end
# of a veth pair.
#
# usage: raw.sh [NAME]    only the test points whose name contains NAME

cd "$(dirname "$0")" || exit 1
PROVIDER=sroce
. ../lib.sh
export PYTHONDONTWRITEBYTECODE=1

need ip rdma python3 setpriv
/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null || skip_all "no python3-pyverbs installed"
pair_up
timeout -k 5 "$HANG" /usr/bin/python3 raw.py $DEV_A "${NS_A:--}" $IF_A "${NS_B:--}" $IF_B ${1:+"$1"}
status=$?
[ $status -gt 1 ] || tap_finished=1
exit $status
