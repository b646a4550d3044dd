"""A split network trains the weights of the whole one: the cells of lesson 07, held to 1e-12."""

from itertools import pairwise

import numpy as np
import pytest

from tests.lesson_cells import lesson_07
from utils.machine import plain_name, session_config
from utils.runs import pipeline, trace
from utils.training import mnist, network

EQUAL = 1e-12  # float64: rounding is below 1e-15, the smallest bug above 1e-6
MODEL = 8 * (784 * 128 + 128 + 128 * 10 + 10)


@pytest.fixture(scope="module")
def lesson(machine):
    return lesson_07(machine)


@pytest.fixture(scope="module")
def stream(lesson):
    return list(mnist.batches(lesson["images"][:2000], lesson["labels"][:2000], 64, steps=10))


@pytest.fixture(scope="module")
def whole(lesson, stream):
    """The weights after ten steps of plain gradient descent, without any split."""
    weights = lesson["unsplit"](stream)
    assert lesson["apart"](weights, network.initial_weights(dtype="float64")) > 1e-3
    return weights


@pytest.fixture
def step(lesson):
    return lambda split, n: lesson["step"](split, lesson["gpus"][:n])


def sent(run):
    """(from, to, bytes) of every transfer but the loss's."""
    rows = [(plain_name(t.sender), plain_name(t.receiver), t.bytes) for t in run.transfers]
    return sorted(row for row in rows if row[1] != "host")


def test_by_layer_trains_the_same_weights(lesson, machine, stream, whole):
    found = lesson["train"](lesson["by_layer"], machine.gpus[:2], stream)
    assert lesson["apart"](whole, found) < EQUAL


@pytest.mark.parametrize("n", [2, 4])
def test_by_column_trains_the_same_weights(lesson, machine, stream, whole, n):
    parts = lesson["train"](lesson["by_column"], machine.gpus[:n], stream)
    joined = [
        np.concatenate(columns, axis=-1)
        for columns in zip(*(parts[i : i + 4] for i in range(0, 4 * n, 4)), strict=True)
    ]
    assert lesson["apart"](whole, joined) < EQUAL


def test_todays_form_trains_the_same_weights_in_the_same_places(lesson, stream, whole):
    for x, y in stream:
        lesson["today"](x, y)
    weights = lesson["first"] + lesson["last"]
    assert lesson["apart"](whole, [w.numpy() for w in weights]) < EQUAL
    graph = lesson["today"].get_concrete_function(*stream[0]).graph
    where = [plain_name(op.device) for op in graph.get_operations() if op.type == "MatMul"]
    assert sorted(where) == ["GPU 0"] * 2 + ["GPU 1"] * 3


@pytest.mark.parametrize("count", [1, 4])
def test_micro_batches_train_the_same_weights(lesson, machine, stream, whole, count):
    found = lesson["train"](lesson["pipeline"](count), machine.gpus[:2], stream)
    assert lesson["apart"](whole, found) < EQUAL


def test_three_stages_have_the_gradients_of_the_whole(lesson, machine):
    import tensorflow as tf

    random = np.random.RandomState(3)
    shapes = (784, 16), (16,), (16, 12), (12,), (12, 10), (10,)
    start = [random.uniform(-0.1, 0.1, shape) for shape in shapes]
    first, last = lesson["first_layer"], lesson["last_layer"]
    split = lesson["pipeline"](4, (first, first, last))
    built = []

    def kept(*arguments):
        built.append(split(*arguments))
        return built[0]

    graph, (x, y), (loss, update) = lesson["build"](kept, machine.gpus[:3], start)
    feed = {x: lesson["images"][:64], y: lesson["labels"][:64]}
    found, slopes, _ = trace(graph, [loss, built[0][2], update], feed).value
    weights = [tf.Variable(w) for w in start]
    with tf.GradientTape() as tape:
        hidden = first(weights[2:4], first(weights[:2], feed[x]))
        whole = last(weights[4:], hidden, feed[y])
    assert abs(found - whole.numpy()) < EQUAL
    right = [slope.numpy() for slope in tape.gradient(whole, weights)]
    assert lesson["apart"](slopes, right) < EQUAL
    assert min(abs(slope).max() for slope in right) > 1e-6, "no layer is idle"


def test_two_replicas_of_two_stages_train_the_same_weights(lesson, machine, stream, whole):
    found = lesson["train"](lesson["both"], machine.gpus, stream)
    assert len(found) == 8
    assert lesson["apart"](whole, found[:4]) < EQUAL
    assert lesson["apart"](whole, found[4:]) < EQUAL


def test_a_last_micro_batch_that_is_lost_is_seen(lesson, machine, stream, whole):
    """The ruler can fail: a mean over one micro-batch too few is another gradient."""
    build = lesson["pipeline"](4)

    def lossy(devices, x, y, start):
        return build(devices, x, lesson["tf"].concat([y[:48], y[:16]], 0), start)

    found = lesson["train"](lossy, machine.gpus[:2], stream)
    assert lesson["apart"](whole, found) > 1e-6


# --- what moves, what stays


def test_by_layer_moves_activations_once_and_their_gradients_once(lesson, step):
    images, hidden = 64 * 784 * 8, 64 * 128 * 8
    assert sent(step(lesson["by_layer"], 2)) == [
        ("GPU 0", "GPU 1", hidden),
        ("GPU 1", "GPU 0", hidden),
        ("host", "GPU 0", images),
        ("host", "GPU 1", 64 * 8),
    ]


