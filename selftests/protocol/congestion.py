# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Congestion: marked packets, CNPs, and the rate (IBA annex A17.9, RFC 3168).

Parameters are set where people set them, in sysfs, and counters read there.
"""

import contextlib
import errno
import os
import random
import time

import roce
from bench import QPT_UC, QPT_UD, WR_READ, WR_SEND, WR_WRITE, Qp, Skipped, case, check, same

PATTERN = random.Random(10).randbytes(65536)
RADDR, RKEY = 0x1122334455667788, 0xcafe0123
ECT0, CE = 2, 3


def port(b):
    """The port's directory in sysfs."""
    path = f'/sys/class/infiniband/{b.agent.device}/ports/1'
    if not os.path.isdir(f'{path}/roce_rp'):
        raise Skipped('no parameters of congestion control: another driver, or namespace')
    return path


@contextlib.contextmanager
def parameters(b, **values):
    """Set parameters, np_enable=0 for enable in roce_np; as before at the end."""
    before = {}
    for name, value in values.items():
        group, _, name = name.partition('_')
        path = f'{port(b)}/roce_{group}/{name}'
        with open(path) as f:
            before[path] = f.read()
        with open(path, 'w') as f:
            f.write(str(value))
    try:
        yield
    finally:
        for path, value in before.items():
            with open(path, 'w') as f:
                f.write(value)


def counter(b, name):
    """A counter's value; sysfs tells it as it was up to a tick ago."""
    time.sleep(0.02)
    with open(f'{port(b)}/hw_counters/lifespan', 'w') as f:
        f.write('0')
    with open(f'{port(b)}/hw_counters/{name}') as f:
        return int(f.read())


def cnp(q, **other):
    """Send a CNP to the device."""
    q.wire.send(q.bench.flow.frame(roce.CNP, q.qpn, 0, payload=bytes(16), becn=True, **other))


def notified(q):
    """Expect a CNP as the annex has it."""
    p = q.next()
    check(p and p.opcode == roce.CNP, f'{p}, expected a CNP')
    same('FECN, BECN, PSN', (p.fecn, p.becn, p.psn), (False, True, 0))
    same('AckReq, SE, pad', (p.ack, p.se, p.pad), (False, False, 0))
    same('payload', p.payload, bytes(16))
    return p


# ------------------------------------------------------------ notification point

@case('congestion: a marked packet is answered with a CNP', families=(4, 6))
def marked(b):
    port(b)
    q = Qp(b)
    q.send(roce.WRITE_ONLY, q.reth(0, 4), b'data', ack=True, tos=CE)
    p = notified(q)
    same('DSCP and ECN', (p.tos >> 2, p.tos & 3), (48, 0))
    q.acked(q.psn - 1, msn=1)
    same('data', q.memory.read(0, 4), b'data')


@case('congestion: one CNP in a while, as it is set, with the DSCP that is set')
def seldom(b):
    with parameters(b, np_min_time_between_cnps=1000000, np_cnp_dscp=10):
        q = Qp(b)
        before = counter(b, 'np_ecn_marked_roce_packets'), counter(b, 'np_cnp_sent')
        for i in range(5):
            q.send(roce.WRITE_ONLY, q.reth(0, 4), b'data', ack=True, tos=CE)
            if not i:
                same('DSCP', notified(q).tos, 10 << 2)
            q.acked(q.psn - 1)
        # another queue pair has its own while
        other = Qp(b)
        other.send(roce.WRITE_ONLY, other.reth(0, 4), b'data', ack=True, tos=CE)
        notified(other)
        after = counter(b, 'np_ecn_marked_roce_packets'), counter(b, 'np_cnp_sent')
        same('counters of marked packets and CNPs', tuple(a - c for a, c in zip(after, before)),
             (6, 2))


@case('congestion: a UC sender is told too')
def uc(b):
    port(b)
    q = Qp(b, QPT_UC)
    q.send(roce.WRITE_ONLY, q.reth(0, 4), b'data', tos=CE)
    notified(q)


