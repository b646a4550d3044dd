"""Take definitions out of a lesson's cells, so that a test holds what learners read."""

import json
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def run_cells(notebook: str, *ids: str, **names: object) -> dict[str, object]:
    """Execute cells of a notebook, by their ids, in one namespace and return it.

    `names` are what the cells expect to be there, such as tf or gpus.
    """
    content = json.loads((NOTEBOOKS / notebook).read_text(encoding="utf-8"))
    sources = {cell["id"]: "".join(cell["source"]) for cell in content["cells"]}
    space = dict(names)
    for name in ids:
        exec(compile(sources[name], f"{notebook}:{name}", "exec"), space)
    return space


def lesson_06(machine) -> dict[str, object]:
    """Everything that lesson 06 defines to train with towers."""
    import numpy as np
    import tensorflow as tf

    from utils.machine import session_config
    from utils.training import initial_weights, mean_loss

    v1 = tf.compat.v1
    return run_cells(
        "06_in_graph_towers.ipynb",
        "shared-weights", "towers", "average", "build", "train",
        "tower-step", "on-the-host", "optimisers", "train-today", "average-one",
        tf=tf, v1=v1, np=np, host=machine.host, gpus=machine.gpus,
        sgd=v1.train.GradientDescentOptimizer, session_config=session_config,
        initial_weights=initial_weights, mean_loss=mean_loss,
    )  # fmt: skip


def lesson_07(machine) -> dict[str, object]:
    """Everything that lesson 07 defines to split a network and to train it."""
    from collections import Counter

    import numpy as np
    import tensorflow as tf

    from utils.machine import plain_name, session_config
    from utils.runs import pipeline, trace
    from utils.training import mnist, network

    data = mnist.load()
    return run_cells(
        "07_model_parallelism.ipynb",
        "layers", "two-layers", "by-layer", "build", "step", "gradients", "between",
        "by-column", "unsplit", "train", "today-weights", "today", "apart", "held", "kept",
        "line", "steps", "pipeline", "both",
        tf=tf, v1=tf.compat.v1, np=np, Counter=Counter, network=network, pipe=pipeline,
        plain_name=plain_name, session_config=session_config, trace=trace,
        host=machine.host, gpus=machine.gpus, two=machine.gpus[:2],
        start=network.initial_weights(dtype="float64"),
        images=mnist.inputs(data.train_images, "float64"), labels=data.train_labels,
    )  # fmt: skip
