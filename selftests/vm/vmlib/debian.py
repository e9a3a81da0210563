# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Debian's releases, where to download them, and single packages of a release."""

import os
import pathlib
import re
import subprocess

from .errors import VmError, log_tail
from .host import KEYRING

#: Kernel series -> release that ships it.
RELEASE_OF_KERNEL = {"6.1": "bookworm", "6.12": "trixie", "7.2": "sid"}
DEFAULT_MIRROR = "http://deb.debian.org/debian"


def mirror():
    """$SROCE_MIRROR, or the mirror the host's own apt uses, or deb.debian.org."""
    if os.environ.get("SROCE_MIRROR"):
        return os.environ["SROCE_MIRROR"].rstrip("/")
    apt = pathlib.Path("/etc/apt")
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        if path.is_file():
            found = re.search(r"^(?!\s*#).*?(https?://[^/\s\]]+/debian)/?(?=\s|$)",
                              path.read_text(errors="replace"), re.MULTILINE)
            if found:
                return found.group(1)
    return DEFAULT_MIRROR


def sources(release):
    """The lines of sources.list for RELEASE, with updates and security where it has them.

    sid is signed with the keys of the current stable releases, which the host's
    debian-archive-keyring has; should it not, apt says which key is missing.
    """
    base = mirror()
    lines = [f"deb {base} {release} main"]
    if release != "sid":
        lines += [f"deb {base} {release}-updates main",
                  f"deb {base}-security {release}-security main"]
    return lines


def apt_options():
    """What to take over from the host's apt configuration, as lines of apt.conf.

    Without a proxy some networks have no way out; a mirror that stands still, such as
    a snapshot, needs Check-Valid-Until off.
    """
    names = ("Acquire::Check-Valid-Until", "Acquire::http::Proxy", "Acquire::https::Proxy")
    dump = subprocess.run(["apt-config", "dump", "--no-empty", *names], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    return dump.splitlines()


def download(package, release, directory):
    """Download PACKAGE of RELEASE into DIRECTORY and return the file.

    A private apt state is used: another release must never get into the host's
    own sources, where one install could upgrade its libc.
    """
    for name in ("lists/partial", "cache/archives/partial"):
        (directory / "apt" / name).mkdir(parents=True)
    apt = directory / "apt"
    (apt / "sources.list").write_text("\n".join(sources(release)) + "\n")
    (apt / "status").touch()
    (apt / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{apt}/sources.list"; Dir::Etc::sourceparts "/dev/null";\n'
        f'Dir::Etc::preferencesparts "/dev/null"; Dir::State::status "{apt}/status";\n'
        f'Dir::State::lists "{apt}/lists"; Dir::Cache "{apt}/cache";\n'
        f'Dir::Etc::trusted "{KEYRING}"; Dir::Etc::trustedparts "/dev/null";\n'
        'APT::Architecture "amd64"; APT::Sandbox::User "root";\n')
    environment = {**os.environ, "APT_CONFIG": str(apt / "apt.conf")}
    log = apt / "log"
    with open(log, "wb") as out:
        for command in (["update", "--error-on=any"], ["download", package]):
            status = subprocess.run(["apt-get", "-q", *command], cwd=directory, stdout=out,
                                    stderr=subprocess.STDOUT, check=False, env=environment).returncode
            if status:
                raise VmError(f"downloading {package} of {release} from {mirror()} failed at "
                              f"'apt-get {command[0]}':\n{log_tail(log)}")
    return next(directory.glob(f"{package}_*.deb"))
