"""Claims of the classic texts that lesson 03 tries."""

import re
from pathlib import Path

import pytest

from tests.claims.ledger import claim
from tools.claims import origin
from utils.machine import plain_name, session_config
from utils.placement import parse, placement_log

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "data" / "logs"


@pytest.fixture
def tf(machine):
    import tensorflow

    return tensorflow


def _logged(tf, graph, *steps):
    """Run each step (a function that returns fetches) in one session."""
    logs = []
    with graph.as_default(), placement_log():
        session = tf.compat.v1.Session(config=session_config(log_placement=True))
    with graph.as_default(), session:
        for step in steps:
            fetches = step()
            with placement_log() as log:
                session.run(fetches)
            logs.append(log)
    return logs


def _add_one(tf, graph, gpu):
    with tf.device(gpu):
        return tf.raw_ops.AssignAddVariableOp(
            resource=graph.get_tensor_by_name("v:0"), value=1.0, name="add_one"
        )


@claim(
    "C12",
    "An operation that an earlier run has placed stays where it was.",
    verdict="changed",
    lesson="03",
    section='5 · "What was placed stays": tried',
    finding=(
        "In a session operations with a state stay, as a variable does, with or without a value; "
        "a constant is placed anew when the graph grows."
    ),
)
def test_only_a_variable_stays_where_it_was(tf, machine):
    gpu = machine.gpus[1]

    graph = tf.Graph()

    def constant():
        return tf.constant([1.0, 2.0], name="c")

    def consumer():
        with tf.device(gpu):
            return tf.negative(graph.get_tensor_by_name("c:0"))

    before, after = _logged(tf, graph, constant, consumer)
    assert plain_name(before.device_of("c")) == "host"
    assert plain_name(after.device_of("c")) == "GPU 1", "the constant has moved"

    graph = tf.Graph()

    def variable():
        return tf.compat.v1.get_variable("v", initializer=3.0).initializer

    before, after = _logged(tf, graph, variable, lambda: _add_one(tf, graph, gpu))
    assert plain_name(before.device_of("v")) == "host"
    assert plain_name(after.device_of("v")) == "host", "the variable has not"


def test_without_an_earlier_run_the_variable_would_have_moved(tf, machine):
    graph = tf.Graph()

    def at_once():
        first = tf.compat.v1.get_variable("v", initializer=3.0).initializer
        _add_one(tf, graph, machine.gpus[1])
        return first

    (log,) = _logged(tf, graph, at_once)
    assert plain_name(log.device_of("v")) == "GPU 1"


def test_a_variable_without_a_value_stays_too(tf, machine):
    graph = tf.Graph()

    def without_value():
        v = tf.compat.v1.get_variable("v", initializer=3.0)
        return tf.compat.v1.is_variable_initialized(v)

    def pulled():
        _add_one(tf, graph, machine.gpus[1])
        return graph.get_tensor_by_name("v/IsInitialized/VarIsInitializedOp:0")

    before, after = _logged(tf, graph, without_value, pulled)
    assert plain_name(before.device_of("v")) == "host"
    assert plain_name(after.device_of("v")) == plain_name(after.device_of("add_one")) == "host"


@claim(
    "C13",
    "An operation that is pinned goes where it is pinned.",
    verdict="changed",
    lesson="03",
    section="2 · Pins, and what overrules them",
    finding=(
        "It does, unless it writes to or reads from a variable that is "
        "elsewhere: the variable overrules its users' pins. No error says so; with the placement "
        "log on, TensorFlow writes 'Ignoring device specification' to its messages."
    ),
)
def test_a_variable_overrules_the_pins_of_its_users(tf, machine):
    graph = tf.Graph()

    def program():
        with tf.device(machine.gpus[0]):
            v = tf.compat.v1.get_variable("v", initializer=3.0)
        _add_one(tf, graph, machine.gpus[1])
        with tf.device(machine.gpus[1]):
            pinned = tf.negative(tf.constant([1.0]), name="pinned")
        return [v.initializer, pinned]

    (log,) = _logged(tf, graph, program)
    assert plain_name(log.device_of("pinned")) == "GPU 1"
    asked = graph.get_operation_by_name("add_one").device
    assert plain_name(asked) == "GPU 1"
    assert plain_name(log.device_of("add_one")) == "GPU 0"


