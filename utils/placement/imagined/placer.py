"""The passes of the placer: which device each operation gets, and why.

The rules are those of TensorFlow's placer.cc.
"""

from utils.placement.imagined.groups import ON_REQUEST, Group, Groups, preference
from utils.placement.imagined.nodes import Node
from utils.placement.imagined.specs import satisfies
from utils.placement.imagined.words import Failure, PlacementError, Rule


class Placer:
    """Places the operations of one graph on imagined devices."""

    def __init__(self, nodes: list[Node], devices: list, soft: bool) -> None:
        """Form the groups.

        Args:
            nodes: operations in the order of the graph.
            devices: the machine's devices as full ``tf.DeviceSpec``.
            soft: move what cannot run where it is pinned.

        Raises:
            PlacementError: some operations cannot share a device.
        """
        for node in nodes:
            if not node.types:
                raise PlacementError(
                    node.name,
                    Failure.NO_KERNEL,
                    f"No OpKernel was registered to support Op '{node.op}' used by {node.name}",
                )
        self._nodes, self._devices, self._soft = nodes, devices, soft
        self._groups = Groups(nodes, soft)
        self.placed: dict[Node, tuple[object, Rule]] = {}

    def run(self) -> None:
        """Fill ``placed``: operation to (device, rule), in TensorFlow's order.

        Raises:
            PlacementError: an operation has no possible device.
        """
        for node in self._nodes:
            if not node.generator:
                self._place(node, node.sources[0] if node.follows_input else None, Rule.INPUT)
        for node in self._nodes:
            if node.generator:
                self._place(node, self._common_consumer(node), Rule.CONSUMER)

    def _place(self, node: Node, leader: Node | None, rule: Rule) -> None:
        """Put a node where its leader is if it may go there, else on the best."""
        group = self._groups.of(node)
        if group.device is None:
            candidates = self._candidates(node, group)
            device = self.placed[leader][0] if leader in self.placed else None
            group.device = device if device in candidates else candidates[0]
            reason = rule if device in candidates else self._default(group)
        else:
            reason = self._default(group) if node.variable else Rule.GROUP
        self.placed[node] = group.device, _rule(node, group, reason)

    def _common_consumer(self, node: Node) -> Node | None:
        """Return a consumer if all of them are on one device."""
        devices = {self.placed.get(consumer, (None,))[0] for consumer in node.consumers}
        return node.consumers[0] if len(devices) == 1 else None

    def _default(self, group: Group) -> Rule:
        usual = [device for device in self._devices if device.device_type not in ON_REQUEST]
        best = min(usual, key=lambda device: preference(device.device_type, 0))
        return Rule.DEFAULT if group.device.device_type == best.device_type else Rule.KERNEL

    def _matching(self, spec) -> list:
        return [device for device in self._devices if satisfies(device, spec)]

    def _supported(self, group: Group, spec) -> list:
        """Return the devices that satisfy a specification, the best first."""
        devices = [d for d in self._matching(spec) if d.device_type in group.types]
        return sorted(
            devices,
            key=lambda d: (*preference(d.device_type, group.types[d.device_type]), d.to_string()),
        )

    def _candidates(self, node: Node, group: Group) -> list:
        wanted, fixed = group.wanted, group.fixed
        found = self._supported(group, wanted)
        if not found and self._soft:
            group.moved = Rule.NO_KERNEL if self._matching(wanted) else Rule.NO_DEVICE
            # First try to give up what users want, then what variables want.
            kept = {
                part: getattr(wanted, part)
                for part in ("device_type", "device_index")
                if getattr(fixed, part) is not None
            }
            free = wanted.replace(device_type=None, device_index=None)
            found = self._supported(group, free.replace(**kept)) or self._supported(group, free)
        if not found:
            raise self._error(node, group)
        return found

    def _error(self, node: Node, group: Group) -> PlacementError:
        """Say it as TensorFlow does (``GetDevicesForNode``)."""
        there = self._matching(group.wanted)
        kind = Failure.NO_KERNEL if there else Failure.NO_DEVICE
        names = [device.to_string() for device in self._devices]
        explicit = f"Could not satisfy explicit device specification '{node.text}'"
        if node.wanted != group.wanted:
            text = (
                f"{explicit} because the node {node.name} was colocated with a group of nodes "
                f"that required incompatible device '{group.wanted.to_string()}'. All available "
                f"devices [{', '.join(names)}]."
            )
        elif not there:
            text = (
                f"was explicitly assigned to {node.text} but available devices are "
                f"[ {', '.join(sorted(names))} ]. Make sure the device specification refers to a "
                "valid device."
            )
        elif node.wanted.device_type:
            text = (
                f"{explicit} because no supported kernel for {node.wanted.device_type} devices "
                "is available."
            )
        else:
            text = explicit
        text = f"Cannot assign a device for operation {node.name}: {text}"
        return PlacementError(node.name, kind, text)


def _rule(node: Node, group: Group, reason: Rule) -> Rule:
    """Say what decided, given what the passes found for the group."""
    if _asks(node):
        if satisfies(group.device, node.wanted):
            whole = node.wanted.device_type and node.wanted.device_index is not None
            return Rule.PINNED if whole else Rule.PARTLY_PINNED
        if not node.variable and any(_asks(variable) for variable in group.variables):
            return Rule.VARIABLE
        if group.moved and satisfies(group.wanted, node.wanted):
            return group.moved
        return Rule.VARIABLE if group.variables and not node.variable else Rule.DISAGREE
    if group.variables and not node.variable:
        return Rule.VARIABLE
    asking = [member for member in group.members if _asks(member)]
    if any(node in member.bound for member in asking):
        return Rule.USERS
    return Rule.GROUP if asking else reason


def _asks(node: Node) -> bool:
    """Tell whether a node asks for one device or a kind of device."""
    return node.wanted.device_type is not None or node.wanted.device_index is not None
