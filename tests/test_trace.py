"""What a traced run did, on small graphs with known answers and on random ones."""

import random
from collections import Counter, namedtuple

import numpy as np
import pytest
import tensorflow as tf

from utils.machine import plain_name, session_config
from utils.placement import placement_log
from utils.runs import trace
from utils.runs.trace import Interval, _read

v1 = tf.compat.v1
FULL = "/job:localhost/replica:0/task:0/device:"
INPUT = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]])
WEIGHTS = np.float32([[1], [1], [2]])
RESULT = [[9], [21], [33], [45]]


def _crossings(transfers) -> Counter:
    """How often what crossed from where to where: (source, sender, receiver, bytes)."""
    return Counter(
        (t.source, plain_name(t.sender), plain_name(t.receiver), t.bytes) for t in transfers
    )


def _towers(machine, towers: int, make=None):
    """The 4×3 example: rows split over GPUs, one product each, merged on the host."""
    make = make or (lambda name, value: v1.get_variable(name, initializer=value))
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.host):
            x, weights = make("input_data", INPUT), make("b", WEIGHTS)
            parts = tf.split(x, towers) if towers > 1 else [x]
        products = []
        for gpu, part in zip(machine.gpus, parts, strict=False):
            with tf.device(gpu):
                products.append(part @ weights)
        with tf.device(machine.host):
            output = tf.concat(products, axis=0, name="output")
    return graph, output


# --- the example of the course ----------------------------------------------------------------


def test_two_towers(machine):
    run = trace(*_towers(machine, 2))
    assert run.value.tolist() == RESULT
    assert len(run.transfers) == 6
    assert run.bytes_moved == 88
    assert run.control_transfers == ()
    assert _crossings(run.transfers) == {
        ("split", "host", "GPU 0", 24): 1,
        ("split", "host", "GPU 1", 24): 1,
        ("matmul/ReadVariableOp", "host", "GPU 0", 12): 1,
        ("matmul_1/ReadVariableOp", "host", "GPU 1", 12): 1,
        ("matmul", "GPU 0", "host", 8): 1,
        ("matmul_1", "GPU 1", "host", 8): 1,
    }
    products = {n.name: plain_name(n.device) for n in run.nodes if n.op == "MatMul"}
    assert products == {"matmul": "GPU 0", "matmul_1": "GPU 1"}
    merge = next(n for n in run.nodes if n.name == "output")
    assert merge.op == "ConcatV2"
    assert merge.inputs[:2] == ("matmul", "matmul_1")


def test_constants_are_folded(machine):
    run = trace(*_towers(machine, 2, make=lambda name, value: tf.constant(value, name=name)))
    assert run.value.tolist() == RESULT
    assert {(n.op, plain_name(n.device)) for n in run.nodes} == {
        ("Const", "host"),
        ("Result", "host"),
    }
    assert {plain_name(row.device) for row in run.intervals} == {"host"}
    assert run.transfers == run.control_transfers == ()
    assert run.bytes_moved == 0


def test_runs_are_alike(machine):
    graph, output = _towers(machine, 4)
    first, second = trace(graph, output), trace(graph, output)
    assert (len(first.transfers), first.bytes_moved) == (12, 112)
    assert first.nodes == second.nodes
    assert first.transfers == second.transfers
    assert first.allocated == second.allocated
    devices = [plain_name(n.device) for n in first.nodes]
    assert devices == sorted(devices, key=("host", "GPU 0", "GPU 1", "GPU 2", "GPU 3").index)


def test_intervals_belong_to_the_nodes(machine):
    run = trace(*_towers(machine, 2))
    nodes = {n.name: n for n in run.nodes}
    assert {row.name for row in run.intervals} == {n.name for n in run.nodes if n.op != "Result"}
    for row in run.intervals:
        assert (row.op, row.device) == (nodes[row.name].op, nodes[row.name].device)
        assert 0 <= row.start <= row.end
    assert run.intervals[0].start == 0
    starts = [row.start for row in run.intervals]
    assert starts == sorted(starts)


# --- what is counted ----------------------------------------------------------------------