OVERRULED = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"  # TensorFlow's default
import tensorflow as tf
v1 = tf.compat.v1
graph = tf.Graph()
with graph.as_default():
    with tf.device("/CPU:0"):
        v = v1.get_variable("v", initializer=3.0)
    with tf.device("/CPU:1"):
        add_one = tf.raw_ops.AssignAddVariableOp(resource=v.handle, value=1.0)
config = v1.ConfigProto(device_count={"CPU": 2}, log_device_placement=LOGGED)
with v1.Session(graph=graph, config=config) as session:
    session.run(v.initializer)
    session.run(add_one)
"""


@pytest.mark.parametrize("logged", [True, False])
def test_an_overruled_pin_is_reported_only_beside_the_log(fresh, logged):
    done = fresh(OVERRULED.replace("LOGGED", str(logged)))
    assert done.returncode == 0, done.stderr
    assert ("Ignoring device specification" in done.stderr) is logged


@claim(
    "C14",
    "What nobody pinned goes to GPU 0, or to the CPU without a GPU.",
    verdict="changed",
    lesson="03",
    section="4 · The rest goes to the default device",
    finding=(
        "So goes what no other rule places: operations without inputs, such as constants, follow "
        "their consumer, Shape, Size and Rank their input."
    ),
    data="logs/one_gpu.txt",
)
def test_the_default_device_is_the_last_rule(tf, machine):
    graph = tf.Graph()

    def program():
        with tf.device(machine.gpus[0]):
            x = tf.compat.v1.random_normal([4, 3], name="x")
        shape = tf.raw_ops.Shape(input=x, name="shape")
        rest = tf.negative(x, name="rest")
        c = tf.constant([1.0], name="c")
        with tf.device(machine.gpus[1]):
            return [shape, rest, tf.negative(c, name="consumer")]

    (log,) = _logged(tf, graph, program)
    where = {n: plain_name(log.device_of(n)) for n in ("shape", "rest", "c")}
    assert where == {"shape": "GPU 0", "rest": "host", "c": "GPU 1"}

    rows, _ = parse((LOGS / "one_gpu.txt").read_text())
    assert {row.name for row in rows} == {"a", "b", "add"}
    assert {row.device[-5:] for row in rows} == {"GPU:0"}


def test_a_placeholder_follows_its_consumer_like_a_constant(tf, machine):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        with tf.device(machine.gpus[1]):
            consumer = tf.negative(x)
    config = session_config(log_placement=True)
    with placement_log() as log, tf.compat.v1.Session(graph=graph, config=config) as session:
        session.run(consumer, {x: [1.0, 2.0]})
    assert plain_name(log.device_of("x")) == "GPU 1"


@claim(
    "C15",
    "With four GPUs, everything still goes to GPU 0.",
    verdict="true",
    lesson="03",
    section="4 · The rest goes to the default device",
    finding="In the log of a machine with four GPUs three of them get nothing.",
    data="logs/four_gpus.txt",
)
def test_four_gpus_and_one_at_work():
    rows, other = parse((LOGS / "four_gpus.txt").read_text())
    assert {f"device:GPU:{n}" for n in range(4)} <= {
        line.split(" -> ")[0].split("/")[-1] for line in other.splitlines()
    }, "the log shows four GPUs"
    assert {row.name for row in rows} == {"a", "b", "add"}
    assert {row.device[-5:] for row in rows} == {"GPU:0"}


def test_constructed_logs_are_called_constructed():
    assert {origin(path) for path in LOGS.glob("*.txt")} == {"constructed"}
    pages = [*ROOT.glob("notebooks/0[0-4]*.ipynb"), ROOT / "TEACHING.md"]
    assert len(pages) == 6
    for page in pages:
        said = re.findall(r"recorded (?:logs?|machines?)\b", page.read_text(encoding="utf-8"))
        assert not said, f"{page.name}: {said}"


@claim(
    "C16",
    "log_device_placement prints the device of every operation.",
    verdict="true",
    lesson="03",
    section="1 · Read the log",
    finding=(
        "One row per operation, nothing for a second identical run; the text "
        "goes past Python, so a notebook needs help to show it."
    ),
)
def test_every_operation_is_logged_once(tf, capsys):
    graph = tf.Graph()
    with graph.as_default():
        a = tf.constant([1.0, 2.0, 3.0], name="a")
        total = tf.add(a, tf.constant([1.0, 2.0, 3.0], name="b"), name="add")
    first, second = _logged(tf, graph, lambda: total, lambda: total)
    rows = [(row.name, plain_name(row.device)) for row in first.rows]
    assert sorted(rows) == [("a", "host"), ("add", "host"), ("b", "host")]
    assert second.rows == []
    assert "add" not in capsys.readouterr().out, "Python never saw it"


def _under(tf, function):
    graph = tf.Graph()

    def program():
        with tf.compat.v1.device(function):
            a = tf.compat.v1.get_variable("a", initializer=3.0)
            tf.multiply(a, tf.constant(4.0, name="b"), name="c")
        return a.initializer

    (log,) = _logged(tf, graph, program)
    return {name: plain_name(log.device_of(name)) for name in "abc"}


@claim(
    "C17",
    "A placement function can choose the device of each operation.",
    verdict="changed",
    lesson="03",
    section="6 · Place by a rule of your own",
    finding="tf.device refuses functions; tf.compat.v1.device takes them.",
)
def test_only_the_old_scope_takes_functions(tf, machine):
    def function(operation):
        is_variable = operation.type == "VarHandleOp"
        return machine.host if is_variable else machine.gpus[0]

    with (
        pytest.raises(RuntimeError, match="does not support functions"),
        tf.device(function),
    ):
        pass
    assert _under(tf, function) == {"a": "host", "b": "GPU 0", "c": "GPU 0"}


@claim(
    "C18",
    'Such a function may test operation.type == "Variable".',
    verdict="false today",
    lesson="03",
    section="6 · Place by a rule of your own",
    finding=(
        "Since TensorFlow 2 a variable's type is VarHandleOp by default (VariableV2 with resource "
        "variables off). The function runs, misses it, and no message says so."
    ),
)
def test_the_books_function_matches_nothing(tf, machine):
    seen = []

    def function(operation):
        seen.append(operation.type)
        is_variable = operation.type == "Variable"
        return machine.host if is_variable else machine.gpus[0]

    assert set(_under(tf, function).values()) == {"GPU 0"}
    assert "Variable" not in seen
    assert "VarHandleOp" in seen


BOOKS = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"  # TensorFlow's default
import tensorflow as tf
v1 = tf.compat.v1
place = lambda operation: "/CPU:0" if operation.type == "Variable" else "/CPU:1"
with tf.Graph().as_default() as graph, v1.device(place):
    v = v1.get_variable("missed", initializer=3.0)
config = v1.ConfigProto(device_count={"CPU": 2})
with v1.Session(graph=graph, config=config) as session:
    session.run(v.initializer)
print(v.handle.op.device)
"""


