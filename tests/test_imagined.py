"""Imagined placement against the log of the real placer, on graphs made at random.

A graph is a list of steps; a step adds one thing and chooses, by its numbers, among what is
there. `agreement(5000, ImaginedMachine(cpus=4, gpus=0), number=1)` compares other graphs.
"""

import ast
import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from utils.machine import reason, session_config
from utils.placement import Failure, ImaginedMachine, lists_gpu_kernels, placement_log
from utils.placement.imagined.words import PlacementError, Rule

ROOT = Path(__file__).resolve().parent.parent
GPUS = 3  # of the virtual machine: CPU:0 to CPU:3


# --- graphs ------------------------------------------------------------------------------------


def _by_kind(op):
    return "/CPU:0" if op.type in ("VarHandleOp", "VariableV2") else "/CPU:2"


def _by_name(op):
    return f"/CPU:{sum(op.name.encode()) % (GPUS + 1)}"


HERE = ("/CPU:0", "/CPU:1", "/CPU:2", "/CPU:3")
PARTS = ("/CPU:*", "/job:localhost", "/task:0", "/job:localhost/replica:0/task:0/CPU:2")
FUNCTIONS = (_by_kind, _by_name)
ELSEWHERE = ("/CPU:7", "/GPU:0", "/GPU:*", "/job:ps", "/job:ps/CPU:1", "/replica:0/GPU:1")
WITH_XLA = ("/CPU:0", "/CPU:1", "/device:XLA_CPU:0", "/device:XLA_CPU:*")


@dataclass(frozen=True)
class Step:
    kind: str
    left: int
    right: int
    scopes: tuple
    after: int | None


class Builder:
    """What a graph holds so far, by what the next step may take."""

    def __init__(self, tf):
        self.tf, self.v1 = tf, tf.compat.v1
        self.tensors = {tf.float32: [], tf.int32: [], tf.string: [], "small": []}
        self.variables, self.references, self.queues = [], [], []

    def add(self, step):
        operations = self.operations()
        wait = operations and step.after is not None
        before = [operations[step.after % len(operations)]] if wait else []
        with ExitStack() as stack:
            stack.enter_context(self.v1.control_dependencies(before))
            for scope in step.scopes:
                stack.enter_context(self.v1.device(scope))
            self.keep(KINDS[step.kind](self, step))

    def keep(self, made):
        """Later steps may take tensors that were made, references apart from values."""
        for tensor in made if isinstance(made, list) else [made]:
            if isinstance(tensor, self.tf.Tensor):
                square = tensor.shape.is_compatible_with((2, 2))
                value = tensor.dtype == tensor.dtype.base_dtype
                pool = self.tensors[tensor.dtype if square else "small"] if value else None
                (self.references if pool is None else pool).append(tensor)

    def operations(self):
        return self.v1.get_default_graph().get_operations()

    def take(self, number, dtype="float32"):
        there = self.tensors[self.tf.as_dtype(dtype)]
        if not there:
            there.append(self.tf.constant(SQUARES[dtype]))
        return there[number % len(there)]

    def any(self, number):
        there = [tensor for tensors in self.tensors.values() for tensor in tensors]
        return there[number % len(there)] if there else self.take(number)

    def variable(self, step, dtype="float32"):
        self.variables.append(self.v1.Variable(self.first(step, dtype), use_resource=True))

    def reference(self, step, dtype="float32"):
        first = self.first(step, dtype)
        return self.v1.Variable(first, use_resource=False, validate_shape=False).op.outputs[0]

    def first(self, step, dtype):
        """A first value of a variable: made with it, or there before it."""
        value = self.take(step.right, dtype)
        there = step.left % 2 and value.op.type == "Const"  # others get a tf.cond around them
        return (lambda: value) if there else SQUARES[dtype]

    def change(self, step, how):
        """Assign to a variable of either kind, or to what an assignment to one returned."""
        targets = [*self.variables, *self.references]
        if not targets:
            return self.variable(step)
        target = targets[step.left % len(targets)]
        value = self.take(step.right, target.dtype.base_dtype.name)
        if target in self.references:
            return getattr(self.v1, how)(target, value)
        return getattr(target, how)(value, read_value=bool(step.right % 2))

    def read(self, step):
        targets = [*self.variables, *self.references]
        if not targets:
            return self.reference(step)
        target = targets[step.left % len(targets)]
        if target not in self.references:
            return target.read_value()
        if step.right % 3:
            return self.tf.identity(target)
        return self.tf.raw_ops.RefIdentity(input=target)

    def direct(self, step):
        """Read from or write to a variable without its methods, which drop pins at times."""
        if not self.variables:
            return self.variable(step)
        variable, raw = self.variables[step.left % len(self.variables)], self.tf.raw_ops
        if step.right % 2:
            return raw.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)
        value = self.take(step.right, variable.dtype.name)
        return raw.AssignVariableOp(resource=variable.handle, value=value)

    def queue(self, step):
        if not self.queues or step.right % 3 == 0:
            self.queues.append(self.v1.FIFOQueue(4, [self.tf.float32]))
        queue = self.queues[step.left % len(self.queues)]
        return queue.dequeue() if step.right % 2 else queue.enqueue(self.take(step.right))

    def beside(self, step):
        with self.v1.colocate_with(self.any(step.left).op):
            return self.tf.negative(self.take(step.right))

    def colocate(self, step):
        """Tie operations that are there. Only a private call does that, and only so pins clash."""
        operations = self.operations() or [self.take(0).op]
        node, other = (operations[i % len(operations)] for i in (step.left, step.right))
        old = node.node_def.attr["_class"].list.s
        names = self.v1.AttrValue.ListValue(s=[*old, b"loc:@" + other.name.encode()])
        node._set_attr("_class", self.v1.AttrValue(list=names))


