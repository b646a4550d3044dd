"""Checks of the exercises of lesson 04."""

from collections.abc import Callable

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.machine import current_machine, plain_name
from utils.placement import Failure, ImaginedMachine, has_kernel, lists_gpu_kernels


def _need_gpu_kernels() -> None:
    if not lists_gpu_kernels():
        not_yet(
            "this build of TensorFlow lists no GPU kernels, so nothing can be "
            "checked here. Read the solution instead."
        )


def _graph(make, *given):
    """Return a graph of what ``make(*given)`` builds."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        make(*given)
    return graph


def _variable(name, first):
    import tensorflow as tf

    with tf.device("/GPU:1"):
        tf.compat.v1.get_variable(name, initializer=first)


def _double():
    import tensorflow as tf

    x = tf.compat.v1.placeholder(tf.float32)
    with tf.device("/GPU:2"):
        tf.multiply(x, 2.0, name="double")


def _next():
    import tensorflow as tf

    tf.add(tf.compat.v1.placeholder(tf.int32), 1, name="next")


def _label():
    import tensorflow as tf

    tf.strings.join(["a", "b"], name="label")


# What exercise 4.1 describes: how to build it, what decides it.
_PROGRAMS = {
    "weights": (lambda: _variable("weights", [[1.0], [2.0]]), "device and kernel are there"),
    "counter": (lambda: _variable("counter", 0), "of what dtype is a variable that begins with 0"),
    "double": (_double, "count the GPUs from 0"),
    "next": (_next, "does the GPU have a kernel for this, in whatever memory"),
    "label": (_label, "which device types have a kernel for strings"),
}
_MOVED = "soft placement takes the best device that has a kernel for it"
_PLACES = ("host", "GPU 0", "GPU 1", *map(str, (Failure.NO_DEVICE, Failure.NO_KERNEL)))
_QUESTIONS = ("weights", "counter", "counter, soft", "double", "double, soft", "next", "label")


@check(
    "4.1",
    "you can now tell from a program's text on which machines it starts, and "
    "where its work lands if it is allowed to move.",
)
def check_04_imagined(answer: dict) -> None:
    """Compare predictions with the placement on one CPU and two GPUs.

    Args:
        answer: name of a graph to a plain name or the kind of error.
    """
    _need_gpu_kernels()
    if not isinstance(answer, dict) or set(answer) != set(_QUESTIONS):
        not_yet(f"keep a dict with the names {'; '.join(_QUESTIONS)}.")
    for question, said in answer.items():
        if said is ...:
            not_yet(f"{question!r} has no answer yet.")
        if said not in _PLACES:
            not_yet(f"{question!r}: {said!r} is none of {', '.join(_PLACES)}.")
        name, _, soft = question.partition(", ")
        make, cause = _PROGRAMS[name]
        placed = ImaginedMachine(cpus=1, gpus=2).place(_graph(make), soft=bool(soft))
        error = placed.error
        if said != (str(error.kind) if error else plain_name(placed.device_of(name))):
            not_yet(f"look at {question!r} again: {_MOVED if soft else cause}.")


def _mixed() -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    whole = v1.placeholder(tf.int32, [2, 2], name="whole")
    real = v1.placeholder(tf.float32, [2, 2], name="real")
    tf.matmul(whole, whole, name="whole_product")
    tf.matmul(real, real, name="real_product")
    tf.add(whole, whole, name="whole_sum")
    tf.strings.join([v1.placeholder(tf.string, name="text"), "b"], name="joined")
    tf.io.decode_jpeg(v1.placeholder(tf.string, name="file"), name="image")


def _all_on_gpu() -> None:
    import tensorflow as tf

    real = tf.compat.v1.placeholder(tf.float32, [2, 2], name="real")
    tf.nn.softmax(tf.matmul(real, real))


@check(
    "4.2",
    "each of these operations runs on the host: what it takes from the GPU or "
    "gives to it has to travel.",
)
def check_04_cpu_only(function: Callable) -> None:
    """Ask the learner's function about two graphs.

    Args:
        function: takes a graph, returns names of operations in a set.
    """
    import tensorflow as tf

    _need_gpu_kernels()
    for graph in (_graph(_mixed), _graph(_all_on_gpu)):
        operations = {op.name: op for op in graph.get_operations()}
        right = {name for name, op in operations.items() if not has_kernel(op, "GPU")}
        found = function(graph)
        if found is None:
            not_yet("it returns nothing.")
        if not isinstance(found, (set, frozenset, list, tuple)):
            not_yet(f"it returns a {type(found).__name__}; wanted is a set of names.")
        if any(isinstance(one, tf.Operation) for one in found):
            not_yet("it returns the operations; wanted are their names.")
        found = set(found)
        if found == right:
            continue
        if found == set(operations) - right:
            not_yet("these are the operations that do have a GPU kernel.")
        if found and found <= {op.type for op in operations.values()}:
            not_yet("it returns types such as MatMul; wanted are the names.")
        if wrong := sorted(found - right):
            not_yet(f"{wrong[0]} has a GPU kernel, be it one that works in host memory.")
        missed = operations[max(right - found)]
        not_yet(
            f"{missed.name} is missing, a {missed.type}. Does a GPU have a kernel "
            "for the dtype that it works on here?"
        )


@check(
    "4.3",
    "without this line a benchmark of a missing GPU measures another device, "
    "and a training job that you pay for can leave its GPU idle.",
)
def check_04_silent(function: Callable) -> None:
    """Call the learner's function for devices that exist and one that does not.

    Args:
        function: takes a tensor and a device, returns its double on that
            device or raises.
    """
    import tensorflow as tf

    machine = current_machine()
    missing = f"/GPU:{len(tf.config.list_logical_devices('GPU')) + 7}"
    x = tf.constant([1.0, 2.0])
    before = tf.config.get_soft_device_placement()
    try:
        for device in (machine.host, *machine.gpus, "/device:CPU:0"):
            _call_on_present(function, x, device)
        try:
            function(x, missing)
        except (NameError, TypeError, AttributeError):
            raise  # a slip, not the error that is asked for
        except Exception:
            caught = True
        else:
            caught = False
        left = tf.config.get_soft_device_placement()
    finally:
        tf.config.set_soft_device_placement(before)
    if left != before:
        not_yet("soft placement is switched off after the call, for the whole program.")
    if not caught:
        not_yet(f"there is no {missing}, and yet it returned a result without a complaint.")


def _call_on_present(function, x, device) -> None:
    try:
        y = function(x, device)
    except (NameError, TypeError):
        raise
    except Exception as error:
        not_yet(
            f"{device} exists, but it raised {type(error).__name__} for it. Short "
            "and full names differ as texts, and a GPU may be a virtual one."
        )
    if y is None or not np.allclose(y, 2 * x.numpy()):
        not_yet(f"on {device} it returned {y}; wanted is 2 * x.")
    if plain_name(y.device) != plain_name(device):
        not_yet(f"asked for {plain_name(device)}, the product ran on {plain_name(y.device)}.")


# What the outcome is for: who must not be deceived, or who must not be let down.
_CHOICES = {
    "a benchmark of one GPU against another": "strict",
    "a web service that must answer, even slowly": "soft",
    "a test that nothing in the model leaves the GPU": "strict",
    "a demonstration for laptops of all kinds": "soft",
}


@check(
    "4.4",
    "soft placement hides exactly what a measurement or a test wants to know, "
    "and saves what a user wants to have.",
)
def check_04_choice(answer: dict) -> None:
    """Compare soft or strict for some kinds of programs.

    Args:
        answer: kind of program to ``"soft"`` or ``"strict"``.
    """
    if not isinstance(answer, dict) or set(answer) != set(_CHOICES):
        not_yet("keep the dict's keys as they are; change the values.")
    for program, said in answer.items():
        if said is ...:
            not_yet(f"no answer yet for: {program}.")
        if said not in ("soft", "strict"):
            not_yet(f"{program}: {said!r} is neither 'soft' nor 'strict'.")
        if said != _CHOICES[program]:
            not_yet(
                f"think again about: {program}. Imagine that a GPU is missing: "
                f"what does its user see with {said} placement?"
            )


@check(
    "4.5",
    "this program starts on a laptop and on a server, and you know where its "
    "work is on both, because nothing was moved behind your back.",
)
def check_04_portable(build: Callable) -> None:
    """Place the learner's graph on imagined machines, strictly.

    Args:
        build: takes a number of GPUs, adds to the default graph.
    """
    _need_gpu_kernels()
    for gpus in (4, 1, 0):
        graph = _graph(build, gpus)
        there = {op.name: op for op in graph.get_operations()}
        for name in ("x", "weights", "product", "counter"):
            if name not in there:
                not_yet(f"the graph has no operation called {name!r}.")
        if there["counter"].get_attr("dtype").name != "int32":
            not_yet("the counter is no longer of whole numbers: leave its first value 0.")
        placed = ImaginedMachine(gpus=gpus).place(graph)
        machine = f"on a machine with {gpus} GPU(s)"
        if placed.error:
            not_yet(f"{machine}: {placed.error.kind}, at {placed.error.operation}.")
        where = plain_name(placed.device_of("product"))
        if where != (f"GPU {gpus - 1}" if gpus else "host"):
            not_yet(f"{machine} the product goes to {where}.")
