# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What is measured: subjects, points, and which points a plan has."""

import dataclasses

K = 1024
M = K * K


@dataclasses.dataclass(frozen=True)
class Subject:
    """One of the things that are compared."""

    name: str
    label: str
    #: makes names and addresses of its own (ends.sh)
    number: int

    @property
    def rdma(self):
        """Whether it has an RDMA device."""
        return self.name != "tcp"


SUBJECTS = (Subject("sroce", "sroce, stock provider", 1),
            Subject("sroce-own", "sroce, own provider", 2),
            Subject("rxe", "rdma_rxe", 3),
            Subject("tcp", "TCP", 4))


@dataclasses.dataclass(frozen=True)
class Point:
    """One thing to measure of each subject; WHAT says how (tools.py)."""

    what: str           # bandwidth, latency, streams, cpu, memory, connections
    op: str = "write"   # write, read, send; of TCP always stream
    size: int = 64 * K
    mtu: int = 4200
    family: int = 4
    path: str = "veth"
    queue_pairs: int = 1
    streams: int = 1
    wait: str = "polling"   # polling, events

    def of_tcp(self):
        """The point of TCP that this one is compared with, or None."""
        if self.what in ("memory", "connections") or self.queue_pairs > 1:
            return None
        return dataclasses.replace(self, op="stream")

    def title(self):
        """What a person calls it."""
        words = [self.op.upper() if self.op != "stream" else "TCP", size_text(self.size)]
        if self.what == "memory":
            words = ["idle queue pair"]
        elif self.what == "connections":
            words = ["connections"]
        elif self.what == "latency":
            words.append(self.wait)
        if self.what == "bandwidth" and self.queue_pairs > 1:
            words.append(f"{self.queue_pairs} queue pairs")
        if self.what == "streams":
            words.append(f"{self.streams} stream" + "s" * (self.streams > 1))
        if self.path != "veth":
            words.append(self.path)
        elif self.what not in ("memory", "connections"):
            words.append(f"MTU {self.mtu}")
        if self.family == 6:
            words.append("IPv6")
        return ", ".join(words)


@dataclasses.dataclass(frozen=True)
class Plan:
    """A choice of points."""

    name: str
    rounds: int
    #: point -> in how many of the rounds it is measured
    points: dict
    #: what one measurement of bandwidth is to take
    seconds: float
    #: messages of one measurement of latency
    messages: int
    #: of one measurement of connections, and queue pairs of one of memory
    connections: int
    idle_queue_pairs: int
    #: no round begins later than this, in seconds after the first
    budget: float


def size_text(size):
    """64 KB and the like."""
    for unit, name in ((M, "MB"), (K, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def _smoke():
    """One of each kind, tiny."""
    points = [Point("bandwidth", size=size) for size in (64, 4 * K, 64 * K)]
    points += [Point("bandwidth", op="read", mtu=1500), Point("bandwidth", op="send", family=6),
               Point("bandwidth", queue_pairs=2), Point("bandwidth", path="lo", mtu=65536),
               Point("latency", op="send", size=2),
               Point("latency", op="send", size=2, wait="events"),
               Point("streams", streams=2), Point("cpu", op="send", wait="events"),
               Point("memory"), Point("connections")]
    return Plan("smoke", 1, {point: 1 for point in points}, seconds=0.02, messages=50,
                connections=5, idle_queue_pairs=20, budget=float("inf"))


def _quick():
    """What matters most, within five minutes on an idle machine."""
    always = [Point("bandwidth", op=op, mtu=mtu) for mtu in (4200, 1500)
              for op in ("write", "read", "send")]
    always += [Point("bandwidth", size=64), Point("latency", op="send", size=2),
               Point("latency", op="write", size=2)]
    often = [Point("bandwidth", mtu=9000), Point("bandwidth", family=6),
             Point("latency", op="send", size=2, wait="events"),
             Point("latency", op="send", size=4 * K), Point("connections")]
    often += [Point("bandwidth", size=size) for size in (2, K, 8 * K, M, 8 * M)]
    once = [Point("bandwidth", queue_pairs=n) for n in (4, 32, 256)]
    once += [Point("streams", streams=n) for n in (1, 2)]
    once += [Point("cpu", op="send", wait="events"), Point("memory")]
    points = {**{point: 5 for point in always}, **{point: 2 for point in often},
              **{point: 1 for point in once}}
    return Plan("quick", 5, points, seconds=0.2, messages=2000, connections=100,
                idle_queue_pairs=300, budget=270)


def _full():
    """Everything; takes an hour or two."""
    sizes = [2 << n for n in range(0, 23)]
    points = [Point("bandwidth", op=op, size=size, mtu=mtu) for mtu in (1500, 4200, 9000)
              for op in ("write", "read", "send") for size in sizes]
    points += [Point("bandwidth", op=op, size=size, family=6)
               for op in ("write", "read", "send") for size in (64, 4 * K, 64 * K, M)]
    points += [Point("bandwidth", op=op, size=size, path="lo", mtu=65536)
               for op in ("write", "read", "send") for size in (64, 4 * K, 64 * K, M)]
    points += [Point("latency", op=op, size=size, wait=wait)
               for op, wait in (("send", "polling"), ("write", "polling"), ("read", "polling"),
                                ("send", "events"))
               for size in (2, 256, 4 * K)]
    points += [Point("latency", op="send", size=2, family=6),
               Point("latency", op="send", size=2, path="lo", mtu=65536)]
    points += [Point("bandwidth", queue_pairs=1 << n) for n in range(1, 11)]
    points += [Point("streams", op=op, streams=n) for op in ("write", "send") for n in (1, 2)]
    points += [Point("cpu", op=op, wait="events", mtu=mtu) for op in ("write", "read", "send")
               for mtu in (1500, 4200)]
    points += [Point("memory"), Point("connections"), Point("connections", family=6)]
    return Plan("full", 5, {point: 5 for point in points}, seconds=0.5, messages=10000,
                connections=500, idle_queue_pairs=1000, budget=float("inf"))


PLANS = {"smoke": _smoke, "quick": _quick, "full": _full}


def points_of(plan, subject, round_):
    """The points of SUBJECT that PLAN has in ROUND_ (from 0), in order, each once."""
    result = []
    for point, rounds in plan.points.items():
        if round_ >= rounds:
            continue
        point = point if subject.rdma else point.of_tcp()
        if point and point not in result:
            result.append(point)
    return result
