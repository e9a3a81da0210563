#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Senders, each in a net namespace of its own, into one bottleneck; see congestion.sh.

A bridge joins them with the receiver; the bottleneck is the queueing discipline of the
bridge's port there. What is sent are single packets, as on a wire.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

HANG = 300
CONVERGE, MEASURE = 6, 10   # seconds
EVERY = 0.25                # seconds between samples
ATTEMPTS = 5                # to connect

# name, senders, the bottleneck's queue, the senders' queueing discipline
CASES = [
    ('2 senders, RED', 2, 'red', None),
    ('8 senders, RED', 8, 'red', None),
    ('2 senders paced by fq, RED', 2, 'red', 'fq'),
    ('2 senders, CoDel', 2, 'codel', None),
    ('2 senders, FQ-CoDel', 2, 'fq_codel', None),
    ('8 senders, FQ-CoDel', 8, 'fq_codel', None),
]


class Bottleneck:
    """How fast it is, and where its queue is to be."""

    def __init__(self, mbit):
        self.mbit = mbit
        # bytes: marking begins here, at three times that all are marked, and more is dropped
        self.min = max(40000, mbit * 625)
        self.max, self.limit = 3 * self.min, 20 * self.min
        # timers may be late by what this takes, and then it still is as fast
        self.burst = self.min

    def discipline(self, name):
        """tc's words for it."""
        if name == 'red':
            return (f'red limit {self.limit} min {self.min} max {self.max} avpkt 4000'
                    f' burst {self.min * 5 // 12000 + 1} probability 0.1'
                    f' bandwidth {self.mbit}mbit ecn').split()
        # 5 ms is the target
        return f'{name} limit 1000 target 5ms interval 100ms ecn'.split()

    def most(self, name):
        """How much may be in the queue on the average, bytes."""
        return self.max if name == 'red' else max(self.mbit * 1e6 / 8 * 0.025, 2 * self.min)


def run(*command, **options):
    """Run a command that must succeed; its output."""
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options).stdout


def within(namespace, *command):
    """A command in a namespace."""
    return ['ip', 'netns', 'exec', namespace, *command]


def until(what, condition):
    """Wait for something that has to come."""
    end = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f'no {what}')
        time.sleep(0.05)


class Host:
    """A namespace with an interface at the bridge and an RDMA device."""

    def __init__(self, number, args):
        self.namespace, self.port = f'sr_c{number}', f'sr_p{number}'
        self.device, self.address = f'{args.provider}_c{number}', f'10.77.20.{number + 1}'
        self.interface = 'sr_i'
        run('ip', 'netns', 'add', self.namespace)
        run('ip', 'link', 'add', self.interface, 'mtu', '4200', 'netns', self.namespace,
            'type', 'veth', 'peer', 'name', self.port, 'mtu', '4200', 'netns', 'sr_hop')
        for feature in ('tx-udp-segmentation', 'tso', 'gso', 'gro'):
            subprocess.run(within(self.namespace, 'ethtool', '-K', self.interface, feature,
                                  'off'), check=False, capture_output=True)
        run('ip', '-n', self.namespace, 'address', 'add', f'{self.address}/24', 'dev',
            self.interface)
        run('ip', '-n', self.namespace, 'link', 'set', 'lo', 'up')
        run('ip', '-n', self.namespace, 'link', 'set', self.interface, 'up')
        run('ip', '-n', 'sr_hop', 'link', 'set', self.port, 'master', 'sr_br', 'up')
        run(*within(self.namespace, 'rdma', 'link', 'add', self.device, 'type', args.driver,
                    'netdev', self.interface))
        until('GID', lambda: self.gid() is not None)

    def gid(self):
        """The index of the RoCE v2 GID of the IPv4 address, or None."""
        base = f'/sys/class/infiniband/{self.device}/ports/1'
        wanted = 'ffff:' + '%02x%02x:%02x%02x' % tuple(int(b) for b in self.address.split('.'))
        for index in range(16):
            with contextlib.suppress(OSError):
                with open(f'{base}/gids/{index}') as f:
                    gid = f.read().strip()
                with open(f'{base}/gid_attrs/types/{index}') as f:
                    if gid.endswith(wanted) and f.read().strip() == 'RoCE v2':
                        return index
        return None

    def counter(self, name):
        """A counter of the device."""
        with open(f'/sys/class/infiniband/{self.device}/ports/1/hw_counters/{name}') as f:
            return int(f.read())


