"""Checks of the exercises of lesson 05."""

from collections.abc import Callable
from types import ModuleType

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.machine import Machine, current_machine, plain_name, session_config
from utils.runs import overlap, trace

_COUNTERS = ("x", "square", "up", "down", "output")
_READY = "ready after x and up"


@check(
    "5.1",
    "counters decide what may run. On an order that they leave open your program must not rely.",
)
def check_05_counters(answer: dict) -> None:
    """Compare counters and a ready queue with the graph of exercise 5.1.

    Args:
        answer: name of an operation to its counter at the start, and
            ``"ready after x and up"`` to a set of names.
    """
    if not isinstance(answer, dict) or set(answer) != {*_COUNTERS, _READY}:
        not_yet(f"keep a dict with the names {', '.join(_COUNTERS)}, {_READY}.")
    if open_ones := [name for name, value in answer.items() if value is ...]:
        not_yet(f"{open_ones[0]} has no answer yet.")
    before = _before(counted_graph())
    for name in _COUNTERS:
        right, said = len(before[name]), answer[name]
        if isinstance(said, bool) or not isinstance(said, int):
            not_yet(f"{name}: {said!r} is no whole number.")
        if said == right:
            continue
        if said == len(set(before[name])):
            not_yet(
                f"{name}: you counted operations. The counter counts edges: "
                "how often does it use the one it waits for?"
            )
        if name == "down" and said < right:
            not_yet("down: an edge without data counts as well.")
        not_yet(f"{name}: count again what it waits for.")
    _check_ready(answer[_READY], before)


def _check_ready(said, before) -> None:
    if isinstance(said, str) or not isinstance(said, (set, list, tuple)):
        not_yet(f"{_READY}: give a set of names, such as {{'x'}}.")
    done = {"x", "up"}
    ready = {name for name in _COUNTERS if name not in done and set(before[name]) <= done}
    if unknown := set(said) - set(_COUNTERS):
        not_yet(f"{_READY}: there is no operation {sorted(map(str, unknown))[0]}.")
    if both := done & set(said):
        not_yet(f"{_READY}: {sorted(both)[0]} has left the queue, it ran.")
    if early := set(said) - ready:
        not_yet(f"{_READY}: {sorted(early)[0]} still waits. For which operation?")
    if ready - set(said):
        not_yet(f"{_READY}: one more has a counter of zero.")


def counted_graph() -> object:
    """Build the graph that exercise 5.1 prints.

    Introduced in lesson 05's exercises.
    """
    import tensorflow as tf

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 2], name="x")
        square = tf.matmul(x, x, name="square")
        up = tf.exp(x, name="up")
        with tf.control_dependencies([up]):
            down = tf.negative(x, name="down")
        tf.maximum(square, down, name="output")
    return graph


def _before(graph) -> dict[str, list[str]]:
    """Map each operation to those it waits for, one per edge."""
    return {
        op.name: [t.op.name for t in op.inputs] + [c.name for c in op.control_inputs]
        for op in graph.get_operations()
    }


@check(
    "5.2",
    "who can count transfers on paper sees before the run where a second "
    "device will cost more than it brings.",
)
def check_05_transfers(answer: dict) -> None:
    """Compare predicted transfers with a traced run of exercise 5.2.

    Args:
        answer: ``"data"``, ``"control"`` and ``"bytes"`` to numbers.
    """
    import tensorflow as tf

    names = ("data", "control", "bytes")
    if not isinstance(answer, dict) or set(answer) != set(names):
        not_yet(f"keep a dict with the names {', '.join(names)}.")
    for name in names:
        if answer[name] is ...:
            not_yet(f"{name} has no answer yet.")
    graph = tf.Graph()
    with graph.as_default():
        x, fetches = crossing_graph(tf, current_machine())
    run = trace(graph, fetches, {x: np.ones([4, 3])})
    data, control = len(run.transfers), len(run.control_transfers)
    results = sum(plain_name(t.receiver) == "host" for t in run.transfers)
    if answer["data"] == data + 1:
        not_yet(
            "data: one too many. How many of the operations on GPU 0 read "
            "the same tensor, and how often must it go there?"
        )
    if answer["data"] == data - results:
        not_yet("data: you fetch results. Where do you read them?")
    if answer["data"] != data:
        not_yet("data: go through the edges. Which of them cross a border?")
    if answer["control"] != control:
        not_yet("control: which edge without data crosses a border?")
    if answer["bytes"] != run.bytes_moved:
        not_yet("bytes: each of the tensors has 4×3 numbers of four bytes.")


