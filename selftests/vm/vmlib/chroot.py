# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs commands in a guest's root file system, in mount and PID namespaces of their own.

Mounts vanish with the command, and so do its processes, whatever happens to the
runner.  The root itself is read-only, so commands side by side cannot spoil it.
"""

import subprocess

from .errors import VmError, log_tail

#: Where directories can be bound; made when a root is bootstrapped.
MOUNT_POINTS = ("build", "linux", "kernel")

# $1 is the root, then SOURCE TARGET pairs, "--", and the command.
SCRIPT = """
set -e
root=$1; shift
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
    mount --bind "$1" "$root$2"
    shift 2
done
shift
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind /dev "$root/dev"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"
"""

#: Prefix of a command that takes its processes and mounts with it when it or we end.  The
#: shell is there since a process that is number 1 of its namespace ignores signals.
ISOLATED = ("setpriv", "--pdeathsig", "KILL",
            "unshare", "--mount-proc", "--pid", "--fork", "--kill-child",
            "sh", "-c", '"$@"; exit $?', "sh")


def run(root, command, binds, log, what):
    """Run COMMAND in ROOT with BINDS {directory: path in the root}; output goes to file LOG.

    Raises VmError, with the end of the log, when the command fails.
    """
    pairs = [str(item) for pair in binds.items() for item in pair]
    argv = [*ISOLATED, "sh", "-c", SCRIPT, "sh", str(root), *pairs, "--", *command]
    with open(log, "ab") as out:
        status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT, check=False).returncode
    if status:
        raise VmError(f"{what} failed (status {status}):\n{log_tail(log)}")
