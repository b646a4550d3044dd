"""Checks of the exercises of lesson 00."""

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.machine import current_machine, plain_name
from utils.runs import trace

INPUT = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]], dtype=np.float32)


@check(
    "0.1",
    "a Python number in an argument is part of the graph. A loop that passes "
    "its counter makes one graph per step, which is slow; pass a tensor.",
)
def check_00_tracings(answer: object) -> None:
    """Compare a predicted number of tracings with what TensorFlow does.

    Args:
        answer: how often the function of exercise 0.1 is traced.
    """
    import tensorflow as tf

    if isinstance(answer, bool) or not isinstance(answer, int):
        not_yet(f"the answer is a {type(answer).__name__}: give one number.")
    recorded = []

    @tf.function
    def double(x):
        recorded.append(x)
        return x + x

    calls = (tf.constant(1), tf.constant(2), 1, 2, tf.constant([1, 2]))
    for argument in calls:
        double(argument)
    if answer == len(recorded):
        return
    if answer == len(calls):
        not_yet(
            "that would be one tracing per call. Two tensors of the same "
            "shape and type share a graph, whatever their values are."
        )
    if answer < len(recorded):
        not_yet(
            "too few. A Python number is no tensor: TensorFlow cannot leave "
            "its value open, so what about the calls with 1 and with 2?"
        )
    not_yet("too many. Which two calls can share a graph?")


@check(
    "0.2",
    "split, compute on each device, merge: the whole of lesson 06 grows from these few lines.",
)
def check_00_halves(build) -> None:
    """Run the learner's graph and look where its products ran.

    Args:
        build: function of (x, weights, gpus) that adds to the default graph
            one product per GPU and returns the merged output.
    """
    import tensorflow as tf

    gpus = current_machine().gpus[:2]
    for x, w in (
        (INPUT, np.array([[1.0], [1], [2]], np.float32)),
        (INPUT[::-1].copy(), np.array([[2.0], [0], [1]], np.float32)),
    ):
        graph = tf.Graph()
        with graph.as_default():
            rows = tf.compat.v1.placeholder(tf.float32, [4, 3])
            columns = tf.compat.v1.placeholder(tf.float32, [3, 1])
            output = build(rows, columns, gpus)
        if not tf.is_tensor(output):
            not_yet(
                f"build returned a {type(output).__name__}. Return one "
                "tensor: the parts merged with tf.concat."
            )
        run = trace(graph, output, {rows: x, columns: w})
        _same_product(run, x @ w)
        _one_product_each(run, len(gpus))


def _same_product(run, right) -> None:
    if run.value.shape != right.shape:
        not_yet(
            f"the output has shape {run.value.shape}, not {right.shape}. "
            "Rows are split along axis 0 and merged along the same axis."
        )
    if not np.allclose(run.value, right):
        if np.allclose(np.sort(run.value, axis=0), np.sort(right, axis=0)):
            not_yet("all numbers are there, but the parts are out of order.")
        not_yet(
            "the numbers are wrong. Does each GPU get its own part of the "
            "rows, and all of the weights?"
        )


def _one_product_each(run, gpus: int) -> None:
    where = [plain_name(node.device) for node in run.nodes if node.op == "MatMul"]
    if len(where) != gpus:
        not_yet(f"the graph has {len(where)} product(s); it needs one per GPU, so {gpus}.")
    if "host" in where:
        not_yet(
            "a product ran on the host. Is it created inside "
            "`with tf.device(gpu):`, and not before it?"
        )
    if len(set(where)) != gpus:
        not_yet(f"all products ran on {where[0]}. Use the loop's own gpu.")


@check(
    "0.3",
    "without a cluster, a variable's value belongs to one session. With one, the question "
    "where a value lives, and how long, decides what is shared (lesson 09).",
)
def check_00_session(run_classic) -> None:
    """Call the mended session program with several inputs.

    Args:
        run_classic: function of rows (n×3 NumPy array) that returns rows
            times the weights 1, 1, 2, computed in a session.
    """
    weights = np.array([[1.0], [1], [2]], np.float32)
    for x in (INPUT, INPUT[:1] * 10):
        try:
            value = run_classic(x)
        except Exception as error:
            if "uninitialized" in str(error):
                not_yet(
                    "the variable still has no value in the session that "
                    "computes. Which session ran the initialiser?"
                )
            raise
        if value is None:
            not_yet("the function returns nothing: return the result.")
        value = np.asarray(value)
        if value.shape != (len(x), 1) or not np.allclose(value, x @ weights):
            not_yet(
                f"for {len(x)} row(s) the result is {value.ravel().tolist()}. "
                "Is the function's own argument fed to the placeholder?"
            )


@check(
    "0.4",
    "most code of the classic texts can be carried over like this: arguments "
    "for placeholders, the function's result for the fetch.",
)
def check_00_port(function) -> None:
    """Check that a session program became a traced function.

    Args:
        function: a ``tf.function`` of (x, weights) that returns the sum of
            all entries of x @ weights.
    """
    import tensorflow as tf

    if not hasattr(function, "get_concrete_function"):
        not_yet("this is a plain Python function: it computes eagerly. What makes a graph of it?")
    before = function.experimental_get_tracing_count()
    for factor in (1.0, 3.0):
        x = tf.constant(INPUT * factor)
        weights = tf.constant([[1.0], [1], [2]])
        value = function(x, weights)
        if not tf.is_tensor(value):
            not_yet(f"the function returns a {type(value).__name__}, not a tensor: return the sum.")
        right = float(np.sum(x.numpy() @ weights.numpy()))
        if value.shape != () or not np.isclose(float(value), right):
            not_yet(
                f"it returns {value.numpy().tolist()}. Wanted is one number: "
                "the sum of all entries of the product."
            )
    if function.experimental_get_tracing_count() - before > 1:
        not_yet("two calls with the same shapes were traced twice.")
    types = {op.type for op in function.get_concrete_function(x, weights).graph.get_operations()}
    if "MatMul" not in types:
        not_yet(
            "the numbers are right, but the graph has no product: it would "
            "give the same for any input. Use the arguments."
        )
