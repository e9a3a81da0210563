# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a guest's kernel is to the rest of the runner, whoever built it."""

import dataclasses
import lzma
import pathlib
import struct
import subprocess

from . import cache, debian, rootfs
from .errors import VmError

CODE = cache.code(__file__)
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
    return Kernel(name=series, version=version, rootfs=root, image=_vmlinux(root), layer=None,
                  modules=root.tree / "usr/lib/modules" / version,
                  build_dir=f"/usr/lib/modules/{version}/build", build_binds={})


def _vmlinux(root):
    """The kernel of ROOT, uncompressed: that takes the emulated CPU longer than to boot it."""
    key = cache.digest(root.path.name, CODE)

    def build(work):
        (work / "vmlinux").write_bytes(_unpack(root.kernel_image.read_bytes()))

    path = cache.entry("vmlinux", root.release, key, build)
    cache.keep_newest("vmlinux", root.release, 3)
    return path / "vmlinux"


def _unpack(image):
    """The ELF file in a bzImage (Documentation/arch/x86/boot.rst tells the header's fields)."""
    setup_sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start:start + length]
    # the uncompressed size follows the compressed data
    if payload.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x28\xb5\x2f\xfd"):
        return subprocess.run(["zstd", "-dc"], input=payload[:-4], stdout=subprocess.PIPE,
                              check=True).stdout
    raise VmError("the kernel is compressed in an unknown way")
