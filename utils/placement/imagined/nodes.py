"""What the placer looks at in each operation of a graph."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from utils.placement.kernels import kernel_for

if TYPE_CHECKING:
    import tensorflow as tf

METADATA = frozenset({"Rank", "Shape", "Size"})
COLOCATED = b"loc:@"


@dataclass(eq=False)
class Node:
    """An operation, reduced to what decides its place.

    Attributes:
        name, op: its name and type.
        text, wanted: the device it asks for, as text and as ``DeviceSpec``.
        types: device types that have a kernel for it, with priorities.
        sources: nodes whose output it takes, in order.
        waits: how many nodes it waits for without taking their output.
        bound: those among them it takes a reference or resource from.
        consumers: nodes that take its output or wait for it.
        groups: names of colocation groups it asks to be in.
        variable: hands out a reference or a resource and takes no input.
        generator: takes no input and has one output that is no reference.
    """

    name: str
    op: str
    text: str
    wanted: object
    types: dict[str, int]
    sources: list["Node"] = field(default_factory=list)
    waits: int = 0
    bound: list["Node"] = field(default_factory=list)
    consumers: list["Node"] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    variable: bool = False
    generator: bool = False

    @property
    def follows_input(self) -> bool:
        """Tell whether it is put beside its input, if it may go there.

        A metadata operation is. So is an Identity with one edge in and at
        most one out, if it asks for no device and both its neighbours ask
        for the same one or for none.
        """
        if self.op in METADATA:
            return True
        # Not in the sources of the placer that this follows otherwise: seen
        # in the placement log of TensorFlow 2.21.
        if self.op != "Identity" or self.text or self.waits or len(self.consumers) > 1:
            return False
        after = self.consumers[0].text if self.consumers else ""
        return self.sources[0].text == after


def read(graph: "tf.Graph", device_types: list[str]) -> list[Node]:
    """Return the graph's operations in order, linked to each other.

    Raises:
        ValueError: an operation calls a function or passes variants on,
            which the placer treats in ways that are not imagined here.
    """
    nodes: dict[str, Node] = {}
    for operation in graph.get_operations():
        nodes[operation.name] = _node(operation, device_types)
    for operation in graph.get_operations():
        _link(operation, nodes)
    return list(nodes.values())


def _node(operation, device_types: list[str]) -> Node:
    import tensorflow as tf

    definition = operation.node_def
    _check(operation, definition)
    kernels = {kind: kernel_for(definition, kind) for kind in device_types}
    outputs = operation.op_def.output_arg
    lonely = not operation.inputs and len(operation.outputs) == 1
    reference = lonely and outputs[0].is_ref
    asked = definition.attr["_class"].list.s if "_class" in definition.attr else ()
    return Node(
        name=operation.name,
        op=operation.type,
        text=operation.device,
        wanted=tf.DeviceSpec.from_string(operation.device),
        types={kind: kernel.priority for kind, kernel in kernels.items() if kernel},
        groups=[
            name.removeprefix(COLOCATED).decode() for name in asked if name.startswith(COLOCATED)
        ],
        variable=reference or (lonely and operation.outputs[0].dtype == tf.resource),
        generator=lonely and not reference,
    )


def _check(operation, definition) -> None:
    import tensorflow as tf

    if any(value.HasField("func") or value.list.func for value in definition.attr.values()):
        raise ValueError(
            f"Operation {operation.name!r} ({operation.type}) calls a function. TensorFlow "
            "places what is inside by other rules, which are not imagined: give a graph "
            "without tf.function, tf.data, loops and conditions."
        )
    if any(tensor.dtype == tf.variant for tensor in (*operation.inputs, *operation.outputs)):
        raise ValueError(
            f"Operation {operation.name!r} ({operation.type}) handles variants (lists of "
            "tensors, data sets), whose placement is not imagined: give a graph without them."
        )


def _link(operation, nodes: dict[str, Node]) -> None:
    import tensorflow as tf

    node = nodes[operation.name]
    references = _takes_references(operation)
    for tensor, reference in zip(operation.inputs, references, strict=True):
        source = nodes[tensor.op.name]
        node.sources.append(source)
        source.consumers.append(node)
        if reference or tensor.dtype == tf.resource:
            node.bound.append(source)
    node.waits = len(operation.control_inputs)
    for before in operation.control_inputs:
        nodes[before.name].consumers.append(node)


def _takes_references(operation) -> list[bool]:
    """Tell for each input whether the operation wants a reference there."""
    attributes = operation.node_def.attr
    wants = []
    for argument in operation.op_def.input_arg:
        if argument.number_attr:
            count = attributes[argument.number_attr].i
        elif argument.type_list_attr:
            count = len(attributes[argument.type_list_attr].list.type)
        else:
            count = 1
        wants += [argument.is_ref] * count
    return wants
