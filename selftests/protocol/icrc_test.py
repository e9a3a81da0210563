#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The oracle of the protocol tests tested: known answers, and scapy's opinion."""

import random
import struct
import sys
import zlib

import roce

# A packet with a known answer: IPv4 192.168.0.7 to itself, UC SEND Only.
KNOWN = bytes.fromhex(
    '45010040047840004011' '0000' 'c0a80007c0a80007'
    'c00012b7002c0000'
    '24 60 ffff 00 0000d3 00 cf1710'.replace(' ', '')) + bytes.fromhex(
    '4630818be28935d90e9a95505401be885e500000')


def known_answer():
    """The ICRC of that packet."""
    assert struct.unpack('!I', KNOWN[36:40])[0] == 13571856, 'PSN mistyped'
    got = roce.icrc(KNOWN)
    assert got == bytes.fromhex('78f353f3'), got.hex()


def bit_by_bit():
    """zlib's CRC is the polynomial that the specification names."""
    data = b'\xff' * 8 + bytes(range(200))
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xedb88320 if crc & 1 else 0)
    assert crc ^ 0xffffffff == zlib.crc32(data)


def round_trip():
    """What is made is taken apart to the same."""
    flow = roce.Flow(b'\2\0\0\0\0\1', b'\2\0\0\0\0\2', '10.0.0.1', '10.0.0.2')
    six = roce.Flow(b'\2\0\0\0\0\1', b'\2\0\0\0\0\2', 'fd00::1', 'fd00::2')
    for f in flow, six:
        for n in range(9):
            p = roce.Packet(f.frame(roce.WRITE_ONLY_IMM, 0x123, 0x456,
                                    roce.reth(1 << 40, 77, n) + b'\1\2\3\4', b'x' * n, True))
            assert p.icrc_ok and p.udp_ok and p.ip_ok
            assert (p.qpn, p.psn, p.ack, p.payload) == (0x123, 0x456, True, b'x' * n)
            assert (p.address, p.rkey, p.dma_length, p.imm) == (1 << 40, 77, n, 0x01020304)


def with_scapy():
    """scapy computes the same ICRC over random packets (IPv6: where it can)."""
    import logging
    logging.getLogger('scapy').setLevel(logging.ERROR)
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.packet import Raw
    random.seed(1)
    for i in range(20):
        data = random.randbytes(4 * random.randrange(200))
        bth = BTH(opcode=random.choice([4, 0x24]), psn=random.randrange(1 << 24),
                  dqpn=random.randrange(1 << 24), migreq=1)
        if i % 2:
            ip = IP(src='10.1.2.3', dst='10.4.5.6', tos=random.randrange(256),
                    id=random.randrange(65536), ttl=random.randrange(1, 256))
        else:
            ip = IPv6(src='fd01::2', dst='fd03::4', tc=random.randrange(256),
                      fl=random.randrange(1 << 20), hlim=random.randrange(1, 256))
        raw = bytes(ip / UDP(sport=49152, dport=4791) / bth / Raw(data))
        if raw[-4:] == bytes(4) and isinstance(ip, IPv6):
            continue
        got = roce.icrc(raw[:-4])
        assert got == raw[-4:], f'packet {i}: {got.hex()}, scapy: {raw[-4:].hex()}'


def main():
    """Run as TAP."""
    tests = [known_answer, bit_by_bit, round_trip, with_scapy]
    failed = 0
    print('TAP version 13')
    for i, test in enumerate(tests, 1):
        try:
            test()
            print(f'ok {i} - oracle: {test.__doc__.splitlines()[0]}', flush=True)
        except ImportError as e:
            print(f'ok {i} - oracle: {test.__doc__.splitlines()[0]} # SKIP {e}', flush=True)
        except AssertionError as e:
            failed += 1
            print(f'not ok {i} - oracle: {test.__doc__.splitlines()[0]}\n#   {e}', flush=True)
    print(f'1..{len(tests)}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
