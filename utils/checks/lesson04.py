"""Checks of the exercises of lesson 04."""

from collections.abc import Callable

import numpy as np

from utils.checks.findings import own
from utils.checks.normalising import array, choice, items, same, table, tensor, text
from utils.checks.outcome import check, not_yet
from utils.checks.trying import returned
from utils.machine import current_machine, plain_name
from utils.placement import Failure, ImaginedMachine, has_kernel, kernels_of, lists_gpu_kernels


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
    answer = table(answer, _QUESTIONS, "the answer")
    answer = {key: choice(said, _PLACES, key) for key, said in answer.items()}
    for question, said in answer.items():
        name, _, soft = question.partition(", ")
        make, cause = _PROGRAMS[name]
        placed = ImaginedMachine(cpus=1, gpus=2).place(_graph(make), soft=bool(soft))
        error = placed.error
        if said != (str(error.kind) if error else plain_name(placed.device_of(name))):
            not_yet(f"look at {question} again: {_MOVED if soft else cause}.")


def _mixed() -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    whole = v1.placeholder(tf.int32, [2, 2], name="whole")
    real = v1.placeholder(tf.float32, [2, 2], name="real")
    tf.matmul(whole, whole, name="whole_product")
    tf.matmul(real, real, name="real_product")
    tf.nn.softmax(real, name="softmax")
    tf.add(whole, whole, name="whole_sum")
    tf.strings.join([v1.placeholder(tf.string, name="text"), "b"], name="joined")
    tf.io.decode_jpeg(v1.placeholder(tf.string, name="file"), name="image")


def _all_on_gpu() -> None:
    import tensorflow as tf

    real = tf.compat.v1.placeholder(tf.float32, [2, 2], name="real")
    tf.nn.softmax(tf.matmul(real, real))


# Conditions: names; all operations without a GPU kernel and no others; the kernel is looked
# up for the operation's own dtype; the graph that is given, also one where none is missing.
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
    _need_gpu_kernels()
    for graph in (_graph(_mixed), _graph(_all_on_gpu)):
        operations = {op.name: op for op in graph.get_operations()}
        right = {name for name, op in operations.items() if not has_kernel(op, "GPU")}
        found = _names(returned(function, graph))
        if found != right:
            _wrong_names(found, right, operations)


def _names(value: object) -> set[str]:
    parts = items(value, "the result")
    if any(hasattr(part, "node_def") for part in parts):
        not_yet("the result holds operations; expected is a set of their names.")
    return {text(part, "a part of the result") for part in parts}


def _wrong_names(found: set, right: set, operations: dict) -> None:
    """Say which known mistake gives these names; else one name that is wrong."""
    types = {operations[name].type for name in right}
    alike = {name for name, op in operations.items() if op.type in types}
    never = {n for n, op in operations.items() if not kernels_of(op.type).kernels("GPU")}
    known = {
        "that is every operation of the graph.": set(operations),
        "these are the operations that do have a GPU kernel.": set(operations) - right,
        "the type alone does not decide: one MatMul has a GPU kernel, the other not.": alike,
        "the type alone does not decide: MatMul has GPU kernels, but for which dtypes?": never,
    }
    for cause, names in known.items():
        if found == names and found:
            not_yet(cause)
    if found and found <= {op.type for op in operations.values()}:
        not_yet("it returns types such as MatMul; expected are the names.")
    if unknown := sorted(found - set(operations)):
        not_yet(f"the graph that was given has no operation {unknown[0]!r}.")
    if wrong := sorted(found - right):
        not_yet(f"{wrong[0]} has a GPU kernel, perhaps one that works in host memory.")
    missed = operations[max(right - found)]
    not_yet(
        f"{missed.name} is missing, a {missed.type}. Does a GPU have a kernel "
        "for the dtype that it works on here?"
    )


# Conditions: twice x; on the device asked for; an error where that is not so, whatever is
# wrong, type or number; no error on devices that exist, in any spelling; the switch for
# soft placement as before, off or on, after a result and after an error.
@check(
    "4.3",
    "without this line a benchmark of a missing GPU measures another device, "
    "and a training job that you pay for can leave its GPU idle.",
)
def check_04_silent(function: Callable) -> None:
    """Call the learner's function for devices that exist and some that do not.

    Args:
        function: takes a tensor and a device, returns its double on that
            device or raises.
    """
    import tensorflow as tf

    machine = current_machine()
    there = (machine.host, *machine.gpus, "/device:CPU:0", "/job:localhost/device:CPU:0")
    cpus, gpus = (len(tf.config.list_logical_devices(kind)) for kind in ("CPU", "GPU"))
    # The last has the host's number and another type; the second its type, another number.
    missing = (f"/GPU:{gpus + 7}", f"/CPU:{cpus + 4}", "/device:TPU:0")
    before = tf.config.get_soft_device_placement()
    try:
        for soft in (True, False):
            for device in there:
                tf.config.set_soft_device_placement(soft)
                _call_on_present(function, device)
                _settings_as_before(soft, device)
            for device in missing:
                tf.config.set_soft_device_placement(soft)
                _call_on_missing(function, device)
                _settings_as_before(soft, device)
    finally:
        tf.config.set_soft_device_placement(before)


