"""Checks of the exercises of lesson 07."""

import functools
from collections import Counter
from collections.abc import Callable

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.machine import current_machine, plain_name
from utils.runs import BACKWARD, FORWARD, Trace, fill_and_drain, idle_share, schedule, trace
from utils.training import initial_weights, mean_loss

EQUAL = 1e-12
# No share is the bubble of a whole number of micro-batches: rounding decides nothing.
PIPELINES = [(1, 0.3), (2, 0.3), (4, 0.11), (6, 0.13), (3, 0.9)]


def _smallest(stages: int, share: float, bubble: Callable) -> int:
    count = 1
    while bubble(stages, count) > share:
        count += 1
    return count


def _idle(stages: int, count: int) -> float:
    return idle_share(schedule(fill_and_drain(stages, count), [1] * stages, [1] * stages))


@check(
    "7.1",
    "the number grows with the stages and with what you ask for: that is why deep pipelines "
    "need large batches.",
)
def check_07_micro_batches(enough: Callable) -> None:
    """Compare the learner's number with the idle share of schedules.

    Args:
        enough: function of (stages, share).
    """
    for stages, share in PIPELINES:
        found, right = enough(stages, share), _smallest(stages, share, _idle)
        if found == right:
            continue
        where = f"{stages} stages, idle for at most {share}"
        if found == _smallest(stages, share, lambda s, m: (s - 1) / m):
            not_yet(f"{where}: you compare the waiting with the work, not with the whole time.")
        if found == _smallest(stages, share, lambda s, m: s / (m + s)):
            not_yet(f"{where}: a pipeline is full before its last stage has ended a step.")
        if isinstance(found, (int, float)) and found > right:
            not_yet(f"{where}: {found} is enough, but so is a smaller number.")
        not_yet(f"{where}: with {found!r} it is idle for longer, or there is no such number.")


# (sizes of the layers, images in a batch, devices that each layer is cut over)
NETWORKS = [((12, 8, 4), 6, 2), ((8, 4, 8, 12, 4), 3, 4), ((8, 6, 12, 6), 5, 3)]


def _between(run: Trace) -> int:
    """Return the bytes that went from one GPU to another."""
    return sum(
        moved.bytes
        for moved in run.transfers
        if "host" not in (plain_name(moved.sender), plain_name(moved.receiver))
    )


