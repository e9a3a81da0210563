# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""UC and UD, which have no acknowledgements. Expectations: IBA volume 1, 9.8."""

import random

import roce
from bench import (ALL_ACCESS, QPT_UC, QPT_UD, REMOTE_WRITE, RTS, SIGNALED, SOLICITED, WR_SEND,
                   WR_SEND_IMM, WR_WRITE, WR_WRITE_IMM, Qp, case, check, gid_hex, same)
from roce import deth, reth

PATTERN = random.Random(9).randbytes(8192)
QKEY = 0x1234


# ------------------------------------------------------------ UC responder

def delivered(q, payload=b'good'):
    """A good message comes through, and was the first to do so."""
    q.send(roce.SEND_ONLY, payload=payload)
    q.completes('r', length=len(payload))
    same('data', q.memory.read(0, len(payload)), payload)


@case('UC: SEND and WRITE of one and several packets')
def uc_good(b):
    q = Qp(b, QPT_UC)
    q.recv()
    q.send(roce.SEND_FIRST, payload=PATTERN[:1024])
    q.send(roce.SEND_MIDDLE, payload=PATTERN[1024:2048])
    q.send(roce.SEND_LAST, payload=PATTERN[2048:2500])
    q.completes('r', length=2500)
    same('data', q.memory.read(0, 2500), PATTERN[:2500])
    q.recv(length=0)
    q.send(roce.WRITE_FIRST, q.reth(3, 1030), PATTERN[:1024])
    q.send(roce.WRITE_LAST_IMM, b'\0\0\0\5', PATTERN[1024:1030])
    q.completes('r', length=1030, imm=5)
    same('data', q.memory.read(3, 1030), PATTERN[:1030])


def uc_dropped(name, send):
    """A test point: send(q) is dropped; a message afterwards gets the receive request."""
    def body(b):
        q = Qp(b, QPT_UC)
        q.recv()
        send(q)
        delivered(q)
        same('memory behind', q.memory.read(2000, 1000), bytes(1000))
    case(f'UC: dropped: {name}')(body)


def missing_middle(q):
    """A message of three packets without its second."""
    q.send(roce.SEND_FIRST, payload=PATTERN[:1024])
    q.psn += 1
    q.send(roce.SEND_LAST, payload=PATTERN[:10])


def missing_first(q):
    """A message of three packets without its first."""
    q.psn += 1
    q.send(roce.SEND_MIDDLE, payload=PATTERN[:1024])
    q.send(roce.SEND_LAST, payload=PATTERN[:10])


uc_dropped('a message with its middle missing', missing_middle)
uc_dropped('a message with its start missing', missing_first)
uc_dropped('a message that never ends',
           lambda q: q.send(roce.SEND_FIRST, payload=PATTERN[:1024]))
uc_dropped('Middle without First', lambda q: q.send(roce.SEND_MIDDLE, payload=PATTERN[:1024]))
uc_dropped('First shorter than the MTU', lambda q: q.send(roce.SEND_FIRST, payload=b'short'))
uc_dropped('Only longer than the MTU',
           lambda q: q.send(roce.SEND_ONLY, payload=PATTERN[:1028]))
uc_dropped('bad ICRC', lambda q: q.send(roce.SEND_ONLY, payload=b'x', icrc_xor=0x80))
uc_dropped('bad P_Key', lambda q: q.send(roce.SEND_ONLY, payload=b'x', pkey=0x8123))
uc_dropped('RC request', lambda q: q.send(roce.SEND_ONLY, payload=b'x', service=roce.RC))
uc_dropped('READ request', lambda q: q.send(roce.READ_REQUEST, q.reth(0, 4)))
uc_dropped('another source address',
           lambda q: q.send(roce.SEND_ONLY, payload=b'x', source=q.bench.sibling_address))


@case('UC: a message after lost ones is taken')
def uc_resync(b):
    q = Qp(b, QPT_UC)
    q.recv()
    q.psn += 5
    delivered(q)


