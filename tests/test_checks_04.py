"""The checks of lesson 04: right, right in another way, wrong, untouched."""

import json
from pathlib import Path

import pytest

from utils.checks import lesson04
from utils.machine import plain_name
from utils.placement import has_kernel, kernels, kernels_of

needs_list = pytest.mark.skipif(
    not kernels.lists_gpu_kernels(), reason="this build of TensorFlow lists no kernels for GPUs"
)
RIGHT = {
    "weights": "GPU 1",
    "counter": "no kernel",
    "counter, soft": "host",
    "double": "no such device",
    "double, soft": "GPU 0",
    "next": "GPU 0",
    "label": "host",
}
CHOICE = {
    "a benchmark of one GPU against another": "strict",
    "a web service that must answer, even slowly": "soft",
    "a test that nothing in the model leaves the GPU": "strict",
    "a demonstration for laptops of all kinds": "soft",
}


@needs_list
@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (RIGHT, "correct"),
        (dict(reversed(RIGHT.items())), "correct"),
        (RIGHT | {"weights": "GPU 0"}, "'weights' again: device and kernel are there"),
        (RIGHT | {"counter": "GPU 1"}, "'counter' again: of what dtype"),
        (RIGHT | {"counter": "no such device"}, "'counter' again"),
        (RIGHT | {"counter, soft": "GPU 0"}, "'counter, soft' again: soft placement takes"),
        (RIGHT | {"double": "no kernel"}, "'double' again: count the GPUs from 0"),
        (RIGHT | {"double, soft": "host"}, "'double, soft' again: soft placement takes"),
        (RIGHT | {"next": "host"}, "'next' again: does the GPU have a kernel"),
        (RIGHT | {"label": "GPU 0"}, "'label' again: which device types"),
        (RIGHT | {"label": ...}, "label has no answer yet"),
        (RIGHT | {"label": "error"}, "'error' is none of"),
        ({"label": "host"}, "keep a dict"),
        (dict.fromkeys(RIGHT, ...), "not attempted"),
    ],
)
def test_imagined(said, answer, part):
    assert part in said(lesson04.check_04_imagined, answer)


@needs_list
def test_cpu_only(said):
    def right(graph):
        return {op.name for op in graph.get_operations() if not has_kernel(op, "GPU")}

    def a_list(graph):
        found = []
        for operation in graph.get_operations():
            if not has_kernel(operation, "GPU"):
                found.append(operation.name)
        return found

    def by_type_alone(graph):
        operations = graph.get_operations()
        return {op.name for op in operations if not kernels_of(op.type).kernels("GPU")}

    def types(graph):
        return {op.type for op in graph.get_operations() if not has_kernel(op, "GPU")}

    def operations(graph):
        return {op for op in graph.get_operations() if not has_kernel(op, "GPU")}

    def the_others(graph):
        return {op.name for op in graph.get_operations() if has_kernel(op, "GPU")}

    def whole_numbers_too(graph):
        return right(graph) | {op.name for op in graph.get_operations() if op.type == "AddV2"}

    def a_number(graph):
        return len(right(graph))

    def nothing(graph):
        right(graph)

    def stub(graph):
        """Return the names of the operations without a GPU kernel, as a set."""
        ...

    for answer, part in {
        right: "correct",
        a_list: "correct",
        by_type_alone: "whole_product is missing, a MatMul. Does a GPU have a kernel for the dtype",
        types: "it returns types such as MatMul",
        operations: "it returns the operations",
        the_others: "that do have a GPU kernel",
        whole_numbers_too: "whole_sum has a GPU kernel, be it one",
        a_number: "it returns a int",
        nothing: "it returns nothing",
        stub: "not attempted",
    }.items():
        line = said(lesson04.check_04_cpu_only, answer)
        assert part in line, (answer.__name__, line)


