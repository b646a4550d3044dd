"""Towers train the same weights as one device: the cells of lesson 06, held to 1e-12."""

from itertools import accumulate, islice

import numpy as np
import pytest

from tests.lesson_cells import lesson_06
from utils.machine import plain_name, session_config
from utils.runs import trace
from utils.training import mnist, network

EQUAL = 1e-12  # float64: rounding is below 1e-15, the smallest bug above 1e-6
OPTIMISERS = ("SGD", "momentum", "Adam")
FORMS = {"train": "THEN", "train_today": "NOW"}


@pytest.fixture(scope="module")
def lesson(machine):
    return lesson_06(machine)


@pytest.fixture(scope="module")
def stream():
    """`stream(size)`: twenty batches in float64."""
    data = mnist.load()
    x = mnist.inputs(data.train_images[:2000], "float64")
    return lambda size: list(mnist.batches(x, data.train_labels[:2000], size, steps=20))


@pytest.fixture(scope="module")
def trained(lesson, machine, stream):
    """`trained(form, optimiser, towers)`: the weights after twenty batches of 64, once each."""
    done = {}

    def weights(form, name, towers):
        key = form, name, towers
        if key not in done:
            optimizer = lesson[FORMS[form]][name]()
            done[key] = lesson[form](machine.gpus[:towers], optimizer, stream(64))
        return done[key]

    return weights


def apart(one, other):
    return max(abs(a - b).max() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_1_2_and_4_towers_train_the_same_weights(trained, form, name):
    one = trained(form, name, 1)
    assert {weight.dtype for weight in one} == {np.dtype("float64")}
    assert apart(one, network.initial_weights(dtype="float64")) > 1e-3, "it has trained"
    for towers in (2, 4):
        assert apart(one, trained(form, name, towers)) < EQUAL, towers


def test_one_tower_is_plain_gradient_descent(trained, stream):
    """By hand, without towers, graph or optimiser."""
    import tensorflow as tf

    weights = [tf.Variable(w) for w in network.initial_weights(dtype="float64")]
    for x, y in stream(64):
        with tf.GradientTape() as tape:
            loss = network.mean_loss(weights, x, y)
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.125 * gradient)
    plain = [weight.numpy() for weight in weights]
    assert apart(plain, trained("train", "SGD", 4)) < EQUAL
    assert apart(plain, trained("train_today", "SGD", 4)) < EQUAL


def test_both_forms_agree(trained):
    for name in ("SGD", "momentum"):  # Adam's forms differ: see the next test
        assert apart(trained("train", name, 2), trained("train_today", name, 2)) < EQUAL


def test_why_the_two_forms_of_adam_differ():
    """The old form keeps powers of its betas in float32; its epsilon is another by default."""
    import tensorflow as tf

    old = tf.compat.v1.train.AdamOptimizer()
    with tf.Graph().as_default():
        weight = tf.compat.v1.get_variable("weight", initializer=np.zeros(3))
        old.apply_gradients([(np.ones(3), weight)])
        powers = [v for v in tf.compat.v1.global_variables() if "power" in v.name]
    assert weight.dtype == tf.float64
    assert [power.dtype for power in powers] == [tf.float32] * 2
    assert old._epsilon == 1e-8 and tf.keras.optimizers.Adam().epsilon == 1e-7


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("size", [50, 7])
def test_unequal_shards_count_by_their_size(lesson, machine, stream, name, size):
    sizes = [len(part) for part in np.array_split(np.arange(size), 4)]
    assert len(set(sizes)) > 1

    def train(gpus, shares=None):
        return lesson["train_today"](gpus, lesson["NOW"][name](), stream(size), shares)

    one = train(machine.gpus[:1])
    assert apart(one, train(machine.gpus, [n / size for n in sizes])) < EQUAL
    if name == "SGD":
        assert apart(one, train(machine.gpus)) > 1e-6, "the mean of means is another"


@pytest.mark.parametrize("name", OPTIMISERS)
def test_variables_do_not_grow_with_the_towers(lesson, machine, name):
    counts = {}
    for towers in (1, 2, 4):
        graph, _, _ = lesson["build"](machine.gpus[:towers], lesson["THEN"][name]())
        counts[towers] = [
            len(graph.get_collection(kind)) for kind in ("trainable_variables", "variables")
        ]
    assert counts[1] == counts[2] == counts[4]
    assert counts[1][0] == 4


def test_towers_work_on_their_gpus_and_the_host_keeps_the_variables(lesson, machine, stream):
    graph, (x, y), fetches = lesson["build"](machine.gpus, lesson["THEN"]["SGD"]())
    images, labels = stream(64)[0]
    run = trace(graph, fetches, {x: images, y: labels})
    assert run.value[0] == pytest.approx(
        network.mean_loss(network.initial_weights(dtype="float64"), images, labels).numpy(),
        rel=EQUAL,
    )

    def where(op):
        return [plain_name(node.device) for node in run.nodes if node.op == op]

    assert sorted(set(where("MatMul"))) == [f"GPU {n}" for n in range(4)]
    assert len({where("MatMul").count(f"GPU {n}") for n in range(4)}) == 1
    assert set(where("VarHandleOp") + where("ResourceApplyGradientDescent")) == {"host"}
    assert len(where("ResourceApplyGradientDescent")) == 4, "one update per weight"
    parts = [t for t in run.transfers if t.source == "split"]
    assert sorted(plain_name(t.receiver) for t in parts) == [f"GPU {n}" for n in range(4)]
    assert {t.bytes for t in parts} == {16 * 784 * 8}


