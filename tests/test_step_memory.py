"""What the operations of a traced step took and held, on virtual GPUs."""

import numpy as np
import pytest
import tensorflow as tf

from utils.machine import plain_name
from utils.runs import Trace, memory_over_time, trace
from utils.runs.trace import Allocation

v1 = tf.compat.v1
# Bytes that one step of the 784-128-10 network takes on its GPU, in float32.
# Per image: hidden layer and its gradient 128 each, logits 10, and 3 numbers
# around the loss. Per step: the gradients of the weights, and 4 single numbers.
# (With one image there is nothing to add up for the biases: a little less.)
PER_IMAGE = 4 * (128 + 128 + 10 + 3)
PER_STEP = 4 * (784 * 128 + 128 + 128 * 10 + 10 + 4)


def step(machine, batch, gpus=2):
    """Trace one forward and backward pass per GPU, each on a batch of its own."""
    graph, fetches, feed = tf.Graph(), [], {}
    random = np.random.RandomState(0)
    with graph.as_default():
        with tf.device(machine.host):
            shapes = ([784, 128], [128], [128, 10], [10])
            weights = [v1.get_variable(f"w{i}", shape) for i, shape in enumerate(shapes)]
        for gpu in machine.gpus[:gpus]:
            with tf.device(gpu):
                x = v1.placeholder(tf.float32, [None, 784])
                y = v1.placeholder(tf.int64, [None])
                hidden = tf.nn.relu(x @ weights[0] + weights[1])
                logits = hidden @ weights[2] + weights[3]
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
                loss = tf.reduce_mean(losses)
                fetches.append([loss, *v1.gradients(loss, weights)])
            feed |= {x: random.rand(batch, 784), y: random.randint(0, 10, batch)}
    return trace(graph, fetches, feed)


def on_gpus(by_device):
    return {
        plain_name(device): value
        for device, value in by_device.items()
        if "GPU" in plain_name(device)
    }


@pytest.mark.parametrize("batch", [2, 32, 64, 128, 500])
def test_bytes_allocated_are_exact_and_linear_in_the_batch(machine, batch):
    for _ in range(3):
        taken = on_gpus(step(machine, batch).allocated)
        assert taken == dict.fromkeys(["GPU 0", "GPU 1"], PER_STEP + PER_IMAGE * batch)


def test_what_was_held_over_time(machine):
    traced = step(machine, 256)
    curves = on_gpus(memory_over_time(traced))
    assert set(curves) == {"GPU 0", "GPU 1"}
    taken = PER_STEP + PER_IMAGE * 256
    for seconds, held in curves.values():
        assert len(seconds) == len(held) > 10
        assert (np.diff(seconds) >= 0).all() and seconds[0] >= 0
        assert (held >= 0).all()
        # Not all is held at once; the fetched gradients are not given back.
        assert PER_STEP - 16 <= held[-1] < held.max() < taken
    first = min(record.time for record in traced.allocations)
    assert first == 0


def test_what_was_taken_adds_up(machine):
    traced = step(machine, 64)
    for device, taken in traced.allocated.items():
        records = [r.bytes for r in traced.allocations if r.device == device]
        assert sum(size for size in records if size > 0) == taken


def test_memory_over_time_of_a_made_up_trace():
    gpu, host = "/device:CPU:1", "/device:CPU:0"
    records = (
        Allocation(gpu, 0.0, 100),
        Allocation(host, 0.5, 7),
        Allocation(gpu, 1.0, 50),
        Allocation(gpu, 1.0, -100),
    )
    curves = memory_over_time(Trace(None, (), (), (), (), {}, records))
    assert list(curves) == [host, gpu]
    assert curves[gpu][0].tolist() == [0.0, 1.0, 1.0]
    assert curves[gpu][1].tolist() == [100, 150, 50]
    assert curves[host][1].tolist() == [7]


def test_a_run_without_allocations():
    assert memory_over_time(Trace(None, (), (), (), (), {})) == {}
