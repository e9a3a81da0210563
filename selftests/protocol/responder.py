# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""RC: the device as responder. Expectations: IBA volume 1, 9.7."""

import random
import struct

import roce
from bench import (ALL_ACCESS, ERR, INIT, LOCAL_WRITE, QPT_RC, REMOTE_ATOMIC, REMOTE_READ,
                   REMOTE_WRITE, RTR, Memory, Qp, Skipped, Wrong, case, check, same)
from roce import (NAK_ACCESS, NAK_INVALID, NAK_OPERATION, NAK_SEQUENCE, aeth, atomic_eth,
                  reth)

PATTERN = random.Random(7).randbytes(16384)


# ------------------------------------------------------------ what is well formed

@case('RC: SEND Only is delivered and acknowledged', families=(4, 6))
def send_only(b):
    q = Qp(b)
    for n, length in enumerate([0, 1, 2, 3, 4, 1023, 1024], 1):
        q.recv(wr_id=n)
        psn = q.send(roce.SEND_ONLY, payload=PATTERN[:length], ack=True)
        q.acked(psn, msn=n)
        q.completes('r', wr_id=n, length=length)
        same('data', q.memory.read(0, length), PATTERN[:length])


@case('RC: SEND of several packets, with immediate', families=(4, 6))
def send_many(b):
    q = Qp(b)
    q.recv()
    q.send(roce.SEND_FIRST, payload=PATTERN[:1024])
    q.send(roce.SEND_MIDDLE, payload=PATTERN[1024:2048])
    psn = q.send(roce.SEND_LAST_IMM, b'\x11\x22\x33\x44', PATTERN[2048:2051], ack=True)
    q.acked(psn, msn=1, over=(psn - 1, psn - 2))
    q.completes('r', length=2051, imm=0x11223344)
    same('data', q.memory.read(0, 2051), PATTERN[:2051])


@case('RC: an acknowledgement asked for in the middle of a message')
def ack_in_the_middle(b):
    q = Qp(b)
    q.recv()
    psn = q.send(roce.SEND_FIRST, payload=PATTERN[:1024], ack=True)
    q.acked(psn, msn=0)
    q.no_completion('r')
    psn = q.send(roce.SEND_LAST, payload=b'x', ack=True)
    q.acked(psn, msn=1)
    q.completes('r', length=1025)


@case('RC: WRITE of one and of several packets, with immediate', families=(4, 6))
def write(b):
    q = Qp(b)
    psn = q.send(roce.WRITE_ONLY, q.reth(3, 5), PATTERN[:5], ack=True)
    q.acked(psn, msn=1)
    same('data', q.memory.read(0, 10), bytes(3) + PATTERN[:5] + bytes(2))
    q.send(roce.WRITE_FIRST, q.reth(101, 2500), PATTERN[:1024])
    q.send(roce.WRITE_MIDDLE, payload=PATTERN[1024:2048])
    psn = q.send(roce.WRITE_LAST, payload=PATTERN[2048:2500], ack=True)
    q.acked(psn, msn=2, over=(psn - 1, psn - 2))
    same('data', q.memory.read(101, 2501), PATTERN[:2500] + b'\0')
    q.no_completion('r')
    q.recv(length=0, wr_id=9)
    psn = q.send(roce.WRITE_ONLY_IMM, q.reth(0, 4) + b'\1\2\3\4', b'abcd', ack=True)
    q.acked(psn, msn=3)
    c = q.completes('r', wr_id=9, length=4, imm=0x01020304)
    same('opcode of the completion', c.opcode, 129)
    same('data', q.memory.read(0, 4), b'abcd')


@case('RC: a WRITE of no bytes needs no valid R_Key')
def write_nothing(b):
    q = Qp(b)
    psn = q.send(roce.WRITE_ONLY, reth(0xdeadbeef000, 0x12345678, 0), ack=True)
    q.acked(psn, msn=1)


