# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the measurements are made on, and making it fit for them."""

import os
import pathlib
import platform
import subprocess

#: place -> what it is, and what it distorts
PLACES = {
    "host": ("this machine's own kernel",
             "Nothing is distorted, but whatever else ran here at the time is in the figures."),
    "kvm": ("a guest with KVM",
            "Code runs at native speed. Interrupts, timers and waking a sleeping CPU cost more "
            "than on a host, which shows in latencies by events."),
    "uml": ("user-mode Linux",
            "Code runs at native speed, and so do copies and CRCs. A system call, a switch of "
            "processes and a page fault cost several microseconds, far more than on a host; "
            "switching interrupts off costs more too. So small messages and latencies are "
            "slower than on a host, for whatever does a system call for each message the more "
            "so; and CPU times are counted by a clock tick of 10 ms."),
    "emulation": ("a guest without KVM, in emulation",
                  "Everything is slower, and not everything by as much: copies and vector "
                  "instructions suffer most. Only ratios mean something, and these little."),
}
CPUINFO = pathlib.Path("/proc/cpuinfo")


def prepare(place, scratch):
    """In a guest: let perftest find a clock frequency; it finds the right one (clock.c)."""
    if place != "host" and "cpu MHz" not in CPUINFO.read_text():
        (scratch / "cpuinfo").write_text("processor\t: 0\ncpu MHz\t\t: 1000.000\n")
        subprocess.run(["mount", "--bind", scratch / "cpuinfo", CPUINFO], check=True)


def restore(place):
    """Undo what prepare() did."""
    if place != "host" and os.path.ismount(CPUINFO):
        subprocess.run(["umount", CPUINFO], check=True)


def cpu_model():
    """The processor's name."""
    for line in CPUINFO.read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def facts(place):
    """What the report says of the kernel that was measured."""
    return {"place": place, "kernel": platform.release(), "CPUs": os.cpu_count(),
            "rdma-core": _version("rdma-core"), "perftest": _version("perftest")}


def _version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False)
    return done.stdout or "unknown"