def _settings_as_before(soft: bool, device: str) -> None:
    import tensorflow as tf

    if tf.config.get_soft_device_placement() != soft:
        not_yet(
            f"TensorFlow's settings changed: soft placement was {soft} before the "
            f"call for {device} and is {not soft} after it, for the whole program."
        )


def _call_on_missing(function: Callable, device: str) -> None:
    import tensorflow as tf

    try:
        function(tf.constant([1.0, 3.0]), device)
    except (NameError, TypeError, AttributeError):
        raise  # a slip, not the error that is asked for
    except Exception:
        return
    not_yet(f"there is no {device}, and yet the function did not raise an error.")


def _call_on_present(function: Callable, device: str) -> None:
    import tensorflow as tf

    x = np.array([1.0, 3.0], np.float32)
    try:
        y = function(tf.constant(x), device)
    except (NameError, TypeError):
        raise
    except Exception as error:
        not_yet(
            f"{device} exists, but your code raised {type(error).__name__} for it. Short "
            "and full names differ as texts, and a GPU may be a virtual one."
        )
    if y is None:
        not_yet(f"for {device} it returned None. Does it end with `return`?")
    values = array(tensor(y), "the result", x.shape)
    if not np.allclose(values, 2 * x):
        not_yet(f"for x = {x.tolist()} it returned {values.tolist()}; expected is 2 * x.")
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
    answer = table(answer, _CHOICES, "the choice")
    answer = {key: choice(said, ("soft", "strict"), key) for key, said in answer.items()}
    for program, said in answer.items():
        if said != _CHOICES[program]:
            not_yet(
                f"look at {program} again. Imagine that a GPU is missing: "
                f"what does its user see with {said} placement?"
            )


# Conditions: no error on machines with 0, 1 and 4 GPUs, strict; product on the last GPU; the
# same graph otherwise: what product computes, a counter of whole numbers that begins with 0
# and grows by 1. Where weights and x live is open.
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
    for gpus in (0, 1, 4):
        graph = _graph(build, gpus)
        machine = f"on a machine with {gpus} GPU{'' if gpus == 1 else 's'}"
        there = {op.name: op for op in graph.get_operations()}
        for name in ("x", "weights", "product", "counter"):
            if name not in there:
                not_yet(f"{machine} the graph has no operation called {name!r}.")
        if there["counter"].get_attr("dtype").name != "int32":
            not_yet("the counter is no longer of whole numbers: leave its first value 0.")
        placed = ImaginedMachine(gpus=gpus).place(graph)
        if placed.error:
            not_yet(f"{machine}: {placed.error.kind}, at {placed.error.operation}.")
        where = plain_name(placed.device_of("product"))
        if where != (f"GPU {gpus - 1}" if gpus else "host"):
            not_yet(f"{machine} the product goes to {where}.")
        _computes_the_same(graph)


def _computes_the_same(graph) -> None:
    """Run it on this machine: devices that are not here do not change what it computes."""
    import tensorflow as tf

    variables = {v.op.name: v for v in graph.get_collection("variables")}
    first = [v.initializer for v in variables.values()]
    handle = variables["counter"].handle
    changes = [
        op
        for op in graph.get_operations()
        if op.type.startswith("Assign") and op.inputs[0] is handle and op not in first
    ]
    with graph.as_default(), tf.device("/CPU:0"):
        now = variables["counter"].read_value()
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(first)
        product = session.run("product:0", {"x:0": [[1.0, 2.0, 4.0]]})
        counts = [session.run(now)]
        session.run(changes)
        counts.append(session.run(now))
    if product.tolist() != [[11.0]]:
        not_yet(f"for x = [[1, 2, 4]] product is {product.tolist()}: leave what it computes.")
    if counts != [0, 1]:
        not_yet(
            f"the counter is {counts[0]} at first and {counts[1]} after one step; "
            "it must begin with 0 and grow by 1."
        )


# Conditions: the variable has the dtype asked for and is pinned to GPU 1 of two GPUs; both
# strict and soft; a plain name, or "error".
@check(
    "4.6",
    "one dtype decides whether a pin holds, fails, or is ignored without a word. "
    "You can find out before you rent the machine.",
)
def check_04_compare(function: Callable) -> None:
    """Compare the learner's function with an imagined machine of two GPUs.

    Args:
        function: takes a dtype and whether placement is soft, returns a
            plain name or ``"error"``.
    """
    import tensorflow as tf

    _need_gpu_kernels()
    for dtype in (tf.float32, tf.int32, tf.int64, tf.string, tf.bool):
        for soft in (False, True):
            asked = f"for {dtype.name}, {'soft' if soft else 'strict'}"
            graph = _graph(_variable, "v", tf.zeros([2], dtype).numpy())
            placed = ImaginedMachine(gpus=2).place(graph, soft=soft)
            right = "error" if placed.error else plain_name(placed.device_of("v"))
            said = text(returned(function, dtype, soft), f"{asked} the result")
            if same(said) == same(right):
                continue
            other = ImaginedMachine(gpus=2).place(graph, soft=not soft)
            turned = "error" if other.error else plain_name(other.device_of("v"))
            if same(said) == same(turned):
                not_yet(f"{asked} it returns {said!r}, which is right for the other placement.")
            not_yet(f"{asked} it returns {said!r}; expected is where v goes, or 'error'.")


check_04_own = own(
    "4.7",
    "a pin in your own program is a bet on a machine. Now you know what happens "
    "where the bet is lost.",
)
