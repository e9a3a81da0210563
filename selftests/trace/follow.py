#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Follow messages from end to end in the text of a trace of sroce's events.

usage: follow.py TRACE --from DEVICE --to DEVICE --messages N --length BYTES --mtu BYTES
                       [--psn HEX] [--datagrams]
       follow.py TRACE --seen REGEX...
       follow.py TRACE --never REGEX...

The first form says of each message when it was requested, sent, received,
acknowledged and completed, and fails where a step is missing, comes before the one
it follows from, or contradicts the sizes that are given.
"""

import argparse
import re
import sys

EVENT = re.compile(r'\s(\d+\.\d+): (sroce_\w+): (.*)$')
FIELD = re.compile(r'(\w+)=(\S+)')
PSNS = 1 << 24


class Event:
    """One line of the trace."""

    def __init__(self, time, name, text):
        self.time = float(time)
        self.name = name
        self.text = text
        self.fields = {k: self.number(v) for k, v in FIELD.findall(text)}

    @staticmethod
    def number(text):
        """A field's value, a number if it is one."""
        try:
            return int(text, 0)
        except ValueError:
            return text

    def __getattr__(self, name):
        return self.fields[name]


def events_of(path):
    """All of sroce's events in the trace, in their order."""
    with open(path, encoding='utf-8') as file:
        found = [Event(*m.groups()) for m in map(EVENT.search, file) if m]
    return sorted(found, key=lambda e: e.time)


def later(psn, than):
    """Is this PSN the same or a later one, modulo 2^24?"""
    return (psn - than) % PSNS < PSNS // 2


class Follower:
    """Looks for the steps of messages from one device to another."""

    def __init__(self, events, args):
        self.args = args
        self.here = [e for e in events if e.device == getattr(args, 'from')]
        self.there = [e for e in events if e.device == args.to]

    def first(self, what, events, name, since, test):
        """The first such event; since: not before this time."""
        for e in events:
            if e.name in name and e.time >= since and test(e):
                return e
        sys.exit(f'{what}: no {" or ".join(name)} after {since:.6f}')

    def packet(self, what, psn, request):
        """A packet of a request, sent and received: when it arrived first."""
        qpn = request.qpn
        sent = self.first(what, self.here, ('sroce_send',), request.time,
                          lambda e: e.qpn == qpn and e.psn == psn)
        got = self.first(what, self.there, ('sroce_receive',), sent.time,
                         lambda e: e.psn == psn and e.qpn == sent.peer and
                         (e.peer == qpn))
        if got.opcode != sent.opcode or got.length != sent.length:
            sys.exit(f'{what}: sent as {sent.text}, received as {got.text}')
        return sent, got

    def message(self, number, request):
        """Follow one; prints its steps."""
        args = self.args
        what = f'message {number} (wr_id {request.wr_id:#x}, PSN {request.psn})'
        packets = -(-args.length // args.mtu)
        if request.length != args.length or request.packets != packets:
            sys.exit(f'{what}: {request.text}: {args.length} bytes in {packets} packets expected')
        steps = [self.packet(what, (request.psn + i) % PSNS, request) for i in range(packets)]
        lengths = [sent.length for sent, _ in steps]
        if sum(lengths) != args.length:
            sys.exit(f'{what}: its packets have {sum(lengths)} bytes')
        last = (request.psn + packets - 1) % PSNS
        arrived = max(got.time for _, got in steps)
        peer = steps[0][0].peer
        length = args.length + (40 if args.datagrams else 0)
        received = self.first(what, self.there, ('sroce_completion',), arrived,
                              lambda e: e.qpn == peer and ' receive ' in e.text)
        if received.length != length or received.status != 'SUCCESS':
            sys.exit(f'{what}: completed at the receiver as {received.text}')
        self.there.remove(received)
        since = request.time
        if not args.datagrams:
            since = self.first(what, self.here, ('sroce_ack',), arrived,
                               lambda e: e.qpn == request.qpn and ' received ' in e.text and
                               later(e.psn, last)).time
        done = self.first(what, self.here, ('sroce_completion',), since,
                          lambda e: e.qpn == request.qpn and ' send ' in e.text and
                          e.wr_id == request.wr_id)
        if done.status != 'SUCCESS':
            sys.exit(f'{what}: completed at the sender as {done.text}')
        self.here.remove(done)
        print(f'{what}: requested {request.time:.6f}, sent {steps[0][0].time:.6f}, '
              f'received {arrived:.6f}, completed there {received.time:.6f}, '
              f'here {done.time:.6f}')

    def run(self):
        """Follow all."""
        requests = [e for e in self.here if e.name == 'sroce_request']
        if len(requests) != self.args.messages:
            sys.exit(f'{len(requests)} requests, {self.args.messages} expected')
        if self.args.psn is not None and requests[0].psn != int(self.args.psn, 16):
            sys.exit(f'begins with PSN {requests[0].psn:#x}, the program says {self.args.psn}')
        for number, request in enumerate(requests, 1):
            self.message(number, request)


def main():
    """Command line."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('trace')
    parser.add_argument('--from')
    parser.add_argument('--to')
    parser.add_argument('--messages', type=int)
    parser.add_argument('--length', type=int)
    parser.add_argument('--mtu', type=int)
    parser.add_argument('--psn')
    parser.add_argument('--datagrams', action='store_true')
    parser.add_argument('--seen', nargs='+', default=[])
    parser.add_argument('--never', nargs='+', default=[])
    args = parser.parse_args()
    events = events_of(args.trace)
    lines = [f'{e.name}: {e.text}' for e in events]
    for pattern in args.seen:
        count = sum(bool(re.search(pattern, line)) for line in lines)
        print(f'{count} of {pattern}')
        if not count:
            sys.exit(f'never seen: {pattern}')
    for pattern in args.never:
        found = [line for line in lines if re.search(pattern, line)]
        if found:
            sys.exit(f'{len(found)} of {pattern}, the first: {found[0]}')
    if getattr(args, 'from'):
        Follower(events, args).run()


if __name__ == '__main__':
    main()
