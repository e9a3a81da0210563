# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""RC: the device as requester. Expectations: IBA volume 1, 9.7."""

import os
import random
import struct
import time

import roce
from bench import (ERR, FENCE, HANG, RNR_TIMER, SIGNALED, SOLICITED, WR_ADD, WR_CAS, WR_READ,
                   WR_SEND, WR_SEND_IMM, WR_WRITE, WR_WRITE_IMM, Qp, Skipped, case, check,
                   same)
from roce import NAK_ACCESS, NAK_INVALID, NAK_OPERATION, NAK_SEQUENCE

PATTERN = random.Random(8).randbytes(8192)
RADDR, RKEY = 0x1122334455667788, 0xcafe0123


def started(b, **options):
    """A queue pair with something in its memory."""
    q = Qp(b, **options)
    q.memory.write(PATTERN)
    return q


# ------------------------------------------------------------ what goes out

@case('RC requester: SEND: opcodes, PSNs, pads, contents', families=(4, 6))
def sends(b):
    q = started(b)
    psn = q.send_psn
    for msn, length in enumerate([0, 1, 2, 3, 4, 1023, 1024], 1):
        q.post(WR_SEND, length, wr_id=msn)
        p = q.request(roce.SEND_ONLY, psn)
        same('payload', p.payload, PATTERN[:length])
        same('pad', p.pad, -length % 4)
        same('solicited event, ack request', (p.se, p.ack), (False, True))
        q.ack(psn, msn)
        q.completes('s', wr_id=msn)
        psn += 1
    q.post(WR_SEND_IMM, 2050, imm=0x01020304, flags=SIGNALED | SOLICITED)
    p = q.request(roce.SEND_FIRST, psn)
    same('payload', p.payload, PATTERN[:1024])
    same('solicited event of First', p.se, False)
    p = q.request(roce.SEND_MIDDLE, psn + 1)
    same('payload', p.payload, PATTERN[1024:2048])
    p = q.request(roce.SEND_LAST_IMM, psn + 2)
    same('payload', p.payload, PATTERN[2048:2050])
    same('immediate', p.imm, 0x01020304)
    same('solicited event, ack request of Last', (p.se, p.ack), (True, True))
    q.ack(psn + 2, 8)
    q.completes('s')


@case('RC requester: WRITE: RETH in the first packet only, immediate in the last')
def writes(b):
    q = started(b)
    psn = q.send_psn
    q.post(WR_WRITE, 5, offset=1, raddr=RADDR, rkey=RKEY)
    p = q.request(roce.WRITE_ONLY, psn)
    same('RETH', (p.address, p.rkey, p.dma_length), (RADDR, RKEY, 5))
    same('payload', p.payload, PATTERN[1:6])
    q.ack(psn, 1)
    q.completes('s')
    q.post(WR_WRITE_IMM, 3000, raddr=RADDR, rkey=RKEY, imm=77)
    p = q.request(roce.WRITE_FIRST, psn + 1)
    same('RETH', (p.address, p.rkey, p.dma_length), (RADDR, RKEY, 3000))
    data = p.payload + q.request(roce.WRITE_MIDDLE, psn + 2).payload
    p = q.request(roce.WRITE_LAST_IMM, psn + 3)
    same('payload', data + p.payload, PATTERN[:3000])
    same('immediate', p.imm, 77)
    q.ack(psn + 3, 2)
    q.completes('s')


@case('RC requester: PSNs wrap around')
def wrap(b):
    q = started(b, send_psn=0xfffffe)
    q.post(WR_SEND, 4000)
    for i, operation in enumerate([roce.SEND_FIRST, roce.SEND_MIDDLE, roce.SEND_MIDDLE,
                                   roce.SEND_LAST]):
        q.request(operation, 0xfffffe + i)
    q.ack(1, 1)
    q.completes('s')