SQUARES = {
    "float32": [[1.0, 2.0], [3.0, 4.0]],
    "int32": [[1, 2], [3, 4]],
    "string": [["a", "b"], ["c", "d"]],
}
KINDS = {
    "constant": lambda b, s: b.tf.constant(SQUARES["float32"]),
    "whole": lambda b, s: b.tf.constant(SQUARES["int32"]),
    "text": lambda b, s: b.tf.constant(SQUARES["string"]),
    "placeholder": lambda b, s: b.v1.placeholder(b.tf.float32),
    "random": lambda b, s: b.tf.random.uniform((2, 2)),
    "variable": lambda b, s: b.variable(s),
    "whole variable": lambda b, s: b.variable(s, "int32"),
    "text variable": lambda b, s: b.variable(s, "string"),
    "reference": lambda b, s: b.reference(s),
    "whole reference": lambda b, s: b.reference(s, "int32"),
    "add": lambda b, s: b.take(s.left) + b.take(s.right),
    "whole product": lambda b, s: b.take(s.left, "int32") * b.take(s.right, "int32"),
    "product": lambda b, s: b.take(s.left) @ b.take(s.right),
    "sum": lambda b, s: b.tf.add_n([b.take(s.left), b.take(s.right), b.take(s.left + 1)]),
    "join": lambda b, s: b.tf.strings.join([b.take(s.left, "string"), b.take(s.right, "string")]),
    "write": lambda b, s: b.tf.strings.as_string(b.take(s.left)),
    "two": lambda b, s: b.tf.raw_ops.IdentityN(input=[b.take(s.left), b.any(s.right)]),
    "cast": lambda b, s: b.tf.cast(b.take(s.left), b.tf.int32),
    "identity": lambda b, s: b.tf.identity(b.any(s.left)),
    "shape": lambda b, s: b.tf.raw_ops.Shape(input=b.any(s.left)),
    "size": lambda b, s: b.tf.raw_ops.Size(input=b.any(s.left)),
    "rank": lambda b, s: b.tf.raw_ops.Rank(input=b.any(s.left)),
    "assign": lambda b, s: b.change(s, "assign"),
    "read": lambda b, s: b.read(s),
    "direct": lambda b, s: b.direct(s),
    "queue": lambda b, s: b.queue(s),
    "wait": lambda b, s: b.tf.no_op(),
    "colocate": lambda b, s: b.colocate(s),
    "beside": lambda b, s: b.beside(s),
}


# Drawn more often: what ties operations together is where the rules meet.
OFTEN = ("variable", "reference", "assign", "read", "direct", "colocate")
TYPED = ("text", "text variable", "join", "whole product", "identity")  # dtypes decide there
CLASHING = ("constant", "add", "variable", "reference", "direct", *("colocate",) * 3)