def _one_crossing(machine, dtype, value):
    """Trace a value that goes from GPU 0 to GPU 1 and comes back to the host."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.gpus[0]):
            x = v1.placeholder(dtype, [None, 3], name="x")
            there = tf.reverse(x, [1], name="there")
        with tf.device(machine.gpus[1]):
            output = tf.concat([there, there], 0, name="output")
    return trace(graph, output, {x: value})


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        *((tf.float16, 2), (tf.bfloat16, 2), (tf.float32, 4), (tf.float64, 8)),
        *((tf.int8, 1), (tf.uint16, 2), (tf.int32, 4), (tf.int64, 8), (tf.bool, 1)),
        *((tf.complex64, 8), (tf.complex128, 16)),
        (tf.string, 24),  # the tensor's own bytes; the text is elsewhere
    ],
)
def test_bytes_of_every_type(machine, dtype, size):
    value = np.full([2, 3], "x" * 1000) if dtype == tf.string else np.ones([2, 3])
    run = _one_crossing(machine, dtype, value.astype(dtype.as_numpy_dtype))
    assert run.value.shape == (4, 3)
    assert _crossings(run.transfers) == {
        ("x", "host", "GPU 0", 6 * size): 1,
        ("there", "GPU 0", "GPU 1", 6 * size): 1,
        ("output", "GPU 1", "host", 12 * size): 1,
    }


def test_empty_tensors_cross_too(machine):
    run = _one_crossing(machine, tf.float32, np.ones([0, 3]))
    assert [t.bytes for t in run.transfers] == [0, 0, 0]
    assert run.control_transfers == ()


def test_variants_count_what_they_themselves_hold(machine):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [3, 2], name="x")
        with tf.device(machine.gpus[0]):
            rows = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[2], name="rows")
        with tf.device(machine.gpus[1]):
            output = tf.raw_ops.TensorListStack(
                input_handle=rows, element_shape=[2], element_dtype=tf.float32
            )
    run = trace(graph, output, {x: np.ones([3, 2])})
    assert [t.bytes > 0 for t in run.transfers if t.source == "rows"] == [True]


def test_signals_are_counted_apart(machine):
    graph = tf.Graph()
    with graph.as_default():
        fed = v1.placeholder(tf.float32, [4], name="fed")
        go = v1.placeholder(tf.float32, [], name="go")
        with tf.device(machine.gpus[0]):
            first = tf.negative(fed, name="first")
        with tf.device(machine.gpus[1]), tf.control_dependencies([first, go]):
            second = tf.exp(v1.get_variable("v", initializer=np.zeros([4], np.float32)))
    run = trace(graph, [first, second], {fed: np.ones(4), go: 1})
    assert _crossings(run.control_transfers) == {
        ("first", "GPU 0", "GPU 1", 0): 1,
        ("go", "host", "GPU 1", 0): 1,
    }
    assert all(t.control for t in run.control_transfers)
    assert not any(t.control for t in run.transfers)
    assert {t.source for t in run.transfers} == {"fed", "first", "Exp"}
    assert run.bytes_moved == 3 * 16
    waiting = next(n for n in run.nodes if n.name == "Exp/ReadVariableOp")
    assert set(waiting.controls) == {"first", "go"}


# --- what can be traced ---------------------------------------------------------------------


def test_initialises_variables_of_every_kind(machine):
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.gpus[0]):
            by_reference = v1.Variable([1.0, 2.0, 3.0], use_resource=False, name="by_reference")
            resource = v1.get_variable("resource", initializer=np.float32([4, 5, 6]))
        with tf.device(machine.gpus[1]):
            added = tf.add(by_reference, resource, name="added")
        with tf.device(machine.gpus[2]), tf.control_dependencies([added]):
            updated = v1.assign_add(by_reference, [1.0, 1.0, 1.0], name="updated")
            doubled = tf.multiply(updated, 2.0, name="doubled")
    run = trace(graph, [added, doubled])
    assert [value.tolist() for value in run.value] == [[5, 7, 9], [4, 6, 8]]
    moved = _crossings(run.transfers)
    assert moved["updated", "GPU 0", "GPU 2", 12] == 1  # by reference, and where the variable is
    assert moved["added", "GPU 1", "host", 12] == 1


def test_value_has_the_structure_of_the_fetches(machine):
    pair = namedtuple("pair", "left right")
    graph, output = _towers(machine, 2)
    fetches = {"all": [output, (output, "split:1")], "pair": pair(output.op, "split/split_dim")}
    run = trace(graph, fetches)
    assert run.value["all"][0].tolist() == RESULT
    assert run.value["all"][1][1].tolist() == INPUT[2:].tolist()
    assert run.value["pair"] == pair(None, None)
    results = {n.name: n.inputs for n in run.nodes if n.op == "Result"}
    assert results == {"output (result)": ("output",), "split:1 (result)": ("split",)}


def test_an_operation_or_nothing_as_fetches(machine):
    graph, output = _towers(machine, 2)
    run = trace(graph, output.op)
    assert (run.value, len(run.transfers)) == (None, 6)
    run = trace(graph, [])
    assert (run.value, run.nodes, run.intervals, run.transfers) == ([], (), (), ())


def test_fed_in_the_middle(machine):
    graph, output = _towers(machine, 2)
    run = trace(graph, output, {"split:1": np.zeros([2, 3])})
    assert run.value.tolist() == [[9], [21], [0], [0]]
    assert ("split:1", "host", "GPU 1", 24) in _crossings(run.transfers)
    names = [n.name for n in run.nodes]
    assert sorted(names) == sorted(set(names))  # a name is one node


def test_graph_of_a_function(machine):
    @tf.function
    def double(x):
        with tf.device(machine.gpus[1]):
            return x + x

    function = double.get_concrete_function(tf.TensorSpec([2], tf.float32))
    run = trace(function.graph, function.outputs, {"x:0": [1, 2]})
    assert run.value[0].tolist() == [2, 4]
    assert [plain_name(n.device) for n in run.nodes if n.op == "AddV2"] == ["GPU 1"]
    with pytest.raises(TypeError, match=r"graph is a ConcreteFunction: give the tf.Graph"):
        trace(function, function.outputs)


def test_the_graph_stays_as_it_was(machine):
    graph, output = _towers(machine, 2)
    graph.finalize()
    before = graph.as_graph_def()
    assert trace(graph, output).value.tolist() == RESULT
    assert graph.as_graph_def() == before
    assert graph.finalized


# --- branches and loops ---------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["functional", "classic"])
def control_flow(request):
    (v1.enable_control_flow_v2 if request.param else v1.disable_control_flow_v2)()
    yield
    v1.enable_control_flow_v2()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_branch_not_taken_moves_nothing(machine, control_flow, sign):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [3], name="x")
        with tf.device(machine.gpus[0]):
            y = tf.multiply(x, 2.0)

        def positive():
            with tf.device(machine.gpus[1]):
                return tf.tile(y, [5]) + 1.0

        def negative():
            with tf.device(machine.gpus[2]):
                return tf.tile(y, [7]) + 1.0

        with tf.device(machine.host):
            output = tf.cond(tf.reduce_sum(x) > 0, positive, negative)
    run = trace(graph, output, {x: [sign] * 3})
    taken, other, size = ("GPU 1", "GPU 2", 60) if sign > 0 else ("GPU 2", "GPU 1", 84)
    assert run.value.tolist() == [2 * sign + 1] * (size // 4)
    routes = Counter((plain_name(t.sender), plain_name(t.receiver), t.bytes) for t in run.transfers)
    assert routes["GPU 0", taken, 12] == 1
    assert routes[taken, "host", size] == 1
    assert not [t for t in run.transfers if plain_name(t.sender) == other]
    assert not [t for t in run.transfers if plain_name(t.receiver) == other and t.bytes > 1]


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_loop_moves_its_tensors_each_time(machine, control_flow, times):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [3], name="x")

        def body(i, a):
            with tf.device(machine.gpus[0]):
                a = tf.multiply(a, 2.0, name="double")
            with tf.device(machine.gpus[1]):
                a = tf.add(a, 1.0, name="more")
            return i + 1, a

        with tf.device(machine.host):
            output = tf.while_loop(lambda i, a: i < times, body, [tf.constant(0), x])[1]
    run = trace(graph, output, {x: [1, 2, 3]})
    expected = np.arange(1, 4)
    for _ in range(times):
        expected = 2 * expected + 1
    assert run.value.tolist() == expected.tolist()
    routes = Counter(
        (plain_name(t.sender), plain_name(t.receiver)) for t in run.transfers if t.bytes == 12
    )
    assert routes == Counter(
        {("host", "GPU 0"): times, ("GPU 0", "GPU 1"): times, ("GPU 1", "host"): times}
    )
    assert (
        sum(row.op == "AddV2" and plain_name(row.device) == "GPU 1" for row in run.intervals)
        == times
    )


# --- random graphs ----------------------------------------------------------------------------


def _random_graph(machine, seed):
    """A graph of up to 16 operations on random devices, what to fetch, and what to feed."""
    pick = random.Random(seed)
    places = [machine.host, *machine.gpus]
    graph, feed = tf.Graph(), {}
    with graph.as_default():
        pool = []
        for i in range(pick.randint(2, 4)):
            with tf.device(pick.choice(places)):
                if pick.random() < 0.5:
                    x = v1.placeholder(tf.float32, [4, 4], name=f"fed_{i}")
                    feed[x] = np.full([4, 4], i + 1.0)
                else:
                    x = v1.get_variable(f"v_{i}", initializer=np.ones([4, 4], np.float32))
                    x = x.read_value()
            pool.append(x)
        for _ in range(pick.randint(4, 12)):
            first = [pick.choice(pool)] if pick.random() < 0.3 else []
            with tf.device(pick.choice(places)), tf.control_dependencies(first):
                a, b = pick.choice(pool), pick.choice(pool)
                pool.append(
                    pick.choice(
                        [
                            lambda a, b: a + b,
                            lambda a, b: a @ b / 8.0,
                            lambda a, b: tf.concat(tf.split(a, 2)[::-1], 0),
                            lambda a, b: tf.cast(tf.cast(a, tf.float64) + 1.0, tf.float32) * b,
                            lambda a, b: tf.where(a > b, a, b),
                        ]
                    )(a, b)
                )
    return graph, [*pick.sample(pool, 2), pool[-1]], feed


def _expected_transfers(graph, fetches, feed, where):
    """From the graph and the placement log alone: one transfer per tensor and other device."""
    host = FULL + "CPU:0"
    fed = {tensor.op for tensor in feed}
    needed, todo = set(), [tensor.op for tensor in fetches]
    while todo:
        op = todo.pop()
        if op not in needed:
            needed.add(op)
            todo += [] if op in fed else [*(x.op for x in op.inputs), *op.control_inputs]

    def home(op):
        return host if op in fed else where[op.name]

    data, signals = {(x, home(x.op), host) for x in fetches}, set()
    for op in needed - fed:
        data |= {(x, home(x.op), home(op)) for x in op.inputs}
        signals |= {(before, home(before), home(op)) for before in op.control_inputs}
    bytes_of = {x: x.dtype.size * x.shape.num_elements() for x, _, _ in data}
    return (
        Counter((x.op.name, a, b, bytes_of[x]) for x, a, b in data if a != b),
        Counter((before.name, a, b, 0) for before, a, b in signals if a != b),
    )


def _listed(transfers):
    return Counter((t.source, t.sender, t.receiver, t.bytes) for t in transfers)


@pytest.mark.parametrize("seed", range(30))
def test_random_graph(machine, seed):
    graph, fetches, feed = _random_graph(machine, seed)
    for optimised in (True, False):
        config = session_config(log_placement=True)
        if not optimised:  # then nothing is folded, renamed or left out
            config.graph_options.rewrite_options.disable_meta_optimizer = True
            config.graph_options.optimizer_options.opt_level = -1
        with placement_log() as log:
            run = trace(graph, fetches, feed, config)
        where = {row.name: row.device for row in log.rows}
        nodes = {node.name: node for node in run.nodes}
        assert len(nodes) == len(run.nodes)
        for node in run.nodes:
            if node.op != "Placeholder":  # what is fed comes from the host
                assert node.device == where.get(node.name, node.device)
        assert all(t.sender != t.receiver for t in run.transfers + run.control_transfers)
        data = {(t.source, t.sender, t.receiver) for t in run.transfers}
        signals = {(t.source, t.sender, t.receiver) for t in run.control_transfers}
        for node in run.nodes:
            for kind, sources in ((data, node.inputs), (signals, node.controls)):
                homes = {source: nodes[source].device for source in sources}
                needed = {(s, home, node.device) for s, home in homes.items()}
                assert {edge for edge in needed if edge[1] != edge[2]} <= kind
        if not optimised:
            expected = _expected_transfers(graph, fetches, feed, where)
            assert (_listed(run.transfers), _listed(run.control_transfers)) == expected


# --- records of a machine with real GPUs --------------------------------------------------------


def _record(*, kernels=()):
    """What TensorFlow records for `y = x + x` on GPU:0, fed and fetched on the host."""
    record = v1.RunMetadata()
    cpu, gpu = FULL + "CPU:0", FULL + "GPU:0"

    def part(device, *nodes):
        graph = record.partition_graphs.add()
        stats = record.step_stats.dev_stats.add(device=device)
        for name, op, inputs, key, start, items in nodes:
            node = graph.node.add(name=name, op=op, device=device, input=inputs)
            if key:
                sender, receiver = (cpu, gpu) if key == "in" else (gpu, cpu)
                node.attr["tensor_name"].s = key.encode()
                node.attr["send_device"].s = sender.encode()
                node.attr["recv_device"].s = receiver.encode()
            if items:
                ran = stats.node_stats.add(
                    node_name=name,
                    all_start_micros=start,
                    op_start_rel_micros=1,
                    op_end_rel_micros=3,
                )
                ran.memory.add(allocator_name="any", total_bytes=100)
                tensor = ran.output.add().tensor_description
                tensor.dtype = tf.float32.as_datatype_enum
                tensor.shape.dim.add(size=items)

    part(
        cpu,
        ("_arg_x_0_0", "_Arg", [], None, 100, 5),
        ("x/_0", "_HostSend", ["_arg_x_0_0"], "in", 0, 0),
        ("y/_3", "_HostRecv", [], "out", 0, 0),
        ("_retval_y_0_0", "_Retval", ["y/_3"], None, 190, 0),
    )
    part(
        gpu,
        ("x/_1", "_Recv", [], "in", 0, 0),
        ("y", "AddV2", ["x/_1", "x/_1"], None, 120, 5),
        ("z", "Neg", ["y"], None, 130, 5),
        ("y/_2", "_Send", ["y"], "out", 0, 0),
    )
    for device, name, start, length in kernels:
        stats = record.step_stats.dev_stats.add(device=device)
        stats.node_stats.add(node_name=name, all_start_micros=start, op_end_rel_micros=length)
    return _read(tf, "value", record)


def test_transfers_through_host_memory():
    run = _record()
    assert [(t.source, t.sender, t.receiver, t.bytes) for t in run.transfers] == [
        ("x", FULL + "CPU:0", FULL + "GPU:0", 20),
        ("y", FULL + "GPU:0", FULL + "CPU:0", 20),
    ]
    assert [(n.name, n.op, n.inputs) for n in run.nodes] == [
        ("x", "Placeholder", ()),
        ("y (result)", "Result", ("y",)),
        ("y", "AddV2", ("x", "x")),
        ("z", "Neg", ("y",)),
    ]


def test_kernels_of_a_real_gpu_give_the_times():
    # The executor only says when it queued them; the tracer adds rows per stream and for all.
    run = _record(
        kernels=[
            ("/device:GPU:0/stream:7", "y:AddV2", 150, 40),
            ("/device:GPU:0/stream:all", "y:AddV2", 150, 40),
            ("/device:GPU:0/stream:all", "y:AddV2", 195, 5),
            ("/device:GPU:0/stream:all", "elsewhere:MatMul", 100, 5),
            ("/device:GPU:0/memcpy", "x:edge", 110, 5),
        ]
    )
    gpu = FULL + "GPU:0"
    assert run.intervals == (
        Interval("z", "Neg", gpu, 0.0, 2e-6),  # no kernel of its own: as queued
        Interval("y", "AddV2", gpu, 19e-6, 59e-6),
        Interval("y", "AddV2", gpu, 64e-6, 69e-6),
    )
    assert run.allocated == {FULL + "CPU:0": 100, gpu: 200}


def test_devices_in_their_order():
    record = v1.RunMetadata()
    for number in (10, 2, 1):
        part = record.partition_graphs.add()
        part.node.add(name=f"n{number}", op="NoOp", device=f"{FULL}GPU:{number}")
    run = _read(tf, None, record)
    assert [node.name for node in run.nodes] == ["n1", "n2", "n10"]
