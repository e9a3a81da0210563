# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Progress on stderr: one line per step, with its elapsed time."""

import contextlib
import sys
import time


def say(text):
    """Print one line for the user."""
    print(f"vm: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(what):
    """Print "vm: WHAT ... SECONDS s" around the body, the first half at once."""
    print(f"vm: {what} ... ", end="", file=sys.stderr, flush=True)
    start = time.monotonic()
    outcome = "failed after "
    try:
        yield
        outcome = ""
    finally:
        print(f"{outcome}{time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
