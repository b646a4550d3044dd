"""Groups of operations that must share a device.

Operations tied by a reference, a resource or a colocation attribute form a
group. What its members ask for is merged, and the device types that have no
kernel for all of them drop out. The order of the merges matters: it decides
which conflict is found first and what soft placement gives up.

The rules are those of TensorFlow's colocation_graph.cc.
"""

from dataclasses import dataclass

from utils.placement.imagined.nodes import Node
from utils.placement.imagined.specs import Disagree, compatible, merged
from utils.placement.imagined.words import Failure, PlacementError, Rule

# Device types in order of preference: the numbers with which TensorFlow
# registers them; types that are not listed have the middle one.
PREFERENCE = {"GPU": 210, "CPU": 60}
USUAL_PREFERENCE = 50
# Chosen only where some member asks for them.
ON_REQUEST = frozenset({"XLA_CPU", "XLA_GPU", "TPU"})


@dataclass(eq=False)
class Group:
    """Operations that share a device.

    Attributes:
        members: the operations.
        wanted: what they ask for together (a ``DeviceSpec``).
        fixed: the part of it that variables ask for; users cannot change it.
        types: device types with a kernel for every member, with priorities.
        depth: how often a group as deep as this one was merged into it.
        device: where the group is, once its first member is placed.
        moved: why soft placement gave up what the group asks for, if it did.
    """

    members: list[Node]
    wanted: object
    fixed: object
    types: dict[str, int]
    depth: int = 0
    device: object = None
    moved: Rule | None = None

    @property
    def variables(self) -> list[Node]:
        """The members that hand out a reference or a resource."""
        return [node for node in self.members if node.variable]


class Groups:
    """The groups of a graph; each operation is in exactly one."""

    def __init__(self, nodes: list[Node], soft: bool) -> None:
        """Form the groups.

        Raises:
            PlacementError: some operations cannot share a device.
        """
        self._soft = soft
        self._of = {node: _alone(node) for node in nodes}
        for node in nodes:
            for source in node.bound:
                self._bind(source, node)
        heads: dict[str, Node] = {}
        for node in nodes:
            for name in (*node.groups, node.name):
                self._colocate(node, heads.setdefault(name, node))
        for group in set(self._of.values()):
            _leave_out_xla(group)

    def of(self, node: Node) -> Group:
        """Return the group of an operation."""
        return self._of[node]

    def _bind(self, source: Node, node: Node) -> None:
        """Join what a reference or resource edge connects; the source rules."""
        ours, theirs = self._of[source], self._of[node]
        if not compatible(ours.fixed, theirs.fixed):
            raise PlacementError(
                node.name,
                Failure.DISAGREE,
                "Cannot place the graph because a reference or resource edge connects "
                "colocation groups with incompatible resource devices: "
                f"{ours.fixed.to_string()} vs {theirs.fixed.to_string()}. The edge src node is "
                f"{source.name} , and the dst node is {node.name}",
            )
        if not compatible(ours.wanted, theirs.wanted):
            theirs.wanted = ours.wanted.make_merged_spec(theirs.fixed)
        try:
            self._join(source, node)
        except PlacementError as error:
            raise PlacementError(
                node.name,
                error.kind,
                "Nodes were connected by a reference or resource connection (requiring them to "
                "be on the same device), but the two nodes were assigned two different devices: "
                f"{error.message}",
            ) from None

    def _colocate(self, node: Node, head: Node) -> None:
        """Join an operation with the first one of a colocation group."""
        try:
            self._join(node, head)
        except PlacementError:
            if not self._soft:
                raise
            # Soft placement ignores the wish to be together.

    def _join(self, one: Node, other: Node) -> None:
        first, second = self._of[one], self._of[other]
        if first is second:
            return
        into, away = (second, first) if first.depth < second.depth else (first, second)
        start = f"Cannot colocate nodes {one.name} and {other.name}"
        try:
            fixed = merged(into.fixed, away.fixed)
            wanted = merged(into.wanted, away.wanted, self._soft)
        except Disagree as error:
            raise PlacementError(one.name, Failure.DISAGREE, f"{start}: {error}") from None
        # The names merge before the kernels are looked at, and stay merged
        # if there are none: so does TensorFlow.
        into.fixed, into.wanted = fixed, wanted.make_merged_spec(fixed)
        types = _common(into.types, away.types)
        if not types:
            raise PlacementError(
                one.name,
                Failure.NO_KERNEL,
                f"{start} because no device type supports both of those nodes and the other "
                "nodes colocated with them.",
            )
        into.types = types
        into.depth += into.depth == away.depth
        into.members += away.members
        for node in away.members:
            self._of[node] = into


def preference(device_type: str, priority: int) -> tuple:
    """Return a key that sorts device types, the best first."""
    return -priority, -PREFERENCE.get(device_type, USUAL_PREFERENCE), device_type


def _alone(node: Node) -> Group:
    import tensorflow as tf

    fixed = node.wanted if node.variable else tf.DeviceSpec()
    return Group([node], node.wanted, fixed, node.types)


def _common(mine: dict[str, int], theirs: dict[str, int]) -> dict[str, int]:
    """Return the device types in both, with the priorities that count."""
    mine = {kind: mine[kind] for kind in mine if kind in theirs}
    theirs = {kind: theirs[kind] for kind in mine}
    if not any(theirs.values()):
        return mine
    if not any(mine.values()):
        return theirs
    orders = [sorted(one, key=lambda k, one=one: preference(k, one[k])) for one in (mine, theirs)]
    return mine if orders[0] == orders[1] else dict.fromkeys(mine, 0)


def _leave_out_xla(group: Group) -> None:
    asked = {group.wanted.device_type, group.fixed.device_type}
    rest = {kind: p for kind, p in group.types.items() if kind not in ON_REQUEST}
    if rest and not asked & ON_REQUEST:
        group.types = rest
