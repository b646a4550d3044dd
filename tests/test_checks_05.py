"""The checks of lesson 05: right, right in another way, wrong, untouched."""

import pytest
import tensorflow as tf

from utils.checks import lesson05
from utils.checks.outcome import ExerciseNotDone

v1 = tf.compat.v1
READY = "ready after x and up"
COUNTERS = {"x": 0, "square": 2, "up": 1, "down": 2, "output": 2, READY: {"square", "down"}}
TRANSFERS = {"data": 5, "control": 1, "bytes": 240}
MOVING = {"a": "stay", "b": "move", "c": "stay", "d": "move"}


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, "correct"),
        ({READY: ["down", "square"]}, "correct"),
        ({"square": 1}, "square: you counted operations"),
        ({"down": 1}, "an edge without data counts"),
        ({"output": 3}, "output: count again"),
        ({"x": 1}, "x: count again"),
        ({"up": "1"}, "no whole number"),
        ({"up": True}, "no whole number"),
        ({READY: {"square"}}, "one more has a counter of zero"),
        ({READY: {"square", "down", "output"}}, "output still waits"),
        ({READY: {"square", "down", "up"}}, "up has left the queue"),
        ({READY: {"square", "left"}}, "no operation left"),
        ({READY: "square"}, "give a set of names"),
        ({"down": ...}, "down has no answer yet"),
        ({READY: ...}, "has no answer yet"),
        (dict.fromkeys(COUNTERS, ...), "not attempted"),
    ],
)
def test_counters(said, changes, part):
    assert part in said(lesson05.check_05_counters, COUNTERS | changes)


@pytest.mark.parametrize("answer", [{"x": 0}, 3, COUNTERS | {"more": 1}])
def test_counters_of_another_form(said, answer):
    assert "keep a dict" in said(lesson05.check_05_counters, answer)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, "correct"),
        ({"bytes": 240.0}, "correct"),
        ({"data": 6}, "one too many"),
        ({"data": 2}, "you fetch results"),
        ({"data": 9}, "Which of them cross"),
        ({"control": 0}, "which edge without data"),
        ({"bytes": 60}, "numbers of four bytes"),
        ({"bytes": ...}, "bytes has no answer yet"),
        (dict.fromkeys(TRANSFERS, ...), "not attempted"),
    ],
)
def test_transfers(said, changes, part):
    assert part in said(lesson05.check_05_transfers, TRANSFERS | changes)


def test_transfers_of_another_form(said):
    assert "keep a dict" in said(lesson05.check_05_transfers, [5, 1, 240])


def _waits():
    def right(a, b, gpus):
        with tf.device(gpus[0]):
            left = tf.matmul(a, a)
        with tf.device(gpus[1]), tf.control_dependencies([left]):
            return left, tf.matmul(b, b)

    def through_the_input(a, b, gpus):
        with tf.device(gpus[0]):
            left = a @ a
        with tf.device(gpus[1]):
            with tf.control_dependencies([left.op]):
                b = tf.identity(b)
            return [left, b @ b]

    def as_given(a, b, gpus):
        with tf.device(gpus[0]):
            left = tf.matmul(a, a)
        with tf.device(gpus[1]):
            right = tf.matmul(b, b)
            with tf.control_dependencies([left]):
                right = tf.identity(right)
        return left, right

    def nothing(a, b, gpus):
        with tf.device(gpus[0]):
            left = tf.matmul(a, a)
        with tf.device(gpus[1]):
            return left, tf.matmul(b, b)

    def by_data(a, b, gpus):
        with tf.device(gpus[0]):
            left = tf.matmul(a, a)
        with tf.device(gpus[1]):
            return left, tf.matmul(b + left * 1e-300, b)

    def the_other_way(a, b, gpus):
        with tf.device(gpus[1]):
            right = tf.matmul(b, b)
        with tf.device(gpus[0]), tf.control_dependencies([right]):
            return tf.matmul(a, a), right

    def one_gpu(a, b, gpus):
        with tf.device(gpus[0]):
            left = tf.matmul(a, a)
            with tf.control_dependencies([left]):
                return left, tf.matmul(b, b)

    def wrong_input(a, b, gpus):
        with tf.device(gpus[0]):
            left = tf.matmul(a, a)
        with tf.device(gpus[1]):
            return left, tf.matmul(left, b)

    def only_one(a, b, gpus):
        return right(a, b, gpus)[1]

    def stub(a, b, gpus):
        """Return a @ a on one GPU and b @ b on the other, one after the other."""
        ...

    return {
        right: "correct",
        through_the_input: "correct",
        as_given: "something made later does",
        nothing: "waits for nothing.",
        by_data: "uses the first result",
        the_other_way: "the wrong way round",
        one_gpu: "one belongs on each GPU",
        wrong_input: "right has other numbers",
        only_one: "must return both",
        stub: "not attempted",
    }


def test_wait(said):
    for build, part in _waits().items():
        line = said(lesson05.check_05_wait, build)
        assert part in line, (build.__name__, line)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({}, "correct"),
        ({"a": "move"}, "look at a again: so little work"),
        ({"b": "stay"}, "look at b again: the data travels once"),
        ({"c": "move"}, "look at c again: compare"),
        ({"d": "stay"}, "look at d again: the work grows"),
        ({"d": True}, "neither 'move' nor 'stay'"),
        ({"d": ...}, "d has no answer yet"),
        (dict.fromkeys(MOVING, ...), "not attempted"),
    ],
)
def test_moving(said, changes, part):
    assert part in said(lesson05.check_05_moving, MOVING | changes)


def test_moving_of_another_form(said):
    assert "keep a dict" in said(lesson05.check_05_moving, {"a": "stay"})


def test_no_check_prints_the_answer(said):
    """Wrong answers get a cause; the numbers asked for stay out of it."""
    wrong = {"data": 9, "control": 0, "bytes": 1}
    assert "5" not in said(lesson05.check_05_transfers, wrong).removeprefix("Exercise 5.2")


def test_strict_raises_unless_correct(machine, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_STRICT", "1")
    lesson05.check_05_moving(MOVING)
    with pytest.raises(ExerciseNotDone, match=r"Exercise 5\.4"):
        lesson05.check_05_moving(MOVING | {"a": "move"})