def _one_step(split: Callable, devices, start: list, x: np.ndarray, y: np.ndarray):
    """Build a split network and run its gradients once.

    Returns:
        The trace, whose value begins with loss and gradients, and the split's weights.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, tf.device(current_machine().host):
        x_fed = v1.placeholder("float64", x.shape, name="x")
        y_fed = v1.placeholder("int64", y.shape, name="y")
        built = split(devices, x_fed, y_fed, start)
        if not isinstance(built, tuple) or len(built) != 3:
            not_yet("return three things: the loss, a list of weights, a list of gradients.")
        loss, weights, gradients = built
        if any(gradient is None for gradient in gradients):
            not_yet("a gradient is None: the loss does not depend on one of the weights.")
        # A gradient is needed where its weight is: nothing else may send it somewhere.
        used = []
        for weight, gradient in zip(weights, gradients, strict=True):
            with tf.device(weight.device):
                used.append(tf.identity(gradient).op)
        run = trace(graph, [loss, gradients, used], {x_fed: x, y_fed: y})
    return run, weights


def _deep(by_column: bool) -> Callable:
    """Return a split of a dense network of any depth."""

    def split(devices, x, y, start):
        import tensorflow as tf

        v1 = tf.compat.v1
        weights, inputs = [], [x]
        for number, kernel in enumerate(start):
            here = devices if by_column else devices[number : number + 1]
            outputs = []
            for device, part in zip(here, np.split(kernel, len(here), axis=1), strict=True):
                with tf.device(device):
                    weights.append(v1.Variable(part))
                    whole = tf.concat(inputs, axis=1) if len(inputs) > 1 else inputs[0]
                    product = whole @ weights[-1]
                    outputs.append(product if number == len(start) - 1 else tf.nn.relu(product))
            inputs = outputs
        with tf.device(devices[-1]):
            scores = tf.concat(inputs, axis=1) if len(inputs) > 1 else inputs[0]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores)
            loss = tf.reduce_mean(losses)
        return loss, weights, tf.gradients(loss, weights)

    return split


@functools.cache
def counted_bytes(sizes: tuple, batch: int, devices: int | None) -> int:
    """Build a dense network, train it for a step, count its bytes from GPU to GPU.

    Args:
        sizes: of the input, the hidden layers, and the scores.
        batch: examples in the batch.
        devices: over how many each layer is cut by column; None puts one layer on each.

    Introduced in lesson 07, behind its exercises.
    """
    start = [np.ones(shape) for shape in zip(sizes[:-1], sizes[1:], strict=True)]
    gpus = current_machine().gpus[: devices or len(start)]
    x, y = np.ones((batch, sizes[0])), np.zeros(batch, np.int64)
    return _between(_one_step(_deep(devices is not None), gpus, start, x, y)[0])


@check(
    "7.2",
    "by column every hidden layer is a meeting of all devices. You know that before you buy "
    "the link.",
)
def check_07_bytes(by_layer: Callable, by_column: Callable) -> None:
    """Compare the learner's bytes with those of real partition graphs.

    Args:
        by_layer: function of (sizes, batch).
        by_column: function of (sizes, batch, devices).
    """
    for sizes, batch, devices in NETWORKS:
        _compare_bytes(by_layer(sizes, batch), sizes, batch, None)
        _compare_bytes(by_column(sizes, batch, devices), sizes, batch, devices)


def _compare_bytes(found, sizes: tuple, batch: int, devices: int | None) -> None:
    right = counted_bytes(sizes, batch, devices)
    if found == right:
        return
    where = f"{sizes}, {batch} images, " + (
        "by layer" if devices is None else f"by column over {devices} devices"
    )
    for factor, cause in (
        (2, "what goes forward has a gradient that comes back."),
        (8, "these are numbers. How many bytes has each?"),
        (0.5, "something is counted twice."),
    ):
        if found == right / factor:
            not_yet(f"{where}: {cause}")
    if devices:
        scores = 2 * batch * (devices - 1) * sizes[-1] // devices * 8
        hidden = 2 * batch * sum(sizes[1:-1]) * 8
        if found == right - scores:
            not_yet(f"{where}: the scores are missing. The loss needs all of them.")
        if found in (right + hidden, right - scores + hidden):
            not_yet(f"{where}: a device does not send its own hidden units to itself.")
    if found == right + 2 * batch * sizes[0] * 8:
        not_yet(f"{where}: the images come from the host, not from a GPU.")
    not_yet(f"{where}: TensorFlow moved another number of bytes than {found!r}.")


@check(
    "7.3",
    "nothing fails when a backward pass runs elsewhere: the weights and activations travel "
    "there in every step.",
)
def check_07_tapes(two_tapes: Callable) -> None:
    """Look where the products of the learner's program run, and at its gradients.

    Args:
        two_tapes: function of (first, last, x, y, gpus) that returns four gradients.
    """
    import tensorflow as tf

    gpus = current_machine().gpus[:2]
    start, x, y = _small_batch()
    pairs = []
    for gpu, arrays in zip(gpus, (start[:2], start[2:]), strict=True):
        with tf.device(gpu):
            pairs.append([tf.Variable(array) for array in arrays])
    call = tf.function(lambda x, y: two_tapes(*pairs, x, y, gpus))
    x, y = tf.constant(x), tf.constant(y)
    found = call(x, y)
    if not isinstance(found, (list, tuple)) or len(found) != 4:
        not_yet("return a list of four gradients: of both kernels and both biases.")
    for gradient, right in zip(found, _gradients(start, x, y), strict=True):
        if gradient is None or gradient.shape != right.shape:
            not_yet("a gradient is missing or in another place: first kernel, bias, then last.")
        if abs(np.asarray(gradient) - right).max() > EQUAL:
            not_yet("a gradient is wrong: is the one of the hidden units handed on?")
    needed = _needed(call.get_concrete_function(x, y).graph)
    where = Counter(plain_name(op.device) for op in needed if op.type == "MatMul")
    if where["unplaced"]:
        not_yet(
            f"{where['unplaced']} products have no device: gradients are asked for outside of "
            "every tf.device."
        )
    if where != {"GPU 0": 2, "GPU 1": 3}:
        told = ", ".join(f"{count} on {device}" for device, count in sorted(where.items()))
        not_yet(
            f"the products: {told or 'none'}. The first layer has two on GPU 0, the last has "
            "three on GPU 1."
        )


def _needed(graph) -> set:
    """Return the operations that a function's results need; it never runs the others."""
    needed, todo = set(), [tensor.op for tensor in graph.outputs]
    while todo:
        op = todo.pop()
        if op not in needed:
            needed.add(op)
            todo += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return needed


