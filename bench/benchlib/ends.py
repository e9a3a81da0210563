# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The two ends that a subject is measured between, and running programs on them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
#: Seconds after which a program counts as hung: a guard, not a limit on speed
HANG = 60
POLL_SECONDS = 0.01


class Failure(Exception):
    """A measurement that gave no figure; the text says why."""


class Ends:
    """Both ends of one subject over one path; made by the constructor."""

    def __init__(self, subject, path, mtu, environment):
        self.subject, self.path, self.mtu = subject, path, mtu
        self.environment = {**os.environ, **environment}
        self._port = 20000 + 2000 * subject.number + 1000 * (path == "lo")
        made = self._script("up")
        self.names = dict(line.split("=", 1) for line in made.splitlines() if "=" in line)

    def _script(self, action):
        done = subprocess.run([HERE / "ends.sh", action, self.subject.name,
                               str(self.subject.number), self.path, str(self.mtu)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise Failure(done.stdout.strip()[-2000:])
        return done.stdout

    def down(self):
        """Remove them."""
        self._script("down")

    def set_mtu(self, mtu):
        """Change the interfaces' MTU; the RDMA devices follow."""
        if self.path == "lo" or mtu == self.mtu:
            return
        for side in "AB":
            done = self.start(side, ["ip", "link", "set", self.names[f"IF_{side}"],
                                     "mtu", str(mtu)])
            output, _ = done.communicate()
            if done.returncode:
                raise Failure(f"MTU {mtu}: {output.strip()}")
        self.mtu = mtu

    def port(self):
        """A TCP port that was not used before."""
        self._port += 1
        return self._port

    def address(self, side, family):
        """The IP address of SIDE, A or B."""
        return self.names[f"IP{family}_{side}"]

    def device(self, side):
        """The name of its RDMA device."""
        return self.names[f"DEV_{side}"]

    def gid_index(self, side, family):
        """The index of the GID that belongs to its address."""
        return self.names[f"GID{family}_{side}"]

    def start(self, side, command, env=None):
        """Start COMMAND on SIDE, in a session of its own; its pid is that of the program."""
        space = self.names[f"NS_{side}"]
        prefix = ["ip", "netns", "exec", space] if space else []
        # pylint: disable-next=consider-using-with
        return subprocess.Popen([*prefix, *(str(word) for word in command)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.STDOUT, start_new_session=True,
                                env={**self.environment, **(env or {})})

    @contextlib.contextmanager
    def server(self, command, ready, stays):
        """A server on B while the body runs; READY(pid) tells when it can be talked to.

        A server that STAYS never ends by itself; of any other the end is waited for.
        """
        process = self.start("B", command)
        try:
            deadline = time.monotonic() + HANG
            while process.poll() is None and not ready(process.pid):
                if time.monotonic() > deadline:
                    raise Failure(f"{command[0]} does not listen")
                time.sleep(POLL_SECONDS)
            yield process
            if not stays:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=HANG)
        finally:
            end(process)

    def client(self, command):
        """Run COMMAND on A to its end and return its output."""
        process = self.start("A", command)
        return finish(process, command)


def finish(process, command):
    """Wait for PROCESS, and return what it printed."""
    try:
        output, _ = process.communicate(timeout=HANG)
    except subprocess.TimeoutExpired:
        end(process)
        raise Failure(f"{command[0]}: no end within {HANG} s") from None
    if process.returncode:
        last = [line for line in output.splitlines() if line.strip("- ")][-3:]
        raise Failure(f"{command[0]}: exit status {process.returncode}: {' / '.join(last)}")
    return output


def end(process):
    """End PROCESS and what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def listens(port):
    """A function that tells whether a process's namespace has a TCP listener on PORT."""
    pattern = f":{port:04X} "

    def ready(pid):
        for name in ("tcp", "tcp6"):
            try:
                lines = pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
            except OSError:
                return True     # it has ended, which the client will notice
            if any(pattern in line.split(" 0A ")[0] for line in lines if " 0A " in line):
                return True
        return False

    return ready
