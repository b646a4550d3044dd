"""What one run of a graph did: values, intervals, transfers, memory.

TensorFlow records it itself: ``RunOptions(FULL_TRACE)`` gives start and end
of every operation, ``output_partition_graphs`` the part of the graph that
each device got, with the ``_Send`` and ``_Recv`` pairs at the borders.
"""

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.machine import session_config

if TYPE_CHECKING:
    import tensorflow as tf

# Added by TensorFlow around the graph; they are no work of the program.
_SENDS, _RECVS = {"_Send", "_HostSend"}, {"_Recv", "_HostRecv"}
_FRAME = _SENDS | _RECVS
# How a fed value and a fetched one look inside the devices' parts.
_OUTSIDE = {"_Arg": "Placeholder", "_Retval": "Result"}


@dataclass(frozen=True)
class Interval:
    """When an operation ran on a device: start and end in seconds.

    Both count from the first start in the run. In a loop an operation has
    one interval each time; on a real GPU one per kernel that it started.
    """

    name: str
    op: str
    device: str
    start: float
    end: float


@dataclass(frozen=True)
class Node:
    """An operation that a device got to run, and where its inputs come from.

    ``inputs`` and ``controls`` are names of nodes (data and control edges).
    """

    name: str
    op: str
    device: str
    inputs: tuple[str, ...]
    controls: tuple[str, ...]


@dataclass(frozen=True)
class Transfer:
    """A tensor that crossed from one device to another.

    A control transfer carries no data: it only says "done". In a loop there
    is one transfer each time round; from a branch not taken there is none.
    ``bytes`` of strings, variants and resources are those of the tensor
    itself, without what its elements point to.
    """

    source: str
    sender: str
    receiver: str
    bytes: int
    control: bool


@dataclass(frozen=True)
class Allocation:
    """Memory that an operation took (``bytes`` > 0) or gave back (< 0).

    ``time`` is in seconds from the first one in the run.
    """

    device: str
    time: float
    bytes: int


@dataclass(frozen=True)
class Trace:
    """What one traced run did.

    Attributes:
        value: what the session returned for the fetches.
        nodes: operations that were given to the devices, after TensorFlow's
            optimiser. What was fed is a ``Placeholder`` on the host.
        intervals: when each of them ran.
        transfers: data that crossed a device border.
        control_transfers: signals without data that did.
        allocated: bytes that the operations of the step allocated, per
            device (their sum, not the peak).
        allocations: each of them, and when it was given back, in order.
            Without variables, feeds, constants and received values; what
            outlives the run, such as a fetched value, is not given back.

    Introduced in lesson 00; its parts in lesson 05.
    """

    value: object
    nodes: tuple[Node, ...]
    intervals: tuple[Interval, ...]
    transfers: tuple[Transfer, ...]
    control_transfers: tuple[Transfer, ...]
    allocated: dict[str, int]
    allocations: tuple[Allocation, ...] = ()

    @property
    def bytes_moved(self) -> int:
        """Bytes of all data that crossed a device border."""
        return sum(transfer.bytes for transfer in self.transfers)


