"""The checks of lesson 03: right, right in another way, wrong, untouched."""

from collections import Counter

import pytest

from utils.checks import lesson03
from utils.machine import plain_name

RIGHT = {
    "v": "GPU 1",
    "update": "GPU 1",
    "size": "GPU 0",
    "c": "GPU 0",
    "output": "GPU 0",
}


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (RIGHT, "correct"),
        (dict(reversed(RIGHT.items())), "correct"),
        (RIGHT | {"update": "GPU 0"}, "update again: it writes"),
        (RIGHT | {"size": "host"}, "size again"),
        (RIGHT | {"c": "host"}, "c again: a constant follows"),
        (RIGHT | {"v": "host"}, "v again"),
        (RIGHT | {"output": "GPU 1"}, "output again"),
        (RIGHT | {"c": ...}, "c has no answer yet"),
        (RIGHT | {"c": "gpu0"}, "'gpu0' is none of"),
        ({"v": "GPU 1"}, "keep a dict"),
        (dict.fromkeys(RIGHT, ...), "not attempted"),
    ],
)
def test_placement(said, answer, part):
    assert part in said(lesson03.check_03_placement, answer)


def test_the_exercise_prints_the_graph_that_the_check_builds():
    """The graph in the exercise's text and the one in the check are two."""
    import inspect
    import json
    from pathlib import Path

    root = Path(__file__).resolve().parents[1]
    path = root / "notebooks" / "solutions" / "03_log_placement.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    code = inspect.getsource(lesson03.placed_graph)
    for line in (
        "tf.raw_ops.Size(input=x",
        "tf.multiply(c, v.read_value()",
        "resource=v.handle, value=[1.0, 1.0]",
    ):
        assert line in text
        assert line in code


def test_dynamic_placement(said, machine):
    host, gpus = machine.host, machine.gpus

    def right(operation):
        """Return the device."""
        if operation.type == "VarHandleOp":
            return host
        return gpus[1] if operation.type == "MatMul" else gpus[0]

    def by_table(operation):
        table = {"VarHandleOp": host, "MatMul": gpus[1]}
        return table.get(operation.type, gpus[0])

    def books(operation):
        if operation.type == "Variable":
            return host
        return gpus[1] if operation.type == "MatMul" else gpus[0]

    def python_name(operation):
        if operation.type == "VarHandleOp":
            return host
        return gpus[1] if operation.type == "matmul" else gpus[0]

    def no_rest(operation):
        if operation.type == "VarHandleOp":
            return host
        if operation.type == "MatMul":
            return gpus[1]

    def all_on_gpu_1(operation):
        return host if operation.type == "VarHandleOp" else gpus[1]

    def stub(operation):
        """Return the device."""
        ...

    for answer, part in {
        right: "correct",
        by_table: "correct",
        books: "the variable went to GPU 0",
        python_name: "the product went to GPU 0",
        no_rest: "it returns nothing for an operation of type",
        all_on_gpu_1: "the rest went to GPU 1",
        stub: "not attempted",
    }.items():
        line = said(lesson03.check_03_dynamic_placement, answer)
        assert part in line, (answer.__name__, line)


def test_scope(said, machine):
    import tensorflow as tf

    def right(x, weights, gpu):
        with tf.device(gpu):
            return (x @ weights) * 2.0

    def two_scopes(x, weights, gpu):
        with tf.device(gpu):
            product = tf.matmul(x, weights)
        with tf.device(gpu):
            return product + product

    def as_given(x, weights, gpu):
        product = x @ weights
        with tf.device(gpu):
            return product * 2.0

    def fixed_gpu(x, weights, gpu):
        with tf.device(machine.gpus[0]):
            return (x @ weights) * 2.0

    def forgot_two(x, weights, gpu):
        with tf.device(gpu):
            return x @ weights

    def stub(x, weights, gpu):
        """Return 2 * (x @ weights), computed on gpu."""
        ...

    for answer, part in {
        right: "correct",
        two_scopes: "correct",
        as_given: "(MatMul) ran on host",
        fixed_gpu: "asked for GPU 1",
        forgot_two: "numbers changed",
        stub: "not attempted",
    }.items():
        line = said(lesson03.check_03_scope, answer)
        assert part in line, (answer.__name__, line)


def test_count(said):
    def right(log):
        numbers = {}
        for row in log.rows:
            numbers[plain_name(row.device)] = numbers.get(plain_name(row.device), 0) + 1
        return numbers

    def counter(log):
        return Counter(plain_name(row.device) for row in log.rows)

    def full_names(log):
        return Counter(row.device for row in log.rows)

    def one_each(log):
        return {plain_name(row.device): 1 for row in log.rows}

    def only_host(log):
        return {"host": sum(plain_name(r.device) == "host" for r in log.rows)}

    def a_list(log):
        return [plain_name(row.device) for row in log.rows]

    def stub(log):
        """Return a dict: plain name of a device to the number of its operations."""
        ...

    for answer, part in {
        right: "correct",
        counter: "correct",
        full_names: "full device names",
        one_each: "the counts are",
        only_host: "the keys are",
        a_list: "wanted is a dict",
        stub: "not attempted",
    }.items():
        line = said(lesson03.check_03_count, answer)
        assert part in line, (answer.__name__, line)
