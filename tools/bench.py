"""Measure the figures of the course; print a table for each and write all of them as JSON.

A figure that other programs disturbed (they used more than 5 % of the processors) has no verdict.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tools import bench_clock
from tools.execute import execute
from tools.notebooks import exercises, label, lessons, solutions

DISTURBED = 0.05  # above this share of the processors, used by others, a time says little
IDLE = (3, 4)  # the columns idle and iowait of /proc/stat
GUEST = 8  # the columns from here on are counted in user and nice already


class Figure(NamedTuple):
    """One table: a title, the names of its columns, its rows, and how quiet the machine was.

    `others` is the share of all processors that other programs used, None where unknown.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple]
    others: float | None


class Load:
    """How much of the processors other programs used while this one measured."""

    def __init__(self) -> None:
        self.others: float | None = None


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def processor_seconds(stat: Path = Path("/proc/stat")) -> tuple[float, float] | None:
    """Seconds that all processors have been busy, and seconds in all; None where not known."""
    if not stat.exists():
        return None
    ticks = [int(word) for word in stat.read_text().splitlines()[0].split()[1:]][:GUEST]
    idle = sum(ticks[column] for column in IDLE)
    per_second = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - idle) / per_second, sum(ticks) / per_second


def own_seconds() -> float:
    """Processor seconds of this process and of the children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@contextmanager
def watched() -> Iterator[Load]:
    """Measure, over the block, the share of the processors that others used."""
    load = Load()
    before, own = processor_seconds(), own_seconds()
    yield load
    after = processor_seconds()
    if before and after:
        busy, everything = (b - a for a, b in zip(before, after, strict=True))
        load.others = max(0.0, busy - (own_seconds() - own)) / everything if everything else 0.0


def seconds_of(action: Callable[[], object], rounds: int) -> list[float]:
    """The wall-clock seconds of each of `rounds` calls."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return times


def summary(times: Sequence[float]) -> tuple[float, float, float]:
    """Best, median, and spread: how far the worst lies above the best, as a share of the best."""
    best, worst = min(times), max(times)
    return best, statistics.median(times), (worst - best) / best


def lesson_times(rounds: int) -> Figure:
    """Every lesson, executed in a fresh kernel: the time a learner waits for Run All."""
    rows = []
    with watched() as load:
        for path in lessons():
            rows.append((label(path), *summary(seconds_of(lambda p=path: execute(p), rounds))))
    rows.append(("together", *(sum(row[i] for row in rows) for i in (1, 2)), None))
    columns = ("lesson", "best s", "median s", "spread")
    return Figure("Executing the lessons", columns, rows, load.others)


def import_tensorflow() -> None:
    """Import TensorFlow in a new interpreter, as every kernel has to."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(
        [sys.executable, "-c", "import tensorflow"],
        env=environment,
        check=True,
        capture_output=True,
    )


def suite_floor(rounds: int) -> Figure:
    """What `make test` cannot go below: a kernel a notebook, each of which imports TensorFlow."""
    kernels = len([*lessons(), *solutions(), *exercises()])
    with watched() as load:
        best, median, spread = summary(seconds_of(import_tensorflow, rounds))
    share = kernels / cores()
    rows = [
        ("importing TensorFlow", best, median, spread),
        (f"{kernels} kernels on {cores()} cores", share * best, share * median, None),
    ]
    columns = ("what", "best s", "median s", "spread")
    return Figure("What `make test` cannot go below", columns, rows, load.others)


def virtual_clock(rounds: int) -> Figure:
    """The engine of lesson 08: how fast it simulates, and how that grows with the fleet."""
    with watched() as load:
        rows = bench_clock.rows(rounds)
    return Figure(bench_clock.TITLE, bench_clock.COLUMNS, rows, load.others)


FIGURES: dict[str, Callable[[int], Figure]] = {
    "lessons": lesson_times,
    "floor": suite_floor,
    "clock": virtual_clock,
}


def verdict(others: float | None) -> str:
    """Whether the machine was quiet enough for the figure to mean something."""
    if others is None:
        return "Load by other programs: unknown on this system."
    quiet = "quiet" if others <= DISTURBED else f"no verdict, above {DISTURBED:.0%}"
    return f"Load by other programs: {others:.1%} of the processors ({quiet})."


def show(value: object) -> str:
    """A cell of a table: seconds and shares with two decimals, nothing for None."""
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def table(figure: Figure) -> str:
    """The figure as text: first column to the left, numbers to the right."""
    cells = [figure.columns, *(tuple(map(show, row)) for row in figure.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *rest in cells:
        numbers = (word.rjust(width) for word, width in zip(rest, widths[1:], strict=True))
        lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
    return "\n".join([figure.title, *lines, verdict(figure.others)])


def machine() -> dict[str, object]:
    """What the figures were measured on; no name and no path of this machine."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": cores(),
        "python": platform.python_version(),
        "tensorflow": version("tensorflow"),
    }


def as_json(figures: dict[str, Figure], rounds: int) -> str:
    """All figures as one JSON document."""
    content = {
        "machine": machine(),
        "rounds": rounds,
        "figures": {
            name: {
                "title": figure.title,
                "columns": figure.columns,
                "rows": figure.rows,
                "others": figure.others,
                "quiet": None if figure.others is None else figure.others <= DISTURBED,
            }
            for name, figure in figures.items()
        },
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=FIGURES, action="append", help="default: every figure")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="default: bench.json")
    options = parser.parse_args(argv)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: give 1 or more")
    figures = {}
    for name in options.only or FIGURES:
        figures[name] = FIGURES[name](options.rounds)
        print(f"{table(figures[name])}\n", flush=True)
    options.json.write_text(as_json(figures, options.rounds), encoding="utf-8")
    print(f"Written: {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
