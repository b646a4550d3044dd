"""Say where the time of a step goes: which operations, on the GPUs and on the host.

Every operation counts with its least time in several traced steps, so that other programs disturb
little. The towers stand in a graph of a session here, because only such a run can be traced.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict

import numpy as np

from tools import nbenv
from tools.bench_figure import Figure, watched
from tools.bench_networks import NETWORKS
from tools.bench_rounds import ROOT, ChildFailed

COLUMNS = ("what", "1 tower, ms", "2 towers, ms", "share of 2")
NETWORK = "conv"
TOWERS = (1, 2)
TRACED = 8  # steps in a round of the command
SHOWN = 8  # kinds of operations
DEADLINE = 300  # seconds


def profile(rounds: int, batch: int | None = None) -> Figure:
    """The figure, measured in a process of its own."""
    batch = batch or NETWORKS[NETWORK].batch
    words = [sys.executable, "-m", "tools.bench_profile", str(batch), str(TRACED * rounds)]
    environment = {**nbenv.apply(dict(os.environ)), "TF_ENABLE_ONEDNN_OPTS": "1"}
    with watched() as load:
        done = subprocess.run(
            words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=DEADLINE
        )
    if done.returncode:
        raise ChildFailed(
            f"The process for the profile failed: {' '.join(done.stderr.split()[-60:])}"
        )
    one, two = json.loads(done.stdout.splitlines()[-1])
    title = f"Where the time of a step goes: {NETWORK} network, batch {batch}, least times added up"
    return Figure(title, COLUMNS, rows(one, two), load.others, notes(one, two))


def rows(one: dict[str, float], two: dict[str, float]) -> list[tuple]:
    """The kinds of operations that take longest, the rest of the towers, the host, and all."""
    kinds = sorted(one.keys() - {"host"}, key=one.__getitem__, reverse=True)[:SHOWN]
    table = [(kind, one[kind], two.get(kind, 0.0)) for kind in kinds]
    everything = sum(one.values()), sum(two.values())
    seen = [sum(row[i] for row in table) for i in (1, 2)]
    rest = (a - b - c["host"] for a, b, c in zip(everything, seen, (one, two), strict=True))
    table += [
        ("other operations", *rest),
        ("average and update, on the host", one["host"], two["host"]),
    ]
    table += [("together", *everything)]
    return [(what, a * 1e3, b * 1e3, f"{b / everything[1]:.1%}") for what, a, b in table]


def notes(one: dict[str, float], two: dict[str, float]) -> tuple[str, ...]:
    """What these times allow at most: half of the towers' work, then the host's."""
    at_least = (sum(two.values()) - two["host"]) / 2 + two["host"]
    return (
        f"So 2 towers on 2 cores can be {sum(one.values()) / at_least:.2f} times as fast as one on "
        "one core, if nothing is lost between the operations.",
    )


def measured(towers: int, batch: int, traced: int, gpus: tuple[str, ...]) -> dict[str, float]:
    """Seconds of a step by kind of operation; those on the host under "host"."""
    from utils.machine import plain_name
    from utils.runs import trace
    from utils.training import mnist

    data = mnist.load()
    x, y = mnist.inputs(data.train_images[:batch]), data.train_labels[:batch]
    graph, places, fetches = build(gpus[:towers], batch // towers)
    shards = zip(np.split(x, towers), np.split(y, towers), strict=True)
    feed = {
        place: part
        for pair, shard in zip(places, shards, strict=True)
        for place, part in zip(pair, shard, strict=True)
    }
    least: dict[tuple[str, str], float] = {}
    for _ in range(traced):
        for row in trace(graph, fetches, feed).intervals:
            kind = "host" if plain_name(row.device) == "host" else row.op
            key, seconds = (kind, row.name), row.end - row.start
            least[key] = min(seconds, least.get(key, seconds))
    sums: dict[str, float] = defaultdict(float)
    for (kind, _), seconds in least.items():
        sums[kind] += seconds
    return sums


def build(gpus: tuple[str, ...], size: int) -> tuple:
    """The graph of the towers, the placeholders of each, and what to fetch."""
    import tensorflow as tf

    from tools.bench_ways import HOST, RATE

    v1, network = tf.compat.v1, NETWORKS[NETWORK]
    with tf.Graph().as_default() as graph:
        with tf.device(HOST):
            weights = [
                v1.get_variable(f"w{i}", initializer=value)
                for i, value in enumerate(network.first_weights("float32"))
            ]
        places, losses, gradients = [], [], []
        for gpu in gpus:
            with tf.device(gpu):
                x, y = v1.placeholder("float32", [size, 784]), v1.placeholder("int64", [size])
                losses.append(network.mean_loss(weights, x, y) / len(gpus))
                gradients.append(tf.gradients(losses[-1], weights))
            places.append((x, y))
        with tf.device(HOST):
            mean = [tf.add_n(parts) for parts in zip(*gradients, strict=True)]
            optimizer = v1.train.GradientDescentOptimizer(RATE)
            update = optimizer.apply_gradients(zip(mean, weights, strict=True))
            return graph, places, [tf.add_n(losses), update]


def main(argv: list[str]) -> int:
    from utils.start import begin

    batch, traced = map(int, argv)
    gpus = begin(gpus=max(TOWERS)).gpus
    print(json.dumps([measured(towers, batch, traced, gpus) for towers in TOWERS]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
