"""Claims of the classic texts that lesson 04 tries."""

import ast
import json
from pathlib import Path

import pytest

from tests.claims.ledger import claim
from utils.machine import plain_name
from utils.placement import Failure, ImaginedMachine, kernels_of, lists_gpu_kernels

KERNELS = Path(__file__).resolve().parents[2] / "data" / "kernels"

on_gpus = pytest.mark.skipif(
    not lists_gpu_kernels(), reason="this build of TensorFlow lists no kernels for GPUs"
)


@pytest.fixture
def tf(machine):
    import tensorflow

    return tensorflow


def _variable(tf, first):
    """Return a graph with a variable on the first GPU, and the variable."""
    with tf.Graph().as_default() as graph, tf.device("/GPU:0"):
        v = tf.compat.v1.get_variable("v", initializer=first)
    return graph, v


# Two strings joined on a real device that has no kernel for it, in every way there is.
ON_XLA = """
from utils.start import begin
begin(gpus=1, names=True, xla=True)
import tensorflow as tf
from utils.machine import plain_name
from utils.machine import reason
from utils.placement import placement_log
from utils.machine import session_config

def attempt(run):
    try:
        return run()
    except tf.errors.InvalidArgumentError as error:
        return reason(error)

def in_session(soft):
    with tf.Graph().as_default() as graph, tf.device("/device:XLA_CPU:0"):
        joined = tf.strings.join(["a", "b"], name="joined")
    config = session_config(log_placement=True, soft_placement=soft)
    with placement_log() as log, tf.compat.v1.Session(graph=graph, config=config) as session:
        value = session.run(joined)
    return value.decode(), plain_name(log.device_of("joined"))

def today(soft):
    tf.config.set_soft_device_placement(soft)
    with tf.device("/device:XLA_CPU:0"):
        joined = tf.strings.join(["a", "b"])
    return joined.numpy().decode(), plain_name(joined.device)

print({
    "default of a session": tf.compat.v1.ConfigProto().allow_soft_placement,
    "default today": tf.config.get_soft_device_placement(),
    "session, strict": attempt(lambda: in_session(False)),
    "session, soft": attempt(lambda: in_session(True)),
    "today, soft": attempt(lambda: today(True)),
    "today, strict": attempt(lambda: today(False)),
})
"""


@pytest.fixture(scope="module")
def joined():
    """What became of two strings joined on XLA_CPU."""
    return {}


@pytest.fixture
def on_xla(fresh, joined):
    if not joined:
        done = fresh(ON_XLA)
        assert done.returncode == 0, done.stderr
        joined.update(ast.literal_eval(done.stdout))
    return joined


@claim(
    "C20",
    "Not every operation has a GPU kernel; to force one there is an error.",
    verdict="changed",
    lesson="04",
    section="1 · Two errors that look alike",
    finding=(
        "It is an error with strict placement; TensorFlow 2 is soft by "
        "default and moves the operation without an error."
    ),
)
@on_gpus
def test_to_force_an_operation_without_a_kernel(tf, on_xla):
    for op in ("StringJoin", "DecodeJpeg"):
        assert not kernels_of(op).kernels("GPU")
        assert kernels_of(op).kernels("CPU")
    with tf.Graph().as_default() as graph, tf.device("/GPU:0"):
        tf.strings.join(["a", "b"], name="joined")
    error = ImaginedMachine(gpus=1).place(graph).error
    assert error.kind == Failure.NO_KERNEL
    # The same words from TensorFlow itself, on the device type that is there.
    sentence = error.message.replace("GPU", "XLA_CPU")
    assert on_xla["session, strict"] == sentence
    assert "Supported device types [CPU]" in on_xla["today, strict"]
    assert on_xla["today, soft"] == ("ab", "host"), "by default it is hidden"


@claim(
    "C21",
    "An int32 variable has no GPU kernel; its type comes from the first value 3.",
    verdict="true",
    lesson="04",
    section="6 · Ask a machine that is not there",
    finding="With the first value 3.0 it goes to the GPU, with 3 it cannot.",
)
@on_gpus
def test_a_variable_with_the_first_value_3(tf):
    one = ImaginedMachine(gpus=1)
    real, v = _variable(tf, 3.0)
    assert v.dtype == tf.float32
    assert plain_name(one.place(real).device_of("v")) == "GPU 0"
    whole, v = _variable(tf, 3)
    assert v.dtype == tf.int32
    assert one.place(whole).error.kind == Failure.NO_KERNEL
    for op in ("VarHandleOp", "VariableV2"):  # of both kinds
        assert "int32" not in kernels_of(op).dtypes("GPU")
        assert "int32" in kernels_of(op).dtypes("CPU")