@case('RC requester: READ: request and the response put in its place', families=(4, 6))
def read(b):
    q = started(b)
    psn = q.send_psn
    for i, length in enumerate([0, 1, 1024, 3000]):
        q.memory.write(bytes(4000))
        q.post(WR_READ, length, offset=7, raddr=RADDR, rkey=RKEY, wr_id=i)
        p = q.request(roce.READ_REQUEST, psn)
        same('RETH length', p.dma_length, length)
        if length:
            same('RETH', (p.address, p.rkey), (RADDR, RKEY))
        if length <= 1024:
            q.respond(roce.READ_ONLY, psn, PATTERN[:length], msn=i + 1)
            psn += 1
        else:
            q.respond(roce.READ_FIRST, psn, PATTERN[:1024], msn=i + 1)
            q.respond(roce.READ_MIDDLE, psn + 1, PATTERN[1024:2048])
            q.no_completion('s')
            q.respond(roce.READ_LAST, psn + 2, PATTERN[2048:3000], msn=i + 1)
            psn += 3
        q.completes('s', wr_id=i)
        same('data', q.memory.read(7, length + 1), PATTERN[:length] + b'\0')
    q.post(WR_SEND, 1)
    q.request(roce.SEND_ONLY, psn)


@case('RC requester: atomics')
def atomics(b):
    q = started(b)
    psn = q.send_psn
    q.post(WR_CAS, 8, raddr=RADDR, rkey=RKEY, compare=0x1111, swap=0x2222)
    p = q.request(roce.CMP_SWAP, psn)
    same('AtomicETH', (p.address, p.rkey, p.swap_or_add, p.compare),
         (RADDR, RKEY, 0x2222, 0x1111))
    q.respond(roce.ATOMIC_ACK, psn, msn=1, original=0x0102030405060708)
    q.completes('s')
    same('original value', q.memory.read(0, 8), struct.pack('=Q', 0x0102030405060708))
    q.post(WR_ADD, 8, raddr=RADDR, rkey=RKEY, compare=5)
    p = q.request(roce.FETCH_ADD, psn + 1)
    same('AtomicETH', (p.address, p.rkey, p.swap_or_add), (RADDR, RKEY, 5))
    q.respond(roce.ATOMIC_ACK, psn + 1, msn=2, original=7)
    q.completes('s')
    same('original value', q.memory.read(0, 8), struct.pack('=Q', 7))


# ------------------------------------------------------------ acknowledgements

@case('RC requester: one ACK for several messages')
def coalesced(b):
    q = started(b)
    for i in range(3):
        q.post(WR_SEND, 10, wr_id=i)
    for i in range(3):
        q.request(roce.SEND_ONLY, q.send_psn + i)
    q.ack(q.send_psn + 2, 3)
    for i in range(3):
        q.completes('s', wr_id=i)


@case('RC requester: what is posted on another CPU goes out though no ACK comes')
def migrates(b):
    q = started(b)
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skipped('one CPU only')
    agent = b.agent.process.pid
    try:
        for psn in range(q.send_psn, q.send_psn + 40, 2):
            for i, cpu in enumerate(cpus[:2]):
                os.sched_setaffinity(agent, {cpu})
                q.post(WR_SEND, 10, wr_id=i)
            for i in range(2):
                q.request(roce.SEND_ONLY, psn + i)
            q.ack(psn + 1)
            for i in range(2):
                q.completes('s', wr_id=i)
    finally:
        os.sched_setaffinity(agent, cpus)


def only_first(b, ghost):
    """Of two messages the second is acknowledged by ghost(q), which must not count."""
    q = started(b)
    q.post(WR_SEND, 10, wr_id=1)
    q.post(WR_SEND, 10, wr_id=2)
    q.request(roce.SEND_ONLY, q.send_psn)
    q.request(roce.SEND_ONLY, q.send_psn + 1)
    ghost(q)
    q.ack(q.send_psn, 1)
    q.completes('s', wr_id=1)
    q.no_completion('s')
    q.ack(q.send_psn + 1, 2)
    q.completes('s', wr_id=2)


