# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Measures one point of one subject, with perftest, qperf, cmtime and the like.

Every function returns {metric: value} in base units; METRICS has the units.
"""

import ipaddress
import math
import os
import pathlib
import re
import time

from .ends import HERE, Failure, end, finish, listens

#: metric -> unit
METRICS = {"bandwidth": "B/s", "rate": "messages/s", "median": "s", "99 %": "s", "99.9 %": "s",
           "sender": "s/GB", "receiver": "s/GB", "machine": "s/GB",
           "beyond rings": "B", "rings": "B", "connections": "1/s"}
MIB = 1024 * 1024
#: perftest's default depth, and what many queue pairs get, lest their CQ be too large
DEPTH, SMALL_DEPTH = 128, 16
#: Guesses of what a message and a byte cost, in seconds, to start from
MESSAGE_COST = {"sroce": 5e-6, "sroce-own": 5e-6, "rxe": 35e-6}
BYTE_COST = {"sroce": 8e-10, "sroce-own": 8e-10, "rxe": 6e-9}
#: qperf's shortest, and when CPU times are read in a longer run
QPERF_SECONDS = 1
CPU_SECONDS, CPU_FIRST, CPU_INTERVAL = 3, 0.8, 0.25
QPERF_TEST = {"write": "rc_rdma_write_bw", "read": "rc_rdma_read_bw", "send": "rc_bw",
              "stream": "tcp_bw"}
CM_PORT = 7471


class Tools:
    """Measures points of a plan, and learns how fast they are."""

    def __init__(self, plan, programs):
        self._plan = plan
        self._programs = programs
        #: (subject, point) -> messages a second, as measured
        self._rates = {}
        #: subject -> how much slower than guessed
        self._slowness = {}
        #: (subject name, point) -> all its latencies, in seconds
        self.latencies = {}

    def measure(self, ends, point):
        """The figures of POINT between ENDS."""
        ends.set_mtu(point.mtu)
        return getattr(self, f"_{point.what}")(ends, point)

    # ---- bandwidth

    def _bandwidth(self, ends, point):
        if not ends.subject.rdma:
            return self._qperf(ends, point, QPERF_SECONDS, 1)
        depth = DEPTH if point.queue_pairs == 1 else SMALL_DEPTH
        each = max(8, math.ceil(self._messages(ends.subject, point) / point.queue_pairs))
        options = ["-s", point.size, "-n", each, "-q", point.queue_pairs, "-t", min(depth, each)]
        if point.op == "send":
            options += ["-r", min(depth, each)]
        output = self._perftest(ends, f"ib_{point.op}_bw", point, options)
        row = _table_row(output, point.size)
        bandwidth, rate = float(row[3]) * MIB, float(row[4]) * 1e6
        if not bandwidth or not math.isfinite(bandwidth):
            raise Failure("perftest reports no bandwidth: it could not calibrate its clock")
        self._learn(ends.subject, point, bandwidth / point.size)
        return {"bandwidth": bandwidth, "rate": rate or bandwidth / point.size}

    def _messages(self, subject, point):
        """How many messages take the time that the plan gives them."""
        rate = self._rates.get((subject, point))
        if rate is None:
            slowness = self._slowness.get(subject, 1)
            rate = 1 / (_guess(subject, point.size) * slowness)
        return max(16, round(rate * self._plan.seconds))

    def _learn(self, subject, point, rate):
        self._rates[subject, point] = rate
        self._slowness[subject] = 1 / (rate * _guess(subject, point.size))

    def _perftest(self, ends, tool, point, options):
        port = ends.port()
        options = ["-F", "-p", port, *options]
        with ends.server([tool, "-d", ends.device("B"), "-x", ends.gid_index("B", point.family),
                          *options], listens(port), stays=False):
            return ends.client([tool, "-d", ends.device("A"), "-x",
                                ends.gid_index("A", point.family), *options,
                                ends.address("B", 4)])

    # ---- latency

    def _latency(self, ends, point):
        options = ["-s", point.size, "-n", self._plan.messages]
        options += ["-e"] if point.wait == "events" else []
        if ends.subject.rdma:
            output = self._perftest(ends, f"ib_{point.op}_lat", point, [*options, "-U"])
        else:
            port = ends.port()
            command = [self._programs / "tcp_lat", "-p", port, *options]
            with ends.server(command, listens(port), stays=False):
                output = ends.client([*command, ends.address("B", point.family)])
        values = [float(value) / 1e6 for value in
                  re.findall(r"^\d+, ([\d.e+-]+)\s*$", output, re.MULTILINE)]
        # perftest leaves the first one out
        if len(values) < self._plan.messages - 1:
            raise Failure(f"{len(values)} latencies of {self._plan.messages} were reported")
        self.latencies.setdefault((ends.subject.name, point), []).extend(values)
        return {"median": quantile(values, .5), "99 %": quantile(values, .99),
                "99.9 %": quantile(values, .999)}

    # ---- qperf: streams, CPU time, and TCP

    def _streams(self, ends, point):
        return self._qperf(ends, point, QPERF_SECONDS, point.streams)

    def _cpu(self, ends, point):
        return self._qperf(ends, point, CPU_SECONDS, 1, measure_cpu=True)

    @staticmethod
    def _qperf(ends, point, seconds, streams, measure_cpu=False):
        """The sum of STREAMS at once; with the CPU time they take, if that is asked for."""
        ports = [ends.port() for _ in range(streams)]
        servers, clients, costs = [], [], {}
        try:
            for port in ports:
                servers.append(ends.start("B", ["qperf", "-lp", port]))
            for server, port in zip(servers, ports):
                _wait_until(lambda s=server, p=port: listens(p)(s.pid), "qperf does not listen")
            commands = [_qperf_command(ends, point, seconds, port) for port in ports]
            clients = [ends.start("A", command) for command in commands]
            if measure_cpu:
                costs = _cpu_seconds(clients, servers)
            outputs = [finish(client, ["qperf"]) for client in clients]
        finally:
            for process in (*clients, *servers):
                end(process)
        bandwidth = sum(_qperf_bandwidth(output) for output in outputs)
        if costs:
            wall = costs.pop("wall")
            return {"bandwidth": bandwidth,
                    **{side: cpu / (bandwidth * wall / 1e9) for side, cpu in costs.items()}}
        return {"bandwidth": bandwidth, "rate": bandwidth / point.size}

    # ---- the rest

    def _memory(self, ends, point):
        peer = ipaddress.ip_address(ends.address("B", point.family))
        packed = peer.packed if peer.version == 6 else bytes(10) + b"\xff\xff" + peer.packed
        gid = ipaddress.IPv6Address(packed).exploded
        output = ends.client(["/usr/bin/python3", HERE / "benchlib/idle_qps.py", ends.device("A"),
                              ends.gid_index("A", point.family), gid,
                              self._plan.idle_queue_pairs])
        found = re.search(r"beyond (-?\d+) rings (\d+)", output)
        return {"beyond rings": float(found[1]), "rings": float(found[2])}

    def _connections(self, ends, point):
        count = self._plan.connections
        address = ends.address("B", point.family)
        command = ["cmtime", "-c", count]
        if "controller_address" in ends.client(["sh", "-c", "cmtime --help 2>&1 || true"]):
            command += ["-p", CM_PORT, "-C", address]
            server, client, ready = ["-L", "-b", address], ["-b", ends.address("A", point.family)], \
                listens(CM_PORT)
        else:
            server, client = ["-b", address], ["-s", address]

            def ready(_):
                listing = ends.start("B", ["rdma", "resource", "show", "cm_id"])
                return re.search(rf"LISTEN.*:{CM_PORT}\b", listing.communicate()[0])

        with ends.server([*command, *server], ready, stays=True):
            output = ends.client([*command, *client])
        return {"connections": count / connecting_seconds(output)}


def quantile(values, share):
    """The smallest of VALUES that SHARE of them do not exceed."""
    values = sorted(values)
    return values[max(0, math.ceil(share * len(values)) - 1)]


def connecting_seconds(output):
    """How long cmtime's connections took, all steps up to their being established.

    Up to rdma-core 49 it prints "step : total ms ...", one step after the other for all;
    later it has a step "full connect" and columns "avg/iter total(us)".
    """
    full = re.search(r"^full connect\s+\d+\s+(\d+)", output, re.MULTILINE)
    if full:
        return int(full[1]) / 1e6
    steps = dict(re.findall(r"^([a-z ]+?)\s*:\s+([\d.]+)", output, re.MULTILINE))
    wanted = ("create id", "resolve addr", "resolve route", "create qp", "connect")
    if not all(step in steps for step in wanted):
        raise Failure(f"cmtime: {output.strip()[-200:]}")
    return sum(float(steps[step]) for step in wanted) / 1e3


def _guess(subject, size):
    return MESSAGE_COST[subject.name] + size * BYTE_COST[subject.name]


def _table_row(output, size):
    """The fields of the line of perftest's table that is for SIZE."""
    for line in output.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[0] == str(size) and fields[1].isdigit():
            return fields
    raise Failure("perftest printed no result")