@contextlib.contextmanager
def network(senders, bottleneck, queue, sender_queue, args):
    """Receiver (first) and senders, joined; gone at the end."""
    hosts = []
    try:
        run('ip', 'netns', 'add', 'sr_hop')
        run('ip', '-n', 'sr_hop', 'link', 'add', 'sr_br', 'mtu', '4200', 'type',
            'bridge')
        run('ip', '-n', 'sr_hop', 'link', 'set', 'sr_br', 'up')
        for number in range(senders + 1):
            hosts.append(Host(number, args))
        run('tc', '-n', 'sr_hop', 'qdisc', 'add', 'dev', hosts[0].port, 'root', 'handle', '1:',
            'tbf', 'rate', f'{bottleneck.mbit}mbit', 'burst', str(bottleneck.burst), 'limit',
            str(bottleneck.limit))
        run('tc', '-n', 'sr_hop', 'qdisc', 'add', 'dev', hosts[0].port, 'parent', '1:1',
            'handle', '10:', *bottleneck.discipline(queue))
        if sender_queue:
            for host in hosts[1:]:
                run('tc', '-n', host.namespace, 'qdisc', 'add', 'dev', host.interface, 'root',
                    sender_queue)
        yield hosts
    finally:
        for number in range(senders + 1):
            subprocess.run(['rdma', 'link', 'delete', f'{args.provider}_c{number}'],
                           check=False, capture_output=True)
            subprocess.run(['ip', 'netns', 'delete', f'sr_c{number}'], check=False,
                           capture_output=True)
        subprocess.run(['ip', 'netns', 'delete', 'sr_hop'], check=False, capture_output=True)


def listens(process, port):
    """Does a server wait for its client?"""
    for family in ('tcp', 'tcp6'):
        with contextlib.suppress(OSError):
            with open(f'/proc/{process.pid}/net/{family}') as f:
                if any(f':{port:04X} ' in line and ' 0A ' in line for line in f):
                    return True
    return process.poll() is not None


def start(hosts, processes):
    """All transfers, which go on until they are killed: the clients. All go to processes."""
    def qperf(host, port, *rest):
        processes.append(subprocess.Popen(
            within(host.namespace, 'qperf', '-lp', str(port), *rest), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True))
        return processes[-1]

    servers = [qperf(hosts[0], 19900 + number) for number in range(1, len(hosts))]
    for number, server in enumerate(servers, 1):
        until('server', lambda server=server, n=number: listens(server, 19900 + n))
    clients = []
    for number, host in enumerate(hosts[1:], 1):
        before = host.counter('sent_bytes')
        for _ in range(ATTEMPTS):
            client = qperf(host, 19900 + number, '-cm1', '-m', '64K', '-t', str(HANG),
                           hosts[0].address, 'rc_rdma_write_bw')
            until('data', lambda client=client, host=host, before=before:
                  client.poll() is not None or host.counter('sent_bytes') > before + 65536)
            # qperf's server may not listen yet when its client connects: it is refused
            if client.poll() is None:
                break
        clients.append(client)
    return clients


def sample(hosts):
    """(time, bytes of each sender, of the bottleneck: bytes, drops, marks, queued bytes, gaps)

    What is not ECN-capable is dropped where other packets are marked, and packets can overtake
    each other on the way: a transfer's packet was lost where one was dropped and missed.
    """
    links = {link['ifname']: link['stats64']
             for link in json.loads(run('ip', '-n', 'sr_hop', '-s', '-j', 'link'))}
    queues = json.loads(run('tc', '-n', 'sr_hop', '-s', '-j', 'qdisc', 'show', 'dev',
                            hosts[0].port))
    inner = next(q for q in queues if q['handle'] == '10:')
    # RED calls what it marked marked, CoDel ecn_mark
    marks = inner.get('marked', 0) + inner.get('ecn_mark', 0)
    return (time.monotonic(), [links[h.port]['rx']['bytes'] for h in hosts[1:]],
            inner['bytes'], inner['drops'], marks, inner['backlog'],
            hosts[0].counter('out_of_sequence'))


