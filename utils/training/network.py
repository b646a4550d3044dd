"""The network of every training lesson: dense 784-128-10 with biases.

Plain functions of a list of weights. They work alike eagerly, inside a
``tf.function`` and in a graph of ``tf.compat.v1``, on arrays, tensors and
variables. TensorFlow is imported when they are called.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import tensorflow as tf

SIZES = (784, 128, 10)


def initial_weights(seed: int = 42, dtype: str = "float32") -> list[np.ndarray]:
    """Return the first weights: kernel and bias of two dense layers.

    The kernels are uniform in ±√(6/(inputs + outputs)) (Glorot and Bengio,
    "Understanding the difficulty of training deep feedforward neural
    networks", 2010, equation 16), the biases zero.

    Args:
        seed: fixes the numbers, on every machine.
        dtype: ``"float32"``, or ``"float64"`` where equality is proved.

    Returns:
        Arrays of shapes (784, 128), (128,), (128, 10), (10,).

    Introduced in lesson 02.
    """
    random = np.random.RandomState(seed)  # its stream is frozen by NumPy
    weights = []
    for inputs, outputs in zip(SIZES[:-1], SIZES[1:], strict=True):
        limit = np.sqrt(6 / (inputs + outputs))
        kernel = random.uniform(-limit, limit, (inputs, outputs))
        weights += [kernel.astype(dtype), np.zeros(outputs, dtype)]
    return weights


def logits(weights: list, x: "tf.Tensor") -> "tf.Tensor":
    """Return the scores of ten classes.

    Args:
        weights: two kernels and two biases, as ``initial_weights`` gives
            them; arrays, tensors or variables.
        x: images, (n, 784), of the weights' dtype.

    Returns:
        Tensor (n, 10).

    Introduced in lesson 02.
    """
    import tensorflow as tf

    kernel_1, bias_1, kernel_2, bias_2 = weights
    hidden = tf.nn.relu(tf.matmul(x, kernel_1) + bias_1)
    return tf.matmul(hidden, kernel_2) + bias_2


def mean_loss(weights: list, x: "tf.Tensor", y: "tf.Tensor") -> "tf.Tensor":
    """Return the mean cross-entropy of a batch, a scalar tensor.

    Args:
        weights: as in ``logits``.
        x: images, (n, 784).
        y: digits, (n,), whole numbers 0 to 9.

    Introduced in lesson 02.
    """
    import tensorflow as tf

    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits(weights, x))
    return tf.reduce_mean(losses)


def accuracy(weights: list, x: "tf.Tensor", y: "tf.Tensor") -> "tf.Tensor":
    """Return the share of images whose digit gets the highest score.

    Args:
        weights: as in ``logits``.
        x: images, (n, 784).
        y: digits, (n,).

    Returns:
        A scalar float32 tensor from 0 to 1.

    Introduced in lesson 05.
    """
    import tensorflow as tf

    guessed = tf.argmax(logits(weights, x), axis=1)
    right = tf.equal(guessed, tf.cast(y, guessed.dtype))
    return tf.reduce_mean(tf.cast(right, tf.float32))
