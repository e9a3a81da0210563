# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""RoCEv2 packets made and taken apart, from the specifications alone.

InfiniBand Architecture Specification volume 1, chapter 9 (transport headers)
and annex 17 (RoCEv2). Nothing here is shared with the driver.
"""

import ipaddress
import struct
import zlib

PORT = 4791

RC, UC, RD, UD = 0x00, 0x20, 0x40, 0x60

# The operation, the low five bits of the opcode (IBA table 38).
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM = 0, 1, 2, 3
SEND_ONLY, SEND_ONLY_IMM = 4, 5
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM = 6, 7, 8, 9
WRITE_ONLY, WRITE_ONLY_IMM = 10, 11
READ_REQUEST = 12
READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = 13, 14, 15, 16
ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD = 17, 18, 19, 20
SEND_LAST_INV, SEND_ONLY_INV = 22, 23
FLUSH = 28
CNP = 0x81

NAMES = {
    0: 'SEND First', 1: 'SEND Middle', 2: 'SEND Last', 3: 'SEND Last with Immediate',
    4: 'SEND Only', 5: 'SEND Only with Immediate', 6: 'WRITE First', 7: 'WRITE Middle',
    8: 'WRITE Last', 9: 'WRITE Last with Immediate', 10: 'WRITE Only',
    11: 'WRITE Only with Immediate', 12: 'READ Request', 13: 'READ Response First',
    14: 'READ Response Middle', 15: 'READ Response Last', 16: 'READ Response Only',
    17: 'Acknowledge', 18: 'ATOMIC Acknowledge', 19: 'CmpSwap', 20: 'FetchAdd',
    22: 'SEND Last with Invalidate', 23: 'SEND Only with Invalidate',
    28: 'FLUSH',
}

# Extension headers by operation, in order: name and length.
HEADERS = {
    SEND_LAST_IMM: ['immdt'], SEND_ONLY_IMM: ['immdt'], WRITE_FIRST: ['reth'],
    WRITE_LAST_IMM: ['immdt'], WRITE_ONLY: ['reth'], WRITE_ONLY_IMM: ['reth', 'immdt'],
    READ_REQUEST: ['reth'], READ_FIRST: ['aeth'], READ_LAST: ['aeth'], READ_ONLY: ['aeth'],
    ACK: ['aeth'], ATOMIC_ACK: ['aeth', 'atomicack'], CMP_SWAP: ['atomic'],
    FETCH_ADD: ['atomic'], SEND_LAST_INV: ['ieth'], SEND_ONLY_INV: ['ieth'],
    FLUSH: ['feth', 'reth'],
}
LENGTHS = {'immdt': 4, 'reth': 16, 'aeth': 4, 'atomicack': 8, 'atomic': 28, 'ieth': 4,
           'deth': 8, 'feth': 4}

# AETH syndromes (IBA table 43)
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = 0x60, 0x61, 0x62, 0x63


def rnr_nak(timer):
    """Syndrome of an RNR NAK with this timer code."""
    return 0x20 | timer


def reth(address, rkey, length):
    """RDMA extended transport header."""
    return struct.pack('!QII', address, rkey, length)


def atomic_eth(address, rkey, swap_or_add, compare=0):
    """Atomic extended transport header."""
    return struct.pack('!QIQQ', address, rkey, swap_or_add, compare)


def feth(kind, level=0):
    """FLUSH extended transport header."""
    return struct.pack('!I', kind | level << 4)


def aeth(syndrome, msn):
    """ACK extended transport header."""
    return struct.pack('!I', syndrome << 24 | msn & 0xffffff)


def deth(qkey, source):
    """Datagram extended transport header."""
    return struct.pack('!II', qkey, source)


def internet_checksum(data):
    """The one's complement sum of RFC 1071, inverted."""
    if len(data) % 2:
        data += b'\0'
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def icrc(ip):
    """The invariant CRC of an IP packet up to where the CRC itself stands (A17.3.3).

    As bytes in the order in which they are sent. Fields that may change on the
    way count as ones; eight bytes of ones stand for the LRH.
    """
    p = bytearray(ip)
    if p[0] >> 4 == 4:
        header = (p[0] & 15) * 4
        p[1] = 0xff                         # type of service
        p[8] = 0xff                         # time to live
        p[10:12] = b'\xff\xff'              # header checksum
    else:
        header = 40
        p[0] |= 0x0f                        # traffic class, flow label
        p[1:4] = b'\xff\xff\xff'
        p[7] = 0xff                         # hop limit
    p[header + 6:header + 8] = b'\xff\xff'  # UDP checksum
    p[header + 8 + 4] = 0xff                # BTH resv8a
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(p)))


