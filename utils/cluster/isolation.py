"""The process that holds a cluster's tasks, in private namespaces where Linux allows that.

A TensorFlow server asks for no password, listens on every network interface, and cannot be
closed while its process lives. In a network namespace of its own nobody else can reach it; in a
process namespace of its own the kernel ends everything once the first process ends.
"""

import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import time
from pathlib import Path

HOLDER = Path(__file__).with_name("holder.py")
START = 20.0  # seconds for a small Python program to start, on a very busy machine
END = 10.0  # seconds for the holder to end its tasks; it kills them after two


class Refused(RuntimeError):
    """The holder did not start, or has ended; the message gives the reason.

    Introduced in lesson 05, behind `LocalCluster`.
    """


def private_command() -> list[str] | None:
    """Return the words before a command that give it a network and processes of its own.

    None where the program `unshare` (Linux, util-linux) is missing. Where it is there, the
    system may still refuse: then the command ends at once and says why on standard error.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    unshare = shutil.which("unshare") if sys.platform == "linux" else None
    if unshare is None:
        return None
    return [unshare, "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"]


class Holder:
    """This process's end of the two pipes to the process that holds the tasks.

    Args:
        folder: for the log file; the holder removes it when this process dies.
        private: True for namespaces of its own.

    Raises:
        Refused: the system does not allow it.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    def __init__(self, folder: Path, private: bool) -> None:
        """Start the holder and wait until it says that it is there."""
        before = private_command() if private else []
        if before is None:
            raise Refused("the program unshare (Linux, util-linux) is missing here")
        self._log = folder / "holder.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                # without site packages, which it does not need, it starts in 20 ms
                [*before, sys.executable, "-I", "-S", str(HOLDER), str(folder)]
                + ["--private"] * private,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process alone
            )
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._unread = b""
        try:
            self._greeting()
        except BaseException:
            self.close()
            raise

    def send(self, do: str, **details: object) -> None:
        """Give the holder one command; see `utils/cluster/holder.py`."""
        self._process.stdin.write(json.dumps({"do": do, **details}).encode() + b"\n")
        self._process.stdin.flush()

    def events(self, seconds: float) -> list[dict]:
        """Return what has happened, after waiting at most so long for the first event.

        Raises:
            Refused: the holder is gone.
        """
        if not self._selector.select(seconds):
            return []
        part = os.read(self._process.stdout.fileno(), 65536)
        if not part:
            lines = self._log.read_text(errors="replace").strip().splitlines()
            raise Refused(lines[-1] if lines else "without giving a reason")
        *lines, self._unread = (self._unread + part).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """End all tasks and the holder; nothing of the cluster is alive afterwards."""
        with contextlib.suppress(BrokenPipeError):  # it has gone already
            self.send("stop")
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END)
        finally:  # the kernel ends its tasks with it
            self._process.kill()
            self._process.wait()
            self._selector.close()
            self._process.stdout.close()

    def _greeting(self) -> None:
        end = time.monotonic() + START
        while not self.events(max(0.0, end - time.monotonic())):
            if time.monotonic() >= end:
                raise Refused(f"the process that holds the tasks did not start in {START:g} s")
