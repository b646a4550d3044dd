"""Claims of the classic texts that lesson 08 tries."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.claims.ledger import claim
from utils.clock import VirtualClock, asynchronous, divide_rate, exponential, fixed, one_slow
from utils.training import mnist, network

WAIT = 60  # seconds until a thread gives up
RATE, BATCH = 0.1, 32


def _batch(k: int, dtype: str = "float64"):
    data = mnist.load()
    rows = slice(k * BATCH, (k + 1) * BATCH)
    return mnist.inputs(data.train_images[rows], dtype), data.train_labels[rows]


def _gradients(weights, x, y, gpu):
    import tensorflow as tf

    with tf.device(gpu), tf.GradientTape() as tape:
        tensors = [tf.convert_to_tensor(w) for w in weights]
        tape.watch(tensors)
        loss = network.mean_loss(tensors, x, y)
        return float(loss), [g.numpy() for g in tape.gradient(loss, tensors)]


@claim(
    "C35",
    "One training iteration is a forward pass over a small batch, a backward pass, and an update "
    "of the parameters.",
    verdict="true",
    lesson="08",
    section="1 · One step, shared in two ways",
    finding=(
        "Loss of a batch, its gradients, weights minus rate times gradient: by hand the same "
        "weights as from a library's SGD, and the loss of the batch falls."
    ),
)
def test_one_training_iteration(machine):
    import tensorflow as tf

    x, y = _batch(0)
    first = network.initial_weights(dtype="float64")
    loss, gradients = _gradients(first, x, y, machine.gpus[0])
    by_hand = [w - RATE * g for w, g in zip(first, gradients, strict=True)]
    after, _ = _gradients(by_hand, x, y, machine.gpus[0])
    assert after < loss

    variables = [tf.Variable(w) for w in first]
    with tf.GradientTape() as tape:
        again = network.mean_loss(variables, x, y)
    optimizer = tf.keras.optimizers.SGD(RATE)
    optimizer.apply_gradients(zip(tape.gradient(again, variables), variables, strict=True))
    for mine, other in zip(by_hand, variables, strict=True):
        # The optimizer keeps its rate in float32.
        np.testing.assert_allclose(mine, other.numpy(), rtol=0, atol=1e-8)


@claim(
    "C36",
    "In asynchronous mode devices may read different values of the parameters, and each updates "
    "them on its own.",
    verdict="true",
    lesson="08",
    section="3 · Asynchronous, with real threads",
    finding=(
        "Each worker takes the version it finds and writes to the version it finds later; no "
        "update is lost, and every gradient can have another staleness."
    ),
)
def test_asynchronous_workers_read_different_versions(machine):
    """Two threads, in an order that events force: one reads, the other updates twice."""
    import tensorflow as tf

    weights, version = tf.Variable([1.0, 2.0], dtype=tf.float64), tf.Variable(0)
    lock, log = threading.Lock(), []
    slow_has_read, fast_is_done = threading.Event(), threading.Event()

    def update(name, gpu, between=lambda: None):
        with lock:
            read, seen = int(version), weights.read_value()
        between()
        with tf.device(gpu):
            gradient = seen * 1.0  # of ½·w²
        with lock:
            written = int(version)
            weights.assign_sub(0.1 * gradient)
            version.assign_add(1)
        log.append((name, read, written, seen.numpy(), gradient.numpy()))

    def waits():
        slow_has_read.set()
        assert fast_is_done.wait(WAIT)

    def slow():
        update("slow", machine.gpus[0], between=waits)

    def fast():
        assert slow_has_read.wait(WAIT)
        update("fast", machine.gpus[1])
        update("fast", machine.gpus[1])
        fast_is_done.set()

    with ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(slow), pool.submit(fast)]:
            job.result()
    assert [row[:3] for row in log] == [("fast", 0, 0), ("fast", 1, 1), ("slow", 0, 2)]
    assert not np.array_equal(log[1][3], log[2][3]), "the two read different values"
    moved = sum(0.1 * row[4] for row in log)
    np.testing.assert_allclose(weights.numpy(), [1.0, 2.0] - moved, rtol=0, atol=1e-12)
    assert int(version) == 3


def test_a_pause_between_read_and_write_loses_updates(machine):
    """What the lock is for: four threads add 1 to a variable in two steps."""
    import tensorflow as tf

    counter, meet = tf.Variable(0), threading.Barrier(4, timeout=WAIT)

    def careless(_):
        read = int(counter)
        meet.wait()
        counter.assign(read + 1)

    def careful(_):
        meet.wait()
        counter.assign_add(1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(careless, range(4)))
        assert int(counter) == 1
        counter.assign(0)
        list(pool.map(careful, range(4)))
    assert int(counter) == 4


def _slope(weights, batch):
    return weights[0] ** 2 / 2, [weights[0]]


def _roll(devices: int, updates: int, service=None, rate: float = 0.75):
    return VirtualClock([service or fixed(1.0)] * devices).run(
        asynchronous(),
        updates,
        gradient=_slope,
        weights=[np.array(1.0)],
        rate=rate,
        measure=lambda weights: weights[0],
        every=1,
    )


@claim(
    "C37",
    "Asynchronous mode can be seen as several copies of single-device training.",
    verdict="changed",
    lesson="08",
    section="2 · Two devices push the same ball",
    finding=(
        "With one worker it is plain SGD, exactly. With more, gradients are written to weights "
        "that they were not computed from, n − 1 updates later on average."
    ),
)
def test_only_one_asynchronous_worker_is_single_device_training():
    x, course = 1.0, [1.0]
    for _ in range(30):
        x -= 0.3 * x
        course.append(x)
    for service in (fixed(1.0), exponential(1.0)):
        assert _roll(1, 30, service, rate=0.3).measured.value.tolist() == course
    two = _roll(2, 30, rate=0.3)
    assert two.measured.value.tolist() != course
    assert two.staleness.tolist() == [0] + [1] * 29


@claim(
    "C38",
    "Two devices that read the same old point can together jump over the minimum.",
    verdict="true",
    lesson="08",
    section="2 · Two devices push the same ball",
    finding=(
        "From 1, with rate 0.75 on x²/2, the first push leads to 0.25; the second, from the same "
        "reading, to −0.5, where one device would stand at 0.0625."
    ),
)
def test_two_devices_jump_over_the_minimum():
    assert _roll(2, 3).measured.value.tolist() == [1, 0.25, -0.5, -0.6875]
    assert _roll(1, 3).measured.value.tolist() == [1, 0.25, 0.0625, 0.015625]


def _grows(rate: float, workers: int) -> bool:
    run = VirtualClock([fixed(1.0)] * workers).run(
        divide_rate(), 1200, gradient=_slope, weights=[np.array(1.0)], rate=rate
    )
    return bool(run.diverged or run.loss[-300:].max() > run.loss[300:600].max())


def test_dividing_by_the_staleness_is_safe_for_small_rates_only():
    """Curvature 1; the staleness is one less than the workers."""
    assert not any(_grows(0.95, workers) for workers in (2, 3, 5, 10, 20))
    assert all(_grows(1.5, workers) for workers in (2, 3, 5, 10))


def test_a_gradient_that_never_arrives_is_not_counted():
    """The mean staleness is n − 1 for eight workers, but not if one never comes back."""
    for factor, mean in ((5, 7), (1e6, 6)):
        fleet = one_slow(exponential(1.0), 8, factor)
        run = VirtualClock(fleet).run(asynchronous(), 16_000)
        assert abs(run.staleness.mean() - mean) < 0.05


def _in_step(machine, steps: int):
    """Four threads that meet; return the weights and one row per gradient."""
    import tensorflow as tf

    n = 4
    variables = [tf.Variable(w) for w in network.initial_weights(dtype="float64")]
    version, arrived, rows = tf.Variable(0), [None] * n, []

    def average_and_write():
        for variable, *parts in zip(variables, *arrived, strict=True):
            variable.assign_sub(RATE * sum(parts) / n)
        version.assign_add(1)

    meet = threading.Barrier(n, average_and_write, timeout=WAIT)

    def worker(k):
        for step in range(steps):
            read = int(version)
            seen = [v.numpy() for v in variables]
            _, arrived[k] = _gradients(seen, *_batch(step * n + k), machine.gpus[k])
            rows.append((step, read, seen[0], arrived[k][0]))
            meet.wait()

    with ThreadPoolExecutor(n) as pool:
        list(pool.map(worker, range(n)))
    return [v.numpy() for v in variables], int(version), rows


@pytest.fixture(scope="module")
def in_step(machine):
    return _in_step(machine, 5)


@claim(
    "C39",
    "In synchronous mode all devices read together, their gradients are averaged, and the "
    "parameters are updated once.",
    verdict="true",
    lesson="08",
    section="5 · Synchronous, with real threads",
    finding=(
        "Four threads that meet at a barrier give the weights of one device with the joined batch, "
        "to 1e-12 in float64, with one update per step. (SyncReplicasOptimizer counts "
        "gradients, not workers: by default one can count twice, see lesson 09.)"
    ),
)
def test_synchronous_equals_one_device_with_the_joined_batch(machine, in_step):
    weights, version, rows = in_step
    assert version == 5
    assert all(step == read for step, read, *_ in rows), "nobody reads an old version"
    single = network.initial_weights(dtype="float64")
    for step in range(5):
        parts = [_batch(step * 4 + k) for k in range(4)]
        x, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        _, gradients = _gradients(single, x, y, machine.gpus[0])
        single = [w - RATE * g for w, g in zip(single, gradients, strict=True)]
    assert max(abs(a - b).max() for a, b in zip(weights, single, strict=True)) < 1e-12
    first = network.initial_weights(dtype="float64")
    assert max(abs(a - b).max() for a, b in zip(weights, first, strict=True)) > 1e-3


@claim(
    "C40",
    "Synchronous devices have equal parameters, but different gradients.",
    verdict="true",
    lesson="08",
    section="5 · Synchronous, with real threads",
    finding="In every step the four workers read identical weights; no two gradients are equal.",
)
def test_synchronous_devices_differ_only_in_their_gradients(in_step):
    _, _, rows = in_step
    for step in range(5):
        weights = [row[2] for row in rows if row[0] == step]
        gradients = [row[3] for row in rows if row[0] == step]
        assert len(weights) == 4
        assert all(np.array_equal(w, weights[0]) for w in weights)
        pairs = [(i, j) for i in range(4) for j in range(i)]
        assert not any(np.array_equal(gradients[i], gradients[j]) for i, j in pairs)


@claim(
    "C41",
    "Training Inception-v3 to 78 % takes about half a year on one machine.",
    verdict="changed",
    lesson="08",
    section="1 · One step, shared in two ways",
    finding=(
        "Five months at most: under 65 hours on 100 GPUs at a speed-up of 56 (TensorFlow 0.8 "
        "release post, 2016) are less than 152 days."
    ),
    hardware=True,
)
def test_the_published_speed_up_gives_five_months():
    hours, speed_up, gpus = 65, 56, 100
    days = hours * speed_up / 24
    assert round(days) == 152
    half_a_year = 365 / 2
    assert 0.75 * half_a_year < days < 0.9 * half_a_year
    assert hours * gpus / 24 > 1.25 * half_a_year, "a speed-up of 100 would not fit"
