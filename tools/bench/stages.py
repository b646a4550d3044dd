"""A network cut by layers into stages, one per device, and a batch cut into micro-batches.

It is the chain of `tools.bench.networks`, with its gradients written out, because the order in
which a device works is the subject here. TensorFlow's devices must be set up.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tools.bench.networks import Network
from tools.bench.ways import HOST, Trainer, on_host, split


class Lane:
    """A device that does one operation after the other, in the order of the calls.

    A virtual GPU would start all that is ready, on all threads; then a stage had two cores.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.last: list = []

    def __call__(self, operation: Callable, *inputs):
        with tf.device(self.device), tf.control_dependencies(self.last):
            result = operation(*inputs)
        self.last = [result]
        return result


def forward(lane: Lane, layers: list[tuple], x) -> list:
    """The input of every layer of a stage, and what the stage hands on."""
    values = [x]
    for matrix, biases in layers:
        values.append(lane(lambda x, w, b: tf.nn.relu(x @ w + b), values[-1], matrix, biases))
    return values


def backward(lane: Lane, layers: list[tuple], values: list, error) -> tuple[object, list]:
    """The gradient of a stage's input, and those of its weights; `error` is its output's."""
    gradients: list = []
    for (matrix, _), x, y in reversed(list(zip(layers, values[:-1], values[1:], strict=True))):
        error = lane(lambda e, y: tf.raw_ops.ReluGrad(gradients=e, features=y), error, y)
        gradients = [
            lane(lambda x, e: tf.matmul(x, e, transpose_a=True), x, error),
            lane(lambda e: tf.reduce_sum(e, axis=0), error),
            *gradients,
        ]
        error = lane(lambda e, w: tf.matmul(e, w, transpose_b=True), error, matrix)
    return error, gradients


def head(lane: Lane, kernel, bias, x, digits, size: int) -> tuple:
    """The loss of a micro-batch, and the gradients of the head's input, kernel and bias.

    `size` is that of the whole batch: the losses and gradients of all micro-batches add up.
    """
    scores = lane(lambda x, w, b: x @ w + b, x, kernel, bias)
    loss = lane(
        lambda s: tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(digits, s)) / size,
        scores,
    )
    right = tf.one_hot(digits, 10, dtype=scores.dtype)
    wrong = lane(lambda s: (tf.nn.softmax(s) - right) / size, scores)
    return (
        loss,
        lane(lambda e, w: tf.matmul(e, w, transpose_b=True), wrong, kernel),
        lane(lambda x, e: tf.matmul(x, e, transpose_a=True), x, wrong),
        lane(lambda e: tf.reduce_sum(e, axis=0), wrong),
    )


def work(weights: list, gpus: Sequence[str], parts: list[tuple], size: int) -> tuple[list, list]:
    """The loss and the gradients of every micro-batch: all go forward, then all come back."""
    shift, *flat, kernel, bias = weights
    layers = list(zip(flat[::2], flat[1::2], strict=True))
    each = len(layers) // len(gpus)
    line = [(Lane(gpu), layers[i * each : (i + 1) * each]) for i, gpu in enumerate(gpus)]
    first, last = line[0][0], line[-1][0]
    passed = []
    for x, _ in parts:
        value, kept = first(tf.add, x, shift), []
        for lane, layers in line:
            kept.append(forward(lane, layers, value))
            value = kept[-1][-1]
        passed.append(kept)
    losses, gradients = [], []
    for kept, (_, digits) in zip(passed, parts, strict=True):
        loss, error, *found = head(last, kernel, bias, kept[-1][-1], digits, size)
        for (lane, layers), values in reversed(list(zip(line, kept, strict=True))):
            error, of_stage = backward(lane, layers, values, error)
            found = of_stage + found
        losses.append(loss)
        gradients.append([first(lambda e: tf.reduce_sum(e, axis=0), error), *found])
    return losses, gradients


def stages(
    network: Network, gpus: Sequence[str], x: np.ndarray, y: np.ndarray, cuts: int = 1
) -> Trainer:
    """The chain as one stage per GPU, the batch in `cuts` micro-batches; one update on the host."""
    weights, optimizer = on_host(network, x.dtype.name)

    @tf.function
    def step(parts):
        # Read once. Where every micro-batch reads for itself, TensorFlow 2.21 (its dependency
        # optimiser) lets the update overtake some of these reads, and the numbers are wrong.
        values = [tf.convert_to_tensor(weight) for weight in weights]
        losses, gradients = work(values, gpus, parts, len(x))
        with tf.device(HOST):
            total = [tf.add_n(parts) for parts in zip(*gradients, strict=True)]
            optimizer.apply_gradients(zip(total, weights, strict=True))
            return tf.add_n(losses)

    parts = split([gpus[0]] * cuts, x, y)
    return Trainer(lambda: step(parts), weights)