def ip_udp(source, destination, sport, body, dport=PORT, ttl=64, tos=0, ident=0,
           udp_length=None):
    """IP and UDP headers before body, checksums right; addresses as text."""
    src, dst = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    length = 8 + len(body)
    udp = struct.pack('!HHHH', sport, dport, udp_length or length, 0)
    if src.version == 4:
        pseudo = src.packed + dst.packed + struct.pack('!BBH', 0, 17, length)
        ip = struct.pack('!BBHHHBBH', 0x45, tos, 20 + length, ident, 0x4000, ttl, 17, 0)
        ip += src.packed + dst.packed
        ip = ip[:10] + struct.pack('!H', internet_checksum(ip)) + ip[12:]
    else:
        pseudo = src.packed + dst.packed + struct.pack('!IHBB', length, 0, 0, 17)
        ip = struct.pack('!IHBB', 6 << 28 | tos << 20, length, 17, ttl)
        ip += src.packed + dst.packed
    checksum = internet_checksum(pseudo + udp + body) or 0xffff
    return ip + udp[:6] + struct.pack('!H', checksum) + body


class Flow:
    """Addresses at both ends; makes Ethernet frames of transport packets."""

    def __init__(self, source_mac, destination_mac, source, destination, sport=49999):
        self.macs = destination_mac + source_mac
        self.source, self.destination, self.sport = source, destination, sport

    def ethernet(self, ip):
        """An Ethernet frame around an IP packet."""
        kind = 0x0800 if ip[0] >> 4 == 4 else 0x86dd
        return self.macs + struct.pack('!H', kind) + ip

    def frame(self, opcode, qpn, psn, headers=b'', payload=b'', ack=False, pkey=0xffff,
              pad=None, tver=0, se=False, mig=True, source=None, icrc_xor=0, fecn=False,
              becn=False, tos=0):
        """One frame. The pad is as needed, unless given; icrc_xor spoils the ICRC."""
        padding = -len(payload) % 4
        flags = se << 7 | mig << 6 | (padding if pad is None else pad) << 4 | tver
        bth = struct.pack('!BBHII', opcode, flags, pkey,
                          fecn << 31 | becn << 30 | qpn, ack << 31 | psn & 0xffffff)
        body = bth + headers + payload + bytes(padding)
        ip = ip_udp(source or self.source, self.destination, self.sport, body + bytes(4),
                    tos=tos)
        crc = struct.unpack('<I', icrc(ip[:-4]))[0] ^ icrc_xor
        ip = ip_udp(source or self.source, self.destination, self.sport,
                    body + struct.pack('<I', crc), tos=tos)
        return self.ethernet(ip)


