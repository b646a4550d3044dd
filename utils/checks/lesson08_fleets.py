"""Checks of the exercises of lesson 08 that measure on the virtual clock."""

import math
from collections.abc import Callable

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.clock import (
    Service,
    VirtualClock,
    asynchronous,
    fixed,
    lognormal,
    spare_replicas,
    stragglers,
)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


# Exercise 8.4


def _grows(workers: list[Service], rate: float, curvature: float) -> bool:
    run = VirtualClock(workers).run(
        asynchronous(),
        1200,
        gradient=lambda w, _: (curvature * float(w[0]) ** 2 / 2, [curvature * w[0]]),
        weights=[np.array(1.0)],
        rate=rate,
    )
    return run.diverged or run.loss[-300:].max() > run.loss[300:600].max()


@check(
    "8.4",
    "before a fleet grows, its learning rate has to be looked at again. A "
    "simulation costs less than a run that diverges after a day.",
)
def check_08_rate(largest_rate: Callable) -> None:
    """Try the learner's rate, a little less and a little more.

    Args:
        largest_rate: function of (workers, curvature) that returns the
            largest stable learning rate.
    """
    for workers, curvature, margin in (
        ([fixed(1.0)], 1.0, 0.03),
        ([fixed(1.0)] * 3, 1.0, 0.03),
        ([fixed(1.0)] * 3, 4.0, 0.03),
        # No constant staleness: another way to measure may differ more.
        ([lognormal(1.0)] * 6, 1.0, 0.12),
    ):
        rate = largest_rate(list(workers), curvature)
        if not _is_number(rate) or not 0 < rate < math.inf:
            not_yet(f"it returned {rate!r}: return one positive number.")
        where = (
            f"for {len(workers)} worker(s), {workers[0].name}, curvature "
            f"{curvature:g}, it returned {float(rate):.3g}"
        )
        if _grows(workers, rate * (1 - margin), curvature):
            _too_large(rate, workers, curvature, where)
        if not _grows(workers, rate * (1 + margin), curvature):
            _too_small(rate, workers, curvature, where)


def _near(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=0.02)


def _too_large(rate, workers, curvature, where: str) -> None:
    n = len(workers)
    if n > 1 and _near(rate, 2 / curvature):
        not_yet(f"{where}. That is the limit of a single worker.")
    if n > 1 and _near(rate, 2 / curvature / n):
        not_yet(
            f"{where}. Dividing by the number of workers comes close, but "
            "the ball still swings wider: measure."
        )
    if curvature != 1 and not _grows(workers, rate / curvature, curvature):
        not_yet(f"{where}. Does your search use the curvature it is given?")
    not_yet(f"{where}, and the ball swings ever wider.")


def _too_small(rate, workers, curvature, where: str) -> None:
    formula = 2 * math.sin(math.pi / (4 * len(workers) - 2)) / curvature
    late = 2 * math.sin(math.pi / (4 * len(workers) + 2)) / curvature
    if _near(rate, late):
        not_yet(f"{where}. With n workers a gradient is n − 1 updates late.")
    if _near(rate, formula):
        not_yet(
            f"{where}. The formula holds where every gradient is equally "
            "late; here the times vary, and more is stable: measure."
        )
    not_yet(f"{where}, but a larger rate is stable too.")


# Exercise 8.5

_MACHINES = 24
_MOST_SPARES = 12
_CLOSE = 0.03  # of the best: three numbers are equally good


def _used_per_second(spares: int, steps: int = 200) -> float:
    fleet = [stragglers(lognormal(1.0, 0.1), 0.08, 3.0)] * _MACHINES
    policy = spare_replicas(_MACHINES - spares, spares)
    run = VirtualClock(fleet).run(policy, steps)
    return steps * (_MACHINES - spares) / run.times[-1]


@check(
    "8.5",
    "the first spares buy much, the next ones little or less; the delays of your own "
    "fleet decide where that turns.",
)
def check_08_spares(used_per_second: dict, best: int) -> None:
    """Compare the learner's measurements and choice with the clock's.

    Args:
        used_per_second: function of the number of spares.
        best: the number of spares chosen.
    """
    for spares in (0, 2, 6):
        right, found = _used_per_second(spares), used_per_second(spares)
        if not _is_number(found):
            not_yet(f"used_per_second({spares}) returned {found!r}.")
        if math.isclose(found, right, rel_tol=0.15):
            continue
        for cause, value in {
            "counts all machines, but spares are not used": (
                right * _MACHINES / (_MACHINES - spares)
            ),
            "is seconds per step": (_MACHINES - spares) / right,
            "is steps per second: how many gradients does a step use": (
                right / (_MACHINES - spares)
            ),
        }.items():
            if math.isclose(found, value, rel_tol=0.03):
                not_yet(f"used_per_second({spares}) {cause}.")
        not_yet(f"used_per_second({spares}) is {float(found):.3g}.")
    _compare_choice(best)


def _compare_choice(best) -> None:
    if isinstance(best, bool) or not isinstance(best, int | np.integer):
        not_yet(f"best is {best!r}: give a whole number of spares.")
    if not 0 <= best < _MACHINES:
        not_yet(f"best={best}: from 0 to {_MACHINES - 1} can be spares.")
    speeds = [_used_per_second(spares) for spares in range(_MOST_SPARES)]
    own = _used_per_second(int(best))
    if own >= (1 - _CLOSE) * max(speeds):
        return
    if best < int(np.argmax(speeds)):
        not_yet(f"with {best} spares most steps still wait for a straggler.")
    not_yet(f"with {best} spares, many machines work for nothing.")
