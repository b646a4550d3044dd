"""A figure of `make bench`: a table, how quiet the machine was, and what follows from it."""

import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import psutil

from utils.table import table as columns

DISTURBED = 0.05  # above this share of the processors, used by others, a time says little


class Figure(NamedTuple):
    """One table: a title, the names of its columns, its rows, and how quiet the machine was.

    `others` is the share of all processors that other programs used, None where nothing was
    measured. `notes` are sentences below the table.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple]
    others: float | None
    notes: tuple[str, ...] = ()


class Load:
    """How much of the processors other programs used while this one measured."""

    others: float | None = None


def cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def processor_seconds() -> tuple[float, float]:
    """Seconds that all processors have been busy, and seconds in all."""
    times = psutil.cpu_times()._asdict()
    for counted in ("guest", "guest_nice"):  # in user and nice already
        times.pop(counted, None)
    everything = sum(times.values())
    return everything - times["idle"] - times.get("iowait", 0), everything


def own_seconds() -> float:
    """Processor seconds of this process and of the children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@contextmanager
def watched(living: Callable[[], float] = lambda: 0.0) -> Iterator[Load]:
    """Measure, over the block, the share of the processors that others used.

    `living` gives the processor seconds of children that have not ended, which count as own.
    """
    load = Load()
    before, own = processor_seconds(), own_seconds() + living()
    yield load
    busy, everything = (b - a for a, b in zip(before, processor_seconds(), strict=True))
    others = busy - (own_seconds() + living() - own)
    load.others = max(0.0, others) / everything if everything else 0.0


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


def verdict(others: float) -> str:
    """Whether the machine was quiet enough for the figure to mean something."""
    quiet = "quiet" if others <= DISTURBED else f"no verdict, above {DISTURBED:.0%}"
    return f"Load by other programs: {others:.1%} of the processors ({quiet})."


def show(value: object) -> str:
    """A cell of a table: seconds and shares with two decimals, nothing for None."""
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def table(figure: Figure) -> str:
    """The figure as text: first column to the left, numbers to the right; without rows, notes."""
    if not figure.rows:
        return "\n".join([figure.title, *figure.notes])
    cells = [figure.columns, *(tuple(map(show, row)) for row in figure.rows)]
    lines = columns(cells, right=range(1, len(figure.columns)))
    return "\n".join([figure.title, lines, *figure.notes, verdict(figure.others)])