for title, extra in (
        ('an ACK with a bad ICRC', lambda q: q.ack(q.send_psn + 1, 2, icrc_xor=1)),
        ('an ACK of what was never sent', lambda q: q.ack(q.send_psn + 2, 2)),
        ('an ACK of what was never sent, far ahead', lambda q: q.ack(q.send_psn + 9999, 2)),
        ('an ACK from before the start', lambda q: q.ack(q.send_psn - 1, 2)),
        ('an ACK under another P_Key', lambda q: q.ack(q.send_psn + 1, 2, pkey=0x8001)),
        ('an ACK from another address',
         lambda q: q.ack(q.send_psn + 1, 2, source=q.bench.sibling_address)),
        ('a sequence NAK of what was never sent',
         lambda q: q.nak(NAK_SEQUENCE, q.send_psn + 7, 2)),
        ('a NAK from before the start', lambda q: q.nak(NAK_ACCESS, q.send_psn - 5, 2))):
    case(f'RC requester: ignored: {title}')(lambda b, extra=extra: only_first(b, extra))


@case('RC requester: an ACK of half a message completes nothing')
def half(b):
    q = started(b)
    q.post(WR_SEND, 3000)
    for i, operation in enumerate([roce.SEND_FIRST, roce.SEND_MIDDLE, roce.SEND_LAST]):
        q.request(operation, q.send_psn + i)
    q.ack(q.send_psn + 1, 0)
    # the NAK proves that the ACK was seen; what is left is sent again
    q.nak(NAK_SEQUENCE, q.send_psn + 2, 0)
    p = q.request(roce.SEND_LAST, q.send_psn + 2)
    same('payload', p.payload, PATTERN[2048:3000])
    q.no_completion('s')
    q.ack(q.send_psn + 2, 1)
    q.completes('s')


# ------------------------------------------------------------ retransmission

def serve_sends(q, expected, last):
    """Acknowledge SEND Only packets from PSN expected to last, in order, as they come."""
    while expected <= last:
        p = q.next()
        check(p, f'PSN {expected & 0xffffff:#x} was not sent again')
        same(f'operation of {p}', p.operation, roce.SEND_ONLY)
        if p.psn == expected & 0xffffff:
            q.ack(p.psn, expected - q.send_psn + 1)
            expected += 1


@case('RC requester: a sequence NAK is answered at once, from the missing packet on')
def nak_sequence(b):
    q = started(b, timeout=0)           # no timer comes to help
    for i in range(4):
        q.post(WR_SEND, 10 + i, wr_id=i)
    for i in range(4):
        q.request(roce.SEND_ONLY, q.send_psn + i)
    q.nak(NAK_SEQUENCE, q.send_psn + 1, 1)
    q.completes('s', wr_id=0)
    p = q.request(roce.SEND_ONLY, q.send_psn + 1)
    same('payload', p.payload, PATTERN[:11])
    q.ack(p.psn, 2)
    serve_sends(q, q.send_psn + 2, q.send_psn + 3)
    for i in range(1, 4):
        q.completes('s', wr_id=i)