# --- missing and sparse gradients


def slices(tf, rows, values, height=5):
    values = tf.constant(values, "float64")
    shape = tf.constant([height, values.shape[1]], "int64")
    return tf.IndexedSlices(values, tf.constant(rows), shape)


def test_a_missing_gradient_is_a_gradient_of_zero(lesson):
    import tensorflow as tf

    average_one = lesson["average_one"]
    gradient = tf.constant([4.0, 8.0], "float64")
    assert average_one([None, gradient], [0.25, 0.75]).numpy().tolist() == [3.0, 6.0]
    assert average_one([gradient, None, gradient], [0.25, 0.5, 0.25]).numpy().tolist() == [2.0, 4.0]
    assert average_one([None, None], [0.5, 0.5]) is None


def test_a_sparse_and_a_dense_gradient_are_averaged(lesson):
    import tensorflow as tf

    mean = lesson["average_one"](
        [slices(tf, [0, 1], [[2.0], [4.0]]), tf.ones([5, 1], "float64")], [0.5, 0.5]
    )
    assert np.ravel(mean).tolist() == [1.5, 2.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_embedding_trains_alike_on_one_device_and_in_towers(lesson, name):
    """A row read twice by one tower and by both, and a weight that one tower does not use."""
    import tensorflow as tf

    parts = [([0, 1, 1], False), ([1, 3, 4], True)]

    def loss(weights, rows, uses_bias):
        found = tf.gather(weights[0], rows) ** 2
        return tf.reduce_sum(found + weights[1] if uses_bias else found) / 6

    def weights():
        return [tf.Variable(np.arange(1, 11.0).reshape(5, 2)), tf.Variable(np.ones(2))]

    def step(variables, optimizer, gradients):
        optimizer.build(variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return [variable.numpy() for variable in variables]

    whole, towers = weights(), weights()
    with tf.GradientTape() as tape:
        total = sum(loss(whole, *part) for part in parts)
    one = step(whole, lesson["NOW"][name](), tape.gradient(total, whole))

    gradients = []
    for part in parts:
        with tf.GradientTape() as tape:
            value = 2 * loss(towers, *part)  # the mean of the tower's own three rows
        gradients.append(tape.gradient(value, towers))
    assert isinstance(gradients[0][0], tf.IndexedSlices) and gradients[0][1] is None
    mean = [lesson["average_one"](g, [0.5, 0.5]) for g in zip(*gradients, strict=True)]
    two = step(towers, lesson["NOW"][name](), mean)
    assert apart(one, two) < EQUAL
    assert apart(one, [w.numpy() for w in weights()]) > 1e-4


def most_at_once(run) -> int:
    """The largest number of operations that were at work at the same moment."""
    moments = [(row.start, 1) for row in run.intervals] + [(row.end, -1) for row in run.intervals]
    return max(accumulate(change for _, change in sorted(moments)))


def test_only_a_tower_with_one_thread_is_an_honest_baseline(lesson, machine, stream):
    """With more threads, one tower alone has operations that run at the same time."""
    x, y = stream(1024)[0]
    optimizer = lesson["THEN"]["SGD"]()
    graph, (images, labels), fetches = lesson["build"](machine.gpus[:1], optimizer)
    feed = {images: x, labels: y}

    def runs(inter_op):
        while True:
            yield trace(graph, fetches, feed, session_config(inter_op=inter_op))

    assert {most_at_once(run) for run in islice(runs(1), 5)} == {1}
    # Whether two operations meet in one run is up to the threads: ask until they do.
    assert any(most_at_once(run) > 1 for run in islice(runs(4), 1000))


def test_an_empty_shard_spoils_the_reported_loss_and_no_gradient(lesson, stream):
    import tensorflow as tf

    weights = [tf.Variable(w) for w in network.initial_weights(dtype="float64")]
    x, y = stream(64)[0]
    losses, parts = [], []
    for images, labels in ((x, y), (x[:0], y[:0])):
        with tf.GradientTape() as tape:
            losses.append(network.mean_loss(weights, images, labels))
        parts.append(tape.gradient(losses[-1], weights))
    (loss,) = lesson["average"]([losses[:1], losses[1:]], [1.0, 0.0])
    assert np.isfinite(losses[0].numpy()) and np.isnan(loss.numpy())
    mean = lesson["average"](parts, [1.0, 0.0])
    assert apart([g.numpy() for g in mean], [g.numpy() for g in parts[0]]) == 0
