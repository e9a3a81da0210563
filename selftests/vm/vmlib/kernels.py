# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a guest's kernel is to the rest of the runner, whoever built it."""

import dataclasses
import pathlib

from . import debian, rootfs
from .errors import VmError


#: Parameters of every kernel: a crash ends the guest, watchdogs are patient, so that what they
#: report is not the host's load, and no module makes network devices that nobody asked for.
PARAMETERS = ("panic=-1", "oops=panic", "rcupdate.rcu_cpu_stall_timeout=60",
              "bonding.max_bonds=0", "dummy.numdummies=0", "ifb.numifbs=0")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel, the root file system that goes with it, and how modules are built for it."""

    #: short name, in cache entries and messages
    name: str
    #: as uname -r prints it
    version: str
    rootfs: rootfs.Rootfs
    #: what is booted
    image: pathlib.Path
    #: a root file system layer with the kernel's modules, where the root has none
    layer: pathlib.Path | None
    #: the directory /usr/lib/modules/VERSION, in the root's tree or the layer
    modules: pathlib.Path
    #: the directory to make modules in, as seen in the root
    build_dir: str
    #: directories to bind into the root for that: {directory: path in the root}
    build_binds: dict
    make_arguments: tuple = ()


def stock(series):
    """Debian's stock kernel of SERIES, for QEMU."""
    release = debian.RELEASE_OF_KERNEL[series]
    root = rootfs.get(release)
    version = root.kernel_version
    if not version.startswith(series + "."):
        raise VmError(f"Debian {release} has Linux {version}, no longer {series}")
    return Kernel(name=series, version=version, rootfs=root, image=root.kernel_image, layer=None,
                  modules=root.tree / "usr/lib/modules" / version,
                  build_dir=f"/usr/lib/modules/{version}/build", build_binds={})