def graphs(here):
    """Return programs whose pins exist, or may not, or often clash."""

    def steps(pins, kinds, free):
        scopes = [()] * free * len(pins) + [(pin,) for pin in pins] * 2 + list(pairwise(pins))
        number = st.integers(0, 30)
        step = st.builds(
            Step,
            kind=st.sampled_from(kinds),
            left=number,
            right=number,
            scopes=st.sampled_from(scopes),
            after=st.none() | number,
        )
        return st.lists(step, min_size=3, max_size=12)

    usual = [*KINDS, *OFTEN * 2, *TYPED * 2]
    return st.one_of(
        steps(here + PARTS + FUNCTIONS, usual, free=4),
        steps(here + ELSEWHERE, usual, free=4),
        steps(here, CLASHING, free=1),
    )


def build(tf, program):
    with tf.Graph().as_default() as graph:
        builder = Builder(tf)
        for step in program:
            builder.add(step)
    return graph


# --- the truth ---------------------------------------------------------------------------------


def really(tf, graph, soft):
    """Return {operation: device} from the placement log, or the error of the session."""
    with graph.as_default():
        nothing = tf.no_op(name="fetched")
    config = session_config(gpus=GPUS, log_placement=True, soft_placement=soft)
    with placement_log() as log, tf.compat.v1.Session(graph=graph, config=config) as session:
        try:
            session.run(nothing)
        except tf.errors.InvalidArgumentError as error:
            return error
    return {row.name: row.device for row in log.rows}


# What TensorFlow says, and which failure that is. One sentence fits two of them.
SAYS = {
    "but available devices are": {Failure.NO_DEVICE},
    "required incompatible device": {Failure.NO_DEVICE, Failure.NO_KERNEL},
    "no supported kernel for": {Failure.NO_KERNEL},
    "no device type supports both": {Failure.NO_KERNEL},
    "Cannot merge devices with incompatible": {Failure.DISAGREE},
    "incompatible resource devices": {Failure.DISAGREE},
}


def compare(tf, machine, graph, soft):
    """Assert that imagined and real placement of a graph are the same; return the imagined."""
    real = really(tf, graph, soft)
    imagined = machine.place(graph, soft)
    if isinstance(real, Exception):
        assert imagined.error is not None, f"imagined no error; TensorFlow: {reason(real)}"
        sentence = re.sub(r"\{\{colocation_node (.*?)\}\}", r"\1", reason(real))
        assert imagined.error.message == sentence
        kinds = [kinds for part, kinds in SAYS.items() if part in sentence]
        assert len(kinds) == 1 and imagined.error.kind in kinds[0]
        named = re.search(r"assign a device for operation (\S+):", sentence)
        assert imagined.error.operation == (named[1] if named else real.op.name)
    else:
        assert imagined.error is None, f"TensorFlow placed it; imagined: {imagined}"
        assert [(row.name, row.device) for row in imagined.rows] == [
            (row.name, real[row.name]) for row in imagined.rows
        ]
    return imagined


