# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""QEMU's command line, and whether KVM is worth using."""

import os
import pathlib
import subprocess

from . import cache, chroot, kernels
from .progress import step

QEMU = "qemu-system-x86_64"
TRIAL_SECONDS = 10
#: Emulation is slow, hence no mitigations, and no self-tests at boot; and late, so that the
#: clock must not be checked against another one.
PARAMETERS = ("console=ttyS0", "loglevel=6", "nokaslr", "mitigations=off", "audit=0", "apparmor=0",
              "no_timer_check", "cryptomgr.notests", "random.trust_cpu=on", "net.ifnames=0",
              "watchdog_thresh=30", "tsc=reliable")


def command_line(kernel, initramfs, shares, memory, cpus, console, output_fd):
    """The command that boots KERNEL; the guest's output port is OUTPUT_FD.

    SHARES is {name: (directory, writable)}; the kernel's console goes to file CONSOLE.
    """
    command = [QEMU, *_accelerator(kernel, initramfs),
               "-m", memory, "-smp", str(cpus),
               *_boot(kernel, initramfs,
                      "vm_backend=qemu" + " vm_provider=1" * ("provider" in shares), console),
               "-drive", f"file={_quote(kernel.rootfs.image)},format=raw,if=virtio,readonly=on",
               "-device", "virtio-serial-pci",
               "-chardev", f"file,id=output,path=/dev/fd/{output_fd}",
               "-device", "virtserialport,chardev=output,name=output",
               # a network device with a parent device, which leads nowhere
               "-netdev", "user,id=net,restrict=on,ipv6=off",
               "-device", "virtio-net-pci,netdev=net"]
    for name, (directory, writable) in shares.items():
        command += ["-fsdev", f"local,id={name},path={_quote(directory)},security_model=none,"
                              f"multidevs=remap,readonly={'off' if writable else 'on'}",
                    "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]
    return command


def _boot(kernel, initramfs, parameters, console):
    return ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", str(kernel.image), "-initrd", str(initramfs),
            "-append", " ".join((*PARAMETERS, *kernels.PARAMETERS, parameters)),
            "-chardev", f"file,id=console,path={_quote(console)},append=on",
            "-serial", "chardev:console"]


def _accelerator(kernel, initramfs):
    """KVM where a trial boot succeeds, else emulation.

    QEMU emulates pclmulqdq far slower than the kernel computes a CRC without it.
    """
    if kvm_works(kernel, initramfs):
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,-pclmulqdq"]


def kvm_works(kernel, initramfs):
    """Whether a guest boots with KVM; tried once per boot of the host.

    That /dev/kvm exists is no proof: nested, it may hang or run slower than emulation.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    verdict = cache.cache_dir() / f"kvm-{boot_id}"
    with cache.lock("kvm"):
        if not verdict.exists():
            for old in cache.cache_dir().glob("kvm-*"):
                old.unlink()
            verdict.write_text("works" if _trial_boot(kernel, initramfs) else "fails")
    return verdict.read_text() == "works"


def _trial_boot(kernel, initramfs):
    log = cache.cache_dir() / "kvm-trial.log"
    log.write_bytes(b"")
    command = [*chroot.ISOLATED, QEMU, "-accel", "kvm", "-cpu", "host", "-m", "512M", "-smp", "2",
               *_boot(kernel, initramfs, "vm_backend=trial", log)]
    with step("trying KVM"), open(log, "ab") as out:
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                           timeout=TRIAL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
    return "vm: trial boot" in log.read_text(errors="replace")


def _quote(path):
    """QEMU's options are separated by commas; a doubled comma is one."""
    return str(path).replace(",", ",,")
