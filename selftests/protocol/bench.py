# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What protocol test cases stand on: the agent, the wire, the queue pair under test.

The device under test is on one end of a veth pair. At the other end is no host:
only this program, which plays the peer with frames that it makes itself.
"""

import os
import random
import select
import socket
import struct
import subprocess
import time

import roce
from roce import RC, UC, UD

HANG = 30              # seconds after which something counts as never happening

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SO_TIMESTAMPNS = 35

# libibverbs' constants, part of its ABI
QPT_RC, QPT_UC, QPT_UD = 2, 3, 4
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8
ALL_ACCESS = 15
RESET, INIT, RTR, RTS, SQD, SQE, ERR = range(7)
MTU = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
WR_WRITE, WR_WRITE_IMM, WR_SEND, WR_SEND_IMM, WR_READ, WR_CAS, WR_ADD = range(7)
FENCE, SIGNALED, SOLICITED = 1, 2, 4
WC_STATUS = ['SUCCESS', 'LOC_LEN_ERR', 'LOC_QP_OP_ERR', 'LOC_EEC_OP_ERR', 'LOC_PROT_ERR',
             'WR_FLUSH_ERR', 'MW_BIND_ERR', 'BAD_RESP_ERR', 'LOC_ACCESS_ERR',
             'REM_INV_REQ_ERR', 'REM_ACCESS_ERR', 'REM_OP_ERR', 'RETRY_EXC_ERR',
             'RNR_RETRY_EXC_ERR', 'LOC_RDD_VIOL_ERR', 'REM_INV_RD_REQ_ERR',
             'REM_ABORT_ERR', 'INV_EECN_ERR', 'INV_EEC_STATE_ERR', 'FATAL_ERR',
             'RESP_TIMEOUT_ERR', 'GENERAL_ERR']
EVENTS = ['CQ_ERR', 'QP_FATAL', 'QP_REQ_ERR', 'QP_ACCESS_ERR', 'COMM_EST', 'SQ_DRAINED']

# RNR timer codes (IBA table 45), in milliseconds
RNR_TIMER = [655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28,
             1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92,
             122.88, 163.84, 245.76, 327.68, 491.52]


class Wrong(Exception):
    """A test point failed; says what was expected and what was seen."""


class Skipped(Exception):
    """A test point cannot be had here; says what is missing."""


def check(condition, text):
    """Fail the test point with text unless condition holds."""
    if not condition:
        raise Wrong(text)


def same(what, got, wanted):
    """Fail the test point unless got equals wanted."""
    if got != wanted:
        show = (lambda x: x[:40].hex() + ('...' if len(x) > 40 else '')
                if isinstance(x, bytes) else repr(x))
        raise Wrong(f'{what}: {show(got)}, expected {show(wanted)}')


CASES = []


def case(name, families=(4,)):
    """Make a function of a bench a test point, over IPv4, IPv6 or both."""
    def add(body):
        CASES.append((name, families, body))
        return body
    return add


class Completion:
    """A work completion, as the agent tells it."""

    def __init__(self, words):
        (self.wr_id, status, self.opcode, self.byte_len, self.imm, self.flags,
         self.src_qp) = (int(w) for w in words)
        self.status = WC_STATUS[status]

    def __str__(self):
        return f'completion of {self.wr_id}: {self.status}, {self.byte_len} bytes'


class Agent:
    """The process that holds the verbs objects; see agent.c."""

    def __init__(self, program, namespace, device, gid_index):
        command = [program, device, str(gid_index)]
        if namespace:
            command = ['ip', 'netns', 'exec', namespace] + command
        self.device = device
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, bufsize=1)

    def ask(self, *words):
        """Send a command; return (errno, result words)."""
        self.process.stdin.write(' '.join(str(w) for w in words) + '\n')
        answer = self.process.stdout.readline().split()
        if not answer:
            raise RuntimeError(f'agent died of: {words}')
        if answer[0] == 'error':
            return int(answer[1]), []
        return 0, answer[1:]

    def do(self, *words):
        """Send a command that must succeed; return its result words."""
        error, result = self.ask(*words)
        check(not error, f'{" ".join(str(w) for w in words[:2])}: {os.strerror(error)}')
        return result

    def event(self, seconds=HANG):
        """The next asynchronous event, by name, or None."""
        word, = self.do('event', int(seconds * 1000))
        if word == 'none':
            return None
        number = int(word)
        return EVENTS[number] if number < len(EVENTS) else f'event {number}'

    def port(self):
        """(P_Key violations, Q_Key violations, active MTU)"""
        return tuple(int(w) for w in self.do('port'))


class Memory:
    """A memory region of the agent."""

    def __init__(self, agent, size, access=ALL_ACCESS):
        self.agent, self.size = agent, size
        self.number, self.lkey, self.rkey, self.address = (
            int(w) for w in agent.do('mr', size, access))

    def read(self, offset=0, length=None):
        """Bytes that are there now."""
        length = self.size - offset if length is None else length
        words = self.agent.do('peek', self.number, offset, length)
        return bytes.fromhex(words[0]) if words else b''

    def write(self, data, offset=0):
        """Put bytes there."""
        for i in range(0, len(data), 16384):
            self.agent.do('poke', self.number, offset + i, data[i:i + 16384].hex())

    def close(self):
        """Deregister it."""
        self.agent.do('dereg', self.number)


class Wire:
    """The far end of the veth pair."""

    def __init__(self, interface, namespace, agent_mac, mac):
        self.socket = self._open(interface, namespace)
        self.agent_mac, self.mac = agent_mac, mac

    @staticmethod
    def _open(interface, namespace):
        """A packet socket on the interface; it stays usable outside its namespace."""
        back = None
        if namespace:
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            back = os.open('/proc/self/ns/net', os.O_RDONLY)
            there = os.open(f'/run/netns/{namespace}', os.O_RDONLY)
            if libc.setns(there, 0):
                raise OSError(ctypes.get_errno(), 'setns')
            os.close(there)
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)       # SO_RCVBUFFORCE
        s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        s.bind((interface, ETH_P_ALL))
        if back is not None:
            libc.setns(back, 0)
            os.close(back)
        return s

    def send(self, frame):
        """Put a frame on the wire."""
        self.socket.send(frame)

    def receive(self, seconds=HANG):
        """The next RoCEv2 packet from the device, or None; with its time of arrival."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if not select.select([self.socket], [], [], max(left, 0))[0]:
                return None
            frame, ancillary, _, address = self.socket.recvmsg(70000, 128)
            if address[2] == PACKET_OUTGOING:
                continue
            try:
                packet = roce.Packet(frame)
            except ValueError:
                continue
            if frame[6:12] != self.agent_mac:
                continue
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                    s, ns = struct.unpack('qq', data[:16])
                    packet.time = s + ns / 1e9
            if not packet.icrc_ok:
                raise Wrong(f'bad ICRC on {packet}')
            if not packet.udp_ok:
                raise Wrong(f'bad UDP checksum on {packet}')
            if not packet.ip_ok:
                raise Wrong(f'bad IP header checksum on {packet}')
            if frame[:6] != self.mac:
                raise Wrong(f'wrong destination MAC {frame[:6].hex()} on {packet}')
            return packet

    def drain(self):
        """Forget what has arrived."""
        self.socket.setblocking(False)
        try:
            while True:
                self.socket.recv(70000)
        except BlockingIOError:
            pass
        self.socket.setblocking(True)


