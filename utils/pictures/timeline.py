"""When each operation ran: one lane per device, one bar per operation."""

from utils.machine import plain_name
from utils.runs import Trace
from utils.style import device_look

FRAME = "#B03A00"


def timeline(trace: Trace, *, title: str, ops=None, mark=(), ax=None):
    """Draw when the operations of a traced run were at work.

    Args:
        trace: a traced run.
        title: the finding, in words.
        ops: draw only these operation types, such as ``{"MatMul"}``; None
            draws all.
        mark: names of operations to draw with a thick frame, such as those
            of the critical path (lesson 05).
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``. The time axis is in milliseconds.

    Raises:
        ValueError: nothing in the run is of these types; lists those it has.

    Introduced in lesson 00.
    """
    if isinstance(ops, str):  # "MatMul" contains "Mul", {"MatMul"} does not
        ops = {ops}
    rows = [row for row in trace.intervals if ops is None or row.op in ops]
    if not rows:
        known = sorted({row.op for row in trace.intervals})
        wanted = "" if ops is None else f" of type {', '.join(sorted(ops))}"
        raise ValueError(f"no operation{wanted} ran; these types did: {', '.join(known) or 'none'}")
    lanes = sorted({plain_name(row.device) for row in rows}, key=lane_order)
    if ax is None:
        ax = _axes(len(lanes))
    for row in rows:
        lane = plain_name(row.device)
        frame = {"edgecolor": FRAME, "lw": 4} if row.name in mark else {}
        ax.barh(
            lanes.index(lane),
            (row.end - row.start) * 1e3,
            left=row.start * 1e3,
            height=0.6,
            label="_",
            **device_look(lane) | frame,
        )
    ax.set_yticks(range(len(lanes)), lanes)
    ax.set_ylim(len(lanes) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("time since the first operation (ms)")
    ax.set_title(title)
    return ax


def lane_order(name: str) -> tuple:
    """Sort key for lanes: the host, then the GPUs by number, then others.

    Introduced in lesson 00, behind the pictures.
    """
    kind, _, index = name.partition(" ")
    rank = {"host": 0, "GPU": 1}.get(kind, 2)
    return rank, kind, int(index) if index.isdigit() else 0


def _axes(lanes: int):
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(9, 1.3 + 0.6 * lanes))[1]
