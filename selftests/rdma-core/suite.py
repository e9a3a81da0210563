#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Run rdma-core's test suite and say in TAP how it went.

usage: suite.py DIRECTORY SKIPS DEVICE PROVIDER VERSION [PATTERN]

  DIRECTORY  the suite
  SKIPS      file of the tests that are expected to be skipped, see there
  DEVICE     RDMA device
  PROVIDER   rxe or sroce, and VERSION of rdma-core: which lines of SKIPS count
  PATTERN    only tests whose name matches

A test that is skipped and not listed has failed, and so has one that is listed and
was not skipped, and a line that no test matches.
"""

import errno
import fnmatch
import gc
import importlib.util
import multiprocessing
import os
import sys
import time
import traceback
import unittest


class Expected:
    """The lines of the file of skips that count here."""

    def __init__(self, path, provider, version):
        self.lines = []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                line = line.split("#")[0].strip()
                if not line:
                    continue
                try:
                    pattern, where, reason = line.split(None, 2)
                except ValueError:
                    sys.exit(f"{path}:{number}: not a pattern, where, and a reason")
                if all(self._here(part, provider, version) for part in where.split(":")):
                    self.lines.append((pattern, reason))
        self.used = set()

    @staticmethod
    def _here(part, provider, version):
        return any(word in ("any", provider) or word == version or
                   (word.endswith("+") and int(version) >= int(word[:-1]))
                   for word in part.split(","))

    def reason(self, name):
        """Why this test is expected to be skipped, or None."""
        for line in self.lines:
            if fnmatch.fnmatchcase(name, line[0]):
                self.used.add(line)
                return None if line[1] == "-" else line[1]
        return None

    def unused(self):
        """Lines that no test matched."""
        return [line for line in self.lines if line not in self.used]


class Tap(unittest.TestResult):
    """Prints a line for each test as it ends."""

    def __init__(self, expected):
        super().__init__()
        self.expected = expected
        self.number = 0
        self.failed = 0
        self.began = 0
        self.bad = None

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def point(self, good, name, note="", why=""):
        """Print a test point; WHY is shown behind one that failed."""
        self.number += 1
        self.failed += not good
        print(f"{'' if good else 'not '}ok {self.number} - {name}{note}")
        for line in why.splitlines()[-30:]:
            print(f"#   {line}")
        sys.stdout.flush()

    def addSuccess(self, test):
        name = test.id().removeprefix("tests.")
        reason = self.expected.reason(name)
        if reason:
            self.point(False, name, why=f"passed, though it is listed as a skip: {reason}")
        else:
            self.point(True, name)

    def addSkip(self, test, reason):
        name = test.id().removeprefix("tests.")
        listed = self.expected.reason(name)
        if listed:
            self.point(True, name, f" # SKIP {listed}")
        else:
            self.point(False, name, why=f"skipped, and not listed: {reason}")

    def _add_bad(self, test, error):
        listed = self.expected.reason(test.id().removeprefix("tests."))
        # some tests do not skip what the provider does not have
        if listed and getattr(error[1], "error_code", None) == errno.EOPNOTSUPP:
            self.point(True, test.id().removeprefix("tests."), f" # SKIP {listed}")
            return
        self.point(False, test.id().removeprefix("tests."),
                   why="".join(traceback.format_exception(*error)))

    def addFailure(self, test, err):
        self._add_bad(test, err)

    def addError(self, test, err):
        self._add_bad(test, err)

    def addSubTest(self, test, subtest, err):
        if err:
            self._add_bad(test, err)


def tests_of(suite):
    """All tests of a suite of suites, in their order."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def load(directory, device):
    """The suite's tests."""
    sys.path[:0] = [directory, os.path.dirname(directory)]
    sys.argv = ["run_tests.py", "--dev", device]
    # the suite's modules find their command line in this one
    args_parser = importlib.import_module("args_parser")
    args_parser.parser.parse_args()
    package = importlib.import_module("tests")
    return list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(package)))


def main():
    """Command line."""
    directory, skips, device, provider, version = sys.argv[1:6]
    # what the suite was written for, and Python's default until 3.14
    multiprocessing.set_start_method("fork")
    # pyverbs does not survive that Python frees what a test left in a cycle: objects may
    # go after their context
    gc.disable()
    pattern = sys.argv[6] if len(sys.argv) > 6 else "*"
    result = Tap(Expected(skips, provider, version))
    tests = [t for t in load(directory, device)
             if fnmatch.fnmatchcase(t.id().removeprefix("tests."), pattern)]
    print(f"TAP version 13\n# rdma-core {version}, {len(tests)} tests, device {device}",
          flush=True)
    unittest.TestSuite(tests).run(result)
    if pattern == "*":
        for line in result.expected.unused():
            result.point(False, f"skips: {line[0]}", why="no test matches it")
    print(f"1..{result.number}")
    return 1 if result.failed else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)	# nor that it frees it at the end
