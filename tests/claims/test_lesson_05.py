"""Claims of the classic texts that lesson 05 tries."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.claims.ledger import claim
from utils.cluster import LocalCluster
from utils.machine import plain_name, session_config
from utils.runs import overlap, trace
from utils.training import mnist, network

v1 = tf.compat.v1
LINK = Path(__file__).resolve().parents[2] / "notebooks" / "programs" / "link.py"
DEADLINE = 180  # seconds; two processes with TensorFlow start in ten on two quiet cores


@claim(
    "C25",
    "TensorFlow moves data between devices by itself.",
    verdict="true",
    lesson="05",
    section="4 · What crosses a border",
    finding=(
        "A tensor that is needed on another device gets a pair of operations, _Send and _Recv, "
        "that no line of the program wrote: one pair for each such device, however many "
        "operations there use it."
    ),
)
def test_transfers_are_added(machine):
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.host):
            x = v1.placeholder(tf.float32, [4, 3], name="x")
        with tf.device(machine.gpus[0]):
            up = tf.exp(x, name="up")
        with tf.device(machine.gpus[1]):
            down = tf.negative(up, name="down")
            root = tf.sqrt(up, name="root")  # the second to use it there
    record = v1.RunMetadata()
    ask = v1.RunOptions(output_partition_graphs=True)
    with v1.Session(graph=graph, config=session_config()) as session:
        session.run([down.op, root.op], {x: np.ones([4, 3])}, ask, record)
    written = {operation.type for operation in graph.get_operations()}
    assert written == {"Placeholder", "Exp", "Neg", "Sqrt"}

    def ends(op):
        nodes = [node for part in record.partition_graphs for node in part.node if node.op == op]
        names = ("tensor_name", "send_device", "recv_device")
        return {tuple(node.attr[name].s.decode() for name in names) for node in nodes}

    assert ends("_Send") == ends("_Recv"), "they come in pairs"
    assert len(ends("_Send")) == 2, "one for each device that needs it"
    pairs = {(plain_name(sender), plain_name(receiver)) for _, sender, receiver in ends("_Send")}
    assert pairs == {("host", "GPU 0"), ("GPU 0", "GPU 1")}


@claim(
    "C26",
    "Moving data in and out of a device takes time; keep related operations together.",
    verdict="true",
    lesson="05",
    section="6 · What a transfer costs, and when it pays",
    finding=(
        "Between two processes every byte is received anew, and the lesson measures what that "
        "takes; between virtual GPUs a pointer is handed over and nothing is copied."
    ),
)
def test_a_link_copies_and_virtual_gpus_do_not(machine):
    size = 16_000_000
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.gpus[0]):
            kept = v1.get_variable("kept", [size // 4]).read_value()
        with tf.device(machine.gpus[1]):
            largest = tf.reduce_max(kept)
    run = trace(graph, largest.op)
    assert run.bytes_moved == size
    assert sum(run.allocated.values()) < 1000, "nothing was copied inside the process"

    with LocalCluster(
        LINK, ps=1, workers=1, arguments=["--rounds=2"], deadline=DEADLINE
    ) as cluster:
        link = cluster.wait()["worker 0"]
    sizes = link["sizes"]
    assert (sizes[0], sizes[-1]) == (4_000, size) and sizes == sorted(sizes)
    assert link["moved"] == sizes, "all of it came through the link"
    assert len(link["seconds"]) == len(sizes) and min(link["seconds"]) > 0
    assert cluster.report().splitlines() == ["ps 0: stopped", "worker 0: finished"]


@claim(
    "C27",
    "Heavy computation belongs on the GPU, the rest on the CPU.",
    verdict="true",
    lesson="05",
    section="6 · What a transfer costs, and when it pays",
    finding=(
        "As advice: a product of large tables does more work for each byte that it moves, the "
        "larger they are; a sum does not. Over the lesson's link no sum pays; over a link of "
        "640 GB/s, with these two speeds, a large one does."
    ),
)
@pytest.mark.parametrize("build", [tf.matmul, tf.add], ids=["product", "sum"])
def test_work_per_byte_decides(machine, build):
    """The link is the lesson's example, as are the two speeds; the bytes are TensorFlow's."""

    def moved(n: int) -> int:
        graph = tf.Graph()
        with graph.as_default():
            with tf.device(machine.host):
                a, b = (v1.placeholder(tf.float32, [n, n]) for _ in "ab")
            with tf.device(machine.gpus[0]):
                output = build(a, b)
        return trace(graph, output, {a: np.ones([n, n]), b: np.ones([n, n])}).bytes_moved

    def pays(n: int, latency: float = 0.8e-3, bandwidth: float = 1e9) -> bool:
        work = 2 * n**3 if build is tf.matmul else n**2
        there = work / 1000e9 + 2 * latency + 3 * 4 * n**2 / bandwidth
        return there < work / 50e9

    assert all(moved(n) == 3 * 4 * n**2 for n in (10, 100, 1000))
    assert [pays(n) for n in (10, 100, 1000)] == [False, False, build is tf.matmul]
    # Of a sum the bytes alone take longer than the work wins, until the link is very fast.
    border = 3 * 4 / (1 / 50e9 - 1 / 1000e9)
    assert 620e9 < border < 640e9
    assert pays(10**6, bandwidth=1.01 * border)
    assert pays(10**6, bandwidth=0.99 * border) == (build is tf.matmul)


def _two_products(machine, wait: bool):
    """Two products on two virtual GPUs, each far more than 50 ms of work on one core."""
    side = 1600
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.gpus[0]):
            a = v1.get_variable("a", [side, side]).read_value()
            left = tf.matmul(a, a, name="left")
        with tf.device(machine.gpus[1]), tf.control_dependencies([left] if wait else []):
            b = v1.get_variable("b", [side, side]).read_value()
            right = tf.matmul(b, b, name="right")
    return graph, [left.op, right.op]


@claim(
    "C28",
    "Independent operations run in parallel.",
    verdict="true",
    lesson="05",
    section="2 · One thread, two threads",
    finding=(
        "Two products on two virtual GPUs overlap in time if the pool has two threads; with one "
        "thread, or under a control dependency, they do not."
    ),
)
@pytest.mark.parametrize(
    ("wait", "threads", "together"), [(False, 2, True), (False, 1, False), (True, 2, False)]
)
def test_independent_products_overlap(machine, wait, threads, together):
    run = trace(*_two_products(machine, wait), options=session_config(inter_op=threads))
    seconds = overlap(run, "left", "right")
    assert seconds > 0 if together else seconds == 0
    assert run.transfers == ()
    assert len(run.control_transfers) == wait


@claim(
    "C29",
    "Many GPUs make a search over hyperparameters, and ensembles, easy.",
    verdict="true",
    lesson="05",
    section="7 · No transfer at all: one model per GPU",
    finding=(
        "Models on different GPUs train in one graph without a transfer between GPUs, and end "
        "with the weights that each gets alone."
    ),
)
def test_one_model_per_gpu(machine):
    data = mnist.load()
    images = mnist.inputs(data.train_images[:600], "float64")

    def trained(settings):
        graph, models = tf.Graph(), []
        with graph.as_default():
            x = v1.placeholder(tf.float64, [None, 784], name="x")
            y = v1.placeholder(tf.int64, [None], name="y")
            for gpu, (rate, seed) in zip(machine.gpus, settings, strict=False):
                with tf.device(gpu):
                    weights = [tf.Variable(w) for w in network.initial_weights(seed, "float64")]
                    loss = network.mean_loss(weights, x, y)
                    pairs = zip(weights, tf.gradients(loss, weights), strict=True)
                    models.append((weights, [w.assign_sub(rate * g) for w, g in pairs]))
            first = v1.global_variables_initializer()
        weights, steps = zip(*models, strict=True)
        with v1.Session(graph=graph, config=session_config()) as session:
            session.run(first)
            for x, y in mnist.batches(images, data.train_labels[:600], 60, steps=10):
                session.run(steps, {"x:0": x, "y:0": y})
            values = session.run(weights)
        feed = {"x:0": images[:60], "y:0": data.train_labels[:60]}
        return values, trace(graph, steps, feed)

    settings = [(0.05, 1), (0.5, 2)]
    together, run = trained(settings)
    between = [
        t for t in run.transfers if "host" not in (plain_name(t.sender), plain_name(t.receiver))
    ]
    assert not between and not run.control_transfers
    products = {plain_name(node.device) for node in run.nodes if node.op == "MatMul"}
    assert products == {"GPU 0", "GPU 1"}
    for model, setting in zip(together, settings, strict=True):
        (alone,), _ = trained([setting])
        for one, other in zip(model, alone, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert not np.allclose(together[0][0], together[1][0]), "they are different models"