@case('congestion: no CNP for what is not marked, nor when that is switched off')
def no_notification(b):
    with parameters(b, np_enable=0):
        q = Qp(b)
        q.send(roce.WRITE_ONLY, q.reth(0, 4), b'data', tos=CE)
        q.probe()
    q = Qp(b)
    for tos in (0, 1, 2):
        q.send(roce.WRITE_ONLY, q.reth(0, 4), b'data', tos=tos)
    q.probe()


@case('congestion: a datagram has no connection to be told of')
def datagrams(b):
    port(b)
    q = Qp(b, QPT_UD)
    q.recv(wr_id=1, length=100)
    q.send(roce.SEND_ONLY, roce.deth(0x1234, 77), b'1234', tos=CE)
    q.completes('r', wr_id=1, length=44)
    check(q.wire.receive(0) is None, 'something was sent')


# ------------------------------------------------------------ reaction point

@case('congestion: requests and answers to READs may be marked, ACKs may not', families=(4, 6))
def capable(b):
    with parameters(b, rp_enable=1):
        capable_packets(b)


def capable_packets(b):
    """What leaves while CNPs are obeyed."""
    q = Qp(b)
    q.memory.write(PATTERN[:4096])
    q.post(WR_SEND, 3000)
    for i, operation in enumerate((roce.SEND_FIRST, roce.SEND_MIDDLE, roce.SEND_LAST)):
        same('ECN', q.request(operation, q.send_psn + i).tos, ECT0)
    q.ack(q.send_psn + 2, 1)
    q.completes('s')
    q.post(WR_READ, 100, raddr=RADDR, rkey=RKEY)
    same('ECN', q.request(roce.READ_REQUEST, q.send_psn + 3).tos, ECT0)
    q.respond(roce.READ_ONLY, q.send_psn + 3, bytes(100), msn=2)
    q.completes('s')
    q.send(roce.READ_REQUEST, q.reth(0, 2048))
    for _ in range(2):
        same('ECN', q.next().tos, ECT0)
    q.psn += 1
    same('ECN', q.probe().tos, 0)


@case('congestion: nothing may be marked when nobody would react')
def incapable(b):
    with parameters(b, rp_enable=0):
        q = Qp(b)
        q.post(WR_SEND, 10)
        same('ECN', q.request(roce.SEND_ONLY, q.send_psn).tos, 0)
        before = counter(b, 'rp_cnp_ignored')
        cnp(q)
        q.ack(q.send_psn, 1)
        q.completes('s')
        same('rp_cnp_ignored', counter(b, 'rp_cnp_ignored') - before, 1)


SLOW = {'rp_enable': 1, 'rp_rate_to_set_on_first_cnp': 2, 'rp_rpg_min_rate': 1, 'rp_rpg_time_reset': 1000000,
        'rp_rpg_byte_reset': 2000000000}


@case('congestion: a CNP slows the requester down')
def slower(b):
    with parameters(b, **SLOW):
        q = Qp(b, QPT_UC)
        q.memory.write(PATTERN)
        before = counter(b, 'rp_cnp_handled')
        cnp(q)
        time.sleep(0.1)                         # 1 Mbit/s from now on
        same('rp_cnp_handled', counter(b, 'rp_cnp_handled') - before, 1)
        q.post(WR_WRITE, 65536, raddr=RADDR, rkey=RKEY)
        times = [q.next().time for _ in range(64)]
        q.completes('s')
        took = times[-1] - times[0]
        check(took > 0.4, f'64 KiB took {took * 1000:.0f} ms, {64 * 8.6 / 1000:.2f} s at 1 Mbit/s')


@case('congestion: as long as CNPs come the rate is the least that is set')
def least(b):
    with parameters(b, **SLOW):
        q = Qp(b)
        q.memory.write(PATTERN)
        cnp(q)
        q.probe()
        q.post(WR_WRITE, 65536, raddr=RADDR, rkey=RKEY)
        times = {}
        while len(times) < 64:
            p = q.next()
            check(p, f'{len(times)} packets came')
            times.setdefault(p.psn, p.time)
            cnp(q)
            if p.ack:
                q.ack(p.psn)
        q.completes('s')
        took = max(times.values()) - min(times.values())
        check(took > 0.3, f'64 KiB took {took * 1000:.0f} ms, {64 * 8.6 / 1000:.2f} s at 1 Mbit/s')