def jain(values):
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    return sum(values) ** 2 / (len(values) * sum(v * v for v in values) or 1)


def measure(hosts):
    """Run the transfers; samples, and what went wrong with them."""
    processes, samples = [], []
    try:
        clients = start(hosts, processes)
        end = time.monotonic() + CONVERGE + MEASURE
        while time.monotonic() < end:
            samples.append(sample(hosts))
            time.sleep(EVERY)
        errors = [p.communicate()[0] for p in clients if p.poll() is not None]
    finally:
        for p in processes:     # with the children that servers have
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
            p.wait()
    return samples, errors


def keep(directory, name, samples):
    """Write rates (Mbit/s) and queue (kB) over time."""
    path = os.path.join(directory, name.replace(' ', '-').replace(',', '') + '.csv')
    with open(path, 'w') as f:
        print('seconds,queue_kB,' + ','.join(f'sender_{i + 1}_Mbit'
                                             for i in range(len(samples[0][1]))), file=f)
        for before, now in zip(samples, samples[1:]):
            rates = ((b - a) * 8e-6 / (now[0] - before[0]) for a, b in zip(before[1], now[1]))
            print(f'{now[0] - samples[0][0]:.2f},{now[5] / 1000:.1f},'
                  + ','.join(f'{r:.2f}' for r in rates), file=f)


def judge(name, samples, bottleneck, queue):
    """Yield (what, right, text) of a case."""
    start = samples[0][0] + CONVERGE
    window = [s for s in samples if s[0] >= start]
    first, last = window[0], window[-1]
    seconds = last[0] - first[0]
    use = (last[2] - first[2]) * 8e-6 / seconds / bottleneck.mbit
    shares = [(b - a) * 8e-6 / seconds for a, b in zip(first[1], last[1])]
    backlog = sum(s[5] for s in window) / len(window)
    lost = min(last[3] - first[3], last[6] - first[6])
    text = (f'{use:.3f} of {bottleneck.mbit} Mbit/s, Jain {jain(shares):.3f} of '
            + ' '.join(f'{s:.2f}' for s in shares)
            + f', queue {backlog / 1000:.1f} kB, at most {max(s[5] for s in window) / 1000:.1f}'
            + f', {last[3] - first[3]} dropped (before {first[3]}), {last[6] - first[6]} gaps'
            + f' (before {first[6]}), {last[4]} marked')
    yield f'{name}: packets are marked', last[4] > 0, text
    yield f'{name}: 90 % of the bottleneck are used', use >= 0.9, text
    yield f'{name}: all have the same, Jain 0.95', jain(shares) >= 0.95, text
    yield f'{name}: the queue stays where marking begins', backlog <= bottleneck.most(queue), text
    yield f'{name}: nothing is lost once it has settled', not lost, text


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--driver', default='sroce')
    parser.add_argument('--provider', default='rxe')
    parser.add_argument('-d', metavar='DIR')
    parser.add_argument('-r', metavar='MBIT', type=int, default=20)
    parser.add_argument('name', nargs='?', default='')
    args = parser.parse_args()
    number = failed = 0

    def point(what, right, text=''):
        nonlocal number, failed
        number += 1
        failed += not right
        print(f'{"ok" if right else "not ok"} {number} - {what}', flush=True)
        for line in text.splitlines():
            print(f'#   {line}', flush=True)

    bottleneck = Bottleneck(args.r)
    for name, senders, queue, sender_queue in CASES:
        if args.name not in name:
            continue
        try:
            with network(senders, bottleneck, queue, sender_queue, args) as hosts:
                samples, errors = measure(hosts)
                told = sum(h.counter('rp_cnp_handled') for h in hosts[1:])
        except (subprocess.CalledProcessError, RuntimeError) as e:
            point(f'{name}: set up', False, f'{e}\n{getattr(e, "output", "")}')
            continue
        if args.d:
            keep(args.d, name, samples)
        point(f'{name}: no transfer fails', not errors, '\n'.join(errors))
        point(f'{name}: the senders are told', told > 0, f'{told} CNPs')
        for what, right, text in judge(name, samples, bottleneck, queue):
            # one line for all, unless something is wrong
            point(what, right, text if not right or what.endswith('marked') else '')
    print(f'1..{number}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
