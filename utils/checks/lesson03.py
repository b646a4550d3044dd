"""Checks of the exercises of lesson 03."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import numpy as np

from utils.checks.findings import own
from utils.checks.normalising import array, choice, found, same, table, tensor, whole
from utils.checks.outcome import check, not_yet
from utils.checks.trying import returned
from utils.machine import current_machine, plain_name, session_config
from utils.placement import Placement, PlacementLog, placement_log


def _logged(graph, fetches):
    """Run the fetches once with the log on, variables initialised."""
    import tensorflow as tf

    first = [v.initializer for v in graph.get_collection("variables")]
    config = session_config(log_placement=True)
    with placement_log() as log:
        session = tf.compat.v1.Session(graph=graph, config=config)
        with session:
            session.run(first)
            value = session.run(fetches)
    return log, value


_WHY_PLACED = {
    "v": "it is pinned, and nothing overrules the pin of a variable",
    "update": "it writes to the variable, whose pin wins",
    "size": "an operation that looks at a tensor's form follows its input",
    "c": "a constant follows its consumers if they agree",
    "output": "no rule but its own pin applies",
}


@check(
    "3.1",
    "on a real machine a wrong guess here can be a GPU that idles or a tensor "
    "that travels. The log settles it.",
)
def check_03_placement(answer: dict) -> None:
    """Compare predicted devices with the placement log of exercise 3.1.

    Args:
        answer: name of an operation to ``"host"``, ``"GPU 0"``, ``"GPU 1"``.
    """
    import tensorflow as tf

    answer = table(answer, _WHY_PLACED)
    gpus = current_machine().gpus
    graph = tf.Graph()
    with graph.as_default():
        fetches = placed_graph(tf, gpus)
    log, _ = _logged(graph, fetches)
    for name, guess in answer.items():
        if choice(guess, ("host", "GPU 0", "GPU 1"), name) != plain_name(log.device_of(name)):
            not_yet(f"look at {name} again: {_WHY_PLACED[name]}.")


def placed_graph(tf: ModuleType, gpus: Sequence[str]) -> list:
    """Build the graph that exercise 3.1 prints; return what to fetch.

    Introduced in lesson 03's exercises.
    """
    with tf.device(gpus[1]):
        v = tf.compat.v1.get_variable("v", initializer=np.float32([1, 2]))
    with tf.device(gpus[0]):
        update = tf.raw_ops.AssignAddVariableOp(resource=v.handle, value=[1.0, 1.0], name="update")
        x = tf.compat.v1.random_normal([4, 3])
    size = tf.raw_ops.Size(input=x, name="size")
    c = tf.constant([3.0, 4.0], name="c")
    with tf.device(gpus[0]):
        output = tf.multiply(c, v.read_value(), name="output")
    return [update, size, output]


@check(
    "3.2",
    "with variables on the host every GPU reads the same weights: lesson 06 "
    "trains on several GPUs this way.",
)
def check_03_dynamic_placement(function: Callable) -> None:
    """Build two graphs under a placement function and read their logs.

    Args:
        function: takes an operation, returns a device name: variables on
            the host, products on GPU 1, the rest on GPU 0.
    """
    # Conditions: a device for every operation; by its type, whatever its name
    # is: variables on the host, products on GPU 1, the rest on GPU 0.
    import tensorflow as tf

    def answered(operation):
        device = function(operation)
        if device is None:
            not_yet(
                f"it returns nothing for an operation of type "
                f"{operation.type}: every operation needs a device."
            )
        if not isinstance(device, (str, tf.DeviceSpec)):
            not_yet(f"for {operation.type} it returns {found(device)}; expected is a device name.")
        return device

    v1 = tf.compat.v1
    for shape, names in {(4, 3): ("w", "product", "exp"), (2, 2): ("matmul", "b", "var")}.items():
        graph = tf.Graph()
        with graph.as_default(), v1.device(answered):
            weights = v1.get_variable(names[0], initializer=np.ones((shape[1], 1)))
            x = tf.constant(np.ones(shape), name="x")
            product = tf.matmul(x, weights, name=names[1])
            output = tf.exp(product, name=names[2])
        log, _ = _logged(graph, output)
        _as_wanted(*(plain_name(log.device_of(name)) for name in names))


def _as_wanted(variable: str, product: str, rest: str) -> None:
    if variable != "host":
        not_yet(
            f"the variable went to {variable}, not to the host. Print operation.type "
            "for a variable's operation, and compare what your function asks for."
        )
    if product != "GPU 1":
        not_yet(
            f"the product went to {product}, not to GPU 1. Print operation.type "
            "for tf.matmul, and compare what your function asks for."
        )
    if rest != "GPU 0":
        not_yet(f"the rest went to {rest}, not to GPU 0.")


@check(
    "3.3",
    "a scope places what is created inside it. In long programs the line "
    "that creates and the line that uses are far apart.",
)
def check_03_scope(build: Callable) -> None:
    """Build the mended graph and look where its product ran.

    Args:
        build: function of (x, weights, gpu) that returns x @ weights, then
            doubled, both on ``gpu``.
    """
    # Conditions: a tensor of the graph given; 2 * (x @ weights) for any
    # values; every operation that is created on the gpu given.
    import tensorflow as tf

    weights = np.float32([[1], [2], [4]])
    for factor, gpu in enumerate(current_machine().gpus[:2], start=1):
        x = factor * np.arange(6, dtype=np.float32).reshape(2, 3)
        graph = tf.Graph()
        with graph.as_default():
            given = tf.constant(x, name="x"), tf.constant(weights, name="weights")
            output = tensor(returned(build, *given, gpu), "what build returned")
        if output.graph is not graph:
            not_yet("what build returned is of another graph. Use x and weights as given.")
        log, value = _logged(graph, output)
        _doubled(value, x, weights)
        for row in log.rows:
            if row.op not in ("Const", "NoOp") and plain_name(row.device) != plain_name(gpu):
                not_yet(
                    f"asked for {plain_name(gpu)}, but {row.name} ({row.op}) ran on "
                    f"{plain_name(row.device)}. On which line is it created, and "
                    "is that line inside the scope of the gpu given?"
                )


def _doubled(value, x, weights) -> None:
    product = x @ weights
    value = array(value, "the result", product.shape)
    if np.allclose(value, 2 * product):
        return
    if np.allclose(value, product):
        not_yet("the numbers changed: the product is not doubled.")
    not_yet(
        f"the numbers changed: for x = {x.tolist()} and weights = {weights.tolist()} "
        f"the result is {value.tolist()}; wanted is 2 * (x @ weights)."
    )


@check(
    "3.4",
    "a network's log can have thousands of rows. Look at the count per device first.",
)
def check_03_count(count: Callable) -> None:
    """Compare the learner's counts with two logs.

    Args:
        count: function of a ``PlacementLog`` that returns a dict from a
            plain name to its number of rows.
    """
    # Conditions: a dict; plain names as keys; whole numbers, counted in the
    # log given; no device that is missing.
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    first, second = current_machine().gpus[:2]
    for devices in ([cpu, first, cpu], [second], [first, second, first, first], []):
        rows = [Placement(f"x{i}", "Neg", d) for i, d in enumerate(devices)]
        result = returned(count, PlacementLog(rows))
        if not isinstance(result, Mapping):
            not_yet(f"it returns {found(result)}; wanted is a dict.")
        names = [plain_name(device) for device in devices]
        right = {same(name): names.count(name) for name in set(names)}
        said = {same(key): whole(value, f"the count of {key}") for key, value in result.items()}
        said = {key: number for key, number in said.items() if number}
        if said == right:
            continue
        if set(map(str, result)) == set(devices):
            not_yet("the keys are full device names: use plain_name(row.device).")
        if set(said) != set(right):
            not_yet(
                f"for rows on {names or 'no device'} the keys are "
                f"{sorted(map(str, result))}. Count devices that occur."
            )
        not_yet(f"for rows on {names} the counts are {dict(result)}.")


# Conditions: matrix products to the devices in turn, from the first; nothing else counts;
# the rest to the host; any number and order of devices; each call counts anew.
@check(
    "3.5",
    "heavy operations share the GPUs, and small ones do not decide who is next. "
    "Which values cross between devices is the next question.",
)
def check_03_deal(deal: Callable) -> None:
    """Build graphs under the learner's placement function and read the log.

    Args:
        deal: takes a list of devices, returns a placement function.
    """
    machine = current_machine()
    first, second = machine.gpus[:2]
    for devices in ([first, second], [second, first], [second], [first, second]):
        function = returned(deal, list(devices))
        if not callable(function):
            not_yet(f"deal returned {found(function)}; expected is a placement function.")
        _dealt(function, devices, machine.host)


def _dealt(function, devices: list, host: str) -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, v1.device(function):
        x = v1.random_normal([2, 2], name="x")
        one = tf.matmul(x, x, name="one")
        between = tf.nn.softmax(one, name="between")
        two = tf.matmul(between, x, name="two")
        three = tf.matmul(two, x, name="three")
        total = tf.add(one, three, name="total")
    log, _ = _logged(graph, total)
    names = [plain_name(device) for device in devices]
    products = ("one", "two", "three")
    went = [plain_name(log.device_of(name)) for name in products]
    if went != [names[i % len(names)] for i in range(len(products))]:
        not_yet(
            f"for the devices {', '.join(names)} three matrix products went to "
            f"{', '.join(went)}; expected is in turn, from the first, whatever stands between."
        )
    for name in ("between", "total"):
        if (where := plain_name(log.device_of(name))) != plain_name(host):
            not_yet(f"{name} is no matrix product and went to {where}.")


_RULES = {"all on GPU 1": None, "second on the host": "second", "third on the host": "third"}


# Conditions: the three numbers, each as a run counts them.
@check(
    "3.6",
    "one operation on the wrong device costs a way there and a way back; at the end of "
    "a chain it costs none, because the result goes to the host anyway.",
)
def check_03_compare(answer: dict) -> None:
    """Compare counted transfers with a run of the chain of exercise 3.6.

    Args:
        answer: name of a rule to its number of transfers.
    """
    answer = table(answer, _RULES)
    answer = {key: whole(said, key) for key, said in answer.items()}
    for key, on_host in _RULES.items():
        right = _transfers(on_host)
        if answer[key] == right:
            continue
        if answer[key] == right - 2:
            not_yet(f"look at {key} again: the fed value and the fetched result cross, too.")
        not_yet(f"look at {key} again: a run does not count {answer[key]}. Did you run it?")


def _transfers(on_host: str | None) -> int:
    import tensorflow as tf

    from utils.runs import trace

    v1, machine = tf.compat.v1, current_machine()

    def place(operation):
        return machine.host if operation.name == on_host else machine.gpus[1]

    with tf.Graph().as_default() as graph, v1.device(place):
        x = v1.placeholder(tf.float32, [4, 4], name="x")
        first = tf.matmul(x, x, name="first")
        second = tf.nn.softmax(first, name="second")
        third = tf.matmul(second, second, name="third")
    return len(trace(graph, third, {x: np.eye(4, dtype=np.float32)}).transfers)


check_03_own = own(
    "3.7",
    "most programs leave placement to TensorFlow, and few people look. You have looked.",
)
