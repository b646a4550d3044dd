"""Checks of the exercises of lesson 03."""

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.machine import current_machine, plain_name, session_config
from utils.placement import Placement, PlacementLog, placement_log


def _logged(graph, fetches):
    """Run the fetches once with the log on, variables initialised."""
    import tensorflow as tf

    first = [v.initializer for v in graph.get_collection("variables")]
    config = session_config(log_placement=True)
    with placement_log() as log:
        session = tf.compat.v1.Session(graph=graph, config=config)
        with session:
            session.run(first)
            value = session.run(fetches)
    return log, value


_WHY_PLACED = {
    "v": "it is pinned, and nothing overrules the pin of a variable",
    "update": "it writes to the variable, whose pin wins",
    "size": "an operation that looks at a tensor's form follows its input",
    "c": "a constant follows its consumers if they agree",
    "output": "no rule but its own pin applies",
}


@check(
    "3.1",
    "on a real machine a wrong guess here can be a GPU that idles or a tensor "
    "that travels. The log settles it.",
)
def check_03_placement(answer: dict) -> None:
    """Compare predicted devices with the placement log of exercise 3.1.

    Args:
        answer: name of an operation to ``"host"``, ``"GPU 0"``, ``"GPU 1"``.
    """
    import tensorflow as tf

    if not isinstance(answer, dict) or set(answer) != set(_WHY_PLACED):
        not_yet(f"keep a dict with the names {', '.join(_WHY_PLACED)}.")
    gpus = current_machine().gpus
    graph = tf.Graph()
    with graph.as_default():
        fetches = placed_graph(tf, gpus)
    log, _ = _logged(graph, fetches)
    for name, guess in answer.items():
        if guess is ...:
            not_yet(f"{name} has no answer yet.")
        if guess not in ("host", "GPU 0", "GPU 1"):
            not_yet(f"{name}: {guess!r} is none of host, GPU 0, GPU 1.")
        if guess != plain_name(log.device_of(name)):
            not_yet(f"look at {name} again: {_WHY_PLACED[name]}.")


def placed_graph(tf, gpus) -> list:
    """Build the graph that exercise 3.1 prints; return what to fetch.

    Introduced in lesson 03's exercises.
    """
    with tf.device(gpus[1]):
        v = tf.compat.v1.get_variable("v", initializer=np.float32([1, 2]))
    with tf.device(gpus[0]):
        update = tf.raw_ops.AssignAddVariableOp(resource=v.handle, value=[1.0, 1.0], name="update")
        x = tf.compat.v1.random_normal([4, 3])
    size = tf.raw_ops.Size(input=x, name="size")
    c = tf.constant([3.0, 4.0], name="c")
    with tf.device(gpus[0]):
        output = tf.multiply(c, v.read_value(), name="output")
    return [update, size, output]


@check(
    "3.2",
    "with variables on the host every GPU reads the same weights: lesson 06 "
    "trains on several GPUs this way.",
)
def check_03_dynamic_placement(function) -> None:
    """Build two graphs under a placement function and read their logs.

    Args:
        function: takes an operation, returns a device name: variables on
            the host, products on GPU 1, the rest on GPU 0.
    """
    import tensorflow as tf

    def answered(operation):
        device = function(operation)
        if device is None:
            not_yet(
                f"it returns nothing for an operation of type "
                f"{operation.type}: every operation needs a device."
            )
        return device

    v1 = tf.compat.v1
    for shape in ((4, 3), (2, 2)):
        graph = tf.Graph()
        with graph.as_default(), v1.device(answered):
            weights = v1.get_variable("w", initializer=np.ones((shape[1], 1)))
            x = tf.constant(np.ones(shape), name="x")
            product = tf.matmul(x, weights, name="product")
            output = tf.exp(product, name="exp")
        log, _ = _logged(graph, output)
        where = {n: plain_name(log.device_of(n)) for n in ("w", "product", "exp")}
        if where["w"] != "host":
            not_yet(
                f"the variable went to {where['w']}. What is the type of a "
                "variable's operation today? Print operation.type."
            )
        if where["product"] != "GPU 1":
            not_yet(
                f"the product went to {where['product']}. Its type is not "
                "its Python name: print operation.type for tf.matmul."
            )
        if where["exp"] != "GPU 0":
            not_yet(f"the rest went to {where['exp']}, not to GPU 0.")


@check(
    "3.3",
    "a scope places what is created inside it. In long programs the line "
    "that creates and the line that uses are far apart.",
)
def check_03_scope(build) -> None:
    """Build the mended graph and look where its product ran.

    Args:
        build: function of (x, weights, gpu) that returns x @ weights, then
            doubled, both on ``gpu``.
    """
    import tensorflow as tf

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    weights = np.ones((3, 1), np.float32)
    for gpu in current_machine().gpus[:2]:
        graph = tf.Graph()
        with graph.as_default():
            output = build(tf.constant(x), tf.constant(weights), gpu)
        log, value = _logged(graph, output)
        if not np.allclose(value, 2 * x @ weights):
            not_yet("the numbers changed: wanted is 2 * (x @ weights).")
        for row in log.rows:
            if row.op in ("MatMul", "Mul", "AddV2") and (plain_name(row.device) != plain_name(gpu)):
                not_yet(
                    f"asked for {plain_name(gpu)}, but {row.name} ({row.op}) ran on "
                    f"{plain_name(row.device)}. On which line is it created, and "
                    "is that line inside the scope of the gpu given?"
                )


@check(
    "3.4",
    "a network's log can have thousands of rows. Look at the count per device first.",
)
def check_03_count(count) -> None:
    """Compare the learner's counts with two logs.

    Args:
        count: function of a ``PlacementLog`` that returns a dict from a
            plain name to its number of rows.
    """
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    gpu = current_machine().gpus[0]
    for devices in ([cpu, gpu, cpu], [gpu], []):
        rows = [Placement(f"x{i}", "Neg", d) for i, d in enumerate(devices)]
        found = count(PlacementLog(rows))
        if not isinstance(found, dict):
            not_yet(f"it returns a {type(found).__name__}; wanted is a dict.")
        names = [plain_name(device) for device in devices]
        right = {name: names.count(name) for name in set(names)}
        if dict(found) == right:
            continue
        if set(map(str, found)) == set(devices):
            not_yet("the keys are full device names: use plain_name(row.device).")
        if set(found) != set(right):
            not_yet(
                f"for rows on {names or 'no device'} the keys are "
                f"{sorted(map(str, found))}. Count devices that occur."
            )
        not_yet(f"for rows on {names} the counts are {dict(found)}.")
