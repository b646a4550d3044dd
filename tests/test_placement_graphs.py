"""The log parser against what TensorFlow logs for 200 generated graphs."""

import random

import pytest
import tensorflow as tf

from utils.machine import session_config
from utils.placement import placement_log

v1 = tf.compat.v1
GRAPHS, BATCHES = 200, 4


def _names(rng):
    """Yield names that TensorFlow allows, odd ones among them."""
    for number in range(1000):
        scope = rng.choice(("", "layer/", "a.b/c-d/", "while/body_1/", "A/B/"))
        yield f"{scope}{rng.choice(('x', 'X.y', 'n-1', 'read', '0'))}_{number}"


def _graph(seed: int, gpus) -> tf.Graph:
    """Build a graph of constants, variables, arithmetic and control edges."""
    rng = random.Random(seed)
    names = _names(rng)
    graph = tf.Graph()
    with graph.as_default():
        tensors = [tf.constant([1.0, 2.0], name=next(names))]
        for _ in range(rng.randint(2, 12)):
            device = rng.choice((None, "/CPU:0", *gpus))
            after = rng.sample(tensors, rng.randint(0, 1))
            with tf.device(device), tf.control_dependencies(after):
                kind = rng.randrange(5)
                one, other = rng.choices(tensors, k=2)
                if kind == 0:
                    tensors.append(tf.constant([3.0, rng.random()], name=next(names)))
                elif kind == 1:
                    variable = v1.get_variable(f"v{len(tensors)}", initializer=[1.0, 2.0])
                    tensors.append(variable.read_value())
                elif kind == 2:
                    tensors.append(tf.add(one, other, name=next(names)))
                elif kind == 3:
                    tf.raw_ops.Shape(input=one, name=next(names))
                else:
                    tensors.append(tf.multiply(one, 2.0, name=next(names)))
    return graph


def _captured(graph):
    """Return the log of one run; placing looks at the whole graph."""
    with placement_log() as log:
        config = session_config(log_placement=True)
        with graph.as_default():
            first = v1.global_variables_initializer()
        with v1.Session(graph=graph, config=config) as session:
            session.run(first)
    return log


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_node_is_a_row_and_no_row_is_invented(machine, batch):
    for seed in range(batch, GRAPHS, BATCHES):
        graph = _graph(seed, machine.gpus)
        log = _captured(graph)
        rows = sorted((row.name, row.op) for row in log.rows)
        there = sorted((op.name, op.type) for op in graph.get_operations())
        assert rows == there, f"graph {seed}"
