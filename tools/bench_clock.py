"""Measure the virtual clock without gradients: its speed, how it grows, and SimPy beside it.

SimPy is optional: without it its row says how to install it. `rows(rounds)` is what a table of
`tools.bench` needs, together with TITLE and COLUMNS.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from tools.bench_figure import Figure, watched
from tools.bench_figure import table as as_text
from utils.clock import ClockTrace, VirtualClock, asynchronous, exponential, synchronous

TITLE = "The virtual clock, without gradients"
COLUMNS = ("what", "best s", "median s", "spread", "µs per gradient")
UPDATES = 100  # per worker
WORKERS = 1000
SCALING = (100, 1000, 10_000)  # workers; µs per gradient may grow like the logarithm
SEED = 42


def clock(workers: int) -> VirtualClock:
    """A fleet of equal workers with exponential service times."""
    return VirtualClock([exponential(1.0)] * workers, SEED)


def run_asynchronous(workers: int) -> ClockTrace:
    """As many updates as if every worker made UPDATES."""
    return clock(workers).run(asynchronous(), workers * UPDATES)


def run_synchronous(workers: int) -> ClockTrace:
    """UPDATES steps of all workers: as many gradients as above."""
    return clock(workers).run(synchronous(), UPDATES)


def run_simpy(workers: int) -> list[int]:
    """The same asynchronous run as processes of SimPy; returns the staleness of each update."""
    import simpy

    environment = simpy.Environment()
    random = np.random.RandomState(0)
    enough = environment.event()
    staleness: list[int] = []

    def worker(index: int):
        for seconds in exponential(1.0).times(random, SEED, index):
            read = len(staleness)
            yield environment.timeout(seconds)
            staleness.append(len(staleness) - read)
            if len(staleness) == workers * UPDATES:
                enough.succeed()

    for index in range(workers):
        environment.process(worker(index))
    environment.run(enough)
    return staleness[: workers * UPDATES]


def row(what: str, action: Callable[[int], object], workers: int, rounds: int) -> tuple:
    """Time `rounds` calls: name, best, median, spread as a share of the best, µs per gradient."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action(workers)
        times.append(time.perf_counter() - start)
    best, spread = min(times), (max(times) - min(times)) / min(times)
    return what, best, statistics.median(times), spread, best / (workers * UPDATES) * 1e6


def rows(rounds: int) -> list[tuple]:
    """The table: both kinds of policy, SimPy where it is installed, and growing fleets."""
    size = f"{WORKERS:,} workers × {UPDATES}"
    table = [
        row(f"{size}, asynchronous", run_asynchronous, WORKERS, rounds),
        row(f"{size}, synchronous", run_synchronous, WORKERS, rounds),
    ]
    if find_spec("simpy"):
        if run_simpy(WORKERS) != run_asynchronous(WORKERS).staleness.tolist():
            raise RuntimeError("SimPy and the virtual clock disagree about the staleness.")
        table.append(row("the same staleness from SimPy", run_simpy, WORKERS, rounds))
    else:
        table.append(("SimPy is not installed (pip install simpy)", None, None, None, None))
    table += [row(f"{n:,} workers, asynchronous", run_asynchronous, n, rounds) for n in SCALING]
    return table


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="repetitions (default: 3)")
    options = parser.parse_args(argv)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: give 1 or more")
    with watched() as load:
        measured = rows(options.rounds)
    print(as_text(Figure(TITLE, COLUMNS, measured, load.others)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