@case('congestion: no more is under way than is sent in a round trip')
def clocked(b):
    with parameters(b, **{**SLOW, 'rp_rate_to_set_on_first_cnp': 20}):
        q = Qp(b)
        q.memory.write(PATTERN)
        # no answer: only the first two packets, which may come again
        cnp(q)
        q.probe()
        q.post(WR_WRITE, 65536, raddr=RADDR, rkey=RKEY)
        seen = set()
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            p = q.wire.receive(0.1)
            if p:
                seen.add((p.psn - q.send_psn) & 0xffffff)
        # 10 Mbit/s in the millisecond that is taken for a round trip: two packets, and one
        same('packets under way', seen, {0, 1, 2})
        # answers let it go on
        q.ack(q.send_psn + 2)
        acked = 2
        while acked < 63:
            p = q.next()
            check(p, f'{acked + 1} packets were answered, then nothing came')
            if p.ack:
                acked = (p.psn - q.send_psn) & 0xffffff
                q.ack(p.psn)
        q.completes('s')


@case('congestion: a CNP slows answers to READs down')
def slower_answers(b):
    with parameters(b, **SLOW):
        q = Qp(b)
        q.memory.write(PATTERN)
        cnp(q)
        q.probe()
        q.send(roce.READ_REQUEST, q.reth(0, 65000))
        packets = [q.next() for _ in range(64)]
        check(all(packets), 'not everything came')
        same('data', b''.join(p.payload for p in packets), PATTERN[:65000])
        took = packets[-1].time - packets[0].time
        check(took > 0.4, f'65 kB took {took * 1000:.0f} ms')


@case('congestion: only a CNP of the connection counts')
def strangers(b):
    with parameters(b, rp_enable=1):
        strange_cnps(b)


def strange_cnps(b):
    """CNPs of others, and damaged ones."""
    q = Qp(b)
    before = counter(b, 'rp_cnp_handled')
    cnp(q, source=b.sibling_address)
    cnp(q, pkey=0x1234)
    cnp(q, icrc_xor=1)
    ud = Qp(b, QPT_UD)
    cnp(ud)
    q.wire.send(b.flow.frame(roce.CNP, q.peer_qpn ^ 0x800000, 0, payload=bytes(16), becn=True))
    q.probe()
    same('rp_cnp_handled', counter(b, 'rp_cnp_handled') - before, 0)


@case('congestion: the rate comes back')
def faster(b):
    # 1 Mbit/s for 0.3 s, which is about half of the message; and that is the limit
    with parameters(b, **{**SLOW, 'rp_rpg_time_reset': 300000, 'rp_rpg_max_rate': 1}):
        q = Qp(b, QPT_UC, mtu=256)
        q.memory.write(PATTERN)
        cnp(q)
        time.sleep(0.1)
        q.post(WR_WRITE, 65536, raddr=RADDR, rkey=RKEY)
        times = []
        while len(times) < 256:
            p = q.next()
            check(p, f'{len(times)} packets came')
            times.append(p.time)
    half = times[128] - times[0], times[255] - times[128]
    check(half[1] < half[0], f'the halves took {half[0] * 1000:.0f} and {half[1] * 1000:.0f} ms')


@case('congestion: a parameter that makes no sense is refused')
def nonsense(b):
    for file, value, wanted in (('np/enable', '2', errno.ERANGE), ('np/cnp_dscp', '64', errno.ERANGE),
                                ('rp/rpg_min_rate', '0', errno.ERANGE),
                                ('rp/rpg_ai_rate', 'fast', errno.EINVAL),
                                ('rp/dce_tcp_g', '1024', errno.ERANGE),
                                ('rp/rpg_hai_rate', '99999999999', errno.ERANGE)):
        path = f'{port(b)}/roce_{file}'
        with open(path) as f:
            before = f.read()
        try:
            with open(path, 'w') as f:
                f.write(value)
            result = 0
        except OSError as e:
            result = e.errno
        same(f'{file} = {value}', errno.errorcode.get(result, result), errno.errorcode[wanted])
        with open(path) as f:
            same(file, f.read(), before)