class Packet:
    """A received frame taken apart; ValueError if it is no RoCEv2 packet."""

    def __init__(self, frame):
        kind, = struct.unpack_from('!H', frame, 12)
        ip = frame[14:]
        if kind == 0x0800 and ip[9] == 17:
            self.header = (ip[0] & 15) * 4
            self.length, self.ident = struct.unpack_from('!HH', ip, 2)
            self.dont_fragment = bool(ip[6] & 0x40)
            self.tos, self.ttl = ip[1], ip[8]
            self.ip_ok = internet_checksum(ip[:self.header]) == 0
            self.source = str(ipaddress.ip_address(ip[12:16]))
            self.destination = str(ipaddress.ip_address(ip[16:20]))
            pseudo = ip[12:20]
        elif kind == 0x86dd and ip[6] == 17:
            self.header = 40
            self.length = struct.unpack_from('!H', ip, 4)[0] + 40
            self.tos, self.ttl = (ip[0] & 15) << 4 | ip[1] >> 4, ip[7]
            self.ip_ok = True
            self.source = str(ipaddress.ip_address(ip[8:24]))
            self.destination = str(ipaddress.ip_address(ip[24:40]))
            pseudo = ip[8:40]
        else:
            raise ValueError('not UDP')
        ip = ip[:self.length]
        self.sport, dport, udp_length, self.checksum = struct.unpack_from(
            '!HHHH', ip, self.header)
        if dport != PORT or udp_length != len(ip) - self.header or udp_length < 8 + 16:
            raise ValueError('not RoCEv2')
        udp = ip[self.header:]
        pseudo += struct.pack('!IHBB', udp_length, 0, 0, 17)
        self.udp_ok = self.checksum == 0 or internet_checksum(pseudo + udp) == 0
        self.icrc = ip[-4:]
        self.icrc_ok = icrc(ip[:-4]) == self.icrc
        bth = udp[8:20]
        self.opcode, flags, self.pkey, qpn, psn = struct.unpack('!BBHII', bth)
        self.service, self.operation = self.opcode & 0xe0, self.opcode & 0x1f
        self.se, self.mig = bool(flags & 0x80), bool(flags & 0x40)
        self.pad, self.tver = flags >> 4 & 3, flags & 15
        self.fecn, self.becn = bool(qpn >> 31), bool(qpn >> 30 & 1)
        self.qpn, self.psn, self.ack = qpn & 0xffffff, psn & 0xffffff, bool(psn >> 31)
        self.reserved = (qpn >> 24 & 0x3f, psn >> 24 & 0x7f)
        rest = udp[20:-4]
        names = list(HEADERS.get(self.operation, []))
        if self.service == UD:
            names.insert(0, 'deth')
        for name in names:
            setattr(self, name, rest[:LENGTHS[name]])
            if len(rest) < LENGTHS[name]:
                raise ValueError(f'too short for {name}')
            rest = rest[LENGTHS[name]:]
        self.padding = rest[len(rest) - self.pad:]
        self.payload = rest[:len(rest) - self.pad]
        if 'aeth' in names:
            word, = struct.unpack('!I', self.aeth)
            self.syndrome, self.msn = word >> 24, word & 0xffffff
        if 'reth' in names:
            self.address, self.rkey, self.dma_length = struct.unpack('!QII', self.reth)
        if 'atomic' in names:
            self.address, self.rkey, self.swap_or_add, self.compare = struct.unpack(
                '!QIQQ', self.atomic)
        if 'atomicack' in names:
            self.original, = struct.unpack('!Q', self.atomicack)
        if 'immdt' in names:
            self.imm, = struct.unpack('!I', self.immdt)
        if 'ieth' in names:
            self.rkey, = struct.unpack('!I', self.ieth)
        if 'deth' in names:
            self.qkey, self.source_qp = struct.unpack('!II', self.deth)
            self.source_qp &= 0xffffff

    def __str__(self):
        if self.opcode == CNP:
            return 'CNP'
        service = {RC: 'RC', UC: 'UC', RD: 'RD', UD: 'UD'}.get(self.service, '?')
        text = f'{service} {NAMES.get(self.operation, hex(self.opcode))} PSN {self.psn:#x}'
        if hasattr(self, 'syndrome'):
            text += f' syndrome {self.syndrome:#04x} MSN {self.msn}'
        if self.payload:
            text += f' {len(self.payload)} bytes'
        return text

    @property
    def is_ack(self):
        """A positive acknowledgement."""
        return self.opcode == RC | ACK and self.syndrome >> 5 == 0

    @property
    def is_nak(self):
        """A negative acknowledgement, RNR among them."""
        return self.opcode == RC | ACK and self.syndrome >> 5 != 0