def read_response(q, psn, data, mtu, msn=None):
    """Expect the packets of a READ response; return the number of them."""
    n = max(1, -(-len(data) // mtu))
    for i in range(n):
        if n == 1:
            operation = roce.READ_ONLY
        else:
            operation = (roce.READ_FIRST if i == 0 else
                         roce.READ_LAST if i == n - 1 else roce.READ_MIDDLE)
        p = q.request(operation, psn + i)
        same(f'payload of {p}', p.payload, data[i * mtu:(i + 1) * mtu])
        if operation != roce.READ_MIDDLE:
            same(f'kind of syndrome of {p}', p.syndrome >> 5, 0)
            if msn is not None:
                same(f'MSN of {p}', p.msn, msn)
    return n


@case('RC: READ responses: opcodes, PSNs, AETHs, contents', families=(4, 6))
def read(b):
    for mtu in 256, 1024, 4096:
        q = Qp(b, mtu=mtu)
        q.memory.write(PATTERN)
        for msn, length in enumerate([0, 1, 3, mtu - 1, mtu, mtu + 1, 2 * mtu, 5000], 1):
            psn = q.send(roce.READ_REQUEST, q.reth(5, length), ack=True)
            n = read_response(q, psn, PATTERN[5:5 + length], mtu, msn)
            q.psn = psn + n & 0xffffff
        q.probe()
        q.close()
        b.qps.remove(q)


@case('RC: a READ of no bytes needs no valid R_Key')
def read_nothing(b):
    q = Qp(b)
    psn = q.send(roce.READ_REQUEST, reth(0xdeadbeef000, 0x12345678, 0), ack=True)
    read_response(q, psn, b'', 1024, 1)


def word(q, offset=0):
    """A 64-bit word of memory, in the host's byte order."""
    return struct.unpack('=Q', q.memory.read(offset, 8))[0]


@case('RC: atomics: original value, effect')
def atomics(b):
    q = Qp(b)
    q.memory.write(struct.pack('=Q', 0x1122334455667788))
    at = q.memory.address, q.memory.rkey
    psn = q.send(roce.FETCH_ADD, atomic_eth(*at, 0xf000000000000001), ack=True)
    p = q.request(roce.ATOMIC_ACK, psn)
    same('original value', hex(p.original), hex(0x1122334455667788))
    same('MSN', p.msn, 1)
    same('value after', hex(word(q)), hex(0x0122334455667789))
    for compare, after in (1, 0x0122334455667789), (0x0122334455667789, 42):
        psn = q.send(roce.CMP_SWAP, atomic_eth(*at, 42, compare), ack=True)
        p = q.request(roce.ATOMIC_ACK, psn)
        same('original value', hex(p.original), hex(0x0122334455667789))
        same('value after', hex(word(q)), hex(after))
    q.probe()


@case('RC: PSNs wrap around')
def wrap(b):
    q = Qp(b, psn=0xfffffd)
    for i in range(6):
        q.recv(wr_id=i)
        psn = q.send(roce.SEND_ONLY, payload=bytes([i]), ack=True)
        q.acked(psn, msn=i + 1)
        q.completes('r', wr_id=i, length=1)
    same('PSN', psn, 2)
    q = Qp(b, psn=0xffffff)
    q.memory.write(PATTERN)
    psn = q.send(roce.READ_REQUEST, q.reth(0, 2500), ack=True)
    read_response(q, psn, PATTERN[:2500], 1024, 1)


@case('RC: reception in RTR, and the event that says so')
def rtr(b):
    q = Qp(b, state=RTR)
    q.recv()
    psn = q.send(roce.SEND_ONLY, payload=b'x', ack=True)
    q.acked(psn, msn=1)
    q.completes('r')
    same('event', b.agent.event(2), 'COMM_EST')


@case('RC: a P_Key of limited membership is as good to a full member')
def limited(b):
    q = Qp(b)
    psn = q.send(roce.WRITE_ONLY, q.reth(0, 1), b'x', ack=True, pkey=0x7fff)
    q.acked(psn, msn=1)


# ------------------------------------------------------------ PSNs out of order

@case('RC: a missing packet: one NAK for the gap, then go on', families=(4, 6))
def gap(b):
    q = Qp(b)
    for i in range(4):
        q.recv(wr_id=i, offset=i * 100, length=100)
    e = q.psn
    psns = [e + i & 0xffffff for i in range(4)]
    q.send(roce.SEND_ONLY, payload=b'second', ack=True, psn=psns[1])
    q.naked(NAK_SEQUENCE, e, msn=0)
    # nothing is said to this one: the next packet acknowledges the missing one
    q.send(roce.SEND_ONLY, payload=b'third', ack=True, psn=psns[2])
    q.send(roce.SEND_ONLY, payload=b'first', ack=True, psn=e)
    p = q.next()
    check(p and p.is_ack and p.psn in psns[:3],
          f'{p} after the missing packet, expected an ACK of {e:#x} or later')
    # a responder that kept the two takes these as duplicates
    q.send(roce.SEND_ONLY, payload=b'second', ack=True, psn=psns[1])
    q.send(roce.SEND_ONLY, payload=b'third', ack=True, psn=psns[2])
    q.acked(psns[2], msn=3, over=psns[:2])
    q.psn = psns[3]
    psn = q.send(roce.SEND_ONLY, payload=b'fourth', ack=True)
    q.acked(psn, msn=4, over=psns[:3])
    for i, text in enumerate([b'first', b'second', b'third', b'fourth']):
        q.completes('r', wr_id=i, length=len(text))
        same('data', q.memory.read(i * 100, len(text)), text)
    q.no_completion('r')
    # the next gap is a new one
    q.send(roce.SEND_ONLY, payload=b'x', ack=True, psn=q.psn + 1)
    q.naked(NAK_SEQUENCE, q.psn)


@case('RC: a packet missing from the middle of a message')
def gap_in_message(b):
    q = Qp(b)
    e = q.psn
    q.send(roce.WRITE_FIRST, q.reth(0, 2500), PATTERN[:1024])
    q.send(roce.WRITE_LAST, payload=PATTERN[2048:2500], ack=True, psn=e + 2)
    q.naked(NAK_SEQUENCE, e + 1, msn=0)
    q.send(roce.WRITE_MIDDLE, payload=PATTERN[1024:2048], psn=e + 1)
    q.send(roce.WRITE_LAST, payload=PATTERN[2048:2500], ack=True, psn=e + 2)
    q.acked(e + 2, msn=1, over=[e + 1 & 0xffffff])
    same('data', q.memory.read(0, 2501), PATTERN[:2500] + b'\0')


@case('RC: a READ request past a gap is not executed')
def gap_read(b):
    q = Qp(b)
    q.memory.write(PATTERN)
    e = q.psn
    q.send(roce.READ_REQUEST, q.reth(0, 100), ack=True, psn=e + 1)
    q.naked(NAK_SEQUENCE, e)
    q.send(roce.WRITE_ONLY, q.reth(0, 4), b'new!', ack=True, psn=e)
    p = q.next()
    if p.is_ack:
        same(f'PSN of {p}', p.psn, e)
        q.send(roce.READ_REQUEST, q.reth(0, 100), ack=True, psn=e + 1)
        p = q.next()
    check(p and p.opcode == roce.READ_ONLY, f'{p}, expected the READ response')
    same('data', p.payload, b'new!' + PATTERN[4:100])


def acked_duplicate(q, duplicate, latest, msn):
    """Expect an ACK of a duplicate: any PSN from its own to the latest will do."""
    p = q.next()
    check(p and p.is_ack, f'{p}, expected an ACK of a duplicate')
    check((p.psn - duplicate & 0xffffff) <= (latest - duplicate & 0xffffff),
          f'{p}: PSN outside {duplicate:#x} to {latest:#x}')
    same(f'MSN of {p}', p.msn, msn)


@case('RC: duplicate SENDs and WRITEs are acknowledged and not done again')
def duplicates(b):
    q = Qp(b)
    q.recv(wr_id=1)
    q.recv(wr_id=2)
    first = q.send(roce.SEND_ONLY, payload=b'one', ack=True)
    q.acked(first)
    second = q.send(roce.WRITE_ONLY, q.reth(100, 3), b'two', ack=True)
    q.acked(second)
    q.memory.write(b'xxx', 0)
    q.memory.write(b'yyy', 100)
    q.send(roce.SEND_ONLY, payload=b'one', ack=True, psn=first)
    acked_duplicate(q, first, second, 2)
    q.send(roce.WRITE_ONLY, q.reth(100, 3), b'two', ack=True, psn=second)
    acked_duplicate(q, second, second, 2)
    same('memory', (q.memory.read(0, 3), q.memory.read(100, 3)), (b'xxx', b'yyy'))
    q.completes('r', wr_id=1, length=3)
    q.no_completion('r')
    psn = q.send(roce.SEND_ONLY, payload=b'new', ack=True)
    q.acked(psn, msn=3)
    q.completes('r', wr_id=2, length=3)


@case('RC: a duplicate READ is done again, whole or in part')
def duplicate_read(b):
    q = Qp(b)
    q.memory.write(PATTERN)
    psn = q.send(roce.READ_REQUEST, q.reth(0, 3000), ack=True)
    read_response(q, psn, PATTERN[:3000], 1024, 1)
    q.psn = psn + 3 & 0xffffff
    q.probe()
    q.memory.write(b'changed', 1024)
    now = q.memory.read(0, 3000)
    q.send(roce.READ_REQUEST, q.reth(0, 3000), ack=True, psn=psn)
    read_response(q, psn, now, 1024)
    q.send(roce.READ_REQUEST, q.reth(1024, 1976), ack=True, psn=psn + 1)
    read_response(q, psn + 1, now[1024:], 1024)
    q.send(roce.READ_REQUEST, q.reth(2048, 952), ack=True, psn=psn + 2)
    read_response(q, psn + 2, now[2048:], 1024)
    q.probe()


@case('RC: a duplicate READ of memory that is gone is not answered, and does no harm')
def duplicate_read_gone(b):
    q = Qp(b)
    region = Memory(b.agent, 4096)
    region.write(PATTERN[:4096])
    header = reth(region.address, region.rkey, 3000)
    psn = q.send(roce.READ_REQUEST, header, ack=True)
    read_response(q, psn, PATTERN[:3000], 1024, 1)
    q.psn = psn + 3 & 0xffffff
    # its consumer has the answer, and says so
    q.recv(wr_id=1)
    q.acked(q.send(roce.SEND_ONLY, payload=b'done', ack=True))
    q.completes('r', wr_id=1, length=4)
    region.close()
    q.send(roce.READ_REQUEST, header, ack=True, psn=psn)
    q.send(roce.READ_REQUEST, reth(region.address + 1024, region.rkey, 1976), ack=True,
           psn=psn + 1)
    # the answer to what follows is the only one
    q.probe()


@case('RC: duplicate atomics are answered exactly as before and not done again')
def duplicate_atomics(b):
    q = Qp(b, max_dest_rd=8)
    at = q.memory.address, q.memory.rkey
    done = []
    for i in range(8):
        operation = roce.FETCH_ADD if i % 2 else roce.CMP_SWAP
        before = word(q)
        headers = atomic_eth(*at, 1000 + i, before)
        psn = q.send(operation, headers, ack=True)
        p = q.request(roce.ATOMIC_ACK, psn)
        same('original value', p.original, before)
        done.append((operation, headers, psn, before))
    after = word(q)
    for operation, headers, psn, before in done + done[::-1]:
        q.send(operation, headers, ack=True, psn=psn)
        p = q.request(roce.ATOMIC_ACK, psn)
        same('original value, replayed', p.original, before)
        same('value after', word(q), after)
    # other requests in between change nothing
    q.probe()
    operation, headers, psn, before = done[5]
    q.send(operation, headers, ack=True, psn=psn)
    same('original value, replayed', q.request(roce.ATOMIC_ACK, psn).original, before)
    same('value after', word(q), after)
    q.probe()


FLUSH_GLOBAL, FLUSH_PERSISTENT = 1 << 8, 1 << 9


def flush_memory(b):
    """A region that grants FLUSH to global visibility."""
    try:
        return Memory(b.agent, 4096, LOCAL_WRITE | FLUSH_GLOBAL)
    except Wrong as e:
        raise Skipped(f'regions cannot grant FLUSH: {e}') from e


@case('RC: FLUSH is answered like a READ of nothing, and again when repeated', families=(4, 6))
def flush(b):
    memory = flush_memory(b)
    q = Qp(b, access=ALL_ACCESS | FLUSH_GLOBAL)
    for n, headers in enumerate([
            roce.feth(1) + reth(memory.address + 96, memory.rkey, 4000),
            roce.feth(1) + reth(memory.address + 4096, memory.rkey, 0),
            roce.feth(1, 1) + reth(5, memory.rkey, 0xffffffff)], 1):
        psn = q.send(roce.FLUSH, headers, ack=True)
        for _ in range(2):
            p = q.request(roce.READ_ONLY, psn)
            same('payload', p.payload, b'')
            same('syndrome, MSN', (p.syndrome >> 5, p.msn), (0, n))
            q.send(roce.FLUSH, headers, ack=True, psn=psn)
        q.request(roce.READ_ONLY, psn)
    q.probe()


def refused_flush(name, syndrome, kind, level=0, access=ALL_ACCESS | FLUSH_GLOBAL, payload=b'',
                  offset=0):
    """A FLUSH that is refused."""
    @case(f'RC: FLUSH is refused: {name}')
    def body(b):
        memory = flush_memory(b)
        q = Qp(b, access=access)
        psn = q.send(roce.FLUSH, roce.feth(kind, level) +
                     reth(memory.address + offset, memory.rkey, 4096), payload, ack=True)
        q.naked(syndrome, psn)
        q.becomes(ERR)


refused_flush('no type', NAK_INVALID, 0)
refused_flush('reserved type', NAK_INVALID, 5)
refused_flush('reserved level', NAK_INVALID, 1, 2)
refused_flush('the queue pair does not grant it', NAK_INVALID, 1, access=ALL_ACCESS)
refused_flush('past the end', NAK_ACCESS, 1, offset=1)
refused_flush('persistence, which the region does not grant', NAK_ACCESS, 2,
              access=ALL_ACCESS | FLUSH_GLOBAL | FLUSH_PERSISTENT)


@case('RC: a duplicate atomic that is too old is not done again')
def old_atomic(b):
    q = Qp(b, max_dest_rd=1)
    at = q.memory.address, q.memory.rkey
    first = q.send(roce.FETCH_ADD, atomic_eth(*at, 1), ack=True)
    q.request(roce.ATOMIC_ACK, first)
    for i in range(40):
        q.request(roce.ATOMIC_ACK, q.send(roce.FETCH_ADD, atomic_eth(*at, 1), ack=True))
    q.send(roce.FETCH_ADD, atomic_eth(*at, 1), ack=True, psn=first)
    q.send(roce.WRITE_ONLY, q.reth(100, 1), b'x', ack=True)
    p = q.next()
    if p.operation == roce.ATOMIC_ACK:
        same('PSN', p.psn, first)
        same('original value', p.original, 0)
    same('value', word(q), 41)


# ------------------------------------------------------------ silently dropped

def silent(name, send):
    """A test point: what send(q) sends is dropped without a word, and no harm done."""
    def body(b):
        q = Qp(b)
        q.recv()
        send(q)
        q.probe()
        q.no_completion('r')
        same('memory', q.memory.read(0, 2000), bytes(2000))
        psn = q.send(roce.SEND_ONLY, payload=b'good', ack=True)
        q.acked(psn, msn=2)
        q.completes('r', length=4)
    case(f'RC: silent drop: {name}')(body)


def bad(**other):
    """A request that would be good but for other."""
    return lambda q: q.send(roce.SEND_ONLY, payload=b'bad!', ack=True, psn=q.psn, **other)


silent('bad ICRC', bad(icrc_xor=1))
silent('bad ICRC, every bit in turn',
       lambda q: [bad(icrc_xor=1 << i)(q) for i in range(32)])
silent('unknown QP', lambda q: bad(qpn=q.qpn ^ 0x555555)(q))
silent('QP 0', bad(qpn=0))
silent('QP 0xffffff, the multicast one', bad(qpn=0xffffff))
silent('transport header version', bad(tver=1))
silent('UC request', bad(service=roce.UC))
silent('UD request', lambda q: q.send(roce.SEND_ONLY, roce.deth(0x1234, 5), b'bad!', psn=q.psn,
                                      service=roce.UD))
silent('RD request', bad(service=roce.RD))
silent('opcode of a reserved service', bad(service=0xe0))
silent('pad longer than the payload',
       lambda q: q.send(roce.SEND_ONLY, payload=b'', ack=True, psn=q.psn, pad=3))
silent('CNP', lambda q: q.send(roce.CNP & 0x1f, bytes(16), psn=q.psn,
                               service=roce.CNP & 0xe0, becn=True))
silent('acknowledgement of nothing',
       lambda q: q.send(roce.ACK, aeth(0x1f, 0), psn=q.send_psn))
silent('READ response to nothing',
       lambda q: q.send(roce.READ_ONLY, aeth(0x1f, 0), b'data', psn=q.send_psn))
silent('atomic acknowledgement of nothing',
       lambda q: q.send(roce.ATOMIC_ACK, aeth(0x1f, 0) + bytes(8), psn=q.send_psn))


@case('RC: silent drop: wrong source address', families=(4, 6))
def wrong_source(b):
    silent_source = bad(source=b.sibling_address)
    q = Qp(b)
    q.recv()
    silent_source(q)
    q.probe()
    q.no_completion('r')


@case('RC: silent drop: bad P_Key, and it is counted')
def bad_pkey(b):
    q = Qp(b)
    q.recv()
    before = b.agent.port()[0]
    for pkey in 0x1234, 0x8001, 0:
        bad(pkey=pkey)(q)
    q.probe()
    q.no_completion('r')
    same('P_Key violations counted', b.agent.port()[0] - before, 3)


@case('RC: silent drop: frames cut short anywhere')
def truncated(b):
    q = Qp(b)
    whole = b.flow.frame(roce.WRITE_ONLY, q.qpn, q.psn, q.reth(0, 30), b'y' * 30, True)
    for n in range(14, len(whole)):
        b.wire.send(whole[:n])
    # with IP and UDP lengths that fit what is left, so that the ICRC is the fault
    body = whole[14 + 28:]
    for n in range(len(body)):
        b.wire.send(b.flow.ethernet(roce.ip_udp(b.peer_address, b.address, 49999, body[:n])))
    q.probe()
    same('memory', q.memory.read(0, 30), bytes(30))


@case('RC: headers cut short under a good ICRC never reach memory')
def truncated_well(b):
    whole = None
    for n in range(12, 12 + 16 + 8, 4):
        q = Qp(b)
        headers = q.reth(0, 8)
        whole = headers + b'y' * 8
        q.send(roce.WRITE_ONLY, payload=whole[:n - 12], ack=True, psn=q.psn)
        q.send(roce.READ_REQUEST, payload=whole[:n - 12][:12], ack=True, psn=q.psn)
        q.send(roce.FETCH_ADD, payload=whole[:n - 12], ack=True, psn=q.psn)
        q.send(roce.SEND_ONLY_IMM, ack=True, psn=q.psn)
        q.send(roce.SEND_ONLY_INV, ack=True, psn=q.psn)
        q.agent.do('state', q.number)
        p = q.wire.receive(0.2)
        check(p is None or p.is_nak, f'{p} in answer to a packet cut short')
        same('memory', q.memory.read(0, 30), bytes(30))


@case('RC: packets for a queue pair that is not ready yet, or no longer')
def wrong_state(b):
    q = Qp(b)
    for state in INIT, ERR:
        other = Qp(b, state=INIT)
        if state == ERR:
            b.agent.do('to', other.number, ERR)
        other.send(roce.SEND_ONLY, payload=b'bad!', ack=True)
        q.probe()
        other.no_completion('r')


# ------------------------------------------------------------ refused

def refused(name, syndrome, send, offset=0, posted=65536, status=None, event=None, **options):
    """A test point: what send(q) sends is refused with a NAK whose PSN is offset after
    the first packet's; the queue pair is in error then, a posted receive completes
    with an error (status, if given), and the memory behind it is as it was."""
    def body(b):
        q = Qp(b, **options)
        q.recv(length=posted, wr_id=1)
        q.recv(wr_id=2)
        start = q.psn
        send(q)
        q.naked(syndrome, start + offset)
        q.becomes(ERR)
        c = q.poll('r')
        check(c, 'the posted receive request never completed')
        if status:
            same('receive completion', c.status, status)
        else:
            check(c.status != 'SUCCESS', f'{c}, expected an error')
        q.completes('r', 'WR_FLUSH_ERR', wr_id=2)
        same('memory after the buffers', q.memory.read(4096, 1000), bytes(1000))
        if event:
            same('event', b.agent.event(2), event)
    case(f'RC: {name}')(body)


def packets(*them):
    """A function that sends (operation, headers, length of payload) in turn."""
    def send(q):
        for operation, headers, length in them:
            if callable(headers):
                headers = headers(q)
            q.send(operation, headers, PATTERN[:length], ack=True)
    return send


def write_to(length):
    """RETH into the queue pair's memory."""
    return lambda q: q.reth(0, length)


refused('invalid: SEND First shorter than the MTU', NAK_INVALID,
        packets((roce.SEND_FIRST, b'', 1020)))
refused('invalid: SEND First longer than the MTU', NAK_INVALID,
        packets((roce.SEND_FIRST, b'', 1028)))
refused('invalid: SEND Only longer than the MTU', NAK_INVALID,
        packets((roce.SEND_ONLY, b'', 1028)))
refused('invalid: WRITE First shorter than the MTU', NAK_INVALID,
        packets((roce.WRITE_FIRST, write_to(2000), 1000)))
refused('invalid: WRITE First longer than the MTU', NAK_INVALID,
        packets((roce.WRITE_FIRST, write_to(2000), 1028)))
refused('invalid: WRITE Only longer than the MTU', NAK_INVALID,
        packets((roce.WRITE_ONLY, write_to(1028), 1028)))


def after_ack(first, *rest):
    """Like packets, but takes the ACK of the first packet off the wire."""
    def send(q):
        packets(first)(q)
        p = q.next()
        check(p and p.is_ack, f'{p}, expected an ACK of the first packet')
        packets(*rest)(q)
    return send


SEND_1 = (roce.SEND_FIRST, b'', 1024)
WRITE_1 = (roce.WRITE_FIRST, write_to(2500), 1024)

refused('invalid: SEND Middle shorter than the MTU', NAK_INVALID,
        after_ack(SEND_1, (roce.SEND_MIDDLE, b'', 1020)), offset=1)
refused('invalid: SEND Middle longer than the MTU', NAK_INVALID,
        after_ack(SEND_1, (roce.SEND_MIDDLE, b'', 1028)), offset=1)
refused('invalid: SEND Last without payload', NAK_INVALID,
        after_ack(SEND_1, (roce.SEND_LAST, b'', 0)), offset=1)
refused('invalid: SEND Last longer than the MTU', NAK_INVALID,
        after_ack(SEND_1, (roce.SEND_LAST, b'', 1028)), offset=1)
refused('invalid: WRITE Middle shorter than the MTU', NAK_INVALID,
        after_ack(WRITE_1, (roce.WRITE_MIDDLE, b'', 1020)), offset=1)
refused('invalid: WRITE Last without payload', NAK_INVALID,
        after_ack(WRITE_1, (roce.WRITE_LAST, b'', 0)), offset=1)
refused('invalid: WRITE Only with less payload than announced', NAK_INVALID,
        packets((roce.WRITE_ONLY, write_to(100), 50)))
refused('invalid: WRITE Only with more payload than announced', NAK_INVALID,
        packets((roce.WRITE_ONLY, write_to(100), 104)))
refused('invalid: WRITE Last ends too early', NAK_INVALID,
        after_ack(WRITE_1, (roce.WRITE_LAST, b'', 476)), offset=1)
refused('invalid: WRITE Last goes on too long', NAK_INVALID,
        after_ack((roce.WRITE_FIRST, write_to(1100), 1024), (roce.WRITE_LAST, b'', 80)),
        offset=1)
refused('invalid: WRITE Middle goes on too long', NAK_INVALID,
        after_ack((roce.WRITE_FIRST, write_to(1100), 1024), (roce.WRITE_MIDDLE, b'', 1024)),
        offset=1)
refused('invalid: SEND longer than the receive buffer', NAK_INVALID,
        packets((roce.SEND_ONLY, b'', 100)), posted=50, status='LOC_LEN_ERR')
refused('invalid: SEND outgrows the receive buffer', NAK_INVALID,
        after_ack(SEND_1, (roce.SEND_MIDDLE, b'', 1024)), offset=1, posted=2000,
        status='LOC_LEN_ERR')
refused('invalid: Middle without First', NAK_INVALID, packets((roce.SEND_MIDDLE, b'', 1024)))
refused('invalid: Last without First', NAK_INVALID, packets((roce.SEND_LAST, b'', 10)))
refused('invalid: WRITE Middle without First', NAK_INVALID,
        packets((roce.WRITE_MIDDLE, b'', 1024)))
refused('invalid: SEND First within a SEND', NAK_INVALID, after_ack(SEND_1, SEND_1), offset=1)
refused('invalid: SEND Only within a SEND', NAK_INVALID,
        after_ack(SEND_1, (roce.SEND_ONLY, b'', 4)), offset=1)
refused('invalid: WRITE Middle within a SEND', NAK_INVALID,
        after_ack(SEND_1, (roce.WRITE_MIDDLE, b'', 1024)), offset=1)
refused('invalid: SEND Last within a WRITE', NAK_INVALID,
        after_ack(WRITE_1, (roce.SEND_LAST, b'', 4)), offset=1)
refused('invalid: READ within a SEND', NAK_INVALID,
        after_ack(SEND_1, (roce.READ_REQUEST, write_to(4), 0)), offset=1)
refused('invalid: atomic within a WRITE', NAK_INVALID,
        after_ack(WRITE_1, (roce.FETCH_ADD, lambda q: atomic_eth(q.memory.address,
                                                                 q.memory.rkey, 1), 0)),
        offset=1)
refused('invalid: reserved operation', NAK_INVALID, packets((0x1f, b'', 4)))
refused('invalid: atomic on a misaligned address', NAK_INVALID,
        packets((roce.FETCH_ADD, lambda q: atomic_eth(q.memory.address + 4, q.memory.rkey, 1),
                 0)))
# which of the two is checked first, length or memory, is open
refused('invalid: READ of more than 2 GB', (NAK_INVALID, NAK_ACCESS),
        packets((roce.READ_REQUEST, write_to(0x80000001), 0)))
refused('invalid: READ where the QP has no resources for it', NAK_INVALID,
        packets((roce.READ_REQUEST, write_to(4), 0)), max_dest_rd=0)
for flag, operation, headers, size in (
        (REMOTE_WRITE, roce.WRITE_ONLY, write_to(4), 4),
        (REMOTE_READ, roce.READ_REQUEST, write_to(4), 0),
        (REMOTE_ATOMIC, roce.FETCH_ADD,
         lambda q: atomic_eth(q.memory.address, q.memory.rkey, 1), 0)):
    refused(f'invalid: {roce.NAMES[operation]} where the QP does not allow it', NAK_INVALID,
            packets((operation, headers, size)), access=ALL_ACCESS & ~flag)
refused('invalid: the event', NAK_INVALID, packets((roce.SEND_MIDDLE, b'', 1024)),
        event='QP_REQ_ERR')


# ------------------------------------------------------------ access

def operations(address, rkey, length):
    """One request of each kind that reads or writes memory: (name, operation, headers, payload)."""
    yield 'WRITE', roce.WRITE_ONLY, reth(address, rkey, length), PATTERN[:length]
    yield 'READ', roce.READ_REQUEST, reth(address, rkey, length), b''
    yield 'atomic', roce.FETCH_ADD, atomic_eth(address & ~7, rkey, 1), b''


def no_access(name, where, access=ALL_ACCESS, kinds=('WRITE', 'READ', 'atomic'), event=False):
    """A test point for each kind of request: refused with NAK Remote Access Error."""
    for kind in kinds:
        def body(b, kind=kind):
            region = Memory(b.agent, 4096, access)
            region.write(PATTERN[:4096])
            q = Qp(b)
            address, rkey, length = where(region)
            for k, operation, headers, payload in operations(address, rkey, length):
                if k == kind:
                    psn = q.send(operation, headers, payload, ack=True)
            q.naked(NAK_ACCESS, psn, msn=0)
            q.becomes(ERR)
            same('memory', region.read(), PATTERN[:4096])
            if event:
                same('event', b.agent.event(2), 'QP_ACCESS_ERR')
            region.close()
        case(f'RC: remote access error: {kind}, {name}')(body)


no_access('unknown R_Key', lambda r: (r.address, r.rkey + 0x1000100, 8))
no_access('R_Key with another key part', lambda r: (r.address, r.rkey ^ 1, 8))
no_access('past the end', lambda r: (r.address + 4089, r.rkey, 8), kinds=('WRITE', 'READ'))
no_access('at the end', lambda r: (r.address + 4096, r.rkey, 8))
no_access('before the start', lambda r: (r.address - 8, r.rkey, 8))
no_access('wrapping around', lambda r: ((1 << 64) - 8, r.rkey, 16))
no_access('no permission', lambda r: (r.address, r.rkey, 8), access=LOCAL_WRITE)
no_access('read-only', lambda r: (r.address, r.rkey, 8), access=LOCAL_WRITE | REMOTE_READ,
          kinds=('WRITE', 'atomic'))
no_access('the event', lambda r: (r.address - 8, r.rkey, 8), kinds=('WRITE',), event=True)


@case('RC: remote access error: WRITE, deregistered memory')
def deregistered(b):
    q = Qp(b)
    region = Memory(b.agent, 4096)
    region.close()
    psn = q.send(roce.WRITE_ONLY, reth(region.address, region.rkey, 4), b'xxxx', ack=True)
    q.naked(NAK_ACCESS, psn, msn=0)


@case('RC: remote access error: WRITE, memory of another protection domain')
def other_domain(b):
    q = Qp(b)
    b.agent.do('pd')
    region = Memory(b.agent, 4096)
    psn = q.send(roce.WRITE_ONLY, reth(region.address, region.rkey, 4), b'xxxx', ack=True)
    q.naked(NAK_ACCESS, psn, msn=0)
    same('memory', region.read(0, 4), bytes(4))


@case('RC: remote access error: WRITE of several packets, past the end')
def long_write(b):
    q = Qp(b)
    region = Memory(b.agent, 4096)
    start = q.psn
    q.send(roce.WRITE_FIRST, reth(region.address + 2000, region.rkey, 2500), PATTERN[:1024])
    q.naked(NAK_ACCESS, start, msn=0)
    same('memory', region.read(), bytes(4096))


@case('RC: a bad receive buffer: remote operational error')
def bad_buffer(b):
    q = Qp(b)
    b.agent.do('recv', q.number, 1, q.memory.lkey ^ 0x100, q.memory.address, 100)
    psn = q.send(roce.SEND_ONLY, payload=b'data', ack=True)
    q.naked(NAK_OPERATION, psn, msn=0)
    q.completes('r', 'LOC_PROT_ERR')
    q.becomes(ERR)


# ------------------------------------------------------------ receiver not ready

@case('RC: RNR NAK carries the timer, and the message comes again')
def rnr(b):
    for code in 1, 12, 31, 0:
        q = Qp(b, min_rnr=code)
        e = q.psn
        q.send(roce.SEND_ONLY, payload=b'first', ack=True, psn=e)
        q.naked(roce.rnr_nak(code), e, msn=0)
        q.recv(wr_id=1)
        q.recv(wr_id=2, offset=100)
        q.send(roce.SEND_ONLY, payload=b'first', ack=True, psn=e)
        q.acked(e, msn=1)
        q.psn = e + 1 & 0xffffff
        psn = q.send(roce.SEND_ONLY, payload=b'second', ack=True)
        q.acked(psn, msn=2)
        q.completes('r', wr_id=1, length=5)
        q.completes('r', wr_id=2, length=6)


@case('RC: after an RNR NAK what follows is not taken')
def rnr_then_more(b):
    q = Qp(b)
    e = q.psn
    q.send(roce.SEND_ONLY, payload=b'first', ack=True, psn=e)
    q.naked(roce.rnr_nak(1), e, msn=0)
    q.recv(wr_id=1)
    q.recv(wr_id=2, offset=100)
    # with the first still missing, the second must wait: no word, or a sequence NAK
    q.send(roce.SEND_ONLY, payload=b'second', ack=True, psn=e + 1)
    q.send(roce.SEND_ONLY, payload=b'first', ack=True, psn=e)
    p = q.next()
    if p and p.is_nak and p.syndrome == NAK_SEQUENCE:
        same('PSN', p.psn, e)
        p = q.next()
    check(p and p.is_ack and p.psn in (e, e + 1 & 0xffffff), f'{p}, expected an ACK of {e:#x}')
    q.send(roce.SEND_ONLY, payload=b'second', ack=True, psn=e + 1)
    q.acked(e + 1, msn=2, over=[e])
    q.completes('r', wr_id=1, length=5)
    q.completes('r', wr_id=2, length=6)
    q.no_completion('r')


@case('RC: WRITE with immediate: RNR NAK at the packet that has it')
def rnr_immediate(b):
    q = Qp(b, min_rnr=5)
    e = q.psn
    q.send(roce.WRITE_FIRST, q.reth(0, 1028), PATTERN[:1024])
    q.send(roce.WRITE_LAST_IMM, b'\0\0\0\7', PATTERN[1024:1028], ack=True)
    q.naked(roce.rnr_nak(5), e + 1, msn=0)
    q.recv(length=0)
    q.send(roce.WRITE_LAST_IMM, b'\0\0\0\7', PATTERN[1024:1028], ack=True, psn=e + 1)
    q.acked(e + 1, msn=1)
    q.completes('r', length=1028, imm=7)
    same('data', q.memory.read(0, 1029), PATTERN[:1028] + b'\0')


# ------------------------------------------------------------ anything at all

@case('RC: packets of random contents under a good ICRC do no harm')
def garbage(b):
    dice = random.Random(99)
    q = Qp(b)
    for _ in range(300):
        target = Qp(b, QPT_RC) if dice.random() < .02 else None
        qpn = dice.choice([target.qpn if target else q.qpn ^ 0x800000, 1, 0,
                           dice.randrange(1 << 24)])
        b.wire.send(b.flow.frame(
            dice.randrange(256), qpn, dice.choice([q.psn, dice.randrange(1 << 24)]),
            payload=dice.randbytes(dice.choice([0, 1, 4, 16, 28, 40, 256, 1024, 2000])),
            ack=dice.random() < .5, pad=dice.choice([None, 0, 1, 2, 3]),
            se=dice.random() < .5, mig=dice.random() < .5))
    while (p := b.wire.receive(0.5)) is not None:
        check(p.qpn != q.peer_qpn, f'{p} though nothing was sent to this queue pair')
    q.wire.drain()
    q.probe()
