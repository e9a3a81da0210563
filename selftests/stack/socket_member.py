#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A UDP socket on the RoCE port that is a member of a group, as rdma_rxe's is.

usage: socket_member.py GROUP ADDRESS    ADDRESS: of the net device
"""

import socket
import sys

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 4791))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
             socket.inet_aton(sys.argv[1]) + socket.inet_aton(sys.argv[2]))
print('member', flush=True)
while True:
    print('message', len(s.recv(65536)), flush=True)
