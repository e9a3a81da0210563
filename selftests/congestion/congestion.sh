#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# congestion.sh: several senders, each a host of its own, into one bottleneck that marks
# packets: its use, its queue, what it drops and how the senders share it.
#
# usage: congestion.sh [-d DIR] [-r MBIT] [NAME]
#
#   -d DIR  keep there what was measured: rates and queue over time, comma-separated
#   -r MBIT rate of the bottleneck, default 20: slow, so that an emulated machine fills it
#   NAME    only the test points whose name contains it
#
# qperf moves the data and says how fast; tc says what the bottleneck did.

cd "$(dirname "$0")" || exit 1
. ../lib.sh

need ip rdma tc ethtool python3 qperf
tap_start "congestion"
driver_loaded "$DRIVER" || skip_all "no module for driver $DRIVER in this kernel"
[ "$DRIVER" != rxe ] || skip_all "rdma_rxe keeps to the initial net namespace"
modprobe -qa sch_tbf sch_red sch_codel sch_fq_codel sch_fq ib_uverbs

PYTHONDONTWRITEBYTECODE=1 ./congestion.py --driver "$DRIVER" --provider "$PROVIDER" "$@"
status=$?
[ $status -gt 1 ] || tap_finished=1
exit $status
