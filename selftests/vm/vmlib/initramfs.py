# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The guest's initramfs: busybox, the init script, and the modules that reach the root."""

import lzma
import pathlib
import stat

from . import cache

CODE = cache.code(__file__)
HERE = pathlib.Path(__file__).resolve().parent.parent
INIT = HERE / "guest" / "init"

#: What a stock kernel lacks until it has its root; dependencies are added.
QEMU_MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "9pnet_virtio", "9p", "overlay",
                "crc32c_generic", "ext4")


def get(rootfs, for_qemu):
    """The initramfs for a kernel of ROOTFS under QEMU, or for user-mode Linux (no modules)."""
    name = f"{rootfs.release}-{'qemu' if for_qemu else 'uml'}"
    init = INIT.read_bytes()
    key = cache.digest(rootfs.path.name, init, CODE)
    path = cache.entry("initramfs", name, key, lambda work: _build(rootfs, init, for_qemu, work))
    cache.keep_newest("initramfs", name, 3)
    return path / "initramfs"


def _build(rootfs, init, for_qemu, work):
    archive = Archive()
    for directory in ("bin", "dev", "proc", "sys", "modules", "layers", "rw", "newroot"):
        archive.add(directory, stat.S_IFDIR | 0o755)
    archive.add("init", stat.S_IFREG | 0o755, init)
    archive.add("bin/busybox", stat.S_IFREG | 0o755, (rootfs.tree / "usr/bin/busybox").read_bytes())
    order = []
    if for_qemu:
        modules = rootfs.tree / "usr/lib/modules" / rootfs.kernel_version
        for file in load_order(modules, QEMU_MODULES):
            name = f"modules/{len(order):02}-{file.name.split('.')[0]}.ko"
            archive.add(name, stat.S_IFREG | 0o644, _read_module(file))
            order.append("/" + name)
    archive.add("modules/order", stat.S_IFREG | 0o644, "".join(f"{m}\n" for m in order).encode())
    (work / "initramfs").write_bytes(archive.finish())


def load_order(modules, names):
    """The files of the modules NAMES and of all they depend on, in an order they load in."""
    dependencies = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        file, needs = line.split(":")
        dependencies[file] = needs.split()
    by_name = {pathlib.Path(file).name.split(".")[0].replace("-", "_"): file
               for file in dependencies}
    order = []

    def visit(file):
        for need in dependencies[file]:
            visit(need)
        if file not in order:
            order.append(file)

    for name in names:
        if name in by_name:     # else it is built in
            visit(by_name[name])
    return [modules / file for file in order]


def _read_module(file):
    data = file.read_bytes()
    return lzma.decompress(data) if file.suffix == ".xz" else data


class Archive:
    """A cpio archive in the "newc" format, which the kernel unpacks."""

    def __init__(self):
        self._parts = []
        self._inode = 0

    def add(self, name, mode, data=b""):
        """Append one file or directory."""
        self._inode += 1
        encoded = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, device (2), rdev (2), name size, check
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
        self._parts += [self._padded(header), self._padded(data)]

    def finish(self):
        """The archive's bytes."""
        self.add("TRAILER!!!", 0)
        return b"".join(self._parts)

    @staticmethod
    def _padded(data):
        return data + b"\0" * (-len(data) % 4)
