#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Raw packet queue pairs, with packet sockets as the peer.

usage: raw.py DEVICE NAMESPACE NETDEV PEER-NAMESPACE PEER-NETDEV [NAME]

A namespace is "-" for the one that this runs in.
"""

import contextlib
import ctypes
import errno
import gc
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.spec import EthSpec, Ipv4ExtSpec, TcpUdpSpec
from pyverbs.wr import RecvWR, SGE, SendWR
from rss import RssPoints

QPT_RAW, LOCAL_WRITE, WR_SEND = 8, 1, 2
SIGNALED, INLINE, IP_CSUM = 2, 8, 16
SPEC_UDP = 0x41
NORMAL, ALL_DEFAULT, MC_DEFAULT, SNIFFER = range(4)
DONT_TRAP = 2
SUCCESS, LOC_LEN_ERR, FLUSHED = 0, 1, 5
WC_IP_CSUM_OK = 4
SOL_PACKET, PACKET_VNET_HDR = 263, 15
PATIENCE = 20		# seconds until what should come counts as lost
ETH_P_ALL = 3
BUFFER, SLOTS = 10000, 16
GROUP = '01:50:56:19:20:a7'
PEER = '02:99:00:00:00:01'


def mac(text):
    return bytes.fromhex(text.replace(':', ''))


def inet_sum(data):
    data += b'\0' * (len(data) % 2)
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def udp_frame(dst, sport, dport, payload, sums=True):
    """An Ethernet frame with a UDP datagram, 1.1.1.1 to 2.2.2.2."""
    src_ip, dst_ip = bytes([1, 1, 1, 1]), bytes([2, 2, 2, 2])
    udp = struct.pack('!4H', sport, dport, 8 + len(payload), 0) + payload
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(udp), 7, 0x4000, 64, 17, 0) + src_ip + dst_ip
    if sums:
        pseudo = src_ip + dst_ip + struct.pack('!HH', 17, len(udp))
        udp = udp[:6] + struct.pack('!H', inet_sum(pseudo + udp) or 0xffff) + udp[8:]
        ip = ip[:10] + struct.pack('!H', inet_sum(ip)) + ip[12:]
    return mac(dst) + mac(PEER) + b'\x08\x00' + ip + udp


@contextlib.contextmanager
def namespace(name):
    """Within it, sockets are of that namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if name == '-':
        yield
        return
    with open('/proc/thread-self/ns/net') as here, open(f'/run/netns/{name}') as there:
        if libc.setns(there.fileno(), 0):
            raise OSError(ctypes.get_errno(), 'setns')
        try:
            yield
        finally:
            libc.setns(here.fileno(), 0)


def packet_socket(where, netdev):
    with namespace(where):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        s.bind((netdev, ETH_P_ALL))
        return s


class Skip(Exception):
    """A test point that is not possible here."""


