# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Builds the sroce module for a kernel, in that kernel's root file system.

The product is a layer of the guest's root file system: the module, and the module
indexes (modules.dep, modules.alias ...) of the whole kernel with the module in them.
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile

from . import cache, chroot
from .errors import VmError, log_tail
from .progress import step

CODE = cache.code(__file__)
#: The project's tree
TREE = pathlib.Path(__file__).resolve().parents[3]
SOURCE_NAMES = ("Kbuild", "Makefile", "Kconfig")
SOURCE_SUFFIXES = (".c", ".h", ".S")
KEPT_BUILDS = 8


def get(kernel):
    """The layer with the module for KERNEL, built from the tree as it is now."""
    with tempfile.TemporaryDirectory(prefix="sroce-src-") as copy:
        # hash and build the same copy: the tree may be edited meanwhile
        copy = pathlib.Path(copy)
        files = _copy_sources(copy)
        owner = kernel.layer.parent if kernel.layer else kernel.rootfs.path
        key = cache.digest(owner.name, CODE,
                           *(item for file in files for item in (file, copy / file)))
        path = cache.entry("module", kernel.name, key, lambda work: _build(kernel, copy, work))
    cache.keep_newest("module", kernel.name, KEPT_BUILDS)
    return path / "layer"


def _copy_sources(copy):
    """Copy what the module is built from; returns the names, sorted."""
    files = [pathlib.Path("Kbuild")]
    for top in ("drivers", "include"):
        for directory, _, names in os.walk(TREE / top):
            files += [(pathlib.Path(directory) / name).relative_to(TREE) for name in names
                      if name in SOURCE_NAMES
                      or name.endswith(SOURCE_SUFFIXES) and not name.endswith(".mod.c")]
    for file in files:
        (copy / file.parent).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TREE / file, copy / file)
    return sorted(str(file) for file in files)


def _build(kernel, copy, work):
    log = work / "log"
    build = work / "build"
    shutil.copytree(copy, build)
    modules = work / "layer/usr/lib/modules" / kernel.version
    (modules / "updates").mkdir(parents=True)
    binds = {**kernel.build_binds, build: "/build"}
    with step(f"building the module for {kernel.name} ({kernel.version})"):
        try:
            chroot.run(kernel.rootfs.tree,
                       ["make", "-C", kernel.build_dir, "M=/build", f"-j{os.cpu_count()}",
                        *kernel.make_arguments, "modules"],
                       binds, log, "make")
        except VmError:
            raise VmError(f"the module does not build for {kernel.name}:\n"
                          f"{_source_names(log_tail(log, 60))}") from None
        for file in build.rglob("*.ko"):
            shutil.copyfile(file, modules / "updates" / file.name)
        shutil.rmtree(build)
        _index(kernel, work / "layer/usr", log)
    for line in log.read_text(errors="replace").splitlines():
        if "warning:" in line or "WARNING:" in line:
            print(_source_names(line), file=sys.stderr)


def _index(kernel, usr, log):
    """Run depmod over the kernel's modules and ours, which are in the layer's directory USR."""
    relative = f"lib/modules/{kernel.version}"
    modules = usr / relative
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copyfile(kernel.modules / name, modules / name)
    (modules / "kernel").mkdir()
    chroot.run(kernel.rootfs.tree, ["depmod", "-b", "/build", kernel.version],
               {usr: "/build", kernel.modules / "kernel": f"/build/{relative}/kernel"}, log,
               "indexing the modules")
    (modules / "kernel").rmdir()


def _source_names(text):
    """Compiler messages name the copy; make them name files of the tree."""
    return re.sub(r"(?<![\w/])/build/", "", text)