def agreement(examples, machine, here=HERE, number=None):
    """Compare many graphs; return how many ended in which way.

    With a number other graphs are made than without.
    """
    import tensorflow as tf

    seen = Counter()

    @settings(
        max_examples=examples,
        derandomize=number is None,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(program=graphs(here), soft=st.booleans())
    def same(program, soft):
        imagined = compare(tf, machine, build(tf, program), soft)
        end = imagined.error.kind if imagined.error else "placed"
        seen["soft" if soft else "strict", str(end)] += 1
        seen.update(row.rule for row in imagined.rows)

    (same if number is None else seed(number)(same))()
    return seen


def ends(seen):
    """Return only how graphs ended."""
    return {end: count for end, count in seen.items() if isinstance(end, tuple)}


def test_agrees_with_the_placement_log_on_500_graphs(machine):
    seen = agreement(500, ImaginedMachine(cpus=GPUS + 1, gpus=0))
    assert sum(ends(seen).values()) == 500
    # The graphs are of all kinds, or agreement would mean little.
    for how in ("soft", "strict"):
        assert seen[how, "placed"] >= 50 and seen[how, Failure.NO_DEVICE] >= 5
    assert seen["strict", Failure.DISAGREE] >= 5
    rules = set(Rule) - {Rule.KERNEL, Rule.NO_KERNEL}  # these need a second device type
    assert not [rule for rule in rules if not seen[rule]]


ON_XLA = """
from utils.start import begin
begin(gpus={gpus}, names=True)
from tests.test_imagined import WITH_XLA, ImaginedMachine, agreement
seen = agreement(250, ImaginedMachine(cpus={gpus} + 1, gpus=0, others={{"XLA_CPU": 1}}), WITH_XLA)
print({{" ".join(end) if isinstance(end, tuple) else str(end): n for end, n in seen.items()}})
"""


def test_agrees_where_kernels_are_missing_on_an_xla_device(fresh):
    here = {"PYTHONPATH": str(ROOT), "TF_XLA_FLAGS": "--tf_xla_enable_xla_devices"}
    result = fresh(ON_XLA.format(gpus=GPUS), **here)
    assert result.returncode == 0, result.stderr[-4000:]
    seen = ast.literal_eval(result.stdout.splitlines()[-1])
    assert sum(count for end, count in seen.items() if end.startswith(("soft ", "strict "))) == 250
    assert seen["strict no kernel"] >= 3 and seen[str(Rule.NO_KERNEL)] >= 3


# --- the seed examples, and the rules one by one -----------------------------------------------

HOST, GPU0, GPU1 = "CPU:0", "GPU:0", "GPU:1"
on_gpus = pytest.mark.skipif(
    not lists_gpu_kernels(), reason="this build of TensorFlow lists no kernels for GPUs"
)


def graph_of(make):
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        make(tf, tf.compat.v1)
    return graph


def short(placement):
    return {row.name: row.device.rpartition("device:")[2] for row in placement.rows}


def _sum(tf, v1):
    tf.add(tf.constant([1.0, 2.0, 3.0], name="a"), tf.constant([4.0, 5.0, 6.0], name="b"), name="c")


def _sum_pinned(tf, v1):
    with tf.device("/cpu:0"):
        a, b = tf.constant([1.0], name="a"), tf.constant([2.0], name="b")
    with tf.device("/gpu:1"):
        tf.add(a, b, name="c")


def _two_products(tf, v1):
    with tf.device("/cpu:0"):
        x = tf.reshape(tf.range(1.0, 13.0), (4, 3))
        b = tf.constant([[1.0], [1.0], [2.0]], name="b")
        parts = tf.split(x, 2)
    products = []
    for i, part in enumerate(parts):
        with tf.device(f"/gpu:{i}"):
            products.append(tf.matmul(part, b, name=f"product{i}"))
    with tf.device("/cpu:0"):
        tf.concat(products, 0, name="result")


def _variables_on_the_host(tf, v1):
    kinds = ("VarHandleOp", "VariableV2")
    with v1.device(lambda op: "/cpu:0" if op.type in kinds else "/gpu:0"):
        a, b = v1.Variable(3.0, name="a"), tf.constant(4.0, name="b")
        tf.multiply(a, b, name="c")


def _text(tf, v1):
    tf.strings.join(["a", "b"], name="s")


def _whole(tf, v1):
    """Its kernel for GPUs works in host memory, and is the GPU's all the same."""
    tf.add(v1.placeholder(tf.int32), 1, name="n")


@on_gpus
@pytest.mark.parametrize(
    ("make", "gpus", "devices"),
    [
        (_sum, 0, {"a": HOST, "b": HOST, "c": HOST}),
        (_sum, 4, {"a": GPU0, "b": GPU0, "c": GPU0}),
        (_sum_pinned, 2, {"a": HOST, "b": HOST, "c": GPU1}),
        (_two_products, 2, {"b": HOST, "product0": GPU0, "product1": GPU1, "result": HOST}),
        (_variables_on_the_host, 1, {"a": HOST, "b": GPU0, "c": GPU0, "a/Assign": HOST}),
        (_text, 2, {"s": HOST}),
        (_whole, 2, {"n": GPU0}),
    ],
)
def test_seed_examples(make, gpus, devices):
    placed = short(ImaginedMachine(gpus=gpus).place(graph_of(make)))
    assert {name: placed[name] for name in devices} == devices


def _variable_on_gpu(first, resource):
    def make(tf, v1):
        with tf.device("/gpu:0"):
            v1.Variable(first, name="v", use_resource=resource)

    return make


@on_gpus
@pytest.mark.parametrize("resource", [True, False])
def test_a_whole_variable_on_the_gpu_fails_and_soft_placement_moves_it(resource):
    two = ImaginedMachine(gpus=2)
    real = two.place(graph_of(_variable_on_gpu(3.0, resource)))
    assert short(real)["v"] == short(real)["v/Assign"] == GPU0
    whole = graph_of(_variable_on_gpu(3, resource))
    strict = two.place(whole)
    assert strict.rows == () and strict.error.kind == Failure.NO_KERNEL
    assert strict.error.message == (
        f"Cannot assign a device for operation {strict.error.operation}: Could not satisfy "
        "explicit device specification '/device:GPU:0' because no supported kernel for GPU "
        "devices is available."
    )
    soft = two.place(whole, soft=True)
    assert short(soft)["v"] == short(soft)["v/Assign"] == HOST
    assert soft.rule_of("v") == Rule.NO_KERNEL and soft.rule_of("v/Assign") == Rule.VARIABLE


@on_gpus
def test_a_gpu_that_is_not_there():
    def make(tf, v1):
        with tf.device("/gpu:2"):
            tf.negative(v1.placeholder(tf.float32), name="n")

    strict = ImaginedMachine(gpus=2).place(graph_of(make))
    assert (strict.error.kind, strict.error.operation) == (Failure.NO_DEVICE, "n")
    assert "was explicitly assigned to /device:GPU:2 but available devices are [" in str(strict)
    assert "device:GPU:1 ]. Make sure" in strict.error.message
    soft = ImaginedMachine(gpus=2).place(graph_of(make), soft=True)
    assert (short(soft)["n"], soft.rule_of("n")) == (GPU0, Rule.NO_DEVICE)
    assert short(ImaginedMachine(gpus=0).place(graph_of(make), soft=True))["n"] == HOST
    assert short(ImaginedMachine(gpus=3).place(graph_of(make)))["n"] == "GPU:2"


def on(device, make, *given, **named):
    import tensorflow as tf

    with tf.device(device):
        return make(*given, **named)


def tie(v1, tensor, name):
    """Ask for a tensor's operation to be where the one called `name` is."""
    names = v1.AttrValue.ListValue(s=[b"loc:@" + name.encode()])
    tensor.op._set_attr("_class", v1.AttrValue(list=names))


def _handle(tf, device=None):
    return on(device, tf.raw_ops.VarHandleOp, dtype=tf.float32, shape=[], name="variable")


def _pinned(tf, v1):
    on("/CPU:2", tf.negative, v1.placeholder(tf.float32), name="it")


def _partly(tf, v1):
    on("/CPU:*", tf.negative, v1.placeholder(tf.float32), name="it")


def _overruled(tf, v1):
    handle = _handle(tf, "/CPU:2")
    on("/CPU:1", tf.raw_ops.ReadVariableOp, resource=handle, dtype=tf.float32, name="it")


def _pinned_by_a_reader(tf, v1):
    handle = on(None, tf.raw_ops.VarHandleOp, dtype=tf.float32, shape=[], name="it")
    on("/CPU:3", tf.raw_ops.ReadVariableOp, resource=handle, dtype=tf.float32)


def _colocated(tf, v1):
    on("/CPU:2", v1.placeholder, tf.float32, name="there")
    tie(v1, tf.negative(v1.placeholder(tf.float32), name="it"), "there")


def _shape(tf, v1):
    there = on("/CPU:2", tf.negative, v1.placeholder(tf.float32))
    tf.raw_ops.Shape(input=there, name="it")


def _identity_alone(tf, v1):
    read = tf.raw_ops.ReadVariableOp(resource=_handle(tf, "/CPU:2"), dtype=tf.float32)
    tf.negative(tf.identity(read, name="it"))


def _identity_with_two_consumers(tf, v1):
    read = tf.raw_ops.ReadVariableOp(resource=_handle(tf, "/CPU:2"), dtype=tf.float32)
    identity = tf.identity(read, name="it")
    tf.add(identity, identity)


def _constant_of_one(tf, v1):
    on("/CPU:2", tf.negative, tf.constant(1.0, name="it"))


def _constant_of_two(tf, v1):
    constant = tf.constant(1.0, name="it")
    on("/CPU:2", tf.negative, constant)
    on("/CPU:3", tf.negative, constant)


def _no_device(tf, v1):
    on("/GPU:1", tf.negative, v1.placeholder(tf.float32), name="it")


def _pins_disagree(tf, v1):
    on("/CPU:2", v1.placeholder, tf.float32, name="there")
    tie(v1, on("/CPU:1", v1.placeholder, tf.float32, name="it"), "there")


@pytest.mark.parametrize(
    ("make", "device", "rule"),
    [
        (_pinned, "CPU:2", Rule.PINNED),
        (_partly, HOST, Rule.PARTLY_PINNED),
        (_overruled, "CPU:2", Rule.VARIABLE),
        (_pinned_by_a_reader, "CPU:3", Rule.USERS),
        (_colocated, "CPU:2", Rule.GROUP),
        (_shape, "CPU:2", Rule.INPUT),
        (_identity_alone, "CPU:2", Rule.INPUT),
        (_identity_with_two_consumers, HOST, Rule.DEFAULT),
        (_constant_of_one, "CPU:2", Rule.CONSUMER),
        (_constant_of_two, HOST, Rule.DEFAULT),
        (_no_device, HOST, Rule.NO_DEVICE),
        (_pins_disagree, HOST, Rule.DISAGREE),
    ],
)
def test_names_the_rule_that_decides(machine, make, device, rule):
    import tensorflow as tf

    moved = rule in (Rule.NO_DEVICE, Rule.DISAGREE)
    graph = graph_of(make)
    imagined = compare(tf, ImaginedMachine(cpus=GPUS + 1, gpus=0), graph, soft=moved)
    assert (short(imagined)["it"], imagined.rule_of("it")) == (device, rule)
    if moved:
        strict = compare(tf, ImaginedMachine(cpus=GPUS + 1, gpus=0), graph, soft=False)
        assert strict.error.operation == "it"


@on_gpus
def test_prints_a_table_with_roles():
    assert str(ImaginedMachine().place(graph_of(_sum_pinned))).splitlines() == [
        "name  operation  device  rule",
        "a     Const      host    pinned",
        "b     Const      host    pinned",
        "c     AddV2      GPU 1   pinned",
    ]


@on_gpus
def test_imagining_sets_up_no_device(fresh):
    code = """
        import tensorflow as tf
        from utils.placement import ImaginedMachine
        with tf.Graph().as_default() as graph:
            tf.constant(1.0) + tf.compat.v1.Variable(2.0)
        ImaginedMachine(gpus=2).place(graph)
        cpu = tf.config.list_physical_devices("CPU")[0]
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)  # too late if one was set up
        print(len(tf.config.list_logical_devices("CPU")))
    """
    assert fresh(code).stdout == "2\n"


@on_gpus
def test_a_failed_placement_raises_when_asked_for_a_device():
    failed = ImaginedMachine(gpus=1).place(graph_of(_sum_pinned))
    with pytest.raises(PlacementError, match="/device:GPU:1") as caught:
        failed.device_of("a")
    assert (caught.value.operation, caught.value.kind) == ("c", Failure.NO_DEVICE)
    assert str(failed).startswith("Cannot be placed (no such device, at operation c).\n")


@on_gpus
def test_an_operation_that_is_not_there_and_the_rule_of_one_without_a_gpu_kernel():
    assert ImaginedMachine().place(graph_of(_text)).rule_of("s") == Rule.KERNEL
    with pytest.raises(KeyError, match="no operation 'd' in the graph; it has: a, b, c"):
        ImaginedMachine().place(graph_of(_sum)).rule_of("d")


def _condition(tf, v1):
    tf.cond(v1.placeholder(tf.bool), lambda: tf.constant(1.0), lambda: tf.constant(2.0))


def _list(tf, v1):
    tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=1, element_dtype=tf.float32)


