"""The networks that `make bench` trains: the course's dense one, a small conv net, a deep chain.

Each is a list of weights and a mean loss, as in `utils.training.network`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from utils.training import network

FILTERS = (16, 32)  # of the two convolutions, 3 × 3 each
LAYERS = 4  # of the chain: equal squares, so that two stages cost the same
PIXELS = 28 * 28


class Network(NamedTuple):
    """First weights by dtype, the mean loss of (weights, x, y), and a batch worth splitting."""

    first_weights: Callable[[str], list[np.ndarray]]
    mean_loss: Callable
    batch: int


def uniform(shapes: list[tuple[int, ...]], dtype: str) -> list[np.ndarray]:
    """A kernel of each shape, uniform as in `network.initial_weights`, and its biases."""
    random = np.random.RandomState(42)
    weights = []
    for shape in shapes:
        field = int(np.prod(shape[:-2]))
        limit = np.sqrt(6 / (field * (shape[-2] + shape[-1])))
        weights.append(random.uniform(-limit, limit, shape).astype(dtype))
        weights.append(np.zeros(shape[-1], dtype))
    return weights


def conv_weights(dtype: str) -> list[np.ndarray]:
    """Two convolutions, and a dense layer behind the second pooling."""
    first, second = FILTERS
    return uniform([(3, 3, 1, first), (3, 3, first, second), (7 * 7 * second, 10)], dtype)


def conv_loss(weights: list, x, y):
    """Mean cross-entropy of: (convolution, relu, pooling) twice, then a dense layer."""
    import tensorflow as tf

    *convolutions, kernel, bias = weights
    x = tf.reshape(x, [-1, 28, 28, 1])
    for filters, biases in zip(convolutions[::2], convolutions[1::2], strict=True):
        x = tf.nn.bias_add(tf.nn.conv2d(x, filters, 1, "SAME"), biases)
        x = tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "VALID")
    return cross_entropy(tf.reshape(x, [-1, kernel.shape[0]]) @ kernel + bias, y)


def chain_weights(dtype: str) -> list[np.ndarray]:
    """LAYERS square layers and the one with the scores; first of all the biases of the pixels.

    Those make the first layer need the gradient of its input, like every other layer.
    """
    shapes = [(PIXELS, PIXELS)] * LAYERS + [(PIXELS, 10)]
    return [np.zeros(PIXELS, dtype), *uniform(shapes, dtype)]


def chain_loss(weights: list, x, y):
    """Mean cross-entropy of the chain: dense layers with relu, then the scores."""
    import tensorflow as tf

    shift, *layers, kernel, bias = weights
    x = x + shift
    for matrix, biases in zip(layers[::2], layers[1::2], strict=True):
        x = tf.nn.relu(x @ matrix + biases)
    return cross_entropy(x @ kernel + bias, y)


def cross_entropy(scores, y):
    """The mean over a batch."""
    import tensorflow as tf

    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=scores))


NETWORKS = {
    "dense": Network(lambda dtype: network.initial_weights(dtype=dtype), network.mean_loss, 8192),
    "conv": Network(conv_weights, conv_loss, 512),
    "chain": Network(chain_weights, chain_loss, 1024),
}
