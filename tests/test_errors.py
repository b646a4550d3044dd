"""The sentence that matters in TensorFlow's errors, on errors it really raises."""

import numpy as np
import pytest

from utils.machine import reason, session_config


def _uninitialised(tf):
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        weights = v1.get_variable("b", initializer=np.float32([1, 2]))
        output = weights * 2
    with v1.Session(graph=graph, config=session_config()) as session:
        session.run(output)


def _no_such_device(tf):
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default(), tf.device("/GPU:7"):
        output = tf.constant(1.0) + tf.constant(2.0)
    with v1.Session(graph=graph, config=session_config()) as session:
        session.run(output)


def _clashing_pins(tf):
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/CPU:1"):
            one = tf.negative([1.0], name="one")
        with v1.colocate_with(one.op):
            other = tf.negative([2.0], name="other")
        other.op._set_device("/device:CPU:2")  # Python would have dropped it
    with v1.Session(graph=graph, config=session_config()) as session:
        session.run(other)


def _eager_shapes(tf):
    tf.constant([[1.0, 2.0]]) @ tf.constant([[1.0, 2.0]])


@pytest.mark.parametrize(
    ("run", "part"),
    [
        (_uninitialised, "Could not find variable b."),
        (_no_such_device, "Cannot assign a device for operation"),
        (_clashing_pins, "Cannot colocate nodes o"),
        (_eager_shapes, "Matrix size-incompatible"),
    ],
)
def test_reason_is_one_clean_line(machine, run, part):
    import tensorflow as tf

    with pytest.raises(tf.errors.OpError) as caught:
        run(tf)
    line = reason(caught.value)
    assert part in line
    assert "\n" not in line
    for noise in ("Graph execution error", "{{", "[[", "Debug info", "File "):
        assert noise not in line


def test_reason_of_errors_without_a_text():
    assert reason(ValueError()) == "ValueError"
    assert reason(ValueError("one\ntwo")) == "one"
    assert reason(ValueError("shape [[1, 2]] is wrong")) == "shape [[1, 2]] is wrong"
    assert reason(ValueError(f"{'=' * 21}\nSocket closed\nmore")) == "Socket closed"
