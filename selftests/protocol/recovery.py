# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Loss: what a responder keeps behind a gap, and what a requester sends again.

More than IBA volume 1 asks for in 9.7 (Documentation/architecture.md, "Loss"), but
nothing that it forbids: a peer that goes back to what is missing sees duplicates at most.
"""

import random
import struct

import roce
from bench import (WR_CAS, WR_READ, WR_SEND, WR_WRITE, Qp, case, check, same)
from roce import NAK_SEQUENCE, atomic_eth

PATTERN = random.Random(9).randbytes(16384)
RADDR, RKEY = 0x1122334455667788, 0xcafe0123


# ------------------------------------------------------------ the device as responder

@case('loss: what came behind a gap is kept: the missing packet is enough', families=(4, 6))
def kept(b):
    q = Qp(b)
    for i in range(5):
        q.recv(wr_id=i, offset=i * 100, length=100)
    for i in (1, 2, 3):
        q.send(roce.SEND_ONLY, payload=b'%d' % i * 10, ack=True, psn=q.psn + i)
    q.naked(NAK_SEQUENCE, q.psn, msn=0)
    q.no_completion('r')
    q.send(roce.SEND_ONLY, payload=b'0' * 10, psn=q.psn)    # does not ask
    q.acked(q.psn + 3, msn=4)
    for i in range(4):
        q.completes('r', wr_id=i, length=10)
        same('data', q.memory.read(i * 100, 10), b'%d' % i * 10)
    q.no_completion('r')


@case('loss: a second gap is reported as soon as the first is closed')
def second_gap(b):
    q = Qp(b)
    e = q.psn
    q.send(roce.WRITE_FIRST, q.reth(0, 5000), PATTERN[:1024], psn=e)
    q.send(roce.WRITE_MIDDLE, payload=PATTERN[2048:3072], psn=e + 2)
    q.naked(NAK_SEQUENCE, e + 1, msn=0)
    q.send(roce.WRITE_LAST, payload=PATTERN[4096:5000], ack=True, psn=e + 4)
    q.send(roce.WRITE_MIDDLE, payload=PATTERN[1024:2048], psn=e + 1)
    q.naked(NAK_SEQUENCE, e + 3, msn=0)
    q.send(roce.WRITE_MIDDLE, payload=PATTERN[3072:4096], psn=e + 3)
    q.acked(e + 4, msn=1)
    same('data', q.memory.read(0, 5001), PATTERN[:5000] + b'\0')


@case('loss: kept requests are executed in their order, each once')
def order(b):
    q = Qp(b)
    e = q.psn
    value = struct.pack('<Q', 5)
    add = atomic_eth(q.memory.address + 8, q.memory.rkey, 7)
    q.memory.write(b'old old ')
    for _ in range(2):                                      # all of them come twice
        q.send(roce.WRITE_ONLY, q.reth(8, 8), value, psn=e + 1)
        q.send(roce.FETCH_ADD, add, psn=e + 2)
        q.send(roce.READ_REQUEST, q.reth(0, 16), psn=e + 3)
        q.send(roce.FETCH_ADD, add, psn=e + 4)
    q.naked(NAK_SEQUENCE, e)
    same('memory', q.memory.read(0, 16), b'old old ' + bytes(8))
    q.send(roce.WRITE_ONLY, q.reth(0, 8), b'new new ', psn=e)
    p = q.next()
    check(p and p.operation == roce.ATOMIC_ACK and p.psn == e + 2 & 0xffffff, f'{p}, expected the first atomic')
    same('original value', p.original, 5)
    p = q.next()
    check(p and p.opcode == roce.READ_ONLY, f'{p}, expected the READ response')
    # the atomic behind it need not wait for the READ, 10.8.3.3
    value = struct.unpack('<Q', p.payload[8:])[0]
    check(p.payload[:8] == b'new new ' and value in (12, 19), f'{p.payload} was read')
    p = q.next()
    check(p and p.operation == roce.ATOMIC_ACK and p.psn == e + 4 & 0xffffff, f'{p}, expected the other atomic')
    same('original value', p.original, 12)
    q.psn = e + 5 & 0xffffff
    q.probe(over=[e + 1 & 0xffffff])        # never for one that has a response of its own
    same('sum', q.memory.read(8, 8), struct.pack('<Q', 19))


@case('loss: of a duplicate READ of several parts each is answered')
def parts(b):
    q = Qp(b)
    q.memory.write(PATTERN)
    e = q.send(roce.READ_REQUEST, q.reth(0, 6 * 1024))
    for i in range(6):
        same('PSN', q.next().psn, e + i & 0xffffff)
    q.psn = e + 6 & 0xffffff
    for first, count in ((4, 1), (1, 2), (0, 6), (5, 1)):
        q.send(roce.READ_REQUEST, q.reth(first * 1024, count * 1024), psn=e + first)
        for i in range(first, first + count):
            p = q.next()
            check(p, f'no response {i} of {first} to {first + count - 1}')
            same(f'PSN of {p}', p.psn, e + i & 0xffffff)
            same(f'payload of {p}', p.payload, PATTERN[i * 1024:(i + 1) * 1024])
            same(f'operation of {p}', p.operation, {
                (False, False): roce.READ_MIDDLE, (True, False): roce.READ_FIRST,
                (False, True): roce.READ_LAST, (True, True): roce.READ_ONLY,
            }[(i == first, i == first + count - 1)])
    q.probe()


@case('loss: no ACK is for an atomic or a READ, whose response may be lost')
def never_for_responses(b):
    q = Qp(b)
    e = q.psn
    add = atomic_eth(q.memory.address, q.memory.rkey, 7)
    q.send(roce.FETCH_ADD, add, psn=e + 1)
    q.send(roce.READ_REQUEST, q.reth(8, 8), psn=e + 2)
    q.naked(NAK_SEQUENCE, e)
    q.send(roce.WRITE_ONLY, q.reth(8, 8), b'new new ', psn=e)
    for operation in (roce.ATOMIC_ACK, roce.READ_ONLY):
        p = q.next()
        check(p and p.operation == operation, f'{p}, expected {roce.NAMES[operation]}')
    for _ in range(3):
        q.send(roce.WRITE_ONLY, q.reth(8, 8), b'new new ', ack=True, psn=e)
        q.acked(e, msn=1)
    q.psn = e + 3 & 0xffffff
    q.probe(over=[e])


# ------------------------------------------------------------ the device as requester

def started(b, **options):
    """A queue pair with something in its memory."""
    q = Qp(b, timeout=0, **options)     # no timer comes to help
    q.memory.write(PATTERN)
    return q


def posted(q, packets):
    """A WRITE of so many packets is under way; their payloads."""
    q.post(WR_WRITE, packets * 1024, raddr=RADDR, rkey=RKEY)
    sent = [q.next() for _ in range(packets)]
    check(all(sent), 'not everything was sent')
    return [p.payload for p in sent]


@case('loss: only the missing packet is sent again')
def only_missing(b):
    q = started(b)
    sent = posted(q, 8)
    q.nak(NAK_SEQUENCE, q.send_psn + 2)
    p = q.request(roce.WRITE_MIDDLE, q.send_psn + 2)
    same('payload', p.payload, sent[2])
    check(p.ack, f'{p} does not ask for an acknowledgment')
    # whoever kept the others acknowledges all of them, so that none follows
    q.ack(q.send_psn + 7, 1)
    q.completes('s')
    q.post(WR_SEND, 10, wr_id=2)
    q.request(roce.SEND_ONLY, q.send_psn + 8)
    q.ack(q.send_psn + 8, 2)
    q.completes('s', wr_id=2)


@case('loss: a gap after the gap is closed too')
def next_gap(b):
    q = started(b)
    sent = posted(q, 8)
    for i in (1, 4, 6):
        q.nak(NAK_SEQUENCE, q.send_psn + i)
        p = q.request(roce.WRITE_MIDDLE, q.send_psn + i)
        same('payload', p.payload, sent[i])
    q.ack(q.send_psn + 7, 1)
    q.completes('s')


@case('loss: a peer that keeps nothing gets everything again')
def forgetful(b):
    q = started(b)
    sent = posted(q, 12)
    expected = 2
    q.nak(NAK_SEQUENCE, q.send_psn + expected)
    rounds = 0
    while expected < 12:
        p = q.next()
        check(p, f'PSN +{expected} was not sent again')
        if p.psn != q.send_psn + expected & 0xffffff:
            continue                    # came before its turn: forgotten
        same(f'payload of {p}', p.payload, sent[expected])
        expected += 1
        if p.ack:
            rounds += 1
            q.ack(p.psn, expected // 12)
    q.completes('s')
    check(rounds <= 6, f'{rounds} round trips for 10 packets')


@case('loss: the last packet is sent again long before the timeout')
def tail(b):
    q = started(b)
    for i in range(3):                  # the way there and back has been measured then
        q.post(WR_SEND, 10, wr_id=i)
        q.request(roce.SEND_ONLY, q.send_psn + i)
        q.ack(q.send_psn + i, i + 1)
        q.completes('s', wr_id=i)
    q.post(WR_SEND, 20, wr_id=4)
    q.request(roce.SEND_ONLY, q.send_psn + 3)
    p = q.next()                        # there is no timeout
    check(p, 'not sent again')
    same('PSN', p.psn, q.send_psn + 3 & 0xffffff)
    same('payload', p.payload, PATTERN[:20])
    q.ack(p.psn, 4)
    q.completes('s', wr_id=4)


@case('loss: of a READ response only what is missing is asked for')
def read_gaps(b):
    q = started(b)
    psn = q.send_psn
    q.memory.write(bytes(8192))
    q.post(WR_READ, 8 * 1024, raddr=RADDR, rkey=RKEY)
    q.request(roce.READ_REQUEST, psn)

    def piece(i):
        return PATTERN[i * 1024:(i + 1) * 1024]

    q.respond(roce.READ_FIRST, psn, piece(0), msn=1)
    for i in (3, 4, 6):
        q.respond(roce.READ_MIDDLE, psn + i, piece(i))
    q.respond(roce.READ_LAST, psn + 7, piece(7), msn=1)
    p = q.request(roce.READ_REQUEST, psn + 1)
    same('RETH', (p.address, p.rkey, p.dma_length), (RADDR + 1024, RKEY, 2048))
    q.respond(roce.READ_FIRST, psn + 1, piece(1), msn=1)
    q.respond(roce.READ_LAST, psn + 2, piece(2), msn=1)
    p = q.request(roce.READ_REQUEST, psn + 5)
    same('RETH', (p.address, p.rkey, p.dma_length), (RADDR + 5 * 1024, RKEY, 1024))
    q.no_completion('s')
    q.respond(roce.READ_ONLY, psn + 5, piece(5), msn=1)
    q.completes('s')
    same('data', q.memory.read(0, 8193), PATTERN[:8193])


def again(q, operation, psn):
    """Expect just this packet next, which was sent before."""
    p = q.next()
    check(p, f'PSN {psn & 0xffffff:#x} was not sent again')
    same(f'{p}', (p.operation, p.psn), (operation, psn & 0xffffff))
    return p


@case('loss: a READ within what is sent again is requested whole')
def read_whole(b):
    q = started(b)
    psn = q.send_psn
    q.post(WR_SEND, 2048, wr_id=1)
    q.post(WR_READ, 4 * 1024, raddr=RADDR, rkey=RKEY, wr_id=2)
    for i, operation in enumerate((roce.SEND_FIRST, roce.SEND_LAST, roce.READ_REQUEST)):
        q.request(operation, psn + i)
    q.nak(NAK_SEQUENCE, psn)
    again(q, roce.SEND_FIRST, psn)
    q.nak(NAK_SEQUENCE, psn + 1)        # keeps nothing, so it knows of no READ either
    again(q, roce.SEND_LAST, psn + 1)
    p = again(q, roce.READ_REQUEST, psn + 2)
    same('RETH', (p.address, p.rkey, p.dma_length), (RADDR, RKEY, 4096))
    q.ack(psn + 1, 1)
    q.completes('s', wr_id=1)
    for i, operation in enumerate((roce.READ_FIRST, roce.READ_MIDDLE, roce.READ_MIDDLE,
                                   roce.READ_LAST)):
        q.respond(operation, psn + 2 + i, PATTERN[i * 1024:(i + 1) * 1024], msn=2)
    q.completes('s', wr_id=2)


@case('loss: a READ further on does not keep what is missing before it from being sent')
def read_behind(b):
    q = started(b)
    psn = q.send_psn
    q.post(WR_SEND, 3072, wr_id=1)
    q.post(WR_READ, 100, raddr=RADDR, rkey=RKEY, wr_id=2)
    for i, operation in enumerate((roce.SEND_FIRST, roce.SEND_MIDDLE, roce.SEND_LAST,
                                   roce.READ_REQUEST)):
        q.request(operation, psn + i)
    q.nak(NAK_SEQUENCE, psn)
    again(q, roce.SEND_FIRST, psn)
    q.ack(psn, 0)
    again(q, roce.SEND_MIDDLE, psn + 1)
    again(q, roce.SEND_LAST, psn + 2)


@case('loss: nothing is sent beyond a request that failed, also after a repetition')
def failed_stays(b):
    q = started(b)
    psn = q.send_psn
    q.post(WR_SEND, 2048, wr_id=1)
    q.post(WR_CAS, 16, raddr=RADDR, rkey=RKEY, wr_id=2)     # atomics are of eight bytes
    q.post(WR_SEND, 20, wr_id=3)
    q.request(roce.SEND_FIRST, psn)
    q.request(roce.SEND_LAST, psn + 1)
    q.nak(NAK_SEQUENCE, psn)
    p = q.next()
    while p and p.psn != psn & 0xffffff:        # the last may be asked about again
        p = q.next()
    check(p, 'not sent again')
    q.ack(psn + 1, 1)
    q.completes('s', wr_id=1)
    q.completes('s', 'LOC_LEN_ERR', wr_id=2)
    q.completes('s', 'WR_FLUSH_ERR', wr_id=3)
    p = q.wire.receive(0)
    while p and p.psn == psn + 1 & 0xffffff:
        p = q.wire.receive(0)
    check(not p, f'{p} was sent')


@case('loss: when all that was sent again is lost, there is a probe')
def blocked(b):
    q = started(b)
    for i in range(3):
        q.post(WR_SEND, 10, wr_id=i)
        q.request(roce.SEND_ONLY, q.send_psn + i)
        q.ack(q.send_psn + i, i + 1)
        q.completes('s', wr_id=i)
    first = q.send_psn + 3
    for i in range(2):                          # as much as the window allows
        q.post(WR_WRITE, 65536, raddr=RADDR, rkey=RKEY, wr_id=10 + i)
    sent = set()
    while len(sent) < 128:
        p = q.next()
        check(p, f'{len(sent)} packets were sent')
        sent.add(p.psn)
    q.nak(NAK_SEQUENCE, first)                  # the window shrinks
    q.nak(0x20 | 1, first + 4, 3)               # not ready: all of it again, as far as it goes
    p = q.next()
    while p and p.psn != first + 90 & 0xffffff:
        p = q.next()
    check(p, 'not sent again')
    while p and p.psn != first + 4 & 0xffffff:
        p = q.next()
    check(p, 'no probe')
    q.ack(first + 127, 5)
    q.completes('s', wr_id=10)
    q.completes('s', wr_id=11)


@case('loss: what was acknowledged while a READ response was missing stays so')
def acked_meanwhile(b):
    q = started(b)
    psn = q.send_psn
    q.post(WR_READ, 100, raddr=RADDR, rkey=RKEY, wr_id=1)
    q.post(WR_SEND, 10, wr_id=2)
    q.request(roce.READ_REQUEST, psn)
    q.request(roce.SEND_ONLY, psn + 1)
    q.ack(psn + 1, 2)
    q.request(roce.READ_REQUEST, psn)
    q.respond(roce.READ_ONLY, psn, PATTERN[100:200], msn=2)
    q.completes('s', wr_id=1)
    q.completes('s', wr_id=2)
    same('data', q.memory.read(0, 100), PATTERN[100:200])