@case('UC: WRITE to where it must not changes nothing')
def uc_access(b):
    q = Qp(b, QPT_UC)
    q.recv()
    q.send(roce.WRITE_ONLY, reth(q.memory.address, q.memory.rkey + 0x1000100, 4), b'bad!')
    q.send(roce.WRITE_ONLY, reth(q.memory.address + 65534, q.memory.rkey, 4), b'bad!')
    delivered(q, b'ok')
    same('memory', q.memory.read(2, 2000), bytes(2000))


@case('UC: without a receive request the message is lost, the next is not')
def uc_no_receive(b):
    q, other = Qp(b, QPT_UC), Qp(b)
    q.send(roce.SEND_ONLY, payload=b'lost')
    other.probe()
    q.recv()
    delivered(q)


# ------------------------------------------------------------ UC requester

@case('UC requester: opcodes, PSNs, contents; completes without an answer')
def uc_requester(b):
    q = Qp(b, QPT_UC)
    q.memory.write(PATTERN)
    q.post(WR_SEND_IMM, 1500, imm=9, flags=SIGNALED | SOLICITED)
    data = q.request(roce.SEND_FIRST, q.send_psn).payload
    p = q.request(roce.SEND_LAST_IMM, q.send_psn + 1)
    same('data', data + p.payload, PATTERN[:1500])
    same('immediate, solicited event', (p.imm, p.se), (9, True))
    q.completes('s')
    q.post(WR_WRITE, 10, raddr=0x1000, rkey=0x77)
    p = q.request(roce.WRITE_ONLY, q.send_psn + 2)
    same('RETH', (p.address, p.rkey, p.dma_length), (0x1000, 0x77, 10))
    q.completes('s')
    q.post(WR_WRITE_IMM, 1025, raddr=0x1000, rkey=0x77, imm=6)
    q.request(roce.WRITE_FIRST, q.send_psn + 3)
    same('immediate', q.request(roce.WRITE_LAST_IMM, q.send_psn + 4).imm, 6)
    q.completes('s')


# ------------------------------------------------------------ UD

@case('UD: SEND is delivered behind 40 bytes of address', families=(4, 6))
def ud_good(b):
    q = Qp(b, QPT_UD, qkey=QKEY)
    q.recv()
    q.send(roce.SEND_ONLY, deth(QKEY, 0x4321), b'hello')
    c = q.completes('r', length=45)
    same('src_qp', hex(c.src_qp), '0x4321')
    check(c.flags & 1, 'the completion does not say that there is a GRH')
    same('data', q.memory.read(40, 5), b'hello')
    grh = q.memory.read(0, 40)
    if ':' in b.address:
        same('GIDs of the GRH', grh[8:].hex(), gid_hex(b.peer_address) + gid_hex(b.address))
    else:
        same('addresses of the IPv4 header', grh[32:].hex(),
             gid_hex(b.peer_address)[24:] + gid_hex(b.address)[24:])
    q.recv()
    q.send(roce.SEND_ONLY_IMM, deth(QKEY, 1) + b'\0\0\1\0', b'')
    q.completes('r', length=40, imm=256)


@case('UD: a datagram may come from anywhere')
def ud_anywhere(b):
    q = Qp(b, QPT_UD, qkey=QKEY)
    q.recv()
    q.send(roce.SEND_ONLY, deth(QKEY, 1), b'hello', source=b.sibling_address)
    q.completes('r', length=45)


def ud_dropped(name, send):
    """A test point: send(q) is dropped; a datagram afterwards gets the receive request."""
    def body(b):
        q = Qp(b, QPT_UD, qkey=QKEY)
        q.recv()
        send(q)
        q.send(roce.SEND_ONLY, deth(QKEY, 2), b'good')
        q.completes('r', length=44)
        same('data', q.memory.read(40, 4), b'good')
    case(f'UD: dropped: {name}')(body)