@case('RC requester: a sequence NAK within a message of many packets')
def nak_in_message(b):
    q = started(b, timeout=0)
    q.post(WR_WRITE, 5000, raddr=RADDR, rkey=RKEY)
    got = {}
    for i in range(5):
        got[i] = q.next().payload
    q.nak(NAK_SEQUENCE, q.send_psn + 2, 0)
    expected = 2
    while expected < 5:
        p = q.next()
        check(p, f'PSN +{expected} was not sent again')
        n = p.psn - q.send_psn & 0xffffff
        check(n >= 2 or n == 0, f'{p}: not from the missing packet on')
        same(f'payload of {p}', p.payload, got[n])
        if n == expected:
            expected += 1
            q.ack(p.psn, expected // 5)
    q.completes('s')


@case('RC requester: no answer: sent again after the timeout, just retry_cnt times')
def timeout(b):
    q = started(b, timeout=15, retry=3)     # 134 ms
    q.post(WR_SEND, 10, wr_id=1)
    q.post(WR_SEND, 20, wr_id=2)
    times = []
    while True:
        c = q.poll('s', 0)
        p = q.wire.receive(0.1)
        if p:
            check(p.psn in (q.send_psn, q.send_psn + 1 & 0xffffff), f'{p}: a new PSN')
            if p.psn == q.send_psn:
                times.append(p.time)
        if c:
            break
        check(not times or time.time() - times[0] < HANG, 'never given up')
    same('send completion', (c.wr_id, c.status), (1, 'RETRY_EXC_ERR'))
    same('number of transmissions', len(times), 4)
    for before, after in zip(times, times[1:]):
        check(after - before >= 0.134 / 2,
              f'sent again after {(after - before) * 1000:.0f} ms, the timeout is 134 ms')
    q.completes('s', 'WR_FLUSH_ERR', wr_id=2)
    q.becomes(ERR)


@case('RC requester: progress gives the retries back')
def progress(b):
    q = started(b, timeout=14, retry=2)     # 67 ms
    q.post(WR_SEND, 10, wr_id=1)
    q.post(WR_SEND, 20, wr_id=2)
    q.request(roce.SEND_ONLY, q.send_psn)
    q.request(roce.SEND_ONLY, q.send_psn + 1)
    seen = 0
    while seen < 2:                         # let it use up its two retries
        p = q.next()
        check(p, 'not sent again')
        seen += p.psn == q.send_psn
    q.ack(q.send_psn, 1)
    q.completes('s', wr_id=1)
    end = time.time() + HANG
    seen = 0
    while not (c := q.poll('s', 0)):
        p = q.wire.receive(0.1)
        seen += bool(p) and p.psn == q.send_psn + 1 & 0xffffff
        check(time.time() < end, 'never given up')
    same('send completion', (c.wr_id, c.status), (2, 'RETRY_EXC_ERR'))
    # the two of the first time around, of which one may have gone before the ACK
    check(seen >= 2, f'sent again {seen} times after progress, expected 2 or more')


@case('RC requester: only what is not acknowledged is sent again after the timeout')
def unacked(b):
    q = started(b, timeout=15)
    for i in range(3):
        q.post(WR_SEND, 10, wr_id=i)
    for i in range(3):
        q.request(roce.SEND_ONLY, q.send_psn + i)
    q.ack(q.send_psn, 1)
    q.completes('s', wr_id=0)
    q.request(roce.SEND_ONLY, q.send_psn + 1)
    q.ack(q.send_psn + 2, 3)
    q.completes('s', wr_id=1)
    q.completes('s', wr_id=2)


@case('RC requester: RNR NAK: not again before the timer')
def rnr_wait(b):
    q = started(b)
    for code in 28, 20, 1:
        q.post(WR_SEND, 10, wr_id=code)
        q.request(roce.SEND_ONLY, q.send_psn)
        said = time.time()
        q.nak(roce.rnr_nak(code), q.send_psn, 0)
        p = q.request(roce.SEND_ONLY, q.send_psn)
        waited = (p.time - said) * 1000
        check(waited >= RNR_TIMER[code],
              f'sent again after {waited:.2f} ms, the timer said {RNR_TIMER[code]} ms')
        q.ack(q.send_psn, 1)
        q.completes('s', wr_id=code)
        q.send_psn = q.send_psn + 1 & 0xffffff


@case('RC requester: RNR NAK: just rnr_retry times')
def rnr_exhausted(b):
    q = started(b, rnr_retry=3)
    q.post(WR_SEND, 10, wr_id=1)
    q.post(WR_SEND, 10, wr_id=2)
    sent = 0
    while not (c := q.poll('s', 0)):
        p = q.wire.receive(0.2)
        if p and p.psn == q.send_psn:
            sent += 1
            q.nak(roce.rnr_nak(1), q.send_psn, 0)
            check(sent < 20, 'never given up')
    same('send completion', (c.wr_id, c.status), (1, 'RNR_RETRY_EXC_ERR'))
    same('number of transmissions', sent, 4)
    q.completes('s', 'WR_FLUSH_ERR', wr_id=2)
    q.becomes(ERR)


@case('RC requester: rnr_retry 7 is for ever')
def rnr_for_ever(b):
    q = started(b, rnr_retry=7)
    q.post(WR_SEND, 10)
    for _ in range(20):
        q.request(roce.SEND_ONLY, q.send_psn)
        q.nak(roce.rnr_nak(1), q.send_psn, 0)
    q.request(roce.SEND_ONLY, q.send_psn)
    q.ack(q.send_psn, 1)
    q.completes('s')


# ------------------------------------------------------------ refusals

def refusal(name, syndrome, status):
    """A test point: of three messages the second is refused."""
    def body(b):
        q = started(b)
        for i in range(3):
            q.post(WR_WRITE, 10, wr_id=i, raddr=RADDR, rkey=RKEY)
        for i in range(3):
            q.request(roce.WRITE_ONLY, q.send_psn + i)
        q.nak(syndrome, q.send_psn + 1, 1)
        q.completes('s', wr_id=0)
        q.completes('s', status, wr_id=1)
        q.completes('s', 'WR_FLUSH_ERR', wr_id=2)
        q.becomes(ERR)
        check(q.wire.receive(0.2) is None, 'something was sent in the error state')
    case(f'RC requester: {name}')(body)


refusal('NAK invalid request', NAK_INVALID, 'REM_INV_REQ_ERR')
refusal('NAK remote access error', NAK_ACCESS, 'REM_ACCESS_ERR')
refusal('NAK remote operational error', NAK_OPERATION, 'REM_OP_ERR')


# ------------------------------------------------------------ READ responses gone wrong

@case('RC requester: a READ response packet missing: asked for again')
def read_gap(b):
    q = started(b, timeout=0)
    q.memory.write(bytes(4000))
    psn = q.send_psn
    q.post(WR_READ, 3000, raddr=RADDR, rkey=RKEY)
    q.request(roce.READ_REQUEST, psn)
    q.respond(roce.READ_FIRST, psn, PATTERN[:1024], msn=1)
    q.respond(roce.READ_LAST, psn + 2, PATTERN[2048:3000], msn=1)
    p = q.request(roce.READ_REQUEST)
    skip = p.psn - psn & 0xffffff
    check(skip in (0, 1), f'{p}: PSN +{skip}, expected +1 (or all, +0)')
    same('address', (p.address, p.rkey), (RADDR + 1024 * skip, RKEY))
    end = 1024 * skip + p.dma_length
    check(end in (2048, 3000), f'{p}: to {end}, expected the missing packet or all the rest')
    pieces = [PATTERN[at:min(at + 1024, end)] for at in range(1024 * skip, end, 1024)]
    for number, piece in enumerate(pieces):
        first, last = number == 0, number == len(pieces) - 1
        operation = (roce.READ_MIDDLE, roce.READ_LAST, roce.READ_FIRST,
                     roce.READ_ONLY)[2 * first + last]
        q.respond(operation, psn + skip + number, piece, msn=1)
    q.completes('s')
    same('data', q.memory.read(0, 3001), PATTERN[:3000] + b'\0')


@case('RC requester: an ACK past a READ says that its response was lost')
def implied_nak(b):
    q = started(b, timeout=0)
    psn = q.send_psn
    q.post(WR_READ, 100, raddr=RADDR, rkey=RKEY, wr_id=1)
    q.post(WR_SEND, 10, wr_id=2)
    q.request(roce.READ_REQUEST, psn)
    q.request(roce.SEND_ONLY, psn + 1)
    q.ack(psn + 1, 2)
    p = q.request(roce.READ_REQUEST, psn)
    q.respond(roce.READ_ONLY, psn, PATTERN[100:200], msn=2)
    q.completes('s', wr_id=1)
    q.ack(psn + 1, 2)
    q.completes('s', wr_id=2)
    same('data', q.memory.read(0, 100), PATTERN[100:200])


@case('RC requester: a READ not answered is asked for again after the timeout')
def read_timeout(b):
    q = started(b, timeout=14)
    q.post(WR_READ, 100, raddr=RADDR, rkey=RKEY)
    first = q.request(roce.READ_REQUEST, q.send_psn)
    again = q.request(roce.READ_REQUEST, q.send_psn)
    same('RETH', again.reth, first.reth)
    q.respond(roce.READ_ONLY, q.send_psn, PATTERN[:100], msn=1)
    q.completes('s')


@case('RC requester: an atomic not answered is sent again, the same')
def atomic_timeout(b):
    q = started(b, timeout=14)
    q.post(WR_CAS, 8, raddr=RADDR, rkey=RKEY, compare=1, swap=2)
    first = q.request(roce.CMP_SWAP, q.send_psn)
    again = q.request(roce.CMP_SWAP, q.send_psn)
    same('AtomicETH', again.atomic, first.atomic)
    q.respond(roce.ATOMIC_ACK, q.send_psn, msn=1, original=9)
    q.completes('s')


def bad_response(name, respond):
    """A test point: the answer to a READ of 1500 bytes is nonsense."""
    def body(b):
        q = started(b)
        q.memory.write(bytes(8192))
        q.post(WR_READ, 1500, raddr=RADDR, rkey=RKEY, wr_id=1)
        q.post(WR_SEND, 10, wr_id=2)
        q.request(roce.READ_REQUEST, q.send_psn)
        respond(q, q.send_psn)
        q.completes('s', 'BAD_RESP_ERR', wr_id=1)
        q.completes('s', 'WR_FLUSH_ERR', wr_id=2)
        q.becomes(ERR)
        same('memory behind the buffer', q.memory.read(1500, 2000), bytes(2000))
    case(f'RC requester: bad READ response: {name}')(body)


bad_response('First shorter than the MTU',
             lambda q, psn: q.respond(roce.READ_FIRST, psn, bytes(1000), msn=1))
bad_response('First longer than the MTU',
             lambda q, psn: q.respond(roce.READ_FIRST, psn, bytes(1028), msn=1))
bad_response('Only instead of First',
             lambda q, psn: q.respond(roce.READ_ONLY, psn, bytes(1024), msn=1))


def long_last(q, psn):
    """First, then a Last with more than is missing."""
    q.respond(roce.READ_FIRST, psn, b'x' * 1024, msn=1)
    q.respond(roce.READ_LAST, psn + 1, b'x' * 600, msn=1)


def short_last(q, psn):
    """First, then a Last with less than is missing."""
    q.respond(roce.READ_FIRST, psn, b'x' * 1024, msn=1)
    q.respond(roce.READ_LAST, psn + 1, b'x' * 100, msn=1)


bad_response('Last too long', long_last)
bad_response('Last too short', short_last)


# ------------------------------------------------------------ order

@case('RC requester: no more READs outstanding than max_rd_atomic')
def outstanding(b):
    q = started(b, max_rd=2)
    psn = q.send_psn
    for i in range(4):
        q.post(WR_READ, 100, offset=100 * i, raddr=RADDR, rkey=RKEY, wr_id=i)
    q.request(roce.READ_REQUEST, psn)
    q.request(roce.READ_REQUEST, psn + 1)
    p = q.wire.receive(0.2)
    check(p is None, f'{p} while two READs are outstanding')
    for i in range(4):
        q.respond(roce.READ_ONLY, psn + i, PATTERN[i:i + 100], msn=i + 1)
        q.completes('s', wr_id=i)
        if i < 2:
            q.request(roce.READ_REQUEST, psn + i + 2)


@case('RC requester: a fenced request waits for the READ before it')
def fence(b):
    q = started(b)
    psn = q.send_psn
    q.post(WR_READ, 100, raddr=RADDR, rkey=RKEY, wr_id=1)
    q.post(WR_SEND, 100, flags=SIGNALED | FENCE, wr_id=2)
    q.request(roce.READ_REQUEST, psn)
    p = q.wire.receive(0.2)
    check(p is None, f'{p} before the READ was answered')
    q.respond(roce.READ_ONLY, psn, PATTERN[500:600], msn=1)
    p = q.request(roce.SEND_ONLY, psn + 1)
    same('payload', p.payload, PATTERN[500:600])
    q.ack(psn + 1, 2)
    q.completes('s', wr_id=1)
    q.completes('s', wr_id=2)
