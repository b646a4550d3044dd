"""The virtual clock against exact results: step times V1, staleness V2, stability V3."""

import math

import numpy as np
import pytest

from utils.clock import (
    VirtualClock,
    asynchronous,
    exponential,
    fixed,
    lognormal,
    spare_replicas,
)

UPDATES = 1200  # per trial rate of V3


def _harmonic(n: int) -> float:
    return sum(1 / i for i in range(1, n + 1))


@pytest.mark.parametrize(("needed", "spare"), [(50, 0), (50, 4), (96, 4), (100, 0)])
def test_v1_step_time_with_spare_replicas(needed, spare):
    """The k-th smallest of n exponentials has mean H(n) − H(n − k): Rényi, "On the theory of
    order statistics", 1953."""
    published = _harmonic(needed + spare) - _harmonic(spare)
    steps = 3000
    clock = VirtualClock([exponential(1.0)] * (needed + spare))
    trace = clock.run(spare_replicas(needed, spare), steps)
    assert trace.times[-1] / steps == pytest.approx(published, rel=0.01)
    assert (trace.written.sum(), (~trace.written).sum()) == (needed * steps, spare * steps)


@pytest.mark.parametrize("service", [exponential(1.0), lognormal(1.0, 0.5)], ids=lambda s: s.name)
@pytest.mark.parametrize("workers", [4, 8, 30, 100])
def test_v2_mean_staleness_is_n_minus_one(service, workers):
    """Each update finds the n − 1 others under way; only the run's ends differ."""
    trace = VirtualClock([service] * workers).run(asynchronous(), 200 * workers)
    assert trace.staleness.mean() == pytest.approx(workers - 1, rel=0.01)
    assert trace.staleness[10 * workers :].mean() == pytest.approx(workers - 1, rel=0.01)


def _grows(delay: int, rate: float, curvature: float) -> bool:
    """Whether descent on curvature·x²/2 grows, with gradients of this exact staleness."""
    trace = VirtualClock([fixed(1.0)] * (delay + 1)).run(
        asynchronous(),
        UPDATES,
        gradient=lambda w, _: (curvature * float(w[0]) ** 2 / 2, [curvature * w[0]]),
        weights=[np.array(1.0)],
        rate=rate,
    )
    assert trace.diverged or set(trace.staleness[delay:].tolist()) == {delay}
    early, late = trace.loss[UPDATES // 4 : UPDATES // 2], trace.loss[-UPDATES // 4 :]
    return trace.diverged or late.max() > early.max()


def _largest_stable(delay: int, curvature: float) -> float:
    low, high = 0.0, 4 / curvature
    while high - low > 0.002 * high:
        middle = (low + high) / 2
        if _grows(delay, middle, curvature):
            high = middle
        else:
            low = middle
    return (low + high) / 2


@pytest.mark.parametrize("delay", [0, 1, 2, 4, 9])
@pytest.mark.parametrize("curvature", [1.0, 4.0])
def test_v3_largest_stable_rate_under_delay(delay, curvature):
    """x(t+1) = x(t) − a·x(t−τ) is stable for 0 < a < 2·cos(πτ/(2τ+1)): Levin and May, "A note on
    difference-delay equations", 1976."""
    predicted = 2 * math.cos(math.pi * delay / (2 * delay + 1)) / curvature
    measured = _largest_stable(delay, curvature)
    assert measured == pytest.approx(predicted, rel=0.02)
    if delay:  # the simpler model, which knows no delay, must fail
        assert measured != pytest.approx(2 / curvature, rel=0.02)
