# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Receive side scaling: which of a table's receive queues gets a frame.

The oracle is Microsoft's RSS verification suite ("Verifying the RSS Hash Calculation"), in
which a known key gives known hashes; a queue's place in the table is the hash's lowest bits.
"""

import contextlib
import errno
import socket
import struct
import time

from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.flow import Flow, FlowAttr
from pyverbs.qp import QP, QPInitAttrEx
from pyverbs.spec import EthSpec
from pyverbs.wq import RwqIndTable, RwqIndTableInitAttr, RxHashConf, WQ, WQAttr, WQInitAttr
from pyverbs.wr import RecvWR, SGE

QPT_RAW, LOCAL_WRITE = 8, 1
INIT_PD, INIT_IND_TABLE, INIT_RX_HASH = 1, 1 << 4, 1 << 5
WQ_STATE, WQ_CUR_STATE = 1, 2
RESET, READY, ERROR = range(3)
TOEPLITZ = 1
IPV4, IPV6, TCP, UDP = 0x3, 0xc, 0x30, 0xc0	# source and destination of each
SUCCESS, FLUSHED = 0, 5
PATIENCE = 20
LOG_SIZE = 7
BUFFER = 256
GROUP = bytes.fromhex('0150561920a7')
KEY = list(bytes.fromhex('6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b4'
                         '77cb2da38030f20c6a42b73bbeac01fa'))
# source, port, destination, port; hash of the addresses, and of the ports as well
SUITE = [
    ('66.9.149.187', 2794, '161.142.100.80', 1766, 0x323e8fc2, 0x51ccc178),
    ('199.92.111.2', 14230, '65.69.140.83', 4739, 0xd718262a, 0xc626b0ea),
    ('24.19.198.95', 12898, '12.22.207.184', 38024, 0xd2d0a5de, 0x5c2b394a),
    ('38.27.205.30', 48228, '209.142.163.6', 2217, 0x82989176, 0xafc7327f),
    ('153.39.163.191', 44251, '202.188.127.2', 1303, 0x5d1809c5, 0x10e828a2),
    ('3ffe:2501:200:1fff::7', 2794, '3ffe:2501:200:3::1', 1766, 0x2cc18cd5, 0x40207d3d),
    ('3ffe:501:8::260:97ff:fe40:efab', 14230, 'ff02::1', 4739, 0x0f0c461c, 0xdde51bbf),
    ('3ffe:1900:4545:3:200:f8ff:fe21:67cf', 44251, 'fe80::200:f8ff:fe21:67cf', 38024,
     0x4b61e985, 0x02d1feef),
]


def frame(source, sport, destination, dport, protocol=6, fragment=0):
    """An Ethernet frame to the group; checksums are of no account."""
    ports = struct.pack('!HH', sport, dport)
    layer4 = ports + bytes(16) if protocol == 6 else ports + struct.pack('!HH', 16, 0) + bytes(8)
    if ':' in source:
        ip = struct.pack('!IHBB', 6 << 28, len(layer4), protocol, 64) + \
            socket.inet_pton(socket.AF_INET6, source) + \
            socket.inet_pton(socket.AF_INET6, destination)
        return GROUP + bytes(6) + b'\x86\xdd' + ip + layer4
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(layer4), 1, fragment, 64, protocol, 0) + \
        socket.inet_aton(source) + socket.inet_aton(destination)
    return GROUP + bytes(6) + b'\x08\x00' + ip + layer4


def refusal(call, *args):
    """The errno with which a call fails, or 0."""
    try:
        call(*args)
    except PyverbsRDMAError as error:
        return error.error_code
    return 0


class Table:
    """A table of receive queues, each with a buffer, that complete in one CQ."""

    def __init__(self, ctx, log_size=LOG_SIZE):
        self.ctx = ctx
        self.pd = PD(ctx)
        size = 1 << log_size
        self.cq = CQ(ctx, 8 * size)
        self.mr = MR(self.pd, BUFFER * size, LOCAL_WRITE)
        init = WQInitAttr(wq_pd=self.pd, wq_cq=self.cq, max_wr=4, max_sge=1)
        self.wqs = [WQ(ctx, init) for _ in range(size)]
        for index in range(size):
            self.move(index, READY)
            self.post(index)
        self.table = RwqIndTable(ctx, RwqIndTableInitAttr(log_size, self.wqs))

    def move(self, index, state, current=None):
        mask = WQ_STATE | (0 if current is None else WQ_CUR_STATE)
        self.wqs[index].modify(WQAttr(attr_mask=mask, wq_state=state,
                                      curr_wq_state=current or 0))

    def post(self, index):
        sge = SGE(self.mr.buf + index * BUFFER, BUFFER, self.mr.lkey)
        self.wqs[index].post_recv(RecvWR(wr_id=index, num_sge=1, sg=[sge]))

    def poll(self, patience=PATIENCE):
        until = time.monotonic() + patience
        while time.monotonic() < until:
            n, wcs = self.cq.poll(1)
            if n:
                return wcs[0]
        return None

    def next(self, wanted):
        """The queue that gets this frame; it is posted to again."""
        wc = self.poll()
        assert wc, 'the frame did not come'
        assert wc.status == SUCCESS, f'status {wc.status}'
        assert self.mr.read(wc.byte_len, wc.wr_id * BUFFER) == wanted, 'another frame'
        self.post(wc.wr_id)
        return wc.wr_id

    @contextlib.contextmanager
    def steered(self, fields):
        """Within it, frames to the group are divided by these fields."""
        conf = RxHashConf(TOEPLITZ, len(KEY), KEY, fields)
        init = QPInitAttrEx(qp_type=QPT_RAW, pd=self.pd, ind_table=self.table, hash_conf=conf,
                            comp_mask=INIT_PD | INIT_IND_TABLE | INIT_RX_HASH)
        qp = QP(self.ctx, init)
        attr = FlowAttr(num_of_specs=1, port=1)
        attr.specs.append(EthSpec(dst_mac=GROUP.hex(':')))
        flow = Flow(qp, attr)
        try:
            yield qp
        finally:
            flow.close()
            qp.close()

    def close(self):
        for thing in (self.table, *self.wqs, self.mr, self.cq, self.pd):
            thing.close()


class RssPoints:
    """Test points for raw.py's Test."""

    def table(self, **kwargs):
        self.open.append(Table(self.ctx, **kwargs))
        return self.open[-1]

    def t_rss_hash(self):
        """RSS: the hashes are those of Microsoft's verification suite"""
        table = self.table()
        for fields, column in ((IPV4 | IPV6, 4), (IPV4 | IPV6 | TCP, 5)):
            with table.steered(fields):
                for case in SUITE:
                    sent = frame(*case[:4])
                    self.peer.send(sent)
                    place, wanted = table.next(sent), case[column] & (1 << LOG_SIZE) - 1
                    assert place == wanted, f'{case}: queue {place}, not {wanted}'

    def t_rss_fields(self):
        """RSS: only wanted fields count, and what has none goes to the first"""
        table = self.table()
        bits = (1 << LOG_SIZE) - 1
        case = SUITE[0]
        with table.steered(IPV4 | TCP):
            for what, sent, wanted in (
                    ('UDP has no TCP ports', frame(*case[:4], protocol=17), case[4]),
                    ('another protocol', frame(*case[:4], protocol=99), case[4]),
                    ('IPv6', frame(*SUITE[5][:4], protocol=17), 0),
                    ('no IP', GROUP + bytes(6) + b'\x88\xb5' + bytes(50), 0),
                    ('a first fragment', frame(*case[:4], fragment=0x2000), case[4]),
                    ('a last fragment', frame(*case[:4], fragment=0x0010), case[4])):
                self.peer.send(sent)
                place = table.next(sent)
                assert place == wanted & bits, f'{what}: queue {place}, not {wanted & bits}'

    def t_rss_states(self):
        """RSS: the states of a receive queue"""
        table = self.table(log_size=1)
        sent = GROUP + bytes(6) + b'\x88\xb5' + bytes(50)	# for the first queue
        with table.steered(IPV4):
            self.peer.send(sent)
            assert table.next(sent) == 0
            assert refusal(table.move, 0, READY, ERROR) == errno.EINVAL, 'not in this state'
            table.move(0, ERROR, READY)
            wc = table.poll()
            assert wc and wc.status == FLUSHED and wc.wr_id == 0
            self.peer.send(sent)
            table.post(0)
            wc = table.poll()
            assert wc and wc.status == FLUSHED, 'posted in the error state'
            assert refusal(table.move, 0, READY) == errno.EINVAL, 'from error to ready'
            table.move(0, RESET)
            assert refusal(table.post, 0) == errno.EINVAL, 'posted to one that is reset'
            self.peer.send(sent)
            assert table.poll(1) is None, 'received although it is reset'
            table.move(0, READY)
            self.peer.send(sent)	# nothing is posted: it is lost
            table.post(0)
            other = sent[:-1] + b'x'
            self.peer.send(other)
            assert table.next(other) == 0

    def t_rss_refused(self):
        """RSS: tables and hashes that make no sense are refused"""
        table = self.table(log_size=1)
        for what, number, fields, function, key in (
                ('no such field', errno.EOPNOTSUPP, 1 << 40, TOEPLITZ, KEY),
                ('no such hash', errno.EOPNOTSUPP, IPV4, 3, KEY),
                ('a short key', errno.EINVAL, IPV4, TOEPLITZ, KEY[:39]),
                ('a long key', errno.EINVAL, IPV4, TOEPLITZ, KEY + [0])):
            init = QPInitAttrEx(qp_type=QPT_RAW, pd=table.pd, ind_table=table.table,
                                hash_conf=RxHashConf(function, len(key), key, fields),
                                comp_mask=INIT_PD | INIT_IND_TABLE | INIT_RX_HASH)
            got = refusal(QP, self.ctx, init)
            assert got == number, f'{what}: errno {got}'
        wqs = table.wqs * 128
        got = refusal(RwqIndTable, self.ctx, RwqIndTableInitAttr(8, wqs))
        assert got == errno.EINVAL, f'256 queues: errno {got}'