@claim(
    "C22",
    "On a GPU a variable may be float16, float32 or float64 only.",
    verdict="false today",
    lesson="04",
    section="2 · A kernel for each device type and dtype",
    finding="int64, bool, complex64, bfloat16 and others may; int32 and string may not.",
)
@on_gpus
def test_variables_on_a_gpu_need_not_be_floats(tf):
    floats = {"float16", "float32", "float64"}
    for op in ("VarHandleOp", "VariableV2"):
        allowed = kernels_of(op).dtypes("GPU")
        assert allowed > floats
        assert {"int64", "bool", "complex64", "bfloat16"} <= allowed
        assert not {"int32", "string"} & allowed
    graph, _ = _variable(tf, tf.constant([1, 2], tf.int64).numpy())
    assert plain_name(ImaginedMachine(gpus=1).place(graph).device_of("v")) == "GPU 0"


@claim(
    "C23",
    "allow_soft_placement moves an operation without a GPU kernel to the CPU.",
    verdict="true",
    lesson="04",
    section="4 · Soft placement in a session",
    finding=(
        "It does; off in a ConfigProto, on by default since TensorFlow 2, also for a session "
        "without a configuration. A job or task that does not exist stays an error."
    ),
)
@on_gpus
def test_soft_placement_moves_it_to_the_cpu(tf, on_xla):
    graph, _ = _variable(tf, 3)
    one = ImaginedMachine(gpus=1)
    assert one.place(graph).error
    assert plain_name(one.place(graph, soft=True).device_of("v")) == "host"
    assert "no supported kernel" in on_xla["session, strict"]
    assert on_xla["session, soft"] == ("ab", "host")
    assert on_xla["default of a session"] is False
    assert on_xla["default today"] is True


@on_gpus
def test_a_missing_gpu_is_another_gpu_where_there_is_one(tf):
    with tf.Graph().as_default() as graph, tf.device("/GPU:7"):
        tf.matmul([[1.0]], [[2.0]], name="product")
    for gpus, place in ((2, "/device:GPU:0"), (0, "/device:CPU:0")):
        placed = ImaginedMachine(gpus=gpus).place(graph, soft=True)
        assert placed.device_of("product").endswith(place)


def test_soft_placement_does_not_invent_a_job(tf):
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph, tf.device("/job:ps"):
        x = tf.negative([1.0])
    config = v1.ConfigProto(allow_soft_placement=True)
    with (
        v1.Session(graph=graph, config=config) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="job:ps"),
    ):
        session.run(x)


SILENT = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"  # TensorFlow's default
import tensorflow as tf
with tf.device("/GPU:7"):
    moved = tf.matmul([[1.0]], [[2.0]], name="pinned_product")
print(moved.device)
"""


def test_no_message_names_the_gpu_that_is_missing(fresh):
    done = fresh(SILENT)
    assert done.stdout.strip().endswith("CPU:0")
    assert done.stderr, "TensorFlow does write messages at this level"
    assert "GPU:7" not in done.stderr and "pinned_product" not in done.stderr


SOFT_SESSION = """
import tensorflow as tf
v1 = tf.compat.v1
if OLD:
    v1.disable_v2_behavior()
graph = tf.Graph()
with graph.as_default(), tf.device("/GPU:7"):
    x = tf.negative([1.0])
for config in (None, v1.ConfigProto()):
    with v1.Session(graph=graph, config=config) as session:
        try:
            session.run(x)
            print("soft")
        except tf.errors.InvalidArgumentError:
            print("strict")
"""


@pytest.mark.parametrize(("old", "found"), [(False, ["soft", "strict"]), (True, ["strict"] * 2)])
def test_a_session_without_a_configuration(fresh, old, found):
    assert fresh(SOFT_SESSION.replace("OLD", str(old))).stdout.split() == found


@claim(
    "C24",
    "What has a GPU kernel differs between versions, so a forced placement is not portable.",
    verdict="true",
    lesson="04",
    section="7 · A program that runs anywhere",
    finding=(
        "Relu and Equal of bfloat16 have a GPU kernel in TensorFlow 2.21 and "
        "had none in 2.12, whose list is recorded."
    ),
)
@on_gpus
def test_the_list_of_kernels_has_changed(tf):
    recorded = json.loads((KERNELS / "tensorflow_2_12.json").read_text(encoding="utf-8"))
    assert recorded["origin"].startswith("recorded:")
    now = {op: kernels_of(op).dtypes("GPU") for op in ("Relu", "Equal", "MatMul")}
    then = {op: set(recorded["gpu"][op]) for op in now}
    assert {op: now[op] - then[op] for op in now} == {
        "Relu": {"bfloat16"},
        "Equal": {"bfloat16"},
        "MatMul": set(),
    }
    # And between machines: what is forced to GPU 0 needs a GPU 0.
    graph, _ = _variable(tf, 3.0)
    assert ImaginedMachine(gpus=1).place(graph).error is None
    assert ImaginedMachine(gpus=0).place(graph).error.kind == Failure.NO_DEVICE
    assert ImaginedMachine(gpus=0).place(graph, soft=True).error is None