def _small_batch() -> tuple[list, np.ndarray, np.ndarray]:
    """Return weights with biases that are not zero, and twelve examples."""
    random = np.random.RandomState(7)
    start = initial_weights(dtype="float64")
    start = [w + random.uniform(-0.1, 0.1, w.shape) for w in start]
    return start, random.rand(12, 784), np.arange(12) % 10


def _gradients(start: list, x, y) -> list[np.ndarray]:
    """Return the gradients of the whole network."""
    import tensorflow as tf

    weights = [tf.Variable(array) for array in start]
    with tf.GradientTape() as tape:
        loss = mean_loss(weights, x, y)
    return [gradient.numpy() for gradient in tape.gradient(loss, weights)]


@check(
    "7.4",
    "two layers now meet once instead of twice, and ten numbers per image travel instead of "
    "128. Large language models are split in this way.",
)
def check_07_rows(split: Callable) -> None:
    """Compare the learner's split with the whole network; count weights and bytes.

    Args:
        split: function of (devices, x, y, start): loss, weights, gradients.
    """
    start, x, y = _small_batch()
    right = _gradients(start, x, y)
    loss = float(mean_loss(start, x, y))
    for n in (2, 4):
        gpus = current_machine().gpus[:n]
        run, weights = _one_step(split, gpus, start, x, y)
        found, gradients, _ = run.value
        where = f"on {n} devices"
        if abs(found - loss) > EQUAL:
            not_yet(f"{where} the loss is another. How often is the second bias added?")
        _compare_sizes(weights, gradients, start, right, where)
        held = Counter()
        for weight in weights:
            held[plain_name(weight.device)] += weight.shape.num_elements()
        share = sum(w.size for w in start[:3]) // n + start[3].size
        if set(held) != {f"GPU {i}" for i in range(n)} or max(held.values()) > share:
            not_yet(f"{where} the weights are not spread evenly: {dict(sorted(held.items()))}.")
        most = 2 * len(x) * (n - 1) * 10 * 8
        if _between(run) > most:
            not_yet(
                f"{where} {_between(run)} bytes go from GPU to GPU, and {most} are enough. Do "
                "hidden units still travel?"
            )


def _compare_sizes(weights, gradients, start: list, right: list, where: str) -> None:
    """Compare what does not depend on how the weights were cut or ordered."""
    if sum(w.shape.num_elements() for w in weights) != sum(w.size for w in start):
        not_yet(f"{where} there are more weights, or fewer, than the network has.")
    squares = sum((np.asarray(g) ** 2).sum() for g in gradients)
    if abs(squares - sum((g**2).sum() for g in right)) > EQUAL:
        not_yet(f"{where} the gradients are not those of the whole network.")


@check(
    "7.5",
    "with equal stages the bubble is the same, but a stage keeps at most one micro-batch per "
    "stage that is left. "
    "So the number of micro-batches may grow, and the memory does not.",
)
def check_07_one_by_one(order: Callable) -> None:
    """Run the learner's order in the model; count what each stage keeps.

    Args:
        order: function of (stage, stages, micro_batches).
    """
    for stages, count in ((1, 3), (2, 4), (3, 6), (4, 2), (4, 9)):
        where = f"{stages} stages, {count} micro-batches"
        orders = [list(order(stage, stages, count)) for stage in range(stages)]
        wanted = sorted((kind, m) for kind in (FORWARD, BACKWARD) for m in range(count))
        for stage, steps in enumerate(orders):
            if sorted(steps) != wanted:
                not_yet(
                    f"{where}: stage {stage} must go forward and backward once with each "
                    "micro-batch."
                )
            if [m for kind, m in steps if kind == BACKWARD] != list(range(count)):
                not_yet(f"{where}: stage {stage} goes backward in another order than 0, 1, 2 …")
            if (most := _most_kept(steps)) > min(count, stages - stage):
                not_yet(
                    f"{where}: stage {stage} keeps {most} micro-batches at once, more than "
                    "stages are left. Go backward as soon as it is possible."
                )
        _compare_length(orders, count, where)


def _compare_length(orders: list, count: int, where: str) -> None:
    stages = len(orders)
    times = [1] * stages, [2] * stages
    try:
        steps = schedule(orders, *times)
    except ValueError as error:
        not_yet(f"{where}: {error}")
    plain = schedule(fill_and_drain(stages, count), *times)
    if max(s.end for s in steps) > max(s.end for s in plain):
        not_yet(f"{where}: this takes longer than filling and draining. Is every stage filled?")


def _most_kept(steps: list) -> int:
    """Return of how many micro-batches a stage keeps activations, at most."""
    kept = np.cumsum([1 if kind == FORWARD else -1 for kind, _ in steps])
    return int(kept.max())
