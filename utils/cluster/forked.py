"""Processes that are forked from one that has imported TensorFlow, so that they start at once.

Where that is not safe, tasks are started anew, as interpreters of their own.
"""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

WARM = Path(__file__).parents[1] / "task" / "warm.py"
# A program says so if it sets nothing, before its import of TensorFlow, that this import reads.
CHOICE = re.compile(r"^START_WARM = True\b", re.MULTILINE)
# What differs between tasks, or tests, and is read after the import or never.
LATE = frozenset({"TF_CONFIG", "CUDA_VISIBLE_DEVICES", "PYTEST_CURRENT_TEST"})
GPUS = ("nvidia[0-9]*", "kfd", "dxg")  # in /dev: of NVIDIA, of AMD, under Windows
ROOM = 4000  # characters of a task's command line that `ps` can show
_lock = threading.Lock()  # two threads may start clusters
_process: "WarmProcess | None" = None


def can_fork(program: Path) -> bool:
    """Tell whether a program wants to be forked, and the system is one where that works.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    able = sys.platform == "linux" and hasattr(os, "pidfd_open")
    return able and bool(CHOICE.search(program.read_text(encoding="utf-8", errors="replace")))


def warm_environment(env: Mapping[str, str]) -> dict[str, str] | None:
    """Return what a process must have imported TensorFlow with to be a task with this environment.

    None where the task may see a GPU: what a driver holds does not survive a fork.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    hidden = env.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if not hidden and any(next(Path("/dev").glob(name), None) for name in GPUS):
        return None
    return {name: value for name, value in env.items() if name not in LATE}


class Forked:
    """A process that is no child of this one, by a descriptor: its number may be given anew.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    def __init__(self, pid: int) -> None:
        """Take hold of a process; one that has ended already raises ProcessLookupError."""
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._descriptor)

    def wait(self, seconds: float) -> None:
        """Return once it has ended; raise TimeoutExpired if it does not in time."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired(f"process {self.pid}", seconds)

    def kill(self) -> None:
        """Send SIGKILL."""
        with suppress(ProcessLookupError):  # it has ended
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)


class WarmProcess:
    """The process that has imported TensorFlow; it ends with this one, however that happens.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        """Start it; requests may be sent before it is there."""
        self.environment = environment
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, str(WARM), "." * ROOM],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment | {"CUDA_VISIBLE_DEVICES": "-1"},
                cwd="/",
                start_new_session=True,  # Ctrl-C is for this process alone
            )

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._child.poll() is None

    def close(self) -> None:
        """Let it end, and wait for that."""
        self._socket.close()
        self._child.wait()

    def fork_holder(self, descriptors: list[int], **arguments: object) -> None:
        """Ask for a holder; an OSError says that the process is gone."""
        socket.send_fds(self._socket, [json.dumps(arguments).encode()], descriptors)


def warm_process(environment: dict[str, str]) -> WarmProcess | None:
    """Return this kernel's warm process, started if there is none; None if it has another import.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    global _process
    with _lock:
        if _process and not _process.alive:
            _process.close()
            _process = None
        _process = _process or WarmProcess(environment)
        return _process if _process.environment == environment else None
