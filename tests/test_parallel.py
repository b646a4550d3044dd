"""Overlap and critical path: by hand, at random against brute force, and on one core."""

import random

import pytest
import tensorflow as tf

from utils.machine import session_config
from utils.runs import Node, Trace, critical_path, overlap, trace
from utils.runs.trace import Interval

v1 = tf.compat.v1
GPU = "/CPU:1"


def _run(nodes: dict, intervals: dict) -> Trace:
    """A trace from {name: (inputs, controls)} and {name: [(start, end), …]}."""
    rows = [Interval(n, "Add", GPU, *times) for n, all_of_it in intervals.items()
            for times in all_of_it]  # fmt: skip
    rows = tuple(sorted(rows, key=lambda row: (row.start, row.name)))
    parts = tuple(Node(n, "Add", GPU, tuple(i), tuple(c)) for n, (i, c) in nodes.items())
    return Trace(None, parts, rows, (), (), {})


@pytest.mark.parametrize(
    ("one", "other", "seconds"),
    [
        ([(0, 4)], [(3, 5)], 1),
        ([(3, 5)], [(0, 4)], 1),
        ([(0, 9)], [(2, 3)], 1),
        ([(0, 2)], [(2, 4)], 0),
        ([(0, 2)], [(5, 6)], 0),
        ([(0, 2), (4, 6)], [(1, 5)], 2),
        ([(0, 3), (2, 6)], [(1, 5)], 4),  # its own pieces overlap: no second counts twice
    ],
)
def test_overlap(one, other, seconds):
    assert overlap(_run({}, {"a": one, "b": other}), "a", "b") == seconds


def test_overlap_of_what_did_not_run():
    with pytest.raises(ValueError, match="no operation 'c' ran; these did: a, b"):
        overlap(_run({}, {"a": [(0, 1)], "b": [(0, 1)]}), "a", "c")
    with pytest.raises(ValueError, match="these did: none"):
        overlap(_run({}, {}), "a", "b")


def _seconds(**takes: float) -> dict:
    return {name: [(1.0, 1.0 + seconds)] for name, seconds in takes.items()}


def test_operations_without_an_interval_take_no_time_but_pass_the_wait_on():
    nodes = {"a": ((), ()), "result": (("a",), ()), "b": (("result",), ())}
    path = critical_path(_run(nodes, _seconds(a=1, b=1)))
    assert path.names == ("a", "result", "b")


def test_several_kernels_of_one_operation_add_up():
    run = _run({"a": ((), ()), "b": ((), ())}, {"a": [(0, 2), (5, 7)], "b": [(0, 3)]})
    assert critical_path(run).names == ("a",)
    assert critical_path(run).seconds == pytest.approx(4)


def test_no_path():
    with pytest.raises(ValueError, match="no operation ran"):
        critical_path(_run({}, {}))
    loop = {"a": (("b",), ()), "b": (("a",), ()), "c": ((), ())}
    with pytest.raises(ValueError, match=r"has a loop \(a, b …\)"):
        critical_path(_run(loop, _seconds(a=1, b=1, c=1)))


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_against_every_path(seed):
    rng = random.Random(seed)
    names = [f"n{i}" for i in range(8)]
    before = {n: [m for m in names[:i] if rng.random() < 0.4] for i, n in enumerate(names)}
    takes = {n: float(rng.randint(1, 50)) for n in names}

    def longest(name: str) -> float:
        return takes[name] + max(map(longest, before[name]), default=0.0)

    shuffled = rng.sample(names, len(names))
    nodes = {n: (before[n][:1], before[n][1:]) for n in shuffled}
    path = critical_path(_run(nodes, {n: [(0.0, takes[n])] for n in names}))
    assert path.seconds == pytest.approx(max(map(longest, names)))
    assert path.seconds == pytest.approx(sum(takes[n] for n in path.names))
    for earlier, later in zip(path.names, path.names[1:], strict=False):
        assert earlier in before[later]


def test_no_run_is_shorter_than_its_path(machine):
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.gpus[0]):
            a = v1.get_variable("a", [300, 300]).read_value()
            one = tf.matmul(a, a, name="one")
            two = tf.matmul(one, a, name="two")
        with tf.device(machine.gpus[1]):
            alone = tf.matmul(a, a, name="alone")
    for threads in (1, 2):
        run = trace(graph, [two.op, alone.op], options=session_config(inter_op=threads))
        path = critical_path(run)
        assert path.seconds <= max(row.end for row in run.intervals) + 1e-6
        assert path.names[-1] in ("two", "alone")


ON_ONE_CORE = """
    import os
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from utils.start import begin
    machine = begin(gpus=2, names=True)
    import tensorflow as tf
    from utils.runs import overlap
    from utils.machine import session_config
    from utils.runs import trace
    for wait in (False, True):
        graph = tf.Graph()
        with graph.as_default():
            with tf.device(machine.gpus[0]):
                a = tf.compat.v1.get_variable("a", [1600, 1600]).read_value()
                left = tf.matmul(a, a, name="left")
            with tf.device(machine.gpus[1]), tf.control_dependencies([left] if wait else []):
                b = tf.compat.v1.get_variable("b", [1600, 1600]).read_value()
                right = tf.matmul(b, b, name="right")
        run = trace(graph, [left.op, right.op], options=session_config(inter_op=2))
        print(machine.cores, overlap(run, "left", "right") > 0)
"""


def test_overlap_holds_on_one_core(fresh):
    done = fresh(ON_ONE_CORE)
    assert done.returncode == 0, done.stderr
    answers = [line.split() for line in done.stdout.splitlines()]
    assert [overlapped for _, overlapped in answers] == ["True", "False"]