def test_no_message_names_the_variable_that_was_missed(fresh):
    done = fresh(BOOKS)
    assert "CPU:1" in done.stdout, done.stderr
    assert "missed" not in done.stderr


def test_which_operations_have_which_type(tf):
    with tf.Graph().as_default():
        old = tf.compat.v1.get_variable("old", initializer=3.0, use_resource=False)
        raw = tf.raw_ops.Variable(shape=[], dtype=tf.float32)
    assert (old.op.type, raw.op.type) == ("VariableV2", "Variable")


def test_what_the_device_of_a_result_tells(tf, machine):
    @tf.function
    def doubled(x):
        with tf.device(machine.gpus[0]):
            return x * 2.0

    x = tf.constant(1.0)
    for caller in (machine.host, machine.gpus[1]):
        with tf.device(caller):
            result = doubled(x)
        assert plain_name(result.device) == plain_name(caller)
        assert plain_name(result.backing_device) == "GPU 0"


@claim(
    "C19",
    "Placing operations round robin over the GPUs takes a few lines.",
    verdict="true",
    lesson="03",
    section="6 · Place by a rule of your own",
    finding=(
        "A function with a counter does it; neighbours land on different "
        "GPUs, so every step crosses."
    ),
)
def test_round_robin(tf, machine):
    count = iter(range(100))
    gpus = machine.gpus[:2]
    graph = tf.Graph()

    def program():
        with tf.compat.v1.device(lambda op: gpus[next(count) % 2]):
            x = tf.compat.v1.random_uniform([2, 2], name="x")
            first = tf.matmul(x, x, name="first")
            second = tf.nn.softmax(first, name="second")
            return tf.matmul(second, second, name="third")

    (log,) = _logged(tf, graph, program)
    where = [plain_name(log.device_of(n)) for n in ("first", "second", "third")]
    assert where[0] == where[2] != where[1]
    assert {where[0], where[1]} == {"GPU 0", "GPU 1"}
