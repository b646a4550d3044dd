"""The virtual clock with real gradients: equal to towers, to plain descent; divergence."""

import warnings

import numpy as np
import pytest

from utils.clock import (
    VirtualClock,
    asynchronous,
    bounded_staleness,
    divide_rate,
    drop_older,
    exponential,
    fixed,
    lognormal,
    one_slow,
    spare_replicas,
    synchronous,
)
from utils.training import mnist, network

STEPS, RATE = 20, 0.5


@pytest.fixture(scope="module")
def learn(machine):
    """gradient(weights, batch) of the MNIST network, with TensorFlow."""
    import tensorflow as tf

    def gradient(weights, batch):
        variables = [tf.constant(w) for w in weights]
        with tf.GradientTape() as tape:
            tape.watch(variables)
            loss = network.mean_loss(variables, *batch)
        return loss, tape.gradient(loss, variables)

    return gradient


@pytest.fixture(scope="module")
def examples():
    """STEPS global batches of 32 images, in float64."""
    data = mnist.load()
    x = mnist.inputs(data.train_images[: STEPS * 32], dtype="float64")
    return list(mnist.batches(x, data.train_labels[: STEPS * 32], 32, steps=STEPS))


def _shard(batch, worker, workers):
    return tuple(np.split(part, workers)[worker] for part in batch)


def _numpy(gradients):
    return [np.asarray(g) for g in gradients]


def _largest_difference(ones, others):
    return max(abs(a - b).max() for a, b in zip(ones, others, strict=True))


def _least_squares(weights, batch):
    """½·mean((x·w − y)²), written with NumPy."""
    x, y = batch
    error = x @ weights[0] - y
    return (error @ error) / (2 * len(y)), [x.T @ error / len(y)]


def _points(worker, step):
    random = np.random.RandomState([worker, step])
    x = random.standard_normal((8, 3))
    return x, x @ np.array([1.0, -2.0, 0.5]) + 0.1 * random.standard_normal(8)


# Equality


def test_synchronous_equals_towers_and_one_device(learn, examples, workers=4):
    """Average the gradients of equal shards, then update once: to 1e-12 in float64."""
    first = network.initial_weights(dtype="float64")
    towers, single = list(first), list(first)
    for batch in examples:
        shards = [_shard(batch, w, workers) for w in range(workers)]
        gradients = [_numpy(learn(towers, shard)[1]) for shard in shards]
        towers = [
            w - RATE * sum(parts) / workers for w, *parts in zip(towers, *gradients, strict=True)
        ]
        loss, gradients = learn(single, batch)
        single = [w - RATE * g for w, g in zip(single, _numpy(gradients), strict=True)]
    trace = VirtualClock([lognormal(1.0)] * workers).run(
        synchronous(),
        STEPS,
        gradient=learn,
        weights=first,
        rate=RATE,
        batch=lambda worker, step: _shard(examples[step], worker, workers),
    )
    assert _largest_difference(trace.weights, first) > 0.01
    assert _largest_difference(trace.weights, towers) < 1e-12
    assert _largest_difference(trace.weights, single) < 1e-12
    assert trace.losses[-1] == pytest.approx(float(loss), rel=1e-12)