@on_gpus
@pytest.mark.parametrize(("make", "part"), [(_condition, "calls a function"), (_list, "variants")])
def test_refuses_what_is_not_imagined(make, part):
    with pytest.raises(ValueError, match=part):
        ImaginedMachine().place(graph_of(make))


@pytest.mark.parametrize(
    ("ask", "error", "part"),
    [
        (lambda: ImaginedMachine(gpus=-1), ValueError, "gpus=-1: give a whole number from 0"),
        (lambda: ImaginedMachine(cpus=0), ValueError, "cpus=0: give a whole number from 1"),
        (lambda: ImaginedMachine(gpus=2.0), TypeError, "gpus=2.0"),
        (lambda: ImaginedMachine(gpus=True), TypeError, "gpus=True"),
        (lambda: ImaginedMachine(others={"GPU": 1}), ValueError, "by its own argument"),
        (lambda: ImaginedMachine().place("graph"), TypeError, "a str: give a tf.Graph"),
    ],
)
def test_impossible_arguments_are_one_clear_error(ask, error, part):
    with pytest.raises(error) as caught:
        ask()
    assert part in str(caught.value)


def test_a_build_without_gpu_kernels_imagines_no_gpu(monkeypatch):
    monkeypatch.setattr("utils.placement.imagined.machine.lists_gpu_kernels", lambda: False)
    with pytest.raises(RuntimeError, match="lists no kernels for GPUs"):
        ImaginedMachine(gpus=1)
    assert short(ImaginedMachine(gpus=0).place(graph_of(_sum)))["c"] == HOST
