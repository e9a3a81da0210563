#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A wire between two tun or tap devices: makes them, and carries what is sent.

usage: relay.py tun|tap NAME NAME
"""

import fcntl
import os
import select
import struct
import sys

TUNSETIFF = 0x400454ca
IFF_TUN, IFF_TAP, IFF_NO_PI = 1, 2, 0x1000


def device(mode, name):
    """Make a device; it lives as long as the file is open."""
    fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack(
        '16sH22x', name.encode(), (IFF_TUN if mode == 'tun' else IFF_TAP) | IFF_NO_PI))
    return fd


def main():
    """Carry frames until the process is ended."""
    mode, *names = sys.argv[1:]
    a, b = (device(mode, name) for name in names)
    other = {a: b, b: a}
    print('ready', flush=True)
    while True:
        for fd in select.select([a, b], [], [])[0]:
            frame = os.read(fd, 65536)      # fails when the device is deleted
            try:
                os.write(other[fd], frame)
            except OSError:     # the other one is down: lost, as on a wire
                pass


if __name__ == '__main__':
    main()
