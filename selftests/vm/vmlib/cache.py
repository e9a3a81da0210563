# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The cache of everything downloaded or built, outside the source tree.

An entry is a directory CACHE/KIND/NAME-HASH whose hash covers all of its inputs.
It is made in a temporary directory and renamed when complete, under a lock, so
runs side by side neither clash nor see half an entry.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import time

from .progress import say

#: In hexadecimal digits
DIGEST_LENGTH = 12


def cache_dir():
    """The cache's directory: $SROCE_CACHE, or sroce in the user's cache directory."""
    if os.environ.get("SROCE_CACHE"):
        return pathlib.Path(os.environ["SROCE_CACHE"]).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base).resolve() / "sroce"


def code(file):
    """The source of a module, to be read when it is imported: the file may change under a run."""
    return pathlib.Path(file).read_text(encoding="utf-8")


def digest(*inputs):
    """A short hash of INPUTS: a path stands for its file's content, all else for its text."""
    sha = hashlib.sha256()
    for item in inputs:
        data = item.read_bytes() if isinstance(item, pathlib.Path) else str(item).encode()
        sha.update(len(data).to_bytes(8, "little") + data)
    return sha.hexdigest()[:DIGEST_LENGTH]


@contextlib.contextmanager
def lock(name):
    """Hold CACHE/locks/NAME exclusively; the kernel drops it if we die."""
    path = cache_dir() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that makes {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def entry(kind, name, key, build):
    """Return the directory of an entry; when it is missing, BUILD(directory) makes it."""
    final = cache_dir() / kind / f"{name}-{key}"
    if not final.is_dir():
        with lock(f"{kind}-{name}"):
            if not final.is_dir():
                _make(final, build)
    os.utime(final)
    return final


def keep_newest(kind, name, count, min_age=12 * 3600):
    """Remove entries of KIND and NAME but the COUNT last used ones and recent ones.

    A guest may still run with an old one, hence the age, in seconds.
    """
    entries = list((cache_dir() / kind).glob(f"{name}-{'[0-9a-f]' * DIGEST_LENGTH}"))
    entries.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for old in entries[count:]:
        if time.time() - old.stat().st_mtime > min_age:
            shutil.rmtree(old, ignore_errors=True)


def _make(final, build):
    work = final.with_name(final.name + ".tmp")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        build(work)
        work.rename(final)
    finally:
        shutil.rmtree(work, ignore_errors=True)
