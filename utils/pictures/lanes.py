"""A graph over devices: devices as lanes, transfers as arrows between them."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from itertools import accumulate

from matplotlib.axes import Axes

from utils.machine import plain_name
from utils.pictures.parts import EDGE, STRIKING, axes, lane_order, words
from utils.runs import Node, Trace
from utils.style import device_look

ROW = 1.0  # inches for a row in a lane
LETTER, GAP = 0.1, 1.2  # inches for a letter, for the arrows between columns
NEAR = 0.56  # of an arrow: beyond the boxes of the column where it begins
LONGEST = 22  # letters of a name before its beginning is cut off


def lanes(
    trace: Trace, *, title: str, hide: str | Collection[str] = (), ax: Axes | None = None
) -> Axes:
    """Draw which device ran each operation of a traced run, and what crossed.

    An operation stands right of everything it waits for. A thick arrow is a
    transfer between devices, with its bytes; a thin one moves nothing: it
    stays on its device, or uses what a thick one brought. A dotted one is a
    control edge.

    Args:
        trace: a traced run.
        title: the finding, in words.
        hide: operation types to leave out, such as ``("Const",)``; an
            operation whose result crosses to another device stays.
        ax: axes to draw on; None makes a figure of the right size.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: the graph has a loop, so nothing stands right of all that
            it waits for; or there is nothing to draw.

    Introduced in lesson 00.
    """
    hide = {hide} if isinstance(hide, str) else set(hide)
    moved = _moved(trace)
    nodes = _visible(_variables_merged(trace.nodes), moved, hide)
    if not nodes:
        raise ValueError(
            f"nothing to draw: of the {len(trace.nodes)} operations of this "
            f"run, hide={sorted(hide)} leaves none."
        )
    columns = _columns(nodes)
    devices = sorted({plain_name(n.device) for n in nodes}, key=lane_order)
    rows, heights = _rows(nodes, columns, devices)
    longest = max(len(line) for n in nodes for line in _two_lines(n))
    size = 1.2 + max(2.2, LETTER * longest + GAP) * (max(columns.values()) + 1)
    ax = axes(ax, (size, 0.6 + ROW * sum(heights.values())))
    top = dict(zip(devices, accumulate(heights.values(), initial=0.0), strict=False))
    where = {
        n.name: (columns[n.name], top[plain_name(n.device)] + rows[n.name] + 0.5) for n in nodes
    }
    _draw_lanes(ax, devices, top, heights, max(columns.values()))
    boxes = _draw_nodes(ax, nodes, where)
    _draw_edges(ax, nodes, where, boxes, moved)
    ax.set_ylim(sum(heights.values()), 0)
    ax.set_title(title)
    ax.set_axis_off()
    return ax


def _reads(nodes) -> dict[str, str]:
    """Map the reads of variables that need no node to the variable."""
    return {
        n.name: n.inputs[0]
        for n in nodes
        if n.op == "ReadVariableOp" and n.inputs and not n.controls
    }


def _variables_merged(nodes) -> list[Node]:
    """Draw a variable and its reads as one node, under the variable's name."""
    reads = _reads(nodes)
    return [
        replace(
            node,
            op="variable" if node.op == "VarHandleOp" else node.op,
            inputs=tuple(reads.get(i, i) for i in node.inputs),
            controls=tuple(reads.get(c, c) for c in node.controls),
        )
        for node in nodes
        if node.name not in reads
    ]


def _visible(nodes, moved, hide) -> list[Node]:
    crossing = {source for source, _, control in moved if not control}
    home = {n.name: n.device for n in nodes}

    def wanted(n):
        if n.op == "Result":  # worth a node only if it had to travel
            return any(home[i] != n.device for i in n.inputs)
        return n.op not in hide or n.name in crossing

    kept = [n for n in nodes if wanted(n)]
    names = {n.name for n in kept}
    return [
        replace(
            n,
            inputs=tuple(i for i in n.inputs if i in names),
            controls=tuple(c for c in n.controls if c in names),
        )
        for n in kept
    ]


