#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Move data between two RDS sockets over RDMA, and look at every byte.

usage: rds.py messages A B          messages of all sizes, both ways
       rds.py stream A B FILE       the same, again and again, until FILE exists
       rds.py rdma A B              RDMA WRITE and READ of registered memory, both ways

A and B are IPv4 addresses of this machine. The exit status is 0 if all arrived, once
and in order.
"""

import ctypes
import mmap
import os
import random
import socket
import struct
import sys

AF_RDS = 21
SOL_RDS = 276
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
RDS_FREE_MR, SO_RDS_TRANSPORT = 3, 8
RDS_TRANS_IB = 0
RDS_CMSG_RDMA_ARGS, RDS_CMSG_RDMA_DEST, RDS_CMSG_RDMA_MAP, RDS_CMSG_RDMA_STATUS = 1, 2, 3, 4
RDS_RDMA_READWRITE, RDS_RDMA_NOTIFY_ME = 1, 0x20
PORT = 7471
SIZES = [0, 1, 3, 100, 1023, 4095, 4096, 4097, 8192, 16000, 65536, 65537, 262144, 999999]
MEMORY = 1 << 20


class Wrong(Exception):
    """What was received is not what was sent."""


def pattern(seed, size):
    """Bytes that tell one message from any other."""
    return random.Random(seed).randbytes(size)


def rds_socket(address):
    """A socket that uses RDMA, or none at all."""
    s = socket.socket(AF_RDS, socket.SOCK_SEQPACKET)
    s.setsockopt(SOL_RDS, SO_RDS_TRANSPORT, struct.pack('i', RDS_TRANS_IB))
    for option in SO_SNDBUFFORCE, SO_RCVBUFFORCE:
        s.setsockopt(socket.SOL_SOCKET, option, 8 << 20)
    s.bind((address, PORT))
    transport, = struct.unpack('i', s.getsockopt(SOL_RDS, SO_RDS_TRANSPORT, 4))
    if transport != RDS_TRANS_IB:
        raise Wrong(f'{address} has transport {transport}')
    return s


def expect(s, source, data):
    """The next message must be this one."""
    got, _, _, (address, port) = s.recvmsg(MEMORY + 1)
    if (address, port) != (source, PORT):
        raise Wrong(f'from {address}:{port}, expected {source}')
    if got != data:
        raise Wrong(f'{len(got)} bytes, expected {len(data)}, or not the same')


def exchange(ends, round_):
    """A message of each size both ways, all sent before any is received."""
    for n, size in enumerate(SIZES):
        for i in 0, 1:
            ends[i][0].sendto(pattern(f'{round_} {n} {i}', size), (ends[1 - i][1], PORT))
    for n, size in enumerate(SIZES):
        for i in 0, 1:
            expect(ends[1 - i][0], ends[i][1], pattern(f'{round_} {n} {i}', size))


def messages(ends):
    """Ten rounds."""
    for r in range(10):
        exchange(ends, r)
    print(f'{20 * len(SIZES)} messages, {20 * sum(SIZES)} bytes')


def stream(ends, end):
    """Rounds until the file is there, and one more."""
    rounds = 0
    while True:
        last = os.path.exists(end)
        exchange(ends, rounds)
        rounds += 1
        if last:
            break
    print(f'{rounds} rounds')


class Region:
    """Memory that the other end may access: it is told a cookie. Made for a connection."""

    def __init__(self, owner, user, size):
        (self.socket, source), (other, to) = owner, user
        self.map = mmap.mmap(-1, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        args = struct.pack('=QQQQ', address, size, 0, RDS_RDMA_READWRITE)
        self.socket.sendmsg([b'region'], [(SOL_RDS, RDS_CMSG_RDMA_MAP, args)], 0, (to, PORT))
        data, ancillary, _, (got, _) = other.recvmsg(MEMORY, 64)
        if data != b'region' or got != source:
            raise Wrong('not the message with the cookie')
        self.cookie, = (struct.unpack('=Q', data)[0] for level, kind, data in ancillary
                        if (level, kind) == (SOL_RDS, RDS_CMSG_RDMA_DEST))

    def free(self):
        """Take the cookie back."""
        self.socket.setsockopt(SOL_RDS, RDS_FREE_MR, struct.pack('=QQ', self.cookie, 0))


def rdma(s, to, cookie, offset, local, size, write):
    """Carry out an RDMA operation and wait for the word that it is done."""
    token = random.getrandbits(32)
    vector = ctypes.create_string_buffer(struct.pack('=QQ', local, size), 16)
    args = struct.pack('=QQQQQQQ', cookie, offset, size, ctypes.addressof(vector), 1,
                       RDS_RDMA_NOTIFY_ME | (RDS_RDMA_READWRITE if write else 0), token)
    s.sendmsg([b'rdma'], [(SOL_RDS, RDS_CMSG_RDMA_ARGS, args)], 0, (to, PORT))
    while True:
        _, ancillary, _, _ = s.recvmsg(0, 64)
        for level, kind, data in ancillary:
            if (level, kind) == (SOL_RDS, RDS_CMSG_RDMA_STATUS):
                got, status = struct.unpack('=Qi', data[:12])
                if got == token:
                    if status:
                        raise Wrong(f'RDMA ended with status {status}')
                    return


def rdma_both(ends):
    """Write to and read from the other end's memory, at odd places and of odd sizes."""
    exchange(ends, 0)       # regions need connections
    for i in 0, 1:
        (here, _), (there, to) = ends[i], ends[1 - i]
        remote = Region(ends[1 - i], ends[i], MEMORY)
        buffer = mmap.mmap(-1, MEMORY)
        local = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        for n, (offset, at, size) in enumerate([
                (0, 0, 4096), (1, 0, 1), (5, 3, 8000), (4095, 4097, 65537),
                (123456, 0, 500000), (0, 0, MEMORY)]):
            expected = bytearray(remote.map[:])
            expected[offset:offset + size] = buffer[at:at + size] = pattern(n, size)
            rdma(here, to, remote.cookie, offset, local + at, size, True)
            if remote.map[:] != expected:
                raise Wrong(f'RDMA WRITE of {size} bytes to {offset} from {at}')
            expect(there, ends[i][1], b'rdma')
            remote.map[offset:offset + size] = data = pattern(100 + n, size)
            expected = bytearray(buffer[:])
            expected[at:at + size] = data
            rdma(here, to, remote.cookie, offset, local + at, size, False)
            if buffer[:] != expected:
                raise Wrong(f'RDMA READ of {size} bytes from {offset} to {at}')
            expect(there, ends[i][1], b'rdma')
        remote.free()
    print('24 operations')


def main():
    """Parse the command line."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    what, *addresses = sys.argv[1:4]
    ends = [(rds_socket(a), a) for a in addresses]
    if what == 'messages':
        messages(ends)
    elif what == 'stream':
        stream(ends, sys.argv[4])
    elif what == 'rdma':
        rdma_both(ends)
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
