"""The process that holds a cluster's tasks, in private namespaces where Linux allows that.

A TensorFlow server asks for no password, listens on every network interface, and cannot be
closed while its process lives. In a network namespace of its own nobody else can reach it; in a
process namespace of its own the kernel ends everything once the first process ends.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from utils.cluster.forked import Forked, WarmProcess

HOLDER = Path(__file__).parents[1] / "task" / "holder.py"
START = 20.0  # seconds for a small Python program to start, on a very busy machine
END = 10.0  # seconds for the holder to end its tasks; it kills them after two
LOOK = 0.2  # seconds between two calls of what shows that it takes time


class Refused(RuntimeError):
    """The holder did not start, or has ended; the message gives the reason.

    Introduced in lesson 05, behind `LocalCluster`.
    """


class HolderPipes:
    """This process's ends of the two pipes to the process that holds the tasks.

    Args:
        folder: for the log file; the holder removes it when this process dies.
        private: True for namespaces of its own.
        warm: what forks the holder; None starts it anew.
        seconds: how long to wait for it.
        meanwhile: called again and again while it is waited for.

    Raises:
        Refused: the system does not allow it, or it has not started in time.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    def __init__(
        self,
        folder: Path,
        private: bool,
        warm: WarmProcess | None = None,
        seconds: float = START,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the holder and wait until it says that it is there."""
        if private and sys.platform != "linux":
            raise Refused("a private network needs Linux")
        self.warm = warm
        self._folder = folder
        self._process: subprocess.Popen | Forked | None = None
        commands, self._commands = os.pipe()
        self._events, events = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._events, selectors.EVENT_READ)
        self._unread = b""
        try:
            try:
                self._start(private, commands, events)
            finally:
                os.close(commands)
                os.close(events)
            self._greeting(seconds, meanwhile)
        except BaseException:
            self.close()
            raise

    def _start(self, private: bool, commands: int, events: int) -> None:
        if self.warm:
            try:
                self.warm.fork_holder([commands, events], folder=str(self._folder), private=private)
            except OSError as gone:
                raise Refused(f"the process with TensorFlow is gone ({gone})") from gone
            return
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                # without site packages, which it does not need, it starts in 20 ms
                [sys.executable, "-I", "-S", str(HOLDER), str(self._folder)]
                + ["--private"] * private,
                stdin=commands,
                stdout=events,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process alone
            )

    @property
    def _log(self) -> Path:
        return self._folder / "holder.log"

    def send(self, do: str, **details: object) -> None:
        """Give the holder one command; see `utils/task/holder.py`."""
        text = json.dumps({"do": do, **details}).encode() + b"\n"
        while text:
            text = text[os.write(self._commands, text) :]

    def events(self, seconds: float) -> list[dict]:
        """Return what has happened, after waiting at most so long for the first event.

        Raises:
            Refused: the holder is gone.
        """
        if not self._selector.select(seconds):
            return []
        part = os.read(self._events, 65536)
        if not part:
            text = self._log.read_text(errors="replace") if self._log.exists() else ""
            raise Refused((text.strip().splitlines() or ["without giving a reason"])[-1])
        *lines, self._unread = (self._unread + part).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """End all tasks and the holder; nothing of the cluster is alive afterwards."""
        with suppress(BrokenPipeError):  # it has gone already
            self.send("stop")  # one that has not come yet will read it
        os.close(self._commands)
        try:
            if self._process:
                self._end()
        finally:
            self._selector.close()
            os.close(self._events)

    def _end(self) -> None:
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END)
        finally:  # Linux ends its tasks with it
            self._process.kill()
            self._process.wait(END)

    def _greeting(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        end = time.monotonic() + seconds
        while not (said := self.events(max(0.0, min(LOOK, end - time.monotonic())))):
            if time.monotonic() >= end:
                raise Refused(f"the process that holds the tasks did not start in {seconds:g} s")
            meanwhile()
        if self.warm:
            try:
                self._process = Forked(said[0]["pid"])
            except ProcessLookupError as gone:
                raise Refused("it has ended at once") from gone
