"""Children that train, each in its way, and rounds in which they take turns.

Only those whose turn it is work; the others wait for their input. So the state of the machine is
the same for all, and what is compared was measured within the same seconds.
"""

import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools import nbenv
from tools.bench_figure import watched

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 180  # seconds until a child that does not answer is ended
WARM_UP = 3  # steps; the first builds the graph
TURN = 0.5  # seconds
TURNS = 4  # of each way, in a round of the command
LEAST = 2  # steps in a turn
MEMORY = 0.8  # GB that a child may need


class ChildFailed(RuntimeError):
    """A child ended, or did not answer in time; the message has what it wrote last."""


class Child:
    """A process of `tools.bench_child`, or of another command that answers as it does."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.cpu = 0.0  # its processor seconds, as of its last answer
        self.loss = math.nan
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (close() closes it)
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "1"}
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**nbenv.apply(dict(os.environ)), **quiet},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def ready(self) -> None:
        """Wait until it has imported TensorFlow and waits for orders."""
        self._line()

    def ask(self, steps: int) -> None:
        """Let it work on so many steps."""
        with contextlib.suppress(BrokenPipeError):  # the answer will say why
            self._process.stdin.write(f"{steps}\n")
            self._process.stdin.flush()

    def answer(self) -> list[float]:
        """Wait for the seconds of each of these steps."""
        found = self._line()
        self.cpu, self.loss = found["cpu"], found["loss"]
        return found["seconds"]

    def close(self) -> None:
        """End it: it stops at the end of its input."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def _line(self) -> dict:
        timer = threading.Timer(DEADLINE, self._process.kill)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            code = self._process.wait()
            self._log.seek(0)
            last = " ".join(self._log.read().split()[-60:])
            raise ChildFailed(
                f"The process for {self.name!r} ended with code {code} instead of answering. "
                f"The end of what it wrote: {last or '(nothing)'}"
            )
        return json.loads(line)


def command(*arguments: object) -> list[str]:
    """The command line of a child."""
    return [sys.executable, "-m", "tools.bench_child", *map(str, arguments)]


@contextlib.contextmanager
def started(commands: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Child]]:
    """Children by name, all ready; they end with the block."""
    with contextlib.ExitStack() as stack:
        children = {}
        for name, words in commands.items():
            children[name] = Child(name, words)
            stack.callback(children[name].close)
        for child in children.values():
            child.ready()
        yield children


def turn(children: Sequence[Child], steps: int) -> list[float]:
    """Let these children work at the same time; return the seconds of all their steps."""
    for child in children:
        child.ask(steps)
    return [seconds for child in children for seconds in child.answer()]


def take_turns(
    players: Mapping[str, Sequence[Child]], steps: Mapping[str, int], turns: int
) -> dict[str, list[float]]:
    """The seconds of every step, by player; every second time round it goes backwards."""
    times: dict[str, list[float]] = {name: [] for name in players}
    for number in range(turns):
        names = list(players)
        for name in names[::-1] if number % 2 else names:
            times[name] += turn(players[name], steps[name])
    return times


def steps_for(seconds: float, times: Sequence[float]) -> int:
    """How many steps fill a turn of so many seconds."""
    return max(LEAST, round(seconds / min(times)))


def check_alike(children: Sequence[Child], tolerance: float = 1e-3) -> None:
    """Raise unless the children, after equally many steps, have the same loss."""
    first = children[0]
    for child in children:
        if not math.isclose(child.loss, first.loss, rel_tol=tolerance):
            raise RuntimeError(
                f"{child.name!r} has the loss {child.loss}, but {first.name!r} {first.loss}, after "
                "the same steps: they do not train alike, so their times say nothing."
            )


class Times(NamedTuple):
    """Seconds of a step: the best, the quartiles around the median, and the median."""

    best: float
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, times: Sequence[float]) -> "Times":
        low, median, high = statistics.quantiles(times, n=4, method="inclusive")
        return cls(min(times), low, median, high)

    def faster(self, than: "Times") -> tuple[float, float]:
        """How many times as fast: by the best steps, and by the median ones."""
        return than.best / self.best, than.median / self.median

    def cells(self) -> tuple[float, float, str]:
        """Best and median in milliseconds, and between which times the middle half lies."""
        return self.best * 1e3, self.median * 1e3, f"{self.low * 1e3:.1f}–{self.high * 1e3:.1f}"


def measured(
    commands: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]], turns: int
) -> tuple[dict[str, Times], float | None]:
    """Start children by these commands and measure each; return times, and the others' share.

    The children of a group (its name: their names) do not train the whole batch. The first of
    them is measured alone, under its own name, and all of them at once, under the group's.
    """
    with started(commands) as children:
        grouped = {name for names in groups.values() for name in names}
        whole = {name: [child] for name, child in children.items() if name not in grouped}
        players = dict(whole)
        for group, names in groups.items():
            players[names[0]] = [children[names[0]]]
            players[group] = [children[name] for name in names]
        first = {name: turn(those, WARM_UP) for name, those in players.items()}
        check_alike([child for (child,) in whole.values()])
        steps = {name: steps_for(TURN, times) for name, times in first.items()}
        with watched(lambda: sum(child.cpu for child in children.values())) as load:
            times = take_turns(players, steps, turns)
    return {name: Times.of(of) for name, of in times.items()}, load.others


def obstacle(cores: int, children: int, free: float | None) -> str | None:
    """Why it cannot be measured here, in a sentence; `free` memory in GB, None where unknown."""
    if not hasattr(os, "sched_setaffinity"):
        return "Not measured: this system cannot hold a process to one core (Linux can)."
    if cores < 2:
        return "Not measured: this needs 2 cores, and this process may use only 1."
    if free is not None and free < children * MEMORY:
        need = f"{children} processes need about {children * MEMORY:.1f} GB of memory"
        return f"Not measured: {need}, and {free:.1f} GB are free."
    return None


def core_numbers() -> list[int]:
    """The cores that this process may use; none where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def free_memory(meminfo: Path = Path("/proc/meminfo")) -> float | None:
    """GB that programs can still get; None where unknown."""
    if not meminfo.exists():
        return None
    lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
    return int(lines["MemAvailable"].split()[0]) / 1e6 if "MemAvailable" in lines else None
