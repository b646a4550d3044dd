"""Checks of the exercises of lesson 00."""

from collections.abc import Callable

import numpy as np

from utils.checks.findings import own
from utils.checks.limits import session_limit
from utils.checks.normalising import array, found, number, table, tensor, whole
from utils.checks.outcome import check, not_yet
from utils.checks.trying import returned
from utils.machine import current_machine, plain_name
from utils.runs import trace

INPUT = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]], dtype=np.float32)
# Operations that multiply matrices; the last ones where somebody writes the sums out.
PRODUCTS = ("MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "Mul")


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

    answer = whole(answer)
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
    # What each miscount reproduces.
    causes = {
        5: "that would be one tracing per call. Two tensors of the same "
        "shape and type share a graph, whatever their values are.",
        3: "too few. A Python number is no tensor: TensorFlow cannot leave "
        "its value open, so what about the calls with 1 and with 2?",
        2: "too few. That counts shapes as if the Python numbers were tensors.",
        1: "too few. That would be one graph for any argument; what about the shapes?",
    }
    impossible = f"{found(answer)} is not possible: one call records one graph or none."
    not_yet(causes.get(answer, impossible))


@check(
    "0.2",
    "split, compute on each device, merge: the whole of lesson 06 grows from these few lines.",
)
def check_00_halves(build: Callable) -> None:
    """Run the learner's graph and look where its products ran.

    Args:
        build: function of (x, weights, gpus) that adds to the default graph
            one product per GPU and returns the merged output.
    """
    # Conditions: one tensor; x @ weights for any values; one product per
    # GPU, on the GPUs given in any order; split and merged on the host.
    import tensorflow as tf

    gpus = current_machine().gpus[:2]
    for x, w, given in (
        (INPUT, np.array([[1.0], [1], [2]], np.float32), gpus),
        (INPUT[::-1].copy(), np.array([[2.0], [0], [1]], np.float32), gpus[::-1]),
    ):
        graph = tf.Graph()
        with graph.as_default():
            rows = tf.compat.v1.placeholder(tf.float32, [4, 3])
            columns = tf.compat.v1.placeholder(tf.float32, [3, 1])
            output = tensor(returned(build, rows, columns, list(given)), "what build returned")
        if output.graph is not graph:
            not_yet("what build returned is of another graph. Add to the graph of x and weights.")
        run = trace(graph, output, {rows: x, columns: w})
        _same_product(run.value, x, w)
        _one_product_each(run, [plain_name(gpu) for gpu in given])
        _merged_on_host(run, output)


def _same_product(value, x, w) -> None:
    right = x @ w
    if value.shape != right.shape:
        not_yet(
            f"the output has shape {value.shape}, not {right.shape}. "
            "Rows are split along axis 0 and merged along the same axis."
        )
    if np.allclose(value, right):
        return
    if np.allclose(np.sort(value, axis=0), np.sort(right, axis=0)):
        not_yet("all numbers are there, but the parts are out of order.")
    if np.isin(value, right).all():
        not_yet("some rows occur twice, others are missing: each GPU gets its own part.")
    not_yet(f"for {x.tolist()} times {w.tolist()} the output is {value.tolist()}.")


def _one_product_each(run, gpus: list[str]) -> None:
    products = [node for node in run.nodes if node.op in PRODUCTS]
    products = [node for node in products if node.op != "Mul"] or products
    where = [plain_name(node.device) for node in products]
    if len(where) != len(gpus):
        not_yet(f"the graph has {len(where)} product(s); it needs one per GPU, so {len(gpus)}.")
    if "host" in where:
        not_yet(
            "a product ran on the host. Is it created inside "
            "`with tf.device(gpu):`, and not before it?"
        )
    if sorted(where) != sorted(gpus):
        if len(set(where)) == 1:
            not_yet(f"all products ran on {where[0]}. Use the loop's own gpu.")
        not_yet(f"for the GPUs {gpus} the products ran on {where}.")


def _merged_on_host(run, output) -> None:
    for node in run.nodes:
        if node.name == output.op.name and plain_name(node.device) != "host":
            not_yet(f"the parts are merged on {plain_name(node.device)}, not on the host.")


@check(
    "0.3",
    "without a cluster, a variable's value belongs to one session. With one, the question "
    "where a value lives, and how long, decides what is shared (lesson 09).",
)
def check_00_session(run_classic: Callable) -> None:
    """Call the mended session program with several inputs.

    Args:
        run_classic: function of rows (n×3 NumPy array) that returns rows
            times the weights 1, 1, 2, computed in a session.
    """
    # Conditions: rows @ weights for any rows, as a table of n×1; the argument
    # is fed; a session computes it.
    weights = np.array([[1.0], [1], [2]], np.float32)
    results = []
    for x in (INPUT, INPUT[:1] * 10, INPUT[::-1] - 5):
        with session_limit(10) as ran:
            value = _in_session(run_classic, x.copy())
        results.append(value)
        if value.shape[:1] != (len(x),) and len(results) > 1 and _equal(*results[-2:]):
            not_yet("the result is the same for other rows: feed the function's own argument.")
        value = array(value, f"the result for {len(x)} row(s)", (len(x), 1))
        if not np.allclose(value, x @ weights):
            not_yet(f"for the rows {x.tolist()} the result is {value.tolist()}.")
        if not ran:
            not_yet("the numbers are right, but no session ran.")


def _equal(one, other) -> bool:
    return one.shape == other.shape and np.allclose(one, other)


def _in_session(run_classic, x):
    try:
        return array(returned(run_classic, x), "the result")
    except Exception as error:
        if "uninitialized" in str(error):
            not_yet(
                "the variable still has no value in the session that "
                "computes. Which session ran the initialiser?"
            )
        raise


@check(
    "0.4",
    "most code of the classic texts can be carried over like this: arguments "
    "for placeholders, the function's result for the fetch.",
)
def check_00_port(function: Callable) -> None:
    """Check that a session program became a traced function.

    Args:
        function: a ``tf.function`` of (x, weights) that returns the sum of
            all entries of x @ weights.
    """
    # Conditions: a traced function, traced once; one number; the sum for any
    # x and any weights.
    import tensorflow as tf

    tracings = getattr(function, "experimental_get_tracing_count", lambda: 0)
    traced = hasattr(function, "get_concrete_function") or hasattr(function, "structured_outputs")
    if not traced:
        not_yet("this is a plain Python function, no traced one. What makes a graph of it?")
    before = tracings()
    for x, w in (
        (INPUT, np.float32([[1], [1], [2]])),
        (INPUT * 3, np.float32([[1], [1], [2]])),
        (INPUT - 4, np.float32([[5], [0], [-2]])),
    ):
        value = returned(function, tf.constant(x), tf.constant(w))
        _total(tensor(value, "the result").numpy(), x, w)
    if tracings() - before > 1:
        not_yet("calls with the same shapes were traced more than once.")


def _total(value, x, w) -> None:
    product = x @ w
    if value.shape == product.shape and np.allclose(value, product):
        not_yet("it returns the product. Wanted is one number: the sum of all its entries.")
    value = number(value, "the result")
    if np.isclose(value, product.sum(), rtol=1e-4):
        return
    known = {
        "the mean of the entries": product.mean(),
        "the largest entry": product.max(),
        "the sum of x times the sum of the weights": x.sum() * w.sum(),
        "the sum of x, without the weights": x.sum(),
    }
    for name, wrong in known.items():
        if np.isclose(value, wrong, rtol=1e-4):
            not_yet(f"that is {name}, not the sum of all entries of the product.")
    not_yet(
        f"for {x.tolist()} times {w.tolist()} it returns {value:g}. "
        "Wanted is one number: the sum of all entries of the product."
    )


# Exercise 0.5: where the weights and the product are -> how many transfers.
MOVES = {
    "weights on GPU 0, product on GPU 0": 2,
    "weights on GPU 1, product on GPU 0": 3,
    "weights on GPU 0, product on the host": 1,
}


@check(
    "0.5",
    "only what an operation reads from another device crosses. Weights that stay "
    "beside the product do not move; lesson 05 measures what that saves.",
)
def check_00_weights(answer: dict) -> None:
    """Compare three numbers of transfers with those that TensorFlow made.

    Args:
        answer: where the weights and the product are, to the number of transfers.
    """
    # Conditions: three keys, a whole number for each, as `transfers` counts it.
    said = {key: whole(value, key) for key, value in table(answer, MOVES).items()}
    # What a miscount leaves out, or counts although it does not cross.
    causes = {
        ("weights on GPU 0, product on GPU 0", 3): "the weights are beside the product.",
        ("weights on GPU 0, product on GPU 0", 1): "does the result stay on GPU 0?",
        ("weights on GPU 1, product on GPU 0", 2): "from one GPU to another is a transfer, too.",
        ("weights on GPU 0, product on the host", 3): "x and the result are on the host already.",
        ("weights on GPU 0, product on the host", 2): "x and the result are on the host already.",
        ("weights on GPU 0, product on the host", 0): "from where does the host read the weights?",
    }
    for key, right in MOVES.items():
        if said[key] != right:
            else_ = f"run `transfers` with these devices; it does not count {said[key]}."
            not_yet(f"{key}: {said[key]}: {causes.get((key, said[key]), else_)}")


check_00_own = own(
    "0.6",
    "a program that asks for a device and one that uses it are two things; you have looked.",
)
