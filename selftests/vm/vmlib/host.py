# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the host must have: programs (and the Debian packages with them), and root."""

import os
import pathlib
import platform
import shutil

from .errors import VmError

#: program -> Debian package
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "mmdebstrap": "mmdebstrap",
    "mkfs.ext4": "e2fsprogs",
    "unshare": "util-linux",
    "zstd": "zstd",
    "setpriv": "util-linux",
    "chroot": "coreutils",
    "dpkg-deb": "dpkg",
    "apt-get": "apt",
}
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def missing_packages():
    """The Debian packages whose programs or files the host lacks, sorted."""
    # sbin is not in every user's PATH
    path = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    missing = {pkg for prog, pkg in PROGRAMS.items() if not shutil.which(prog, path=path)}
    if not KEYRING.exists():
        missing.add("debian-archive-keyring")
    return sorted(missing)


def check():
    """Raise VmError when the host cannot build and run guests."""
    if platform.machine() != "x86_64":
        raise VmError("guests are x86-64, and so must the host be: the module is built natively")
    missing = missing_packages()
    if missing:
        raise VmError(f"these packages are missing: {' '.join(missing)}\n"
                      f"selftests/vm/deps installs them on Debian")
    if os.geteuid() != 0:
        raise VmError("root is needed: guests' root file systems are built and the module is "
                      "compiled in chroots (sudo selftests/vm/vm ...)")
