"""The checks of lesson 00: right, right in another way, wrong, untouched."""

import numpy as np
import pytest

from utils.checks import lesson00
from utils.checks.outcome import ExerciseNotDone
from utils.machine import session_config

WEIGHTS = np.float32([[1], [1], [2]])


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (4, "correct"),
        (5, "one tracing per call"),
        (3, "too few"),
        (2, "too few"),
        (6, "too many"),
        ("4", "give one number"),
        (True, "give one number"),
        (..., "not attempted"),
    ],
)
def test_tracings(said, answer, part):
    assert part in said(lesson00.check_00_tracings, answer)


def _halves():
    import tensorflow as tf

    def right(x, weights, gpus):
        products = []
        for gpu, part in zip(gpus, tf.split(x, len(gpus)), strict=True):
            with tf.device(gpu):
                products.append(part @ weights)
        return tf.concat(products, axis=0)

    def by_slices(x, weights, gpus):
        with tf.device(gpus[0]):
            top = tf.matmul(x[:2], weights)
        with tf.device(gpus[1]):
            bottom = tf.matmul(x[2:], weights)
        return tf.concat([top, bottom], 0)

    def one_gpu(x, weights, gpus):
        with tf.device(gpus[0]):
            return tf.concat([p @ weights for p in tf.split(x, 2)], 0)

    def before_the_scope(x, weights, gpus):
        products = [part @ weights for part in tf.split(x, len(gpus))]
        with tf.device(gpus[0]):
            return tf.concat(products, 0)

    def same_part(x, weights, gpus):
        products = []
        for gpu in gpus:
            with tf.device(gpu):
                products.append(x[:2] @ weights)
        return tf.concat(products, 0)

    def wrong_order(x, weights, gpus):
        products = []
        for gpu, part in zip(gpus, tf.split(x, len(gpus)), strict=True):
            with tf.device(gpu):
                products.append(part @ weights)
        return tf.concat(products[::-1], 0)

    def wrong_axis(x, weights, gpus):
        products = []
        for gpu, part in zip(gpus, tf.split(x, len(gpus)), strict=True):
            with tf.device(gpu):
                products.append(part @ weights)
        return tf.concat(products, 1)

    def not_merged(x, weights, gpus):
        return [part @ weights for part in tf.split(x, len(gpus))]

    def undivided(x, weights, gpus):
        with tf.device(gpus[0]):
            return x @ weights

    def stub(x, weights, gpus):
        """Return x @ weights, with one part of the rows on each GPU."""
        ...

    return {
        right: "correct",
        by_slices: "correct",
        one_gpu: "all products ran on GPU 0",
        before_the_scope: "ran on the host",
        same_part: "numbers are wrong",
        wrong_order: "out of order",
        wrong_axis: "has shape (2, 2)",
        not_merged: "returned a list",
        undivided: "1 product(s)",
        stub: "not attempted",
    }


def test_halves(said):
    for build, part in _halves().items():
        assert part in said(lesson00.check_00_halves, build), build.__name__


def _sessions():
    import tensorflow as tf

    v1 = tf.compat.v1

    def graph_of():
        graph = tf.Graph()
        with graph.as_default():
            x = v1.placeholder(tf.float32, [None, 3])
            weights = v1.get_variable("b", initializer=WEIGHTS)
            return graph, x, weights, x @ weights

    def right(rows):
        graph, x, weights, output = graph_of()
        with v1.Session(graph=graph, config=session_config()) as session:
            session.run(weights.initializer)
            return session.run(output, feed_dict={x: rows})

    def all_variables(rows):
        graph, x, _, output = graph_of()
        with graph.as_default():
            first = v1.global_variables_initializer()
        with v1.Session(graph=graph) as session:
            session.run(first)
            return session.run(output, {x: rows})

    def two_sessions(rows):
        graph, x, weights, output = graph_of()
        with v1.Session(graph=graph) as session:
            session.run(weights.initializer)
        with v1.Session(graph=graph) as session:
            return session.run(output, feed_dict={x: rows})

    def no_argument(rows):
        graph, x, weights, output = graph_of()
        with v1.Session(graph=graph) as session:
            session.run(weights.initializer)
            return session.run(output, feed_dict={x: lesson00.INPUT})

    def prints(rows):
        right(rows)

    def crashes(rows):
        return rows @ rows

    def stub(rows):
        """Return rows @ [[1], [1], [2]], computed in a session."""
        ...

    return {
        right: "correct",
        all_variables: "correct",
        two_sessions: "Which session ran the initialiser",
        no_argument: "argument fed",
        prints: "returns nothing",
        crashes: "raised ValueError",
        stub: "not attempted",
    }


def test_session(said):
    for answer, part in _sessions().items():
        assert part in said(lesson00.check_00_session, answer), answer.__name__


def _ports():
    import tensorflow as tf

    def total(x, weights):
        return tf.reduce_sum(x @ weights)

    @tf.function
    def in_steps(x, weights):
        return tf.math.reduce_sum(tf.linalg.matmul(x, weights))

    @tf.function
    def mean(x, weights):
        return tf.reduce_mean(x @ weights)

    @tf.function
    def takes_numbers_out(x, weights):
        return tf.reduce_sum(x @ weights).numpy()

    @tf.function
    def forgets_to_return(x, weights):
        tf.reduce_sum(x @ weights)

    @tf.function
    def no_product(x, weights):
        return tf.reduce_sum(x * tf.transpose(weights))

    @tf.function
    def stub(x, weights):
        """Return the sum of all entries of x @ weights."""
        ...

    return [
        (tf.function(total), "correct"),
        (in_steps, "correct"),
        (total, "plain Python function"),
        (mean, "one number"),
        (takes_numbers_out, "raised AttributeError"),
        (forgets_to_return, "returns a NoneType"),
        (no_product, "no product"),
        (stub, "not attempted"),
    ]


def test_port(said):
    for answer, part in _ports():
        line = said(lesson00.check_00_port, answer)
        assert part in line, (answer, line)


def test_strict_raises_unless_correct(machine, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_STRICT", "1")
    lesson00.check_00_tracings(4)
    for answer in (5, ...):
        with pytest.raises(ExerciseNotDone, match="Exercise 0.1"):
            lesson00.check_00_tracings(answer)
    assert "Exercise 0.1: correct" in capsys.readouterr().out
