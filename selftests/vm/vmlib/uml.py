# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""User-mode Linux's command line."""

import re

from . import kernels
from .errors import VmError


def command_line(kernel, initramfs, shares, memory, cpus, output_fd):
    """The command that boots KERNEL; the console is its stderr, the output port OUTPUT_FD."""
    paths = {name: directory for name, (directory, _) in shares.items()}
    paths["root"] = kernel.rootfs.tree
    paths["kernel"] = kernel.layer
    for path in paths.values():
        if re.search(r"[\s,\"]", str(path)):
            raise VmError(f"user-mode Linux cannot be given a path like '{path}'")
    # SMP needs the seccomp mode; in it, user space is not traced with ptrace either
    return [str(kernel.image), "seccomp=on", f"mem={memory}", f"ncpus={cpus}",
            f"initrd={initramfs}", "con=null", "con0=null,fd:2", f"con1=null,fd:{output_fd}",
            "ssl=null", *kernels.PARAMETERS, "loglevel=7", "vm_backend=uml",
            *(f"vm_{name}={path}" for name, path in paths.items())]
