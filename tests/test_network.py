"""The network: the same numbers in every form, checked against NumPy."""

import numpy as np
import pytest

from utils.training import mnist, network


def _by_hand(weights, x, y):
    w1, b1, w2, b2 = weights
    scores = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    scores -= scores.max(axis=1, keepdims=True)
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    right = scores.argmax(axis=1) == y
    return -logs[np.arange(len(y)), y].mean(), right.mean()


@pytest.fixture(scope="module")
def batch():
    data = mnist.load()
    x = mnist.inputs(data.train_images[:50], dtype="float64")
    return network.initial_weights(dtype="float64"), x, data.train_labels[:50]


def test_first_weights_are_the_same_everywhere():
    weights = network.initial_weights()
    assert [w.shape for w in weights] == [(784, 128), (128,), (128, 10), (10,)]
    assert {w.dtype for w in weights} == {np.dtype("float32")}
    again = network.initial_weights()
    assert all(np.array_equal(a, b) for a, b in zip(weights, again, strict=True))
    other = network.initial_weights(seed=1)
    assert not np.array_equal(weights[0], other[0])
    assert abs(weights[0]).max() <= np.sqrt(6 / 912)
    assert not weights[1].any() and not weights[3].any()


def test_eager_function_and_session_agree_with_numpy(machine, batch):
    import tensorflow as tf

    weights, x, y = batch
    loss, share = _by_hand(weights, x, y)
    assert network.mean_loss(weights, x, y).numpy() == pytest.approx(loss, rel=1e-12)
    assert network.accuracy(weights, x, y).numpy() == pytest.approx(share)
    traced = tf.function(network.mean_loss)(
        [tf.Variable(w) for w in weights], tf.constant(x), tf.constant(y)
    )
    assert traced.numpy() == pytest.approx(loss, rel=1e-12)
    with tf.Graph().as_default() as graph:
        value = network.mean_loss(weights, x, y)
    with tf.compat.v1.Session(graph=graph) as session:
        assert session.run(value) == pytest.approx(loss, rel=1e-12)