def _columns(nodes) -> dict[str, int]:
    """Return the column of each node: one more than all it waits for."""
    waits = {n.name: {*n.inputs, *n.controls} for n in nodes}
    columns: dict[str, int] = {}
    while len(columns) < len(waits):
        ready = [
            name
            for name, before in waits.items()
            if name not in columns and before <= columns.keys()
        ]
        if not ready:
            loop = ", ".join(sorted(waits.keys() - columns.keys())[:4])
            raise ValueError(
                f"the graph has a loop ({loop} …): lanes only draws graphs "
                "without. Draw when its operations ran with timeline."
            )
        for name in ready:
            columns[name] = 1 + max((columns[b] for b in waits[name]), default=-1)
    return columns


def _rows(nodes, columns, devices):
    """Stack nodes that share a lane and a column; return rows and heights."""
    stacked = defaultdict(int)
    rows = {}
    for node in nodes:
        place = plain_name(node.device), columns[node.name]
        rows[node.name] = stacked[place]
        stacked[place] += 1
    heights = {device: max(n for (d, _), n in stacked.items() if d == device) for device in devices}
    for node in nodes:  # centre what is alone in its column
        device, column = plain_name(node.device), columns[node.name]
        rows[node.name] += (heights[device] - stacked[device, column]) / 2
    return rows, heights


def _moved(trace) -> dict[tuple[str, str, bool], list[int]]:
    """Map (source, receiver's name, is it control) to the bytes moved."""
    reads = _reads(trace.nodes)
    moved = defaultdict(list)
    for t in trace.transfers + trace.control_transfers:
        source = reads.get(t.source, t.source)
        moved[source, plain_name(t.receiver), t.control].append(t.bytes)
    return dict(moved)


def _draw_lanes(ax, devices, top, heights, last) -> None:
    for device in devices:
        low, high = top[device], top[device] + heights[device]
        colour = device_look(device)["facecolor"]
        ax.axhspan(low + 0.04, high - 0.04, color=colour, alpha=0.22, lw=0)
        ax.text(-1.15, low + heights[device] / 2, device, fontweight="bold", va="center", ha="left")
    ax.set_xlim(-1.2, last + 0.6)


def _draw_nodes(ax, nodes, where) -> dict:
    """Draw the nodes and return their boxes, where arrows start and end."""
    boxes = {}
    for node in nodes:
        look = device_look(plain_name(node.device))
        look = {"boxstyle": "round,pad=0.35"} | {k: look[k] for k in ("facecolor", "edgecolor")}
        middle = {"fontsize": 12, "ha": "center", "va": "center", "linespacing": 1.15}
        lines = "\n".join(_two_lines(node))
        text = ax.text(*where[node.name], lines, bbox=look, zorder=3, **middle)
        boxes[node.name] = text.get_bbox_patch()
    return boxes


def _draw_edges(ax, nodes, where, boxes, moved) -> None:
    home = {n.name: plain_name(n.device) for n in nodes}
    drawn = set()  # a second user on the same device needs no second transfer
    for node in nodes:
        edges = [(i, "-") for i in dict.fromkeys(node.inputs)]
        edges += [(c, ":") for c in dict.fromkeys(node.controls)]
        for source, line in edges:
            crosses = home[source] != home[node.name]
            transfer = source, home[node.name], line == ":"
            thick = crosses and transfer in moved.keys() - drawn
            drawn.add(transfer)
            ax.annotate(
                "",
                xy=where[node.name],
                xytext=where[source],
                arrowprops={
                    "arrowstyle": "-|>",
                    "lw": 2.2 if thick else 1.2,
                    "color": STRIKING if crosses else EDGE,
                    "linestyle": line,
                    "shrinkA": 0,
                    "shrinkB": 1,
                    "patchA": boxes[source],
                    "patchB": boxes[node.name],
                },
            )
            if thick and line == "-":
                sizes = " + ".join(map(str, moved[transfer]))
                ends = zip(where[source], where[node.name], strict=True)
                x, y = (a + NEAR * (b - a) for a, b in ends)
                words(ax, x, y, f"{sizes} B", fontsize=12, color=STRIKING, zorder=4)


def _two_lines(node: Node) -> tuple[str, str]:
    """Return the two lines in a node's box: its type and its name."""
    name = node.name.removesuffix(" (result)")
    if len(name) > LONGEST:
        name = "…" + name[1 - LONGEST :]
    return node.op, name
