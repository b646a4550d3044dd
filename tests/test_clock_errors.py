"""Bad input to the virtual clock: one clear error that says what to give."""

import re

import numpy as np
import pytest

from utils.clock import (
    Service,
    VirtualClock,
    asynchronous,
    bounded_staleness,
    drop_older,
    exponential,
    fixed,
    lognormal,
    one_slow,
    spare_replicas,
    stragglers,
    synchronous,
)

ONE = [fixed(1.0)]


@pytest.mark.parametrize(
    ("error", "part", "make"),
    [
        (ValueError, "no workers: give one per worker, such as", lambda: VirtualClock([])),
        (TypeError, "is no list: give one per worker", lambda: VirtualClock(fixed(1.0))),
        (TypeError, "workers='fixed' is no list", lambda: VirtualClock("fixed")),
        (TypeError, "hold 1.0, which is no service time", lambda: VirtualClock([1.0])),
        (ValueError, "seed=-1: give a whole number from 0", lambda: VirtualClock(ONE, -1)),
        (ValueError, "seed=4294967296", lambda: VirtualClock(ONE, 2**32)),
        (ValueError, "seconds=0: give a finite number greater than 0", lambda: fixed(0)),
        (ValueError, "mean=inf", lambda: exponential(float("inf"))),
        (ValueError, "mean=-2", lambda: lognormal(-2)),
        (ValueError, "sigma=-0.1: give a finite number of at least 0", lambda: lognormal(1, -0.1)),
        (ValueError, "chance=-0.1: give a finite", lambda: stragglers(ONE[0], -0.1, 1)),
        (ValueError, "chance=1.1: give a finite", lambda: stragglers(ONE[0], 1.1, 1)),
        (ValueError, "delay=0", lambda: stragglers(ONE[0], 0.1, 0)),
        (TypeError, "usual=1.0: give service times", lambda: stragglers(1.0, 0.1, 1)),
        (TypeError, "usual=1.0: give service times", lambda: one_slow(1.0, 4, 2)),
        (ValueError, "workers=0", lambda: one_slow(ONE[0], 0, 2)),
        (ValueError, "factor=0.5: give a finite", lambda: one_slow(ONE[0], 4, 0.5)),
        (ValueError, "unit of mine=0", lambda: Service("mine", 0, lambda r, n: np.ones(n))),
        (ValueError, "needed=0: give a whole number of at least 1", lambda: spare_replicas(0, 1)),
        (ValueError, "spare=-1: give a whole number of at least 0", lambda: spare_replicas(1, -1)),
        (ValueError, "oldest=-1", lambda: drop_older(-1)),
        (ValueError, "ahead=-1", lambda: bounded_staleness(-1)),
    ],
)
def test_a_clock_that_cannot_be_made(error, part, make):
    with pytest.raises(error, match=re.escape(part)):
        make()


@pytest.mark.parametrize(
    ("error", "part", "policy", "updates"),
    [
        (TypeError, "policy='asynchronus': unknown. Give synchronous(), ", "asynchronus", 1),
        (TypeError, "policy=asynchronous: unknown", asynchronous, 1),
        (ValueError, "updates=0", asynchronous(), 0),
        (ValueError, "needs 4 workers, but the clock has 3", spare_replicas(3, 1), 1),
        (ValueError, "needs 2 workers, but the clock has 3", spare_replicas(1, 1), 1),
    ],
)
def test_a_run_that_cannot_be(error, part, policy, updates):
    with pytest.raises(error, match=re.escape(part)):
        VirtualClock(ONE * 3).run(policy, updates)


@pytest.mark.parametrize(
    ("draw", "part"),
    [
        (lambda r, n: np.full(n, -1.0), "mine gave a service time of -1.0"),
        (lambda r, n: np.full(n, np.nan), "mine gave a service time of nan"),
        (lambda r, n: np.full(n, np.inf), "mine gave a service time of inf"),
        (lambda r, n: 1.0, "draw of mine returned shape () when asked for 128"),
    ],
)
@pytest.mark.parametrize("policy", [asynchronous(), synchronous()], ids=lambda p: p.name)
def test_a_distribution_with_impossible_times(draw, part, policy):
    with pytest.raises(ValueError, match=re.escape(part)):
        VirtualClock([Service("mine", 1.0, draw)]).run(policy, 1)


def _returning(value):
    return {"gradient": lambda weights, batch: value}


@pytest.mark.parametrize(
    ("error", "part", "change"),
    [
        (ValueError, "gradient needs weights and a rate", {"weights": None}),
        (ValueError, "gradient needs weights and a rate", {"rate": None}),
        (ValueError, "need a gradient", {"gradient": None}),
        (TypeError, "gradient=3: give a function", {"gradient": 3}),
        (TypeError, "batch=[1]: give a function", {"batch": [1]}),
        (TypeError, "measure=0.9: give a function", {"measure": 0.9}),
        (ValueError, "target=0.9 needs a measure", {"target": 0.9}),
        (TypeError, "target='90 %': give a finite number.", {"target": "90 %", "measure": len}),
        (ValueError, "every=0", {"every": 0, "measure": len}),
        (ValueError, "rate=0:", {"rate": 0}),
        (TypeError, "weights is a ndarray: give a list", {"weights": np.ones(2)}),
        (TypeError, "weights is a float", {"weights": 3.0}),
        (ValueError, "weights is empty", {"weights": []}),
        (ValueError, "an array of int64", {"weights": [np.ones(2, "int64")]}),
        (ValueError, "not all finite floats", {"weights": [np.array([1, np.nan])]}),
        (TypeError, "must return (loss, gradients)", _returning(3.0)),
        (TypeError, "one array per array of weights, here 1", _returning((0.0, []))),
        (TypeError, "a gradient is None", _returning((0.0, [None]))),
        (TypeError, "must return (loss, gradients)", _returning((None, [np.zeros(2)]))),
        (ValueError, "shapes [(3,)] for weights of", _returning((0.0, [np.zeros(3)]))),
    ],
)
def test_learning_that_cannot_be(error, part, change):
    good = {**_returning((0.0, [np.zeros(2)])), "weights": [np.ones(2)], "rate": 0.1}
    run = VirtualClock(ONE).run
    assert run(asynchronous(), 1, **good).updates == 1
    with pytest.raises(error, match=re.escape(part)):
        run(asynchronous(), 1, **{**good, **change})


@pytest.mark.parametrize(
    "alone",
    [{"weights": [np.ones(1)]}, {"rate": 0.1}, {"batch": len}, {"measure": len}, {"target": 1}],
)
def test_what_only_a_gradient_can_use(alone):
    with pytest.raises(ValueError, match="need a gradient"):
        VirtualClock(ONE).run(asynchronous(), 1, **alone)


def test_an_error_of_the_gradient_itself_comes_through():
    def broken(weights, batch):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        VirtualClock(ONE).run(asynchronous(), 1, gradient=broken, weights=[1.0], rate=0.1)