class Bench:
    """One agent, one wire, both addresses."""

    def __init__(self, agent, wire, address, peer, sibling):
        self.agent, self.wire = agent, wire
        self.address, self.peer_address, self.sibling_address = address, peer, sibling
        self.flow = roce.Flow(wire.mac, wire.agent_mac, peer, address)
        self.qps = []

    def clear(self):
        """Destroy the queue pairs of a test point."""
        while self.qps:
            self.qps.pop().close()
        while self.agent.event(0):
            pass


def gid_hex(address):
    """The GID of an IP address, in hexadecimal."""
    import ipaddress
    a = ipaddress.ip_address(address)
    return (a.packed if a.version == 6 else bytes(10) + b'\xff\xff' + a.packed).hex()


class Qp:
    """A queue pair under test, connected to this program's peer."""

    def __init__(self, bench, kind=QPT_RC, mtu=1024, access=ALL_ACCESS, min_rnr=1,
                 timeout=0, retry=7, rnr_retry=7, max_rd=8, max_dest_rd=8, psn=None,
                 send_psn=None, qkey=0x1234, state=RTS):
        self.bench, self.agent, self.wire, self.mtu = bench, bench.agent, bench.wire, mtu
        self.kind = kind
        self.service = {QPT_RC: RC, QPT_UC: UC, QPT_UD: UD}[kind]
        number, qpn = self.agent.do('qp', kind)
        self.number, self.qpn = int(number), int(qpn)
        self.peer_qpn = random.randrange(2, 1 << 24)
        # PSNs: of the next request to the device; of its next request to us
        self.psn = random.randrange(1 << 24) if psn is None else psn
        self.send_psn = random.randrange(1 << 24) if send_psn is None else send_psn
        self.wire.drain()
        self.agent.do('init', self.number, access, qkey)
        if state != INIT:
            self.agent.do('rtr', self.number, gid_hex(bench.peer_address), self.peer_qpn,
                          self.psn, MTU[mtu], max_dest_rd, min_rnr)
        if state == RTS:
            self.agent.do('rts', self.number, self.send_psn, timeout, retry, rnr_retry,
                          max_rd)
        self.memory = Memory(self.agent, 65536)
        self._seen = set()              # PSNs of the device's requests
        bench.qps.append(self)

    # -------------------------------------------------- verbs

    def recv(self, length=65536, offset=0, wr_id=1):
        """Post a receive request into the queue pair's memory."""
        self.agent.do('recv', self.number, wr_id, self.memory.lkey,
                      self.memory.address + offset, length)

    def post(self, opcode, length=0, offset=0, wr_id=1, flags=SIGNALED, imm=0, raddr=0,
             rkey=0, compare=0, swap=0):
        """Post a send request."""
        self.agent.do('send', self.number, wr_id, opcode, flags, self.memory.lkey,
                      self.memory.address + offset, length, imm, raddr, rkey, compare, swap)

    def poll(self, queue, seconds=HANG):
        """The next completion of the queue 's' or 'r', or None."""
        words = self.agent.do('poll', self.number, queue, int(seconds * 1000))
        return None if words[0] == 'none' else Completion(words)

    def completes(self, queue, status='SUCCESS', wr_id=1, length=None, imm=None):
        """Expect a completion."""
        c = self.poll(queue)
        name = 'send' if queue == 's' else 'receive'
        check(c, f'no {name} completion, expected {status}')
        same(f'{name} completion', (c.wr_id, c.status), (wr_id, status))
        if length is not None:
            same('byte_len', c.byte_len, length)
        if imm is not None:
            check(c.flags & 2, 'no immediate data in the completion')
            same('imm_data', c.imm, imm)
        return c

    def no_completion(self, queue):
        """Expect no completion so far; something that came later must have been seen."""
        c = self.poll(queue, 0)
        check(c is None, f'expected no completion, got {c}')

    def state(self):
        """The state, as the agent's queue pair tells it."""
        return int(self.agent.do('state', self.number)[0])

    def becomes(self, state):
        """Wait for a state."""
        end = time.monotonic() + HANG
        while (now := self.state()) != state and time.monotonic() < end:
            time.sleep(0.01)
        same('state of the queue pair', now, state)

    def close(self):
        """Destroy it."""
        self.agent.do('destroy', self.number)
        self.memory.close()

    # -------------------------------------------------- as requester

    def send(self, operation, headers=b'', payload=b'', ack=False, psn=None, **other):
        """Send a request packet to the device; the next PSN unless psn says otherwise."""
        if psn is None:
            psn = self.psn
            self.psn = self.psn + 1 & 0xffffff
        other.setdefault('qpn', self.qpn)
        qpn = other.pop('qpn')
        service = other.pop('service', self.service)
        self.wire.send(self.bench.flow.frame(service | operation, qpn, psn, headers,
                                             payload, ack, **other))
        return psn

    def next(self, seconds=HANG):
        """The next packet of the device, which must be for this queue pair's peer."""
        p = self.wire.receive(seconds)
        if p:
            same(f'destination QP of {p}', p.qpn, self.peer_qpn)
            same(f'P_Key of {p}', p.pkey, 0xffff)
            same(f'reserved bits of {p}', (p.reserved, p.tver, p.padding),
                 ((0, 0), 0, bytes(len(p.padding))))
            same(f'addresses of {p}', (p.source, p.destination),
                 (self.bench.address, self.bench.peer_address))
        return p

    def acked(self, psn, msn=None, over=()):
        """Expect an ACK of psn; those of PSNs in over may come before it."""
        while True:
            p = self.next()
            check(p, f'no answer, expected ACK of {psn & 0xffffff:#x}')
            check(p.is_ack, f'{p}, expected ACK of {psn & 0xffffff:#x}')
            if p.psn in over and p.psn != psn & 0xffffff:
                continue
            same(f'PSN of {p}', hex(p.psn), hex(psn & 0xffffff))
            if msn is not None:
                same(f'MSN of {p}', p.msn, msn & 0xffffff)
            return p

    def naked(self, syndrome, psn, msn=None):
        """Expect a NAK with this syndrome, or one of these, at this PSN."""
        wanted = syndrome if isinstance(syndrome, tuple) else (syndrome,)
        text = f'NAK {" or ".join(hex(s) for s in wanted)} of {psn & 0xffffff:#x}'
        p = self.next()
        check(p, f'no answer, expected {text}')
        check(p.is_nak and p.syndrome in wanted, f'{p}, expected {text}')
        same(f'PSN of {p}', hex(p.psn), hex(psn & 0xffffff))
        if msn is not None:
            same(f'MSN of {p}', p.msn, msn & 0xffffff)
        return p

    def probe(self, over=()):
        """Send a good request and expect its ACK to be the next packet: proof that
        the device still works, and that nothing was said to what went before."""
        psn = self.send(roce.WRITE_ONLY, self.reth(65000, 4), b'prob', ack=True)
        return self.acked(psn, over=over)

    def reth(self, offset, length):
        """RETH for the queue pair's own memory."""
        return roce.reth(self.memory.address + offset, self.memory.rkey, length)

    # -------------------------------------------------- as responder

    def ack(self, psn, msn=0, syndrome=0x1f, **other):
        """Acknowledge a request of the device. Syndrome 0x1f: no end-to-end credits."""
        self.wire.send(self.bench.flow.frame(RC | roce.ACK, self.qpn, psn,
                                             roce.aeth(syndrome, msn), **other))

    def nak(self, syndrome, psn, msn=0):
        """Refuse a request of the device."""
        self.ack(psn, msn, syndrome)

    def respond(self, operation, psn, payload=b'', syndrome=0x1f, msn=0, original=None):
        """Send a READ response packet or an atomic acknowledgement to the device."""
        headers = b'' if operation == roce.READ_MIDDLE else roce.aeth(syndrome, msn)
        if original is not None:
            headers += struct.pack('!Q', original)
        self.wire.send(self.bench.flow.frame(RC | operation, self.qpn, psn, headers, payload))

    def request(self, operation, psn=None, seconds=HANG):
        """Expect a request packet of the device; what was seen before may come before it
        once more, since a requester may ask for an answer again when it likes."""
        p = self.next(seconds)
        while p and psn is not None and p.psn != psn & 0xffffff and p.psn in self._seen:
            p = self.next(seconds)
        name = roce.NAMES[operation]
        check(p, f'nothing sent, expected {name}')
        same('request', roce.NAMES.get(p.operation, hex(p.opcode)), name)
        same(f'service of {p}', p.service, self.service)
        if psn is not None:
            same(f'PSN of {p}', hex(p.psn), hex(psn & 0xffffff))
        self._seen.add(p.psn)
        return p
