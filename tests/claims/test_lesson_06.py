"""Claims of the classic texts that lesson 06 tries."""

from collections import Counter

import numpy as np
import pytest

from tests.claims.ledger import claim
from tests.lesson_cells import lesson_06
from utils.machine import plain_name
from utils.runs import trace

INPUT = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
WEIGHTS = np.float32([[1], [1], [2]])


def _replicated(machine, towers):
    """Build the 4×3 program with towers; return the graph and its output."""
    import tensorflow as tf

    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.host):
            x = v1.get_variable("input_data", initializer=INPUT)
            weights = v1.get_variable("b", initializer=WEIGHTS)
            parts = tf.split(x, towers)
        products = []
        for number, part in enumerate(parts):
            with tf.device(machine.gpus[number % 4]):
                products.append(part @ weights)
        with tf.device(machine.host):
            output = tf.concat(products, axis=0)
    return graph, output


@claim(
    "C30",
    "In-graph replication: split the input, compute in a loop over the devices, "
    "put the results together; the result is the same.",
    verdict="true",
    lesson="06",
    section="1 · The smallest change that uses two GPUs",
    finding="The same numbers with 1, 2 and 4 towers; the weights are sent to every tower.",
)
@pytest.mark.parametrize("towers", [1, 2, 4])
def test_split_loop_and_concat_give_the_same_result(machine, towers):
    run = trace(*_replicated(machine, towers))
    assert run.value.tolist() == [[9], [21], [33], [45]]
    where = Counter(plain_name(node.device) for node in run.nodes if node.op == "MatMul")
    assert where == {f"GPU {n}": 1 for n in range(towers)}
    assert len(run.transfers) == 3 * towers, "rows in, weights in, rows out"
    weights = [t for t in run.transfers if t.bytes == WEIGHTS.nbytes]
    assert {plain_name(t.receiver) for t in weights} >= set(where)


@claim(
    "C31",
    "The replicated graph grows with the number of workers, which hurts.",
    verdict="true",
    lesson="06",
    section="7 · One graph grows with every tower",
    finding=(
        "From two towers on, every further one adds the same number of nodes: 16 towers have "
        "more than six times as many as two. How much it hurts depends on the network: here "
        "the graph is small."
    ),
)
def test_nodes_grow_with_the_towers(machine):
    build, optimisers = (lesson_06(machine)[name] for name in ("build", "THEN"))
    nodes = {}
    for towers in (2, 4, 8, 16):
        gpus = [machine.gpus[n % 4] for n in range(towers)]
        graph, _, _ = build(gpus, optimisers["SGD"](), "float32")
        nodes[towers] = len(graph.get_operations())
    further = {(nodes[2 * n] - nodes[n]) / n for n in (2, 4, 8)}
    assert len(further) == 1 and further.pop() > 0
    assert nodes[16] > 6 * nodes[2]


@claim(
    "C32",
    "Data parallelism: a copy of the model on every device and different "
    "samples give a higher throughput.",
    verdict="true",
    lesson="06",
    section="6 · What does it bring?",
    finding=(
        "Four towers take in four times as many images a step, at the same "
        "work per GPU. Published images per second on 1 to 8 GPUs (TensorFlow benchmarks, "
        "2017) rise by 1.7 to 2 times with each doubling; on the cores of one machine the "
        "lesson's picture shows less."
    ),
    hardware=True,
)
def test_published_speeds_rise_with_the_gpus():
    """TensorFlow's page of benchmarks, May 2017: DGX-1, images per second on 1, 2, 4, 8 GPUs."""
    for speeds in (
        [142, 284, 569, 1131],  # Inception-v3
        [219, 422, 852, 1734],  # ResNet-50
        [91.8, 181, 356, 716],  # ResNet-152
        [2987, 5658, 10509, 17822],  # AlexNet
        [154, 295, 584, 1081],  # VGG-16
    ):
        steps = [more / fewer for fewer, more in zip(speeds, speeds[1:], strict=False)]
        assert all(1.69 < step < 2.05 for step in steps)


def test_a_step_takes_in_more_images_at_the_same_work_per_gpu(machine):
    lesson = lesson_06(machine)
    random = np.random.RandomState(6)

    def step(towers):
        images = random.rand(16 * towers, 784)
        labels = np.arange(16 * towers) % 10
        graph, (x, y), fetches = lesson["build"](machine.gpus[:towers], lesson["THEN"]["SGD"]())
        run = trace(graph, fetches, {x: images, y: labels})
        work = Counter(plain_name(node.device) for node in run.nodes if node.op == "MatMul")
        got = {}
        for moved in run.transfers:
            got.setdefault(plain_name(moved.receiver), []).append(moved.bytes)
        return work, {gpu: sorted(sizes) for gpu, sizes in got.items() if gpu in work}

    work, received = step(1)
    assert work["GPU 0"] > 0
    assert 16 * 784 * 8 in received["GPU 0"], "its images"
    assert 784 * 128 * 8 in received["GPU 0"], "and the whole first kernel"
    assert step(4) == (
        Counter({f"GPU {n}": work["GPU 0"] for n in range(4)}),
        {f"GPU {n}": received["GPU 0"] for n in range(4)},
    )
