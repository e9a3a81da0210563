# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs a command in a guest: starts it, relays its output, watches its console and the clock."""

import dataclasses
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

from . import chroot, initramfs, module, qemu, splat, uml
from .errors import EXIT_EMULATOR, EXIT_RUNNER, EXIT_SPLAT, EXIT_TIMEOUT
from .progress import say

GUEST_RUN = pathlib.Path(__file__).resolve().parent.parent / "guest" / "run"
TAIL_LINES = 60
POLL_SECONDS = 0.2
BOOT_ATTEMPTS = 3
#: What guest/run tells the console.
STARTED = "vm: the command starts"


@dataclasses.dataclass(frozen=True)
class Options:
    """How to run a guest; see vm --help."""

    backend: str
    memory: str
    cpus: int
    timeout: float
    out: pathlib.Path
    load_module: bool
    #: the layer with our provider, or None
    provider: pathlib.Path | None = None


def run(kernel, layer, command, options):
    """Run COMMAND in a guest with KERNEL and the module in LAYER; return the exit status."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="sroce-vm-"))
    try:
        share = work / "run"
        share.mkdir()
        (share / "command").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in command))
        shutil.copyfile(GUEST_RUN, share / "guest-run")
        if options.load_module:
            (share / "load-module").touch()
        shares = {"module": (layer, False), "src": (module.TREE, False),
                  "out": (options.out, True), "run": (share, True)}
        if options.provider:
            shares["provider"] = (options.provider, False)
        console = options.out / "console.log"
        for _ in range(BOOT_ATTEMPTS):
            console.write_bytes(b"")
            start = time.monotonic()
            timed_out = _boot(kernel, shares, console, options)
            log = console.read_text(errors="replace")
            if STARTED in log or not splat.emulator_failed(log):
                break
            say("QEMU's emulation of a kernel that patches itself failed before the command "
                "started, a bug of QEMU before 8.1; booting again")
        return _verdict(console, share / "status", timed_out, time.monotonic() - start, options)
    finally:
        shutil.rmtree(work)


def _boot(kernel, shares, console, options):
    """Run the guest to its end, relaying its output; return whether it was the time-out."""
    reader, writer = os.pipe()
    memory, cpus = options.memory, options.cpus
    archive = initramfs.get(kernel.rootfs, options.backend == "qemu")
    if options.backend == "qemu":
        command = qemu.command_line(kernel, archive, shares, memory, cpus, console, writer)
    else:
        command = uml.command_line(kernel, archive, shares, memory, cpus, writer)
    accelerator = " (KVM)" if "kvm" in command else ""
    say(f"booting Linux {kernel.version} with {options.backend}{accelerator}, "
        f"{cpus} CPUs, {memory}")
    with open(console, "ab") as log:
        process = subprocess.Popen([*chroot.ISOLATED, *command], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=log, pass_fds=[writer])
    os.close(writer)
    deadline = time.monotonic() + options.timeout
    try:
        while time.monotonic() < deadline:
            if select.select([reader], [], [], POLL_SECONDS)[0]:
                data = os.read(reader, 1 << 16)
                if not data:
                    break
                _write_all(sys.stdout.fileno(), data)
        else:
            return True
        try:
            process.wait(timeout=max(1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return True
        return False
    finally:
        # takes everything in its PID namespace with it
        process.kill()
        process.wait()
        os.close(reader)


def _write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]


def _verdict(console, status_file, timed_out, seconds, options):
    """Say how it went, and return the exit status."""
    log = console.read_text(errors="replace")
    report = splat.excerpt(log)
    if options.backend == "qemu" and splat.emulator_failed(log):
        say(f"QEMU's emulation of a kernel that patches itself failed:\n{report}")
        say(f"failed after {seconds:.1f} s: to be run again; all of the console is in {console}")
        return EXIT_EMULATOR
    if report:
        say(f"the guest's kernel reported a bug:\n{report}")
        say(f"failed after {seconds:.1f} s: kernel bug report"
            f"{', then time-out' if timed_out else ''}; all of the console is in {console}")
        return EXIT_SPLAT
    if timed_out:
        say(f"the end of the guest's console:\n{_tail(log)}")
        say(f"failed: no end within {options.timeout:g} s; all of the console is in {console}")
        return EXIT_TIMEOUT
    status = status_file.read_text().strip() if status_file.exists() else "unknown"
    if not status.isdigit():
        say(f"the end of the guest's console:\n{_tail(log)}")
        say(f"the guest did not run the command to its end (status: {status}); "
            f"all of the console is in {console}")
        return EXIT_RUNNER
    say(f"exit status {status} after {seconds:.1f} s")
    return int(status)


def _tail(log):
    return "\n".join(log.splitlines()[-TAIL_LINES:])
