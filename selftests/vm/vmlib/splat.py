# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Recognises what a kernel prints when it has found a bug."""

import re

#: Lines that begin a kernel's bug report, matched after the time stamp.
PATTERNS = (
    r"-+\[ cut here \]-+",
    r"WARNING: ",                       # WARN(), lockdep, RCU usage
    r"(\[ )?BUG[: ]",                   # KASAN, atomic sleep, bad pages, SLUB, lockdep
    r"kernel BUG at ",
    r"watchdog: BUG: ",
    r"Oops\b",
    r"general protection fault",
    r"Kernel panic",
    r"UBSAN: ",
    r"ODEBUG: ",
    r"DEBUG_LOCKS_WARN_ON",
    r"INFO: task .* blocked for more than",
    r"INFO: (possible|trying to register non-static key|inconsistent)",
    r"(rcu: )?INFO: rcu\S* (self-)?detected",
    r"refcount_t: ",
    r"list_(add|del) corruption",
    r"unregister_netdevice: waiting for ",
    r"ref_tracker: .* has .* users",
    r"kmemleak: [1-9]",
    r"scheduling while atomic",
    r"slab .* (Objects remaining|objects remaining)",
    r"unreferenced object ",
)
# time stamp, caller id, subsystem of a workqueue lockup
PREFIX = r"^(<\d+>)?(\[ *\d+\.\d+\] *)?(\[ *[TC]\d+\] *)?"
SPLAT = re.compile(PREFIX + "(?:" + "|".join(PATTERNS) + ")")

#: The kernel changes its code while it runs, by way of int3 instructions.  QEMU before 8.1 may
#: run one whose handler is told nothing about it, since it has been replaced already.
STRAY_INT3 = re.compile(r"int3: 0000 \[#1\]")

CONTEXT_BEFORE = 3
CONTEXT_AFTER = 100


def excerpt(text):
    """The first splat in console output TEXT with its surroundings, or None."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if SPLAT.match(line):
            start = max(0, number - CONTEXT_BEFORE)
            return "\n".join(lines[start:number + CONTEXT_AFTER])
    return None


def emulator_failed(text):
    """Whether the first splat in console output TEXT is QEMU's fault."""
    first = next((line for line in text.splitlines() if SPLAT.match(line)), "")
    return bool(STRAY_INT3.search(first))
