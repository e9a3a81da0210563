# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Prints how much kernel memory idle queue pairs take.

usage: idle_qps.py DEVICE GID-INDEX PEER-GID COUNT

COUNT connected queue pairs are made, with rings as small as they can be, and free memory
before and after is compared.  The process's own pages do not count; the rings, which it
has mapped, are given apart.
"""

import pathlib
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

#: Made before the measurement, so that what is allocated once does not count
WARM_UP = 8
SETTLE_SECONDS = 0.3


def free_memory():
    """Bytes that nobody uses, when per-CPU lists and deferred work have settled."""
    time.sleep(SETTLE_SECONDS)
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    values = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    # page cache comes and goes without us
    return values["MemFree"] + values["Cached"] + values["Buffers"]


def own_memory():
    """Bytes of this process: (its own pages and page tables, mapped rings)."""
    status = pathlib.Path("/proc/self/status").read_text().splitlines()
    values = {line.split(":")[0]: line.split() for line in status}
    own = sum(int(values[name][1]) * 1024 for name in ("RssAnon", "VmPTE"))
    rings = 0
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "/infiniband/uverbs" in line:
            start, stop = (int(word, 16) for word in line.split()[0].split("-"))
            rings += stop - start
    return own, rings


def make(pd, cq, gid_index, peer):
    """One queue pair, connected to a queue pair of PEER that need not be there."""
    cap = QPCap(max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap))
    attr = QPAttr(port_num=1)
    route = GlobalRoute(dgid=GID(peer), sgid_index=gid_index)
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    attr.dest_qp_num = 17
    attr.path_mtu = e.IBV_MTU_1024
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
    qp.to_rts(attr)
    return qp


def main():
    """Measure, and print two figures: bytes beyond the rings, and of the rings."""
    name, gid_index, peer, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    context = Context(name=name)
    pd = PD(context)
    cq = CQ(context, 16)
    kept = [make(pd, cq, gid_index, peer) for _ in range(WARM_UP)]
    own, rings = own_memory()
    free = free_memory()
    kept += [make(pd, cq, gid_index, peer) for _ in range(count)]
    new_free = free_memory()
    new_own, new_rings = own_memory()
    rings = (new_rings - rings) / count
    total = (free - new_free - (new_own - own)) / count
    print(f"beyond {total - rings:.0f} rings {rings:.0f}")


if __name__ == "__main__":
    main()