def trace(
    graph: "tf.Graph",
    fetches: object,
    feed: dict | None = None,
    options: "tf.compat.v1.ConfigProto | None" = None,
) -> Trace:
    """Run a graph once, recorded, and return what TensorFlow did.

    Opens a session, runs the initialisers of the graph's variables
    unrecorded, then ``fetches`` once. The graph is not changed.

    Args:
        graph: a ``tf.Graph``. A function's graph works if the function uses
            no variables: theirs live outside it.
        fetches: what ``Session.run`` takes, of that graph.
        feed: values for placeholders, as in ``feed_dict``. Those of a
            function's graph go by name: ``{"x:0": value}``.
        options: a session configuration; default ``session_config()``.

    Returns:
        A ``Trace``.

    Raises:
        TypeError: ``graph`` is not a ``tf.Graph``.
        What ``Session.run`` raises.

    Introduced in lesson 00.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    if not isinstance(graph, tf.Graph):
        raise TypeError(
            f"graph is a {type(graph).__name__}: give the tf.Graph that the "
            "fetches belong to. For a tf.function that is "
            "function.get_concrete_function(...).graph."
        )
    variables = graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
    record = v1.RunMetadata()
    how = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    config = session_config() if options is None else options
    with v1.Session(graph=graph, config=config) as session:
        session.run([variable.initializer for variable in variables])
        value = session.run(fetches, feed, options=how, run_metadata=record)
    return _read(tf, value, record)


def _read(tf, value, record) -> Trace:
    parts = sorted(
        (node for part in record.partition_graphs for node in part.node),
        key=lambda node: (len(node.device), node.device),  # CPU:2, then CPU:10
    )
    devices = {node.device for node in parts}
    ran, kernels = [], []
    for row in record.step_stats.dev_stats:
        if row.device in devices:
            ran += [(row.device, node) for node in row.node_stats]
        elif row.device.endswith("/stream:all"):  # added for a real GPU
            kernels += row.node_stats
    program = _program_nodes(parts)
    moved = _transfers(parts, _output_bytes(tf, ran))
    allocated = defaultdict(int)
    for device, node in ran:
        allocated[device] += sum(m.total_bytes for m in node.memory)
    return Trace(
        value=value,
        nodes=program,
        intervals=_intervals(ran, kernels, {n.name: n for n in program}),
        transfers=tuple(t for t in moved if not t.control),
        control_transfers=tuple(t for t in moved if t.control),
        allocated=dict(allocated),
        allocations=_allocations(ran),
    )


def _allocations(ran) -> tuple[Allocation, ...]:
    records = [
        (record.alloc_micros, device, record.alloc_bytes)
        for device, node in ran
        for memory in node.memory
        for record in memory.allocation_records
    ]
    # Taking comes before giving back in a node's records; within one
    # microsecond only a stable sort keeps it so.
    records.sort(key=lambda record: record[0])
    zero = records[0][0] if records else 0
    return tuple(Allocation(device, (time - zero) / 1e6, size) for time, device, size in records)


def _signal(node) -> bool:
    """Tell whether a node only carries a control edge over a border.

    TensorFlow sends an empty constant ("x/ctrl/_7") and receives it into an
    Identity whose result nobody uses ("x/_8").
    """
    return node.op == "Const" and bool(re.search(r"/ctrl/_\d+$", node.name))


def _name(node) -> str:
    """Return a node's name in the program.

    A fed value "x" reaches the devices as a node "_arg_x_0_0", a fetched
    one leaves them as "_retval_y_0_0": here "x" and "y (result)". Output 1
    of a node z, "_retval_z_1_0", is here "z:1 (result)".
    """
    found = re.fullmatch(r"_(?:arg|retval)_(.+)_(\d+)_\d+", node.name)
    if node.op not in _OUTSIDE or not found:
        return node.name
    name = found[1] if found[2] == "0" else f"{found[1]}:{found[2]}"
    return name if node.op == "_Arg" else f"{name} (result)"


def _key(node) -> tuple[bytes, bytes, bytes]:
    attributes = node.attr
    return tuple(attributes[name].s for name in ("tensor_name", "send_device", "recv_device"))


def _producers(parts) -> dict[str, tuple[str, bool]]:
    """Map what a node may name as input to (program node, is it a signal)."""
    by_name = {node.name: node for node in parts}
    sends = {_key(node): node for node in parts if node.op in _SENDS}
    found = {}

    def follow(name):
        node = by_name[name]
        if node.op in _RECVS:
            return follow(_bare(sends[_key(node)].input[0]))
        if _signal(node):
            return _name(by_name[_bare(node.input[0])]), True
        if node.op == "Identity" and by_name[_bare(node.input[0])].op in _RECVS:
            origin, signal = follow(_bare(node.input[0]))
            return (origin, True) if signal else (name, False)
        return _name(node), False

    for node in parts:
        found[node.name] = follow(node.name)
    return found


def _bare(edge: str) -> str:
    """Return the node's name in an edge: ``^a`` and ``a:1`` both give a."""
    return edge.lstrip("^").split(":")[0]


def _program_nodes(parts) -> tuple[Node, ...]:
    origin = _producers(parts)
    nodes = []
    for node in parts:
        name = _name(node)
        if node.op in _FRAME or origin[node.name] != (name, False):
            continue
        inputs, controls = [], []
        for edge in node.input:
            source, _ = origin[_bare(edge)]
            (controls if edge[0] == "^" else inputs).append(source)
        op = _OUTSIDE.get(node.op, node.op)
        nodes.append(Node(name, op, node.device, tuple(inputs), tuple(controls)))
    return tuple(nodes)


def _output_bytes(tf, ran) -> dict[tuple[str, int], list[int]]:
    """Map (node, output number) to the bytes it produced, each time it ran.

    What did not run, as in a branch not taken, is not in it.
    """
    sizes = defaultdict(list)
    for _, node in ran:
        for output in node.output:
            tensor = output.tensor_description
            dtype = tf.dtypes.as_dtype(tensor.dtype)
            size = dtype.size * math.prod(d.size for d in tensor.shape.dim)
            if dtype in (tf.string, tf.variant, tf.resource):
                size = tensor.allocation_description.requested_bytes
            sizes[node.node_name, output.slot].append(size)
    return sizes


def _transfers(parts, sizes) -> list[Transfer]:
    by_name = {node.name: node for node in parts}
    moved = []
    for node in parts:
        if node.op not in _SENDS:
            continue
        _, sender, receiver = (text.decode() for text in _key(node))
        if sender == receiver:
            continue
        name, _, slot = node.input[0].partition(":")
        source = by_name[name]
        control = _signal(source)
        origin = _name(by_name[_bare(source.input[0])] if control else source)
        for size in sizes.get((name, int(slot or 0)), ()):
            moved.append(Transfer(origin, sender, receiver, size, control))
    return moved


def _intervals(ran, kernels, program: dict[str, Node]) -> tuple[Interval, ...]:
    """Return when the program's operations ran.

    For an operation on a real GPU, ``ran`` only has the time that the host
    took to queue its kernels; ``kernels`` has theirs, as "name:type".
    """
    on_gpu = [(n.node_name.partition(":")[0], n) for n in kernels]
    queued = {name for name, _ in on_gpu}
    found = on_gpu + [(n.node_name, n) for _, n in ran if n.node_name not in queued]
    found = [(program[name], n) for name, n in found if name in program]
    zero = min(
        (n.all_start_micros + n.op_start_rel_micros for _, n in found),
        default=0,
    )
    rows = []
    for node, n in found:
        begin = n.all_start_micros - zero
        start = (begin + n.op_start_rel_micros) / 1e6
        end = (begin + n.op_end_rel_micros) / 1e6
        rows.append(Interval(node.name, node.op, node.device, start, end))
    return tuple(sorted(rows, key=lambda row: (row.start, row.name)))