@pytest.mark.parametrize("n", [2, 4])
def test_by_column_moves_hidden_units_to_all_others(lesson, step, n):
    run = step(lesson["by_column"], n)
    scores = 10 - [len(part) for part in np.array_split(range(10), n)][-1]
    assert lesson["between"](run) == 2 * 64 * 8 * ((n - 1) * 128 + scores)
    images = [row for row in sent(run) if row[2] == 64 * 784 * 8]
    assert images == [("host", f"GPU {i}", 64 * 784 * 8) for i in range(n)]


def test_both_moves_activations_and_every_gradient_twice(lesson, step):
    assert lesson["between"](step(lesson["both"], 4)) == 2 * 64 * 128 * 8 + 2 * MODEL


def test_a_pipeline_moves_the_same_bytes_in_more_pieces(lesson, step):
    count = 4
    rows = sent(step(lesson["pipeline"](count), 2))
    piece = 64 // count * 128 * 8
    assert rows.count(("GPU 0", "GPU 1", piece)) == count
    assert rows.count(("GPU 1", "GPU 0", piece)) == count
    assert len(rows) == 4 * count


def test_without_colocation_the_backward_pass_leaves_the_gpus(
    lesson, machine, stream, whole, monkeypatch
):
    """What `v1.gradients` does by default, and `tf.gradients` does not; the numbers are right."""
    with monkeypatch.context() as patch:
        patch.setitem(lesson, "gradients_of", lesson["v1"].gradients)
        run = lesson["step"](lesson["by_layer"], machine.gpus[:2])
        found = lesson["train"](lesson["by_layer"], machine.gpus[:2], stream)
    assert lesson["apart"](whole, found) < EQUAL
    back = [n for n in run.nodes if n.op == "MatMul" and n.name.startswith("gradients/")]
    assert [plain_name(n.device) for n in back] == ["host"] * 3
    beside = lesson["step"](lesson["by_layer"], machine.gpus[:2])
    assert run.bytes_moved - beside.bytes_moved == 829_520, "as the lesson prints it"


def test_weights_and_activations_that_a_device_holds(lesson, machine):
    two = machine.gpus[:2]
    first, last = 8 * (784 * 128 + 128), 8 * (128 * 10 + 10)
    held = lesson["weights_held"]
    assert held(lesson["by_layer"], two) == {"GPU 0": first, "GPU 1": last}
    assert held(lesson["by_column"], two) == {"GPU 0": MODEL // 2, "GPU 1": MODEL // 2}
    images, hidden, scores = (64 * n * 8 for n in (784, 128, 10))
    kept = lesson["activations_held"]
    assert kept(lesson["by_layer"], two) == {"GPU 0": images + hidden, "GPU 1": hidden + scores}
    assert kept(lesson["by_column"], two) == {
        "GPU 0": images + hidden // 2 + hidden,
        "GPU 1": images + hidden // 2 + hidden + scores,
    }


# --- the order of a pipeline


@pytest.fixture(scope="module")
def graph_of_four(lesson, machine):
    split = lesson["pipeline"](4)
    return lesson["build"](split, machine.gpus[:2], lesson["start"])


def test_a_gpu_keeps_its_order_and_does_one_step_at_a_time(lesson, graph_of_four):
    graph, (x, y), fetches = graph_of_four
    feed = {x: lesson["images"][:64], y: lesson["labels"][:64]}
    for threads in (1, 4):  # four threads could take four steps at once
        run = trace(graph, fetches, feed, session_config(inter_op=threads))
        for stage, planned in enumerate(pipeline.fill_and_drain(2, 4)):
            steps = [s for s in pipeline.ran(run) if s.stage == stage]
            assert [(s.kind, s.micro_batch) for s in steps] == planned
            tick = 3e-6  # starts and ends are whole microseconds
            for before, after in pairwise(steps):
                assert after.start >= before.end - tick


def waits_for(run, gpu):
    """Map each product on a GPU, in order of their starts, to what it waits for on that GPU."""
    nodes = {node.name: node for node in run.nodes if plain_name(node.device) == gpu}
    products = [row.name for row in run.intervals if row.op == "MatMul" and row.name in nodes]
    before = {}
    for product in products:
        seen, todo = set(), [product]
        while todo:
            node = nodes[todo.pop()]
            new = {*node.inputs, *node.controls} & nodes.keys() - seen
            seen |= new
            todo += new
        before[product] = seen
    return before


def test_a_chain_of_edges_orders_the_products_of_a_gpu(lesson, graph_of_four):
    """Not by luck: each product of a stage waits, through edges on its GPU, for the one before."""
    graph, (x, y), fetches = graph_of_four
    run = trace(graph, fetches, {x: lesson["images"][:64], y: lesson["labels"][:64]})
    before = waits_for(run, "GPU 1")
    assert len(before) == 4 * 3
    assert all(one in before[two] for one, two in pairwise(before))


def test_without_the_line_nothing_orders_micro_batches(lesson, machine, monkeypatch):
    def no_line(device, scope):
        def give(name, work, *arguments):
            with lesson["tf"].device(device), lesson["v1"].name_scope(f"{scope}/{name}"):
                return work(*arguments)

        return give

    monkeypatch.setitem(lesson, "line", no_line)
    run = lesson["step"](lesson["pipeline"](4), machine.gpus[:2])
    before = waits_for(run, "GPU 0")
    forward = [name for name in before if name.startswith("stage_0/forward")]
    assert len(forward) == 4
    assert all(not before[name] & set(forward) for name in forward)
