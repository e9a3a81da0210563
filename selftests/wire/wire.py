#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Check a capture of RoCEv2 packets; wire.sh makes it.

usage: wire.py FILE FAMILY NUMBER    NUMBER of test points before these
"""

import logging
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'protocol'))
import roce  # noqa: E402

RESPONSES = {roce.READ_FIRST, roce.READ_MIDDLE, roce.READ_LAST, roce.READ_ONLY, roce.ACK,
             roce.ATOMIC_ACK}
LASTS = {roce.SEND_LAST, roce.SEND_LAST_IMM, roce.SEND_ONLY, roce.SEND_ONLY_IMM,
         roce.WRITE_LAST, roce.WRITE_LAST_IMM, roce.WRITE_ONLY, roce.WRITE_ONLY_IMM,
         roce.SEND_LAST_INV, roce.SEND_ONLY_INV}


class Wrong(Exception):
    """A test point failed; says what was expected and what was seen."""


def frames(path):
    """The frames of a pcap file, in order."""
    with open(path, 'rb') as f:
        magic = f.read(24)[:4]
        order = '<' if magic in (b'\xd4\xc3\xb2\xa1', b'\x4d\x3c\xb2\xa1') else '>'
        while len(header := f.read(16)) == 16:
            _, _, captured, length = struct.unpack(order + '4I', header)
            data = f.read(captured)
            if captured == length:
                yield data


def each(packets, what, condition):
    """Fail unless condition holds for every packet."""
    for i, p in enumerate(packets, 1):
        if not condition(p):
            raise Wrong(f'packet {i}, {p} from {p.source}: {what}')


def enough(packets):
    """every operation of RC, UC and UD is there"""
    seen = {(p.service, p.operation) for p in packets}
    wanted = {(roce.RC, o) for o in list(range(21))}
    wanted |= {(roce.UC, o) for o in range(12)}
    wanted |= {(roce.UD, o) for o in (roce.SEND_ONLY, roce.SEND_ONLY_IMM)}
    missing = sorted(wanted - seen)
    if missing:
        raise Wrong(f'never seen (service, operation): {missing}, in {len(packets)} packets')


def checksums(packets):
    """ICRC, UDP and IP checksums are right"""
    each(packets, 'ICRC wrong', lambda p: p.icrc_ok)
    each(packets, 'UDP checksum wrong', lambda p: p.udp_ok)
    each(packets, 'IP header checksum wrong', lambda p: p.ip_ok)


def headers(packets):
    """reserved fields, version, P_Key, pads"""
    each(packets, 'reserved bits of the BTH', lambda p: p.reserved == (0, 0))
    each(packets, 'transport header version', lambda p: p.tver == 0)
    each(packets, 'P_Key', lambda p: p.pkey == 0xffff)
    each(packets, 'pad', lambda p: p.pad == -len(p.payload) % 4)
    each(packets, 'pad is not zero', lambda p: not any(p.padding))
    each(packets, 'payload above the path MTU', lambda p: len(p.payload) <= 1024)
    each(packets, 'payload of a First or Middle is not the path MTU',
         lambda p: p.operation not in (0, 1, 6, 7, 13, 14) or p.service == roce.UD or
         len(p.payload) == 1024)
    each(packets, 'Last without payload',
         lambda p: p.operation not in (2, 3, 8, 9, 15) or p.payload)
    each(packets, 'solicited event in a packet that is not the last of a message',
         lambda p: not p.se or p.operation in LASTS)
    if packets[0].header == 20:
        each(packets, 'fragmentable (DF is not set)', lambda p: p.dont_fragment)


def flows(packets):
    """The packets by sender and destination queue pair: {(source, service, qpn): [packet]}"""
    found = {}
    for p in packets:
        found.setdefault((p.source, p.service, p.qpn), []).append(p)
    return found


def source_ports(packets):
    """a queue pair keeps its UDP source port"""
    for key, flow in flows(packets).items():
        ports = {p.sport for p in flow}
        if key[1] != roce.UD and len(ports) > 1:
            raise Wrong(f'{key}: source ports {sorted(ports)}')


def psns(packets):
    """PSNs of requests follow each other, but for what is sent again"""
    for key, flow in flows(packets).items():
        expected = None
        for p in flow:
            if p.service == roce.RC and p.operation in RESPONSES:
                continue
            behind = (p.psn - expected & 0xffffff if expected is not None else 0)
            if behind and behind < 0x800000:
                raise Wrong(f'{p} to QP {p.qpn:#x}: expected PSN {expected:#x}')
            if behind and p.service != roce.RC:
                raise Wrong(f'{p} to QP {p.qpn:#x}: again, expected PSN {expected:#x}')
            if not behind:
                spans = 1
                if p.service == roce.RC and p.operation == roce.READ_REQUEST:
                    spans = max(1, -(-p.dma_length // 1024))
                expected = p.psn + spans & 0xffffff


def sequences(packets):
    """First, Middle and Last follow each other"""
    for key, flow in flows(packets).items():
        inside = None
        if key[1] == roce.UD:
            continue
        seen = set()
        for p in flow:
            if p.operation in RESPONSES or p.operation > roce.WRITE_ONLY_IMM:
                continue
            if p.psn in seen:           # sent again: may start anywhere
                inside = None if p.operation in LASTS else p.operation // 6
                continue
            seen.add(p.psn)
            kind, place = p.operation // 6, p.operation % 6
            if (place in (1, 2, 3)) != (inside is not None) or place in (1, 2, 3) and \
                    inside != kind:
                raise Wrong(f'{p} to QP {p.qpn:#x}: inside {inside}')
            inside = kind if place in (0, 1) else None


def asks(packets):
    """the last packet of an RC message asks for an acknowledgement now and then"""
    asked = sum(p.ack for p in packets if p.service == roce.RC and p.operation in LASTS)
    if not asked:
        raise Wrong('never')


def identification(packets):
    """identifications of a flow count up"""
    last = {}
    wrong = total = 0
    for p in packets:
        key = p.source, p.sport
        if key in last:
            total += 1
            wrong += (p.ident - last[key] & 0xffff) != 1
        last[key] = p.ident
    # not a rule of the protocol, but what GRO needs; a flow may share a counter
    if wrong and not any(p.ident for p in packets):
        return
    if wrong > total // 2:
        raise Wrong(f'{wrong} of {total} do not follow their predecessor')


TSHARK = ['infiniband.bth.opcode', 'infiniband.bth.destqp', 'infiniband.bth.psn',
          'infiniband.bth.padcnt', 'infiniband.bth.a', 'infiniband.bth.p_key',
          'infiniband.aeth.syndrome', 'infiniband.aeth.msn', 'infiniband.reth.va',
          'infiniband.reth.dmalen', 'infiniband.invariant.crc', 'infiniband.immdt',
          'udp.checksum.status', 'frame.protocols']


def tshark(path, packets):
    """tshark decodes every packet to the same"""
    command = ['tshark', '-n', '-r', path, '-o', 'udp.check_checksum:TRUE', '-T', 'fields']
    for field in TSHARK:
        command += ['-e', field]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         check=False)
    if out.returncode:
        raise Wrong(f'tshark: exit status {out.returncode}: {out.stderr}')
    lines = out.stdout.splitlines()
    if len(lines) != len(packets):
        raise Wrong(f'tshark shows {len(lines)} packets of {len(packets)}')

    def number(text):
        return int(text.split(',')[0], 0) if text else None

    for i, (line, p) in enumerate(zip(lines, packets), 1):
        got = dict(zip(TSHARK, line.split('\t')))
        wanted = {'opcode': p.opcode, 'destqp': p.qpn, 'psn': p.psn, 'padcnt': p.pad,
                  'p_key': p.pkey}
        for name, value in wanted.items():
            if number(got[f'infiniband.bth.{name}']) != value:
                raise Wrong(f'packet {i}, {p}: tshark says {name} '
                            f'{got["infiniband.bth." + name]}, the oracle {value}')
        if hasattr(p, 'syndrome') and number(got['infiniband.aeth.msn']) not in (None, p.msn):
            raise Wrong(f'packet {i}, {p}: tshark says MSN {got["infiniband.aeth.msn"]}')
        if hasattr(p, 'dma_length') and \
                number(got['infiniband.reth.dmalen']) not in (None, p.dma_length):
            raise Wrong(f'packet {i}, {p}: tshark says DMA length '
                        f'{got["infiniband.reth.dmalen"]}')
        # what tshark takes the random payload for may well be malformed
        if got['frame.protocols'].endswith('infiniband:_ws.malformed'):
            raise Wrong(f'packet {i}, {p}: malformed to tshark')
        if got['udp.checksum.status'] not in ('Good', '1', 'Not present', '3'):
            raise Wrong(f'packet {i}, {p}: UDP checksum {got["udp.checksum.status"]} to tshark')


def scapy(path):
    """scapy finds the same ICRC"""
    logging.getLogger('scapy').setLevel(logging.ERROR)
    from scapy.contrib.roce import BTH
    from scapy.layers.l2 import Ether
    for i, frame in enumerate(frames(path), 1):
        if i > 400:
            break
        decoded = Ether(frame)
        if BTH not in decoded:
            raise Wrong(f'packet {i}: scapy finds no BTH')
        ip = frame[14:]
        icrc = ip[struct.unpack_from('!H', ip, 2)[0] - 4:][:4]
        decoded[BTH].icrc = None
        again = bytes(decoded)[14:][:struct.unpack_from('!H', ip, 2)[0]]
        if again[-4:] != icrc:
            raise Wrong(f'packet {i}: ICRC {icrc.hex()}, scapy computes {again[-4:].hex()}')


def main():
    """Run as part of wire.sh's TAP."""
    path, family, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    failed = 0
    packets = []
    bad = 0
    for frame in frames(path):
        try:
            packets.append(roce.Packet(frame))
        except ValueError:
            bad += 1

    def all_decoded(_):
        """every packet is RoCEv2"""
        if bad or not packets:
            raise Wrong(f'{bad} are not, of {bad + len(packets)}')

    tests = [all_decoded, enough, checksums, headers, source_ports, psns, sequences, asks,
             identification, lambda p: tshark(path, p)]
    tests[-1].__doc__ = tshark.__doc__
    if family == '6':
        tests.remove(identification)
    else:
        tests.append(lambda _: scapy(path))
        tests[-1].__doc__ = scapy.__doc__
    for test in tests:
        number += 1
        try:
            test(packets)
            print(f'ok {number} - IPv{family}: {test.__doc__}', flush=True)
        except ImportError as e:
            print(f'ok {number} - IPv{family}: {test.__doc__} # SKIP {e}', flush=True)
        except Wrong as e:
            failed += 1
            print(f'not ok {number} - IPv{family}: {test.__doc__}\n#   {e}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
