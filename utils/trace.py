"""What one run of a graph did: values, intervals, transfers, memory.

TensorFlow records it itself: ``RunOptions(FULL_TRACE)`` gives start and end
of every operation, ``output_partition_graphs`` the part of the graph that
each device got, with the ``_Send`` and ``_Recv`` pairs at the borders.
"""

import math
import re
from collections import defaultdict
from dataclasses import dataclass

from utils.session import session_config

# Added by TensorFlow around the graph; they are no work of the program.
_SENDS, _RECVS = {"_Send", "_HostSend"}, {"_Recv", "_HostRecv"}
_FRAME = _SENDS | _RECVS
# How a fed value and a fetched one look inside the devices' parts.
_OUTSIDE = {"_Arg": "Placeholder", "_Retval": "Result"}


@dataclass(frozen=True)
class Interval:
    """When an operation ran on a device: start and end in seconds.

    Both count from the first start in the run.
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

    A control transfer carries no data: it only says "done".
    """

    source: str
    sender: str
    receiver: str
    bytes: int
    control: bool


@dataclass(frozen=True)
class Trace:
    """What one traced run did.

    Attributes:
        value: what the session returned for the fetches.
        nodes: operations that were given to the devices, after TensorFlow's
            optimiser.
        intervals: when each of them ran.
        transfers: data that crossed a device border.
        control_transfers: signals without data that did.
        allocated: bytes that the operations of the step allocated, per
            device (their sum, not the peak).

    Introduced in lesson 00; its parts in lesson 05.
    """

    value: object
    nodes: tuple[Node, ...]
    intervals: tuple[Interval, ...]
    transfers: tuple[Transfer, ...]
    control_transfers: tuple[Transfer, ...]
    allocated: dict[str, int]

    @property
    def bytes_moved(self) -> int:
        """Bytes of all data that crossed a device border."""
        return sum(transfer.bytes for transfer in self.transfers)


def trace(graph, fetches, feed=None, options=None) -> Trace:
    """Run a graph once, recorded, and return what TensorFlow did.

    Opens a session, runs the initialisers of the graph's variables
    unrecorded, then ``fetches`` once. The graph is not changed.

    Args:
        graph: a ``tf.Graph``.
        fetches: what ``Session.run`` takes, of that graph.
        feed: values for placeholders, as in ``feed_dict``.
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
    how = v1.RunOptions(
        trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True
    )
    config = session_config() if options is None else options
    with v1.Session(graph=graph, config=config) as session:
        session.run([variable.initializer for variable in variables])
        value = session.run(fetches, feed, options=how, run_metadata=record)
    return _read(tf, value, record)


def _read(tf, value, record) -> Trace:
    parts = [node for part in record.partition_graphs for node in part.node]
    stats = [
        (device.device, node)
        for device in record.step_stats.dev_stats
        for node in device.node_stats
    ]
    program = _program_nodes(parts)
    moved = _transfers(parts, _output_bytes(tf, stats))
    allocated = defaultdict(int)
    for device, node in stats:
        allocated[device] += sum(m.total_bytes for m in node.memory)
    return Trace(
        value=value,
        nodes=program,
        intervals=_intervals(stats, {node.name: node for node in program}),
        transfers=tuple(t for t in moved if not t.control),
        control_transfers=tuple(t for t in moved if t.control),
        allocated=dict(allocated),
    )


def _signal(node) -> bool:
    """Tell whether a node only carries a control edge over a border.

    TensorFlow sends an empty constant ("x/ctrl/_7") and receives it into an
    Identity whose result nobody uses ("x/_8").
    """
    return node.op == "Const" and bool(re.search(r"/ctrl/_\d+$", node.name))


def _name(node) -> str:
    """Return a node's name in the program.

    A fed value "x" reaches the devices as a node "_arg_x_0_0", a fetched
    one leaves them as "_retval_y_0_0": here "x" and "y (result)".
    """
    found = re.fullmatch(r"_(?:arg|retval)_(.+)_\d+_\d+", node.name)
    if node.op not in _OUTSIDE or not found:
        return node.name
    return found[1] if node.op == "_Arg" else f"{found[1]} (result)"


def _key(node) -> tuple[bytes, bytes, bytes]:
    attributes = node.attr
    return tuple(
        attributes[name].s
        for name in ("tensor_name", "send_device", "recv_device")
    )


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
            return _bare(node.input[0]), True
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
            source, signal = origin[_bare(edge)]
            (controls if signal or edge[0] == "^" else inputs).append(source)
        op = _OUTSIDE.get(node.op, node.op)
        nodes.append(
            Node(name, op, node.device, tuple(inputs), tuple(controls))
        )
    return tuple(nodes)


def _output_bytes(tf, stats) -> dict[tuple[str, int], int]:
    """Map (node, output number) to the bytes of the tensor it produced."""
    sizes = {}
    for _, node in stats:
        for output in node.output:
            tensor = output.tensor_description
            dtype = tf.dtypes.as_dtype(tensor.dtype)
            items = math.prod(dim.size for dim in tensor.shape.dim)
            if dtype == tf.string:  # its size is not in its shape
                size = tensor.allocation_description.requested_bytes
            else:
                size = items * dtype.size
            sizes[node.node_name, output.slot] = size
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
        origin = _bare(source.input[0]) if control else _name(source)
        size = 0 if control else sizes[name, int(slot or 0)]
        moved.append(Transfer(origin, sender, receiver, size, control))
    return moved


def _intervals(stats, program: dict[str, Node]) -> tuple[Interval, ...]:
    ran = [(device, n) for device, n in stats if n.node_name in program]
    zero = min((n.all_start_micros for _, n in ran), default=0)
    rows = []
    for device, n in ran:
        begin = n.all_start_micros - zero
        start = begin + n.op_start_rel_micros
        end = begin + n.op_end_rel_micros
        op = program[n.node_name].op
        rows.append(Interval(n.node_name, op, device, start / 1e6, end / 1e6))
    return tuple(sorted(rows, key=lambda row: (row.start, row.name)))