def test_silent(said, machine):
    import tensorflow as tf

    def doubled(x, device):
        with tf.device(device):
            return x * 2.0

    def right(x, device):
        y = doubled(x, device)
        if plain_name(y.device) != plain_name(device):
            raise RuntimeError("elsewhere")
        return y

    def asserts(x, device):
        y = doubled(x, device)
        assert y.device.endswith(device.replace("/device:", "").lstrip("/")), "elsewhere"
        return y

    def strict_for_a_while(x, device):
        tf.config.set_soft_device_placement(False)
        try:
            return doubled(x, device)
        finally:
            tf.config.set_soft_device_placement(True)

    def as_given(x, device):
        return doubled(x, device)

    def prints(x, device):
        y = doubled(x, device)
        if plain_name(y.device) != plain_name(device):
            print(end="")
        return y

    def looks_for_letters(x, device):
        y = doubled(x, device)
        assert "GPU" in y.device
        return y

    def compares_texts(x, device):
        y = doubled(x, device)
        assert y.device == device
        return y

    def strict_for_good(x, device):
        tf.config.set_soft_device_placement(False)
        return doubled(x, device)

    def always_the_host(x, device):
        if "GPU" in device:
            raise RuntimeError("no")
        return doubled(x, machine.host)

    def forgot_return(x, device):
        right(x, device)

    def slip(x, device):
        y = doubled(x, device)
        if plain_name(y.device) != plain_name(device):
            raise RuntimeErorr  # noqa: F821
        return y

    def stub(x, device):
        """Return 2 * x, computed on device, or raise."""
        ...

    before = tf.config.get_soft_device_placement()
    for answer, part in {
        right: "correct",
        asserts: "correct",
        strict_for_a_while: "correct",
        as_given: "yet it returned a result without a complaint",
        prints: "yet it returned a result without a complaint",
        looks_for_letters: "exists, but it raised AssertionError",
        compares_texts: "exists, but it raised AssertionError",
        strict_for_good: "switched off after the call",
        always_the_host: "asked for GPU 0, the product ran on host",
        forgot_return: "it returned None",
        slip: "your code raised NameError",
        stub: "not attempted",
    }.items():
        line = said(lesson04.check_04_silent, answer)
        assert part in line, (answer.__name__, line)
        assert tf.config.get_soft_device_placement() == before


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (CHOICE, "correct"),
        (dict(reversed(CHOICE.items())), "correct"),
        (dict.fromkeys(CHOICE, "soft"), "think again about: a benchmark"),
        (dict.fromkeys(CHOICE, "strict"), "what does its user see with strict placement"),
        (CHOICE | {"a demonstration for laptops of all kinds": True}, "is neither"),
        (
            CHOICE | {"a demonstration for laptops of all kinds": ...},
            "of all kinds' has no answer yet",
        ),
        ({"a test": "strict"}, "keep the dict's keys"),
        (dict.fromkeys(CHOICE, ...), "not attempted"),
    ],
)
def test_choice(said, answer, part):
    assert part in said(lesson04.check_04_choice, answer)


@needs_list
def test_portable(said):
    import tensorflow as tf

    v1 = tf.compat.v1

    def network(device):
        with tf.device(device):
            x = v1.placeholder(tf.float32, [None, 3], name="x")
            weights = v1.get_variable("weights", initializer=[[1.0], [1.0], [2.0]])
            tf.matmul(x, weights, name="product")

    def counter(device, first=0):
        with tf.device(device):
            v1.get_variable("counter", initializer=first).assign_add(first + 1)

    def last(gpus):
        return f"/GPU:{gpus - 1}" if gpus else "/CPU:0"

    def right(gpus):
        network(last(gpus))
        counter("/CPU:0")

    def counter_free(gpus):
        counter(None)
        network(["/CPU:0", *(f"/GPU:{i}" for i in range(gpus))][-1])

    def as_given(gpus):
        network("/GPU:1")
        counter("/GPU:1")

    def no_cpu(gpus):
        network(f"/GPU:{gpus - 1 if gpus else 0}")
        counter("/CPU:0")

    def one_too_far(gpus):
        network(f"/GPU:{gpus}" if gpus else "/CPU:0")
        counter("/CPU:0")

    def host_always(gpus):
        network("/CPU:0")
        counter("/CPU:0")

    def a_real_counter(gpus):
        network(last(gpus))
        counter(last(gpus), 0.0)

    def no_counter(gpus):
        network(last(gpus))

    def stub(gpus):
        """Build the graph for a machine with this number of GPUs."""
        ...

    for answer, part in {
        right: "correct",
        counter_free: "correct",
        as_given: "on a machine with 4 GPU(s): no kernel, at counter",
        no_cpu: "on a machine with 0 GPU(s): no such device",
        one_too_far: "on a machine with 4 GPU(s): no such device",
        host_always: "the product goes to host",
        a_real_counter: "no longer of whole numbers",
        no_counter: "no operation called 'counter'",
        stub: "not attempted",
    }.items():
        line = said(lesson04.check_04_portable, answer)
        assert part in line, (answer.__name__, line)


@pytest.mark.parametrize("name", ["check_04_imagined", "check_04_cpu_only", "check_04_portable"])
def test_a_build_without_gpu_kernels_is_not_the_learners_mistake(said, monkeypatch, name):
    monkeypatch.setattr(lesson04, "lists_gpu_kernels", lambda: False)
    line = said(getattr(lesson04, name), RIGHT)
    assert "this build of TensorFlow lists no GPU kernels" in line


def test_the_exercise_describes_the_graphs_that_the_check_builds():
    """Exercise 4.1 tells in words what the check builds in code."""
    root = Path(__file__).resolve().parents[1]
    path = root / "notebooks" / "solutions" / "04_soft_placement.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    table = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    assert table[2:9] == list(RIGHT)