def crossing_graph(tf: ModuleType, machine: Machine) -> tuple:
    """Build the graph of exercise 5.2; return its input and the fetches.

    Introduced in lesson 05's exercises.
    """
    with tf.device(machine.host):
        x = tf.compat.v1.placeholder(tf.float32, [4, 3], name="x")
    with tf.device(machine.gpus[0]):
        up = tf.exp(x, name="up")
        down = tf.negative(x, name="down")
    with tf.device(machine.gpus[1]), tf.control_dependencies([up]):
        square = tf.square(x, name="square")
    return x, [up, down, square]


@check(
    "5.3",
    "a control dependency is a cheap brake: no byte moves, and the second "
    "product's memory is not needed yet.",
)
def check_05_wait(build: Callable) -> None:
    """Trace the learner's two products and look what waits for what.

    Args:
        build: function of (a, b, gpus) that returns ``a @ a`` on the first
            GPU and ``b @ b`` on the second, which waits for the first.
    """
    import tensorflow as tf

    gpus = current_machine().gpus[:2]
    values = [np.random.RandomState(i).rand(40, 40) for i in range(2)]
    graph = tf.Graph()
    with graph.as_default():
        a, b = (tf.compat.v1.placeholder(tf.float64, [40, 40]) for _ in "ab")
        built = build(a, b, gpus)
    if not isinstance(built, (list, tuple)) or len(built) != 2:
        not_yet("build must return both products: return left, right.")
    left, right = built
    options = session_config(inter_op=2)
    run = trace(graph, [left, right], {a: values[0], b: values[1]}, options)
    for name, found, value in zip(("left", "right"), run.value, values, strict=True):
        if found.shape != value.shape or not np.allclose(found, value @ value):
            not_yet(f"{name} has other numbers than before: only make it wait.")
    products = [node for node in run.nodes if node.op == "MatMul"]
    where = sorted(plain_name(node.device) for node in products)
    if where != ["GPU 0", "GPU 1"]:
        not_yet(f"the products ran on {where}: one belongs on each GPU.")
    first, second = sorted(products, key=lambda node: plain_name(node.device))
    _check_waits(run, first.name, second.name)


def _check_waits(run, first: str, second: str) -> None:
    if second in _ancestors(run, first):
        not_yet("the first product waits for the second: the wrong way round.")
    if first not in _ancestors(run, second):
        waits = any(node.controls for node in run.nodes)
        not_yet(
            "the product on GPU 1 waits for nothing"
            + (", something made later does. " if waits else ". ")
            + "Which line creates it, and is that line inside the block?"
        )
    if first in _ancestors(run, second, controls=False):
        not_yet(
            "it waits because it uses the first result: that moves data from "
            "GPU to GPU. An edge without data is enough."
        )
    if overlap(run, first, second) > 0:
        not_yet("both were at work at the same time.")


def _ancestors(run, name: str, controls: bool = True) -> set[str]:
    """Return all that an operation waits for, directly or not."""
    nodes = {node.name: node for node in run.nodes}
    found, todo = set(), [name]
    while todo:
        node = nodes[todo.pop()]
        sources = node.inputs + (node.controls if controls else ())
        todo += set(sources) - found
        found |= set(sources)
    return found


_LINK = 50e-6, 10e9  # seconds, bytes per second
_HERE, _THERE = 50e9, 1000e9  # additions and multiplications per second
_WORK = {
    "a": (2 * 100**3, 3 * 4 * 100**2),
    "b": (10 * 2 * 100**3, 3 * 4 * 100**2),
    "c": (1000**2, 3 * 4 * 1000**2),
    "d": (2 * 1000**3, 3 * 4 * 1000**2),
}
_HINTS = {
    "a": "so little work does not pay two messages",
    "b": "the data travels once, there and back, for all ten",
    "c": "compare the time of the bytes alone with the time of the work",
    "d": "the work grows with the third power of n, the bytes with the second",
}


@check(
    "5.4",
    "the same two numbers of a link decide in lesson 07 how a model is best spread over devices.",
)
def check_05_moving(answer: dict) -> None:
    """Compare decisions with the times that the figures of exercise 5.4 give.

    Args:
        answer: ``"a"`` to ``"d"`` to ``"move"`` or ``"stay"``.
    """
    if not isinstance(answer, dict) or set(answer) != set(_WORK):
        not_yet(f"keep a dict with the names {', '.join(_WORK)}.")
    latency, bandwidth = _LINK
    for name, (work, moved) in _WORK.items():
        said = answer[name]
        if said is ...:
            not_yet(f"{name} has no answer yet.")
        if said not in ("move", "stay"):
            not_yet(f"{name}: {said!r} is neither 'move' nor 'stay'.")
        there = work / _THERE + 2 * latency + moved / bandwidth
        if said != ("move" if there < work / _HERE else "stay"):
            not_yet(f"look at {name} again: {_HINTS[name]}.")