@pytest.mark.parametrize(
    "policy",
    [asynchronous(), synchronous(), drop_older(0), bounded_staleness(0), divide_rate()],
    ids=lambda p: p.name,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_worker_equals_plain_descent_exactly(policy, dtype):
    first = [np.array([0.3, 0.2, -0.1], dtype)]
    weights, losses = first, []
    for step in range(30):
        x, y = _points(0, step)
        loss, gradients = _least_squares(weights, (x.astype(dtype), y.astype(dtype)))
        losses.append(float(loss))
        weights = [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]
    trace = VirtualClock([exponential(1.0)]).run(
        policy,
        30,
        gradient=_least_squares,
        weights=first,
        rate=0.1,
        batch=lambda worker, step: tuple(part.astype(dtype) for part in _points(worker, step)),
    )
    assert trace.weights[0].dtype == dtype
    assert np.array_equal(trace.weights[0], weights[0])
    assert trace.loss.tolist() == trace.losses.tolist() == losses


# What each policy does with the gradients


def _replay(trace, rate, scale=lambda staleness: 1.0):
    """Repeat a run from its trace alone: gradients at old versions, one update per version."""
    versions = [np.zeros(3)]
    steps = dict.fromkeys(range(trace.workers), 0)
    waiting = {}
    for i, worker in enumerate(trace.worker.tolist()):
        step = steps[worker]
        steps[worker] += 1
        if trace.written[i]:
            old = versions[trace.read_version[i]]
            gradient = _least_squares([old], _points(worker, step))[1][0]
            scaled = scale(trace.staleness[i]) * gradient
            waiting.setdefault(int(trace.write_version[i]), []).append(scaled)
        last = i + 1 == len(trace.worker) or trace.write_version[i + 1] > trace.write_version[i]
        if last and (gradients := waiting.pop(int(trace.write_version[i]), None)):
            versions.append(versions[-1] - rate * np.mean(gradients, axis=0))
    return versions[-1]


@pytest.mark.parametrize(
    "policy",
    [
        synchronous(),
        spare_replicas(2, 2),
        asynchronous(),
        drop_older(2),
        bounded_staleness(1),
        divide_rate(),
    ],
    ids=lambda p: p.name,
)
def test_weights_follow_from_the_trace(policy):
    fleet = one_slow(exponential(1.0), workers=4, factor=3)
    trace = VirtualClock(fleet).run(
        policy, 60, gradient=_least_squares, weights=[np.zeros(3)], rate=0.1, batch=_points
    )
    divided = policy == divide_rate()
    expected = _replay(trace, 0.1, lambda s: 1 / max(1, s) if divided else 1.0)
    assert _largest_difference(trace.weights, [expected]) < 1e-12
    assert np.isnan(trace.loss[~trace.written]).all()
    assert np.isfinite(trace.loss[trace.written]).all()
    per_update = [trace.loss[trace.written & (trace.write_version == v)].mean() for v in range(60)]
    assert trace.losses == pytest.approx(per_update, rel=1e-12)
    assert trace.losses[-10:].mean() < trace.losses[:5].mean() / 10


def test_gradients_change_no_event():
    clock = VirtualClock([exponential(1.0)] * 3)
    bare = clock.run(asynchronous(), 50)
    trace = clock.run(
        asynchronous(), 50, gradient=_least_squares, weights=[np.zeros(3)], rate=0.1, batch=_points
    )
    for name in ("worker", "staleness", "start", "end"):
        assert getattr(bare, name).tolist() == getattr(trace, name).tolist()
    assert np.isnan(bare.loss).all() and np.isnan(bare.losses).all()
    assert bare.weights is None


def test_without_a_batch_function_gradient_gets_none():
    """Two devices push the same ball: each read 1, so together they push it beyond the middle."""
    seen = []

    def push(weights, batch):
        seen.append((float(weights[0]), batch))
        return weights[0] ** 2 / 2, [weights[0]]

    trace = VirtualClock([fixed(1.0)] * 2).run(
        asynchronous(), 3, gradient=push, weights=[1.0], rate=0.75
    )
    assert seen == [(1.0, None), (1.0, None), (0.25, None)]
    assert trace.weights == [pytest.approx(-0.6875)]


def test_the_first_weights_are_not_changed_and_nobody_can_change_an_old_version():
    first = [np.ones(2)]

    def careless(weights, batch):
        weights[0] -= 1
        return 0.0, [weights[0]]

    def run(gradient):
        return VirtualClock([fixed(1.0)] * 2).run(
            asynchronous(), 4, gradient=gradient, weights=first, rate=0.5
        )

    with pytest.raises(ValueError, match="read-only"):
        run(careless)
    run(lambda weights, batch: (0.0, [weights[0]]))
    assert first[0].tolist() == [1, 1]
    first[0] += 1  # still the caller's own


# Measuring on the way


def test_measure_at_the_start_and_every_few_updates():
    trace = VirtualClock([fixed(2.0)]).run(
        asynchronous(),
        7,
        gradient=lambda w, _: (0.0, [np.ones(1)]),
        weights=[np.zeros(1)],
        rate=1.0,
        measure=lambda w: w[0][0],
        every=3,
    )
    assert trace.measured.update.tolist() == [0, 3, 6]
    assert trace.measured.time.tolist() == [0.0, 6.0, 12.0]
    assert trace.measured.value.tolist() == [0.0, -3.0, -6.0]
    assert not trace.reached


@pytest.mark.parametrize("policy", [asynchronous(), synchronous()], ids=lambda p: p.name)
def test_a_run_stops_at_its_target(policy):
    def run(target):
        return VirtualClock([fixed(2.0)] * 2).run(
            policy,
            100,
            gradient=lambda w, _: (0.0, [-np.ones(1)]),
            weights=[np.zeros(1)],
            rate=1.0,
            measure=lambda w: np.float32(w[0][0]) / 10,
            every=1,
            target=target,
        )

    trace = run(0.9)  # float32 knows 0.9 as a little less
    assert trace.reached and trace.updates == 9
    assert trace.measured.update[-1] == 9
    assert repr(trace).endswith("; reached its target")
    at_once = run(-1)
    assert at_once.reached and at_once.updates == 0
    assert "0 updates in 0 simulated seconds" in repr(at_once)


# Divergence


def _quadratic(weights, batch):
    return float(weights[0] @ weights[0]) / 2, [weights[0]]


@pytest.mark.parametrize("policy", [synchronous(), asynchronous()], ids=lambda p: p.name)
def test_a_diverging_run_stops_and_says_so(policy):
    """x ← x − 3x = −2x: the loss passes a million at update 11 + 1, the weight at update 20."""
    clock = VirtualClock([fixed(1.0)])
    start = {"weights": [np.ones(1)], "rate": 3.0}
    trace = clock.run(policy, 500, gradient=_quadratic, **start)
    assert trace.divergence == (12, "a loss of 2.097e+06")
    assert trace.updates == len(trace.worker) == 12
    assert repr(trace).endswith("; diverged at update 12 (a loss of 2.097e+06)")
    quiet = clock.run(policy, 500, gradient=lambda w, _: (0.0, [w[0]]), **start)
    assert quiet.divergence == (20, "a weight of size 1.049e+06")


@pytest.mark.parametrize(
    ("loss", "gradient", "reason"),
    [
        (np.nan, 0.0, "a loss of nan"),
        (-np.inf, 0.0, "a loss of -inf"),
        (0.0, np.nan, "a weight of size nan"),
        (0.0, np.inf, "a weight of size inf"),
    ],
)
def test_what_is_not_finite_has_diverged(loss, gradient, reason):
    def late(weights, batch):
        return (loss, [np.full(2, gradient)]) if batch == 3 else (0.0, [np.zeros(2)])

    measured = []
    trace = VirtualClock([fixed(1.0)]).run(
        asynchronous(),
        9,
        gradient=late,
        weights=[np.ones(2)],
        rate=0.1,
        batch=lambda worker, step: step,
        measure=lambda w: measured.append(w) or 0.0,
        every=1,
    )
    assert trace.divergence == (4, reason)
    assert len(measured) == len(trace.measured.value) == 4  # the start and three updates


def test_an_overflow_is_divergence_not_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = VirtualClock([fixed(1.0)]).run(
            asynchronous(),
            50,
            gradient=lambda w, _: (0.0, [w[0] * np.float32(1e30)]),
            weights=[np.ones(1, "float32")],
            rate=1e30,
        )
    assert trace.divergence == (1, "a weight of size inf")


def test_staleness_makes_a_good_rate_diverge():
    """The same rate is stable alone and diverges with five asynchronous workers."""

    def run(policy, workers):
        return VirtualClock([fixed(1.0)] * workers).run(
            policy, 300, gradient=_quadratic, weights=[np.ones(1)], rate=0.8
        )

    assert not run(asynchronous(), 1).diverged
    assert not run(synchronous(), 5).diverged
    assert not run(divide_rate(), 5).diverged
    assert run(asynchronous(), 5).diverged
