# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Exit statuses of the runner's own, and the error that carries a message to the user."""

import pathlib

#: The emulator failed, not the guest: to be run again.
EXIT_EMULATOR = 98
#: The guest's kernel reported a bug (warning, oops, lockdep, KASAN, stall ...).
EXIT_SPLAT = 99
#: The guest did not finish in time.
EXIT_TIMEOUT = 124
#: The runner itself failed: a download, a build, a boot.
EXIT_RUNNER = 125


class VmError(Exception):
    """Something the user should read, without a traceback."""


def log_tail(log, lines=40):
    """The last LINES lines of file LOG, for such a message."""
    return "\n".join(pathlib.Path(log).read_text(errors="replace").splitlines()[-lines:])
