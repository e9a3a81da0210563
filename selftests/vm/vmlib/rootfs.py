# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Guests' root file systems: Debian releases, bootstrapped, with a kernel and its headers."""

import dataclasses
import os
import pathlib
import shlex
import shutil
import subprocess

from . import cache, chroot, debian
from .errors import VmError, log_tail
from .progress import step

CODE = cache.code(__file__)
HERE = pathlib.Path(__file__).resolve().parent.parent
HOOK = HERE / "guest" / "kernel-hook"

#: Without what no guest reads (rdma-core's test suite lives in its documentation), and without
#: flushing each file to disk: half a tree is thrown away anyway.
DPKG_OPTIONS = ("force-unsafe-io",
                "path-exclude=/usr/share/doc/*", "path-exclude=/usr/share/man/*",
                "path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/info/*",
                "path-include=/usr/share/doc/rdma-core*")


@dataclasses.dataclass(frozen=True)
class Rootfs:
    """A bootstrapped release: TREE is its directory, IMAGE the same as an ext4 file system."""

    release: str
    path: pathlib.Path

    @property
    def tree(self):
        """The root as a directory: the module is compiled in it, user-mode Linux mounts it."""
        return self.path / "tree"

    @property
    def image(self):
        """The root as an ext4 image, for QEMU."""
        return self.path / "root.ext4"

    @property
    def kernel_image(self):
        """The compressed kernel."""
        return self.path / "vmlinuz"

    @property
    def kernel_version(self):
        """The kernel's release string, as uname -r prints it."""
        return (self.path / "kernel-version").read_text().strip()


def packages(release):
    """The packages that the package lists name for RELEASE."""
    names = []
    for path in (HERE / "packages" / "common", HERE / "packages" / release):
        if path.exists():
            lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
            names += [line for line in lines if line]
    return names


def get(release):
    """The root file system of RELEASE, bootstrapped if it is not cached."""
    key = cache.digest(*packages(release), HOOK, chroot.MOUNT_POINTS, CODE)
    path = cache.entry("root", release, key, lambda work: _build(release, work))
    return Rootfs(release, path)


def _build(release, work):
    log = work / "log"
    with step(f"bootstrapping Debian {release}, {len(packages(release))} packages and what they "
              f"depend on"):
        _bootstrap(release, work, log)
    with step(f"making a file system image of Debian {release}"):
        _make_image(work, log)


def _bootstrap(release, work, log):
    command = [*chroot.ISOLATED, "mmdebstrap", "--variant=minbase", "--architectures=amd64",
               *(f"--dpkgopt={option}" for option in DPKG_OPTIONS),
               *(f"--aptopt={option}" for option in debian.apt_options()),
               f"--include={','.join(packages(release))}",
               f"--customize-hook={shlex.quote(str(HOOK))} \"$1\" {shlex.quote(str(work))}",
               release, str(work / "tree"), *debian.sources(release)]
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    with open(log, "wb") as out:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, cwd=work,
                                stderr=subprocess.STDOUT, env={**os.environ, "PATH": path},
                                check=False).returncode
    if status:
        raise VmError(f"bootstrapping Debian {release} from {debian.mirror()} failed; the end of "
                      f"mmdebstrap's output:\n{log_tail(log)}")
    for name in chroot.MOUNT_POINTS:
        (work / "tree" / name).mkdir()
    chroot.run(work / "tree", ["true"], {}, log, "trying a command in the new root")


def _make_image(work, log):
    """An ext4 image of the tree, sparse; nobody writes to it, so it needs no journal."""
    image = work / "root.ext4"
    size = sum(p.lstat().st_blocks * 512 for p in (work / "tree").rglob("*"))
    size = size * 5 // 4 + (64 << 20)
    mkfs = shutil.which("mkfs.ext4", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    command = [mkfs, "-q", "-F", "-m", "0", "-O", "^has_journal,^metadata_csum", "-E",
               "lazy_itable_init=0", "-N", "120000", "-d", str(work / "tree"), str(image),
               f"{size // 1024}k"]
    with open(log, "ab") as out:
        if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode:
            raise VmError(f"making a file system image failed:\n{log_tail(log)}")
