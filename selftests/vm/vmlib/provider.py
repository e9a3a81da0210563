# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Builds the tree's provider for rdma-core, for the libibverbs of a Debian release.

The product is a layer of the guest's root file system: library and .driver file.
"""

import os
import pathlib
import subprocess

from . import cache, debian
from .errors import VmError, log_tail
from .progress import step

CODE = cache.code(__file__)
TREE = pathlib.Path(__file__).resolve().parents[3]
ABI_HEADER = TREE / "include/uapi/rdma/sroce-abi.h"
#: The rdma-core against whose sources it is built; 56.1 serves v39 to v56
RDMA_CORE_OF_RELEASE = {"bookworm": "56.1", "trixie": "56.1", "sid": "65.0"}
KEPT_BUILDS = 4


def get(release):
    """The layer with the provider for RELEASE, built from the tree as it is now."""
    version = RDMA_CORE_OF_RELEASE[release]
    files = sorted(path for path in (TREE / "userspace").iterdir() if path.is_file())
    key = cache.digest(version, CODE, ABI_HEADER,
                       *(item for file in files for item in (file.name, file)))
    path = cache.entry("provider", version, key, lambda work: _build(version, work))
    cache.keep_newest("provider", version, KEPT_BUILDS)
    return path / "layer"


def _build(version, work):
    log = work / "log"
    library = work / "layer/usr/lib/x86_64-linux-gnu/libibverbs"
    drivers = work / "layer/etc/libibverbs.d"
    library.mkdir(parents=True)
    drivers.mkdir(parents=True)
    environment = {**os.environ, "RDMA_CORE_VERSION": version,
                   "SROCE_CACHE": str(cache.cache_dir()), "SROCE_MIRROR": debian.mirror()}
    with step(f"building the provider against rdma-core {version}"), open(log, "wb") as out:
        status = subprocess.run([TREE / "userspace/build", library], stdin=subprocess.DEVNULL,
                                stdout=out, stderr=subprocess.STDOUT, env=environment,
                                check=False).returncode
    if status:
        raise VmError(f"the provider does not build:\n{log_tail(log, 60)}")
    (library / "sroce.driver").rename(drivers / "sroce.driver")