def datagram(operation=roce.SEND_ONLY, headers=deth(QKEY, 2), payload=b'bad', **other):
    """A function that sends that."""
    return lambda q: q.send(operation, headers, payload, **other)


ud_dropped('bad ICRC', datagram(icrc_xor=4))
ud_dropped('bad P_Key', datagram(pkey=0x8888))
ud_dropped('SEND First', datagram(roce.SEND_FIRST))
ud_dropped('WRITE', datagram(roce.WRITE_ONLY, deth(QKEY, 2) + reth(0, 0, 0), b''))
ud_dropped('RC request', datagram(service=roce.RC))
ud_dropped('no room for the DETH', datagram(headers=b'', payload=b'1234'))


@case('UD: dropped: bad Q_Key, and it is counted')
def bad_qkey(b):
    q = Qp(b, QPT_UD, qkey=QKEY)
    q.recv()
    before = b.agent.port()[1]
    q.send(roce.SEND_ONLY, deth(QKEY + 1, 2), b'bad')
    q.send(roce.SEND_ONLY, deth(0, 2), b'bad')
    q.send(roce.SEND_ONLY, deth(QKEY, 2), b'good')
    q.completes('r', length=44)
    same('data', q.memory.read(40, 4), b'good')
    same('Q_Key violations counted', b.agent.port()[1] - before, 2)


@case('UD: without a receive request the datagram is lost, the next is not')
def ud_no_receive(b):
    q, other = Qp(b, QPT_UD, qkey=QKEY), Qp(b)
    q.send(roce.SEND_ONLY, deth(QKEY, 2), b'lost')
    other.probe()
    q.recv()
    q.send(roce.SEND_ONLY, deth(QKEY, 2), b'good')
    q.completes('r', length=44)
    same('data', q.memory.read(40, 4), b'good')


@case('UD requester: what goes out', families=(4, 6))
def ud_requester(b):
    q = Qp(b, QPT_UD, qkey=QKEY)
    q.memory.write(PATTERN)
    b.agent.do('ah', gid_hex(b.peer_address))

    def post(opcode, length, qkey, flags=SIGNALED, imm=0):
        b.agent.do('sendto', q.number, 1, opcode, flags, q.memory.lkey, q.memory.address,
                   length, imm, q.peer_qpn, qkey)

    post(WR_SEND, 5, 0x55)
    p = q.request(roce.SEND_ONLY, q.send_psn)
    same('DETH', (p.qkey, p.source_qp), (0x55, q.qpn))
    same('payload', p.payload, PATTERN[:5])
    q.completes('s')
    post(WR_SEND_IMM, 1024, 0x55, SIGNALED | SOLICITED, 3)
    p = q.request(roce.SEND_ONLY_IMM, q.send_psn + 1)
    same('immediate, solicited event', (p.imm, p.se), (3, True))
    same('payload', p.payload, PATTERN[:1024])
    q.completes('s')
    # a controlled Q_Key asks for the queue pair's own (IBA 3.5.3, 10.2.5)
    post(WR_SEND, 0, 0x80000000)
    same('Q_Key', hex(q.request(roce.SEND_ONLY, q.send_psn + 2).qkey), hex(QKEY))
    q.completes('s')


@case('UD: garbage for the GSI does no harm')
def gsi(b):
    dice = random.Random(5)
    q = Qp(b)
    for _ in range(100):
        payload = bytearray(dice.randbytes(256))
        if dice.random() < .8:
            payload[:4] = 1, dice.choice([1, 3, 4, 7, 9, 0x81]), dice.choice([1, 2]), 1
        b.wire.send(b.flow.frame(roce.UD | roce.SEND_ONLY, 1, dice.randrange(1 << 24),
                                 deth(dice.choice([0x80010000, 5]), 1), bytes(payload)))
    while b.wire.receive(0.3):
        pass
    q.probe()
