#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Run the protocol test points; protocol.sh sets up what it needs."""

import argparse
import random
import sys
import traceback

import bench
import congestion  # noqa: F401: its test points
import datagram  # noqa: F401
import recovery  # noqa: F401
import requester  # noqa: F401
import responder  # noqa: F401


def mac(text):
    """A MAC address as bytes."""
    return bytes.fromhex(text.replace(':', ''))


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--agent', required=True, help='the program')
    parser.add_argument('--device', required=True)
    parser.add_argument('--namespace', default='', help='of the device')
    parser.add_argument('--gids', type=int, nargs=2, required=True, help='IPv4, IPv6')
    parser.add_argument('--addresses', nargs=2, required=True, help='of the device')
    parser.add_argument('--peers', nargs=2, required=True, help='addresses to play')
    parser.add_argument('--siblings', nargs=2, required=True, help='addresses of others')
    parser.add_argument('--interface', required=True, help='the far end of the veth pair')
    parser.add_argument('--wire-namespace', default='')
    parser.add_argument('--macs', nargs=2, required=True, help='of the device, of the far end')
    parser.add_argument('--only', default='', help='names that contain this')
    args = parser.parse_args()

    random.seed(1)
    benches = {}
    for i, family in enumerate((4, 6)):
        agent = bench.Agent(args.agent, args.namespace, args.device, args.gids[i])
        wire = bench.Wire(args.interface, args.wire_namespace,
                          *(mac(m) for m in args.macs))
        benches[family] = bench.Bench(agent, wire, args.addresses[i], args.peers[i],
                                      args.siblings[i])
    number = failed = 0
    for name, families, body in bench.CASES:
        for family in families:
            title = f'{name} (IPv{family})' if len(families) > 1 else name
            if args.only not in title:
                continue
            number += 1
            try:
                body(benches[family])
                benches[family].clear()
                result, text = 'ok', ''
            except bench.Wrong as e:
                result, text = 'not ok', str(e)
            except bench.Skipped as e:
                result, text = 'skip', str(e)
            except Exception:           # a bug in the test: say where
                result, text = 'not ok', traceback.format_exc()
            if result == 'skip':
                print(f'ok {number} - {title} # SKIP {text}', flush=True)
            else:
                failed += result != 'ok'
                print(f'{result} {number} - {title}', flush=True)
                for line in text.splitlines():
                    print(f'#   {line}', flush=True)
            if text:
                try:
                    benches[family].clear()
                except bench.Wrong as e:
                    print(f'#   clean-up: {e}', flush=True)
                    benches[family].qps.clear()
    print(f'1..{number}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
