"""Claims of the classic texts that lesson 07 tries."""

import numpy as np

from tests.claims.ledger import claim
from tests.lesson_cells import lesson_07
from utils.machine import plain_name
from utils.runs import trace
from utils.training import initial_weights, mean_loss, schemes

BUDGET = 600_000  # bytes of weights that a device may hold; virtual GPUs have no limit


def _once(lesson, split, devices):
    """Run one step; return its trace, its graph, the loss of the whole network."""
    graph, (x, y), fetches = lesson["build"](split, devices, lesson["start"])
    x_batch, y_batch = lesson["images"][:64], lesson["labels"][:64]
    run = trace(graph, fetches, {x: x_batch, y: y_batch})
    return run, graph, float(mean_loss(initial_weights(dtype="float64"), x_batch, y_batch))


def _held(run, graph):
    place = {node.name: plain_name(node.device) for node in run.nodes if node.op == "VarHandleOp"}
    held = dict.fromkeys(place.values(), 0)
    for v in graph.get_collection("trainable_variables"):
        held[place[v.op.name]] += v.shape.num_elements() * v.dtype.size
    return held


@claim(
    "C33",
    "Model parallelism: one model over several devices, for models that do not fit on one.",
    verdict="true",
    lesson="07",
    section="4 · Equal, and what each device holds",
    finding=(
        "Over a budget of bytes on one GPU, under it on each of two when cut by column; by "
        "layer this model stays over it, because one layer has nearly all weights. The loss "
        "is the same."
    ),
)
def test_a_model_over_the_budget_of_one_device_fits_on_two(machine):
    lesson = lesson_07(machine)
    alone, graph, loss = _once(lesson, lesson["by_layer"], [machine.gpus[0]] * 2)
    one = _held(alone, graph)
    assert list(one) == ["GPU 0"] and one["GPU 0"] > BUDGET
    split, graph, _ = _once(lesson, lesson["by_column"], machine.gpus[:2])
    held = _held(split, graph)
    assert sorted(held) == ["GPU 0", "GPU 1"]
    assert max(held.values()) <= BUDGET
    assert sum(held.values()) == one["GPU 0"]
    assert abs(split.value[0] - loss) < 1e-12 > abs(alone.value[0] - loss)
    layered, graph, _ = _once(lesson, lesson["by_layer"], machine.gpus[:2])
    assert max(_held(layered, graph).values()) > BUDGET


@claim(
    "C34",
    "Data and model parallelism can be combined.",
    verdict="true",
    lesson="07",
    section="7 · Both together, and which to choose",
    finding=(
        "Two replicas of two stages on four GPUs: half of the batch each, and after the step "
        "both have the weights of the undivided network."
    ),
)
def test_two_replicas_of_two_stages_are_the_undivided_network(machine):
    lesson = lesson_07(machine)
    batch = [(lesson["images"][:64], lesson["labels"][:64])]
    whole = lesson["unsplit"](batch)
    weights = lesson["train"](lesson["both"], machine.gpus, batch)
    assert max(abs(a - b).max() for a, b in zip(whole * 2, weights, strict=True)) < 1e-12
    run, graph, _ = _once(lesson, lesson["both"], machine.gpus)
    first, last = (sum(w.nbytes for w in lesson["start"][i : i + 2]) for i in (0, 2))
    assert _held(run, graph) == {"GPU 0": first, "GPU 1": last, "GPU 2": first, "GPU 3": last}
    images = [t for t in run.transfers if t.bytes == 32 * 784 * 8]
    assert sorted(plain_name(t.receiver) for t in images) == ["GPU 0", "GPU 2"]
    assert np.isfinite(run.value[0])


def test_what_the_lesson_says_of_its_table_of_schemes():
    """Section 7 names in words what the table shows: eight layers, four devices of 16 GB."""
    best = {}
    for link, latency, bandwidth in (("slow", 0.8e-3, 1e9), ("fast", 10e-6, 100e9)):
        fleet = schemes.Fleet(4, latency=latency, bandwidth=bandwidth, memory=16e9, speed=10e12)
        for width in (512, 2048, 8192, 24576):
            for batch in (64, 1024, 16384):
                job = schemes.dense(8, width, batch)
                best[link, width, batch] = schemes.choose(job, fleet).scheme
    slow = [scheme for (link, *_), scheme in best.items() if link == "slow"]
    assert slow.count("one device") == len(slow) / 2
    assert "by column" not in slow
    largest = {key: scheme for key, scheme in best.items() if key[1] == 24576}
    assert not {"one device", "data"} & set(largest.values())
    assert all(scheme == "by layer" for (link, *_), scheme in largest.items() if link == "slow")
    # Data parallelism: at least twice as many examples as a layer has columns.
    assert all(batch >= 2 * w for (_, w, batch), scheme in best.items() if scheme == "data")
