"""Checks of the exercises of lesson 08."""

from collections.abc import Callable

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.checks.watched import WatchedLock, WatchedWeights
from utils.clock import (
    Service,
    VirtualClock,
    asynchronous,
    fixed,
    lognormal,
    one_slow,
    synchronous,
)

KINDS = ("synchronous", "asynchronous", "lost update")


# Exercise 8.1


@check(
    "8.1",
    "n workers with an average are one worker with a batch n times as large. "
    "The sum would be n asynchronous pushes from one reading.",
)
def check_08_average(average_and_write: Callable) -> None:
    """Let the learner's function write the gradients of two and three workers.

    Args:
        average_and_write: function of (variables, version, arrived, rate)
            that makes one update with the average gradients.
    """
    import tensorflow as tf

    for workers, rate in ((2, 0.5), (3, 0.1)):
        random = np.random.RandomState(workers)
        shapes = ((3,), (2, 2))
        first = [random.standard_normal(shape) for shape in shapes]
        arrived = [[random.standard_normal(shape) for shape in shapes] for _ in range(workers)]
        variables = [tf.Variable(w) for w in first]
        version = tf.Variable(5, dtype=tf.int64)
        given = [[tf.constant(g) for g in worker] for worker in arrived]
        average_and_write(variables, version, given, rate)
        pairs = zip(first, variables, strict=True)
        found = [(w - v.numpy()) / rate for w, v in pairs]
        _compare_step(found, arrived, workers)
        if int(version) != 6:
            not_yet(
                f"the version went from 5 to {int(version)}. Several "
                "gradients, but one update: count it once."
            )


def _compare_step(found: list, arrived: list, workers: int) -> None:
    """Compare what the weights moved, in units of the rate."""
    total = [sum(parts) for parts in zip(*arrived, strict=True)]

    def moved(expected) -> bool:
        pairs = zip(found, expected, strict=True)
        return all(np.allclose(a, b) for a, b in pairs)

    if moved([t / workers for t in total]):
        return
    if moved([0 * t for t in total]):
        not_yet("the variables are unchanged: assign to them.")
    if moved([-t / workers for t in total]):
        not_yet("the weights went up the slope: subtract.")
    if moved(total):
        not_yet(
            f"with {workers} workers the weights moved {workers} times too "
            "far: that is the sum of the gradients."
        )
    for k, gradients in enumerate(arrived):
        if moved(gradients) or moved([g / workers for g in gradients]):
            not_yet(f"only the gradients of worker {k} were written.")
    if moved([total[0] / workers, 0 * total[1]]):
        not_yet("only the first variable was changed.")
    not_yet(
        f"with {workers} workers the weights moved by something else than "
        "rate times the average. Is each gradient paired with its variable?"
    )


# Exercise 8.2


def _rows(policy, fleet: list[Service]) -> list[tuple[int, int, int]]:
    run = VirtualClock(fleet).run(policy, 9)
    columns = (run.worker, run.read_version, run.write_version)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)][:9]


def _traces() -> dict[str, tuple[str, list[tuple[int, int, int]]]]:
    """Return what each program is, and its rows."""
    alone = asynchronous()
    # Workers 0 and 1 both find version 3, and both make it version 4.
    lost = [(0, 0, 0), (1, 0, 1), (2, 1, 2), (0, 1, 3), (1, 2, 3)]
    lost += [(2, 3, 4), (0, 4, 5), (1, 4, 6), (2, 5, 7)]
    return {
        "A": ("asynchronous", _rows(alone, [fixed(1.0)] * 3)),
        "B": ("synchronous", _rows(synchronous(), [lognormal(1.0)] * 3)),
        "C": ("lost update", lost),
        "D": (
            "asynchronous",
            _rows(alone, one_slow(lognormal(1.0), 3, 3)),
        ),
    }


def trace_to_read(name: str) -> str:
    """Return one of the traces of exercise 8.2 as a table.

    Args:
        name: ``"A"``, ``"B"``, ``"C"`` or ``"D"``.

    Raises:
        ValueError: there is no such trace.

    Introduced in lesson 08's exercises.
    """
    traces = _traces()
    if name not in traces:
        raise ValueError(f"no trace {name!r}: there are {', '.join(traces)}.")
    lines = [f"{name}: worker  read  written"]
    lines += [f"{w:9} {r:5} {v:8}" for w, r, v in traces[name][1]]
    return "\n".join(lines) + "\n"


@check(
    "8.2",
    "worker, version read, version written: with these three columns nobody "
    "has to guess whether a program is synchronous.",
)
def check_08_traces(answer: dict) -> None:
    """Compare the learner's reading with how the traces were made.

    Args:
        answer: name of a trace to one of the three kinds.
    """
    traces = _traces()
    if not isinstance(answer, dict) or set(answer) != set(traces):
        not_yet(f"keep a dict with the names {', '.join(traces)}.")
    for name, guess in answer.items():
        kind, rows = traces[name]
        if guess is ...:
            not_yet(f"{name} has no answer yet.")
        if guess not in KINDS:
            not_yet(f"{name}: {guess!r} is none of {', '.join(KINDS)}.")
        if guess == kind:
            continue
        if guess == "synchronous":
            late = sum(written > read for _, read, written in rows)
            not_yet(
                f"{name}: {late} of {len(rows)} gradients were written to a "
                "version that they were not computed from. Order alone does "
                "not make a program synchronous."
            )
        if kind == "synchronous":
            not_yet(
                f"{name}: compare read and written in every row, then count "
                "the workers per version."
            )
        if guess == "lost update":
            not_yet(f"{name}: every version was written to once. Is one lost?")
        not_yet(f"{name}: each update makes a new version. Look down the column written.")


# Exercise 8.3


@check(
    "8.3",
    "a lock around the computation makes the workers take turns; a lock that "
    "leaves out the version makes every staleness a guess.",
)
def check_08_lock(worker: Callable) -> None:
    """Run the learner's worker with a lock and weights that watch it.

    Args:
        worker: function of (shared, lock, compute, batches) that returns a
            list of (version read, version written).
    """
    for count in (1, 3):
        lock = WatchedLock()
        shared = WatchedWeights(lock)

        def compute(weights, x, y, lock=lock):
            if lock.held:
                not_yet(
                    "the lock is held during the computation: the workers "
                    "take turns, and a second GPU gains nothing."
                )
            return "gradients", weights[1]

        log = worker(shared, lock, compute, [("x", "y")] * count)
        if lock.held:
            not_yet("at the end the lock is still held.")
        _compare_log(log, shared.truth, count)


def _compare_log(log, truth: list[tuple[int, int]], count: int) -> None:
    if len(truth) != count:
        not_yet(f"{count} batches, but {len(truth)} updates were written.")
    pairs = isinstance(log, list) and all(
        isinstance(row, tuple | list) and len(row) == 2 for row in log
    )
    if not pairs or len(log) != count:
        not_yet(f"return a list with one pair per batch, here {count}.")
    for row, (read, written) in zip(log, truth, strict=True):
        if row[0] != read:
            not_yet(
                "the version in the log is not that of the weights. Were both "
                "taken while the lock was held once, or did you let go of it "
                "in between?"
            )
        if row[1] == written + 1:
            not_yet("the version written counts the worker's own update. Take it before the write.")
        if row[1] != written:
            not_yet(
                "the version written is not the one that the update found. "
                "Take it under the same hold of the lock as the write."
            )
