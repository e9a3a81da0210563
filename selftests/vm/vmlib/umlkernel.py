# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Builds user-mode Linux from Debian's package of the kernel's sources.

It is built in the root file system whose programs run in it, at fixed paths, so that
modules can be built against it later: sources at /linux, products at /kernel.
"""

import os
import pathlib
import re
import shutil

from . import cache, chroot, debian, kernels, rootfs
from .errors import VmError
from .progress import step

CODE = cache.code(__file__)
HERE = pathlib.Path(__file__).resolve().parent.parent
SERIES = "7.2"
SOURCE_RELEASE = "sid"
#: Also where the kernel is built: its binary runs on hosts with this C library or a newer one.
ROOT_RELEASE = "bookworm"
#: Each says at its top what it is for.
PATCHES = (HERE / "uml-crc.patch", HERE / "uml-stacktrace.patch")
#: Configuration fragments of a backend's kernel, merged in this order.
FRAGMENTS = {"uml": ("uml.config",), "uml-debug": ("uml.config", "uml-debug.config")}
#: Not unpacked: other architectures, and code for hardware that this one cannot have.  Its
#: Kconfig files stay.
UNUSED_SOURCES = ("arch/[a-tv-w]*/*.[chS]", "arch/*/boot/dts/*.dts*", "Documentation/*/*",
                  "sound/*.[ch]", "drivers/gpu/*.[ch]", "drivers/media/*.[ch]",
                  "drivers/staging/*.[ch]", "drivers/net/wireless/*.[ch]",
                  "drivers/net/ethernet/*.[ch]", "tools/testing/*", "tools/perf/*")
#: Not needed to build modules.
UNUSED_PRODUCTS = re.compile(r"(\.o|\.a|\.cmd|\.ko|\.mod|\.mod\.c|\.order)$")


def get(backend):
    """The kernel for BACKEND, uml or uml-debug, built if it is not cached."""
    root = rootfs.get(ROOT_RELEASE)
    source = _source(root)
    fragments = [HERE / name for name in FRAGMENTS[backend]]
    key = cache.digest(source.name, CODE, *fragments)
    path = cache.entry("uml", backend, key,
                       lambda work: _build(backend, root, source, fragments, work))
    version = (path / "kernel-version").read_text().strip()
    return kernels.Kernel(name=backend, version=version, rootfs=root, image=path / "linux",
                          layer=path / "layer", modules=path / "layer/usr/lib/modules" / version,
                          build_dir="/kernel",
                          build_binds={source / "linux": "/linux", path / "build": "/kernel"},
                          make_arguments=("ARCH=um",))


def _source(root):
    """The kernel's sources, unpacked and patched, in the entry's directory linux."""
    key = cache.digest(CODE, *PATCHES)
    return cache.entry("linux", SERIES, key, lambda work: _fetch_source(root, work))


def _fetch_source(root, work):
    with step(f"downloading the sources of Linux {SERIES}"):
        download = work / "download"
        download.mkdir()
        deb = debian.download(f"linux-source-{SERIES}", SOURCE_RELEASE, download)
    log = work / "log"
    with step(f"unpacking the sources of Linux {SERIES}"):
        (work / "all.patch").write_bytes(b"".join(patch.read_bytes() for patch in PATCHES))
        script = (f"cd /build && mkdir linux && "
                  f"dpkg-deb --fsys-tarfile download/{deb.name} | "
                  f"tar -xOf - ./usr/src/linux-source-{SERIES}.tar.xz | xz -dcT0 | "
                  f"tar -xf - -C linux --strip-components=1 "
                  + " ".join(f"--exclude='linux-source-*/{pattern}'" for pattern in UNUSED_SOURCES)
                  + " && patch -d linux -p1 < all.patch")
        chroot.run(root.tree, ["bash", "-o", "pipefail", "-c", script], {work: "/build"}, log,
                   "unpacking")
    shutil.rmtree(download)


def _build(backend, root, source, fragments, work):
    log = work / "log"
    build = work / "build"
    build.mkdir()
    wanted = [line for file in fragments for line in file.read_text().splitlines()
              if line.startswith("CONFIG_")]
    (build / "wanted.config").write_text("\n".join(wanted) + "\n")
    binds = {source / "linux": "/linux", build: "/kernel", work: "/build"}
    make = ["make", "-C", "/linux", "ARCH=um", "O=/kernel", f"-j{os.cpu_count()}"]

    with step(f"building Linux {SERIES} for {backend} (minutes)"):
        chroot.run(root.tree, ["env", "KCONFIG_ALLCONFIG=/kernel/wanted.config", *make,
                               "alldefconfig"], binds, log, "configuring the kernel")
        _check_config(wanted, (build / ".config").read_text())
        chroot.run(root.tree, [*make, "all"], binds, log, "building the kernel")
        chroot.run(root.tree, [*make, "INSTALL_MOD_PATH=/build/layer/usr", "modules_install"],
                   binds, log, "installing the kernel's modules")
    version = (build / "include/config/kernel.release").read_text().strip()
    (work / "kernel-version").write_text(version + "\n")
    modules = work / "layer/usr/lib/modules" / version
    (modules / "build").unlink(missing_ok=True)     # it would dangle
    shutil.move(build / "linux", work / "linux")
    _trim(build)


def _check_config(wanted, got):
    """Kconfig drops what it cannot satisfy without a word; make that an error."""
    values = dict(line.split("=", 1) for line in got.splitlines() if line.startswith("CONFIG_"))
    # a later fragment overrides an earlier one
    for name, value in dict(line.split("=", 1) for line in wanted).items():
        if values.get(name, "n") != value:
            raise VmError(f"the kernel's configuration wants {name}={value}, "
                          f"but gets {values.get(name, 'n')}")


def _trim(build):
    """Remove build products that modules are not built from."""
    for directory, _, names in os.walk(build):
        if pathlib.Path(directory).relative_to(build).parts[:1] in (("scripts",), ("tools",)):
            continue
        for name in names:
            if UNUSED_PRODUCTS.search(name) or name.startswith("vmlinux"):
                os.unlink(os.path.join(directory, name))