def _qperf_command(ends, point, seconds, port):
    command = ["qperf", "-lp", port, "-t", seconds, "-uu", "-m", point.size]
    if ends.subject.rdma:
        command += ["-cm1"] + ["-cp1"] * (point.wait == "polling")
    return [*command, ends.address("B", point.family), QPERF_TEST[point.op]]


def _qperf_bandwidth(output):
    found = re.search(r"\bbw\s*=\s*([\d,.e+]+)", output)
    if not found or not float(found[1].replace(",", "")):
        raise Failure(f"qperf: {output.strip()[-200:]}")
    return float(found[1].replace(",", ""))


def _wait_until(condition, otherwise, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(otherwise)
        time.sleep(0.01)


def _cpu_seconds(clients, servers):
    """CPU time that each side and the whole machine used while traffic was flowing."""
    samples = []
    time.sleep(CPU_FIRST)
    while all(client.poll() is None for client in clients):
        sample = {"sender": sum(map(_session_cpu, clients)),
                  "receiver": sum(map(_session_cpu, servers)),
                  "machine": _machine_cpu(), "wall": time.monotonic()}
        if samples and sample["receiver"] < samples[-1]["receiver"]:
            break       # the test is over: the server's process for it has ended
        samples.append(sample)
        time.sleep(CPU_INTERVAL)
    # one that was taken while the test was ending may be the last
    used = samples[:-1]
    if len(used) < 2:
        raise Failure("the machine is too busy to read CPU times in time")
    return {name: used[-1][name] - used[0][name] for name in used[0]}


def _session_cpu(leader):
    """CPU seconds of all processes of a session."""
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader.pid:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _machine_cpu():
    """CPU seconds that were not idle, on all CPUs."""
    fields = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq = (int(field) for field in fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