def run(*argv):
    """A command's output; it has to succeed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f'{" ".join(argv)}: {done.stdout}{done.stderr}'
    return done.stdout


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


@contextlib.contextmanager
def link(netdev, name='sroce_other'):
    """Within it, another net device has an RDMA device."""
    run('rdma', 'link', 'add', name, 'type', 'sroce', 'netdev', netdev)
    try:
        yield Context(name=name)
    finally:
        subprocess.run(['rdma', 'link', 'delete', name], check=False)


class Raw:
    """A raw packet queue pair with buffers to receive into."""

    def __init__(self, ctx, receives=SLOTS, size=BUFFER, inline=0):
        self.pd = PD(ctx)
        self.cq = CQ(ctx, 4 * SLOTS)
        cap = QPCap(max_send_wr=SLOTS, max_recv_wr=SLOTS, max_inline_data=inline)
        init = QPInitAttr(qp_type=QPT_RAW, scq=self.cq, rcq=self.cq, cap=cap)
        self.qp = QP(self.pd, init, QPAttr(port_num=1))
        self.mr = MR(self.pd, BUFFER * (SLOTS + 1), LOCAL_WRITE)
        self.size = size
        self.flows = []
        for slot in range(receives):
            self.receive(slot)

    def receive(self, slot):
        sge = SGE(self.mr.buf + slot * BUFFER, self.size, self.mr.lkey)
        self.qp.post_recv(RecvWR(wr_id=slot, num_sge=1, sg=[sge]))

    def send(self, frame, flags=0):
        self.mr.write(frame, len(frame), offset=SLOTS * BUFFER)
        sge = SGE(self.mr.buf + SLOTS * BUFFER, len(frame), self.mr.lkey)
        self.qp.post_send(SendWR(wr_id=1000, opcode=WR_SEND, num_sge=1, sg=[sge],
                                 send_flags=SIGNALED | flags))
        return self.poll().status

    def poll(self, patience=PATIENCE):
        until = time.monotonic() + patience
        while time.monotonic() < until:
            n, wcs = self.cq.poll(1)
            if n:
                return wcs[0]
        return None

    def next(self, patience=PATIENCE):
        """The next frame, or None."""
        wc = self.poll(patience)
        if wc is None:
            return None
        assert wc.status == SUCCESS, f'completion with status {wc.status}'
        frame = self.mr.read(wc.byte_len, wc.wr_id * BUFFER)
        self.receive(wc.wr_id)
        return frame

    def rule(self, *specs, flow_type=NORMAL, priority=0, flags=0):
        attr = FlowAttr(num_of_specs=len(specs), flow_type=flow_type, priority=priority,
                        flags=flags, port=1)
        attr.specs.extend(specs)
        flow = Flow(self.qp, attr)
        self.flows.append(flow)
        return flow

    def close(self):
        for flow in self.flows:
            flow.close()
        for thing in (self.qp, self.mr, self.cq, self.pd):
            thing.close()


class Test(RssPoints):
    """Both ends, and the test points: methods whose names begin with "t_"."""

    def __init__(self, device, where, netdev, peer_where, peer_netdev):
        self.device, self.peer_where, self.peer_netdev = device, peer_where, peer_netdev
        self.ctx = Context(name=device)
        self.peer = packet_socket(peer_where, peer_netdev)
        self.mtu = int(subprocess.run(
            ([] if where == '-' else ['ip', 'netns', 'exec', where]) +
            ['cat', f'/sys/class/net/{netdev}/mtu'], check=True, capture_output=True).stdout)
        self.open = []

    def raw(self, **kwargs):
        self.open.append(Raw(self.ctx, **kwargs))
        return self.open[-1]

    def clean(self):
        while self.open:
            self.open.pop().close()

    def seen(self, frame, patience=PATIENCE):
        """Does the peer see this frame, byte for byte?"""
        until = time.monotonic() + patience
        while time.monotonic() < until:
            self.peer.settimeout(max(until - time.monotonic(), 0.001))
            try:
                if self.peer.recv(65536) == frame:
                    return True
            except TimeoutError:
                break
        return False

    def t_frames_out(self):
        """frames of every length go out as posted"""
        raw = self.raw(inline=64)
        for length in (14, 15, 60, 61, 1000, 1514, self.mtu + 14):
            frame = mac(PEER) + mac(GROUP) + b'\x88\xb5' + os.urandom(length - 14)
            assert raw.send(frame) == SUCCESS, f'{length} bytes'
            assert self.seen(frame), f'{length} bytes did not arrive'
        frame = mac(PEER) + mac(GROUP) + b'\x88\xb5' + b'inline'
        assert raw.send(frame, INLINE) == SUCCESS
        assert self.seen(frame), 'inline data did not arrive'

    def t_lengths(self):
        """frames that are none are refused"""
        for length in (0, 13, self.mtu + 15, self.mtu + 18, self.mtu + 19):
            status = self.raw().send(mac(PEER) + b'\0' * (length - 6) if length > 6 else b'')
            assert status == LOC_LEN_ERR, f'{length} bytes: status {status}'
        tagged = mac(PEER) + mac(GROUP) + b'\x81\x00\x00\x05\x88\xb5' + b'x' * self.mtu
        assert self.raw().send(tagged) == SUCCESS, 'with a VLAN tag'

    def t_checksums(self):
        """checksums are computed on request"""
        raw = self.raw()
        for payload in (b'', b'a', os.urandom(999)):
            assert raw.send(udp_frame(PEER, 5, 6, payload, sums=False), IP_CSUM) == SUCCESS
            assert self.seen(udp_frame(PEER, 5, 6, payload)), f'{len(payload)} bytes'

    def t_no_rule(self):
        """without a rule nothing comes, and the stack gets all"""
        raw = self.raw()
        self.peer.send(udp_frame(GROUP, 1, 2, b'nothing'))
        assert raw.next(1) is None

    def t_frames_in(self):
        """frames come in as they were sent, tags and all"""
        raw = self.raw()
        raw.rule(EthSpec(dst_mac=GROUP))
        frames = [udp_frame(GROUP, 1, 2, os.urandom(n)) for n in (0, 1, 18, 1000, self.mtu - 28)]
        frames.append(mac(GROUP) + mac(PEER) + b'\x81\x00\x20\x05' + b'\x88\xb5' + b'tagged' * 9)
        for frame in frames:
            self.peer.send(frame)
            got = raw.next()
            assert got == frame, f'{len(frame)} bytes: got {got and len(got)}'
        self.peer.send(udp_frame('01:50:56:19:20:a8', 1, 2, b'of another group'))
        assert raw.next(1) is None

    def t_specs(self):
        """addresses, protocols and ports choose"""
        raw = self.raw()
        raw.rule(EthSpec(dst_mac=GROUP), Ipv4ExtSpec(dst_ip='2.2.2.2'),
                 TcpUdpSpec(SPEC_UDP, dst_port=7))
        raw.rule(EthSpec(dst_mac=GROUP), TcpUdpSpec(SPEC_UDP, src_port=9))
        for sport, dport, wanted in ((1, 7, True), (1, 8, False), (9, 8, True), (7, 9, False)):
            frame = udp_frame(GROUP, sport, dport, b'ports')
            self.peer.send(frame)
            assert (raw.next(PATIENCE if wanted else 1) == frame) == wanted, f'{sport} to {dport}'

    def t_priorities(self):
        """the lowest priority is first; equal rules all get the frame"""
        first, second, same = self.raw(), self.raw(), self.raw()
        second.rule(EthSpec(dst_mac=GROUP), priority=5)
        same.rule(EthSpec(dst_mac=GROUP), priority=5)
        frame = udp_frame(GROUP, 1, 2, b'to both')
        self.peer.send(frame)
        assert second.next() == frame and same.next() == frame
        flow = first.rule(EthSpec(dst_mac=GROUP), priority=4)
        self.peer.send(frame)
        assert first.next() == frame
        assert second.next(1) is None and same.next(0.1) is None
        flow.close()
        first.flows.clear()
        self.peer.send(frame)
        assert second.next() == frame and same.next() == frame

    def t_sniffer(self):
        """a sniffer gets copies"""
        sniffer, owner = self.raw(), self.raw()
        sniffer.rule(flow_type=SNIFFER)
        owner.rule(EthSpec(dst_mac=GROUP))
        frame = udp_frame(GROUP, 1, 2, b'to both')
        self.peer.send(frame)
        assert owner.next() == frame
        got = sniffer.next()
        while got is not None and got != frame:		# there is more on the net
            got = sniffer.next()
        assert got == frame

    def t_defaults(self):
        """default rules get what the stack would not take, and only that"""
        raw = self.raw()
        raw.rule(flow_type=ALL_DEFAULT)
        for dst in (PEER, GROUP):
            frame = udp_frame(dst, 1, 2, b'left over')
            self.peer.send(frame)
            got = raw.next()
            while got is not None and got != frame:
                got = raw.next()
            assert got == frame, dst
        run = [] if self.peer_where == '-' else ['ip', 'netns', 'exec', self.peer_where]
        ping = subprocess.run([*run, 'ping', '-c', '1', '-W', '20', '10.77.0.1'],
                              capture_output=True, check=False)
        assert ping.returncode == 0, 'the stack gets nothing any more'

    def t_defaults_beside_rules(self):
        """an address that only rules have added is none of the stack's"""
        default, owner = self.raw(), self.raw()
        default.rule(flow_type=ALL_DEFAULT)
        for dst in (PEER, GROUP):
            owner.rule(EthSpec(dst_mac=dst), TcpUdpSpec(SPEC_UDP, dst_port=7))
            for port, wanted in ((7, owner), (8, default)):
                frame = udp_frame(dst, 1, port, b'left over')
                self.peer.send(frame)
                got = wanted.next()
                while got is not None and got != frame:
                    got = wanted.next()
                assert got == frame, f'{dst}, port {port}'

    def t_masks(self):
        """what is outside of a specification's mask says nothing"""
        raw = self.raw()
        raw.rule(Ipv4ExtSpec(dst_ip='2.2.2.2'),
                 EthSpec(dst_mac=GROUP, ether_type=0xffff, ether_type_mask=0))
        frame = udp_frame(GROUP, 1, 2, b'IPv4')
        self.peer.send(frame)
        assert raw.next() == frame

    def t_csum_ok(self):
        """IBV_WC_IP_CSUM_OK if the sums were checked, and only then"""
        raw = self.raw()
        raw.rule(EthSpec(dst_mac=GROUP))
        good = udp_frame(GROUP, 1, 2, b'sums')
        bad = good[:24] + bytes([good[24] ^ 1]) + good[25:]	# of the IPv4 header
        pseudo = bytes([1, 1, 1, 1, 2, 2, 2, 2, 0, 17, 0, 12])
        partial = struct.pack('=BBHHHH', 1, 0, 0, 0, 34, 6)	# UDP's is still to be made
        with contextlib.closing(packet_socket(self.peer_where, self.peer_netdev)) as peer:
            peer.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            for what, header, frame, flag in (
                    ('not checked', bytes(10), good, 0), ('right', partial, good, WC_IP_CSUM_OK),
                    ('a wrong IPv4 header', partial, bad, 0)):
                sent = frame
                if header == partial:
                    sent = frame[:40] + struct.pack('!H', ~inet_sum(pseudo) & 0xffff) + frame[42:]
                peer.send(header + sent)
                wc = raw.poll()
                assert wc and wc.status == SUCCESS, what
                got = raw.mr.read(wc.byte_len, wc.wr_id * BUFFER)
                assert got == frame, f'{what}: {got.hex()} is not {frame.hex()}'
                assert wc.wc_flags & WC_IP_CSUM_OK == flag, f'{what}: flags {wc.wc_flags}'

    def t_sctp(self):
        """SCTP comes with its own checksum"""
        raw = self.raw()
        raw.rule(Ipv4ExtSpec(dst_ip='10.77.0.1', proto=132))
        with namespace(self.peer_where):
            try:
                s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP)
            except OSError as error:
                raise Skip('no SCTP in this kernel') from error
        s.setblocking(False)
        with contextlib.closing(s):
            with contextlib.suppress(BlockingIOError):
                s.connect(('10.77.0.1', 9))
            frame = raw.next()
        assert frame, 'there is no INIT'
        sctp = frame[34:]
        want = struct.pack('<I', crc32c(sctp[:8] + bytes(4) + sctp[12:]))
        assert sctp[8:12] == want, f'{sctp[8:12].hex()} is not {want.hex()}'

    def t_loopback_device(self):
        """over the loopback device a frame comes once"""
        run('ip', 'link', 'set', 'lo', 'up')
        with link('lo') as ctx:
            raw = Raw(ctx)
            try:
                raw.rule(EthSpec(dst_mac=GROUP))
                for dst in (GROUP, '00:00:00:00:00:00'):
                    if dst != GROUP:
                        raw.rule(EthSpec(dst_mac=dst), TcpUdpSpec(SPEC_UDP, dst_port=7))
                    frame = udp_frame(dst, 1, 7, b'round')
                    assert raw.poll(0) is None
                    raw.mr.write(frame, len(frame), offset=SLOTS * BUFFER)
                    sge = SGE(raw.mr.buf + SLOTS * BUFFER, len(frame), raw.mr.lkey)
                    raw.qp.post_send(SendWR(wr_id=1000, opcode=WR_SEND, num_sge=1, sg=[sge],
                                            send_flags=SIGNALED))
                    done = [raw.poll(), raw.poll()]
                    assert all(done), 'the frame did not come'
                    assert sorted(wc.wr_id == 1000 for wc in done) == [False, True]
                    again = raw.poll(1)
                    assert again is None, 'the frame came twice'
            finally:
                raw.close()
                ctx.close()

    def t_moved(self):
        """rules keep their addresses when the net device changes its namespace"""
        run('ip', 'link', 'add', 'sr_move', 'up', 'type', 'dummy')
        run('ip', 'netns', 'add', 'sr_moved')
        try:
            with link('sr_move') as ctx:
                raw = Raw(ctx)
                raw.rule(EthSpec(dst_mac=GROUP))
                raw.rule(EthSpec(dst_mac=PEER))
                raw.rule(flow_type=SNIFFER)

                def addresses(*inside):
                    return (run(*inside, 'ip', 'maddress', 'show', 'dev', 'sr_move').count(GROUP),
                            run(*inside, 'bridge', 'fdb', 'show', 'dev', 'sr_move').count(PEER),
                            'promiscuity 0' not in run(*inside, 'ip', '-d', 'link', 'show',
                                                       'dev', 'sr_move'))
                inside = ('ip', 'netns', 'exec', 'sr_moved')
                assert addresses() == (1, 1, True), addresses()
                run('ip', 'link', 'set', 'sr_move', 'netns', 'sr_moved')
                assert addresses(*inside) == (1, 1, True), addresses(*inside)
                run(*inside, 'ip', 'link', 'set', 'sr_move', 'netns', '1')
                run('ip', 'link', 'set', 'sr_move', 'up')
                assert addresses() == (1, 1, True), addresses()
                raw.close()
                ctx.close()
                assert addresses() == (0, 0, False), addresses()
        finally:
            subprocess.run(['ip', 'netns', 'delete', 'sr_moved'], check=False)
            subprocess.run(['ip', 'link', 'delete', 'sr_move'], check=False)

    def t_too_long(self):
        """a frame that does not fit is an error"""
        raw = self.raw(size=100)
        raw.rule(EthSpec(dst_mac=GROUP))
        self.peer.send(udp_frame(GROUP, 1, 2, b'x' * 200))
        wc = raw.poll()
        assert wc and wc.status == LOC_LEN_ERR
        wc = raw.poll()
        assert wc and wc.status == FLUSHED

    def t_refused(self):
        """rules that make no sense are refused"""
        raw = self.raw()
        for what, number, specs in (
                ('IPv4 in IPv6', errno.EINVAL,
                 [EthSpec(dst_mac=GROUP, ether_type=0x86dd), Ipv4ExtSpec(dst_ip='2.2.2.2')]),
                ('inner headers', errno.EOPNOTSUPP, [EthSpec(dst_mac=GROUP, is_inner=1)])):
            try:
                raw.rule(*specs)
            except PyverbsRDMAError as error:
                assert error.error_code == number, f'{what}: errno {error.error_code}'
            else:
                raise AssertionError(what)

    def t_privilege(self):
        """without CAP_NET_RAW there is none"""
        code = ('import sys, os\n'
                'sys.path.insert(0, sys.argv[1])\n'
                'from raw import Context, Raw, PyverbsRDMAError\n'
                'try:\n    Raw(Context(name=sys.argv[2]))\n'
                'except PyverbsRDMAError as e:\n    sys.exit(e.error_code)\n')
        argv = ['/usr/bin/python3', '-c', code, os.path.dirname(os.path.abspath(__file__)),
                self.device]
        with_it = subprocess.run(argv, check=False).returncode
        without = subprocess.run(['setpriv', '--bounding-set=-net_raw', '--inh-caps=-net_raw',
                                  *argv], check=False).returncode
        assert (with_it, without) == (0, errno.EPERM), f'{with_it} with it, {without} without'

    def t_under_traffic(self):
        """queue pairs and rules come and go under traffic"""
        stop = threading.Event()

        def flood():
            frame = udp_frame(GROUP, 1, 2, b'x' * 1000)
            while not stop.is_set():
                try:
                    self.peer.send(frame)
                except OSError:
                    pass

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            for _ in range(30):
                raw = self.raw()
                raw.rule(EthSpec(dst_mac=GROUP))
                assert raw.next() is not None
                self.clean()
        finally:
            stop.set()
            thread.join()


def main():
    only = sys.argv[6] if len(sys.argv) > 6 else ''
    test = Test(*sys.argv[1:6])
    points = [getattr(test, n) for n in (*vars(Test), *vars(RssPoints)) if n.startswith('t_')]
    points = [p for p in points if only in p.__doc__]
    failed = 0
    print('TAP version 13', flush=True)
    for number, point in enumerate(points, 1):
        try:
            point()
            print(f'ok {number} - {point.__doc__}', flush=True)
        except Skip as reason:
            print(f'ok {number} - {point.__doc__} # SKIP {reason}', flush=True)
        except Exception:		# pylint: disable=broad-except
            failed += 1
            print(f'not ok {number} - {point.__doc__}')
            for line in traceback.format_exc().splitlines():
                print(f'#   {line}', flush=True)
        test.clean()
    print(f'1..{len(points)}')
    return 1 if failed else 0


if __name__ == '__main__':
    gc.disable()	# pyverbs does not survive that objects go in any order
    STATUS = main()
    sys.stdout.flush()
    os._exit(STATUS)
