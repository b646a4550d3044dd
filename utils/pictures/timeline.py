"""When each operation ran: one lane per device, one bar per operation."""

from collections.abc import Collection

from matplotlib.axes import Axes

from utils.machine import plain_name
from utils.pictures.parts import STRIKING, axes, bar, lane_order, lanes_from_top, time_axis
from utils.runs import Trace
from utils.style import device_look

ROOM = 1.05  # of the last end, so that a thick frame is whole


def timeline(
    trace: Trace,
    *,
    title: str,
    ops: str | Collection[str] | None = None,
    mark: Collection[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw when the operations of a traced run were at work.

    Args:
        trace: a traced run.
        title: the finding, in words.
        ops: draw only these operation types, such as ``{"MatMul"}``; None
            draws all.
        mark: names of operations to draw with a thick frame, such as those
            of the critical path (lesson 05).
        ax: axes to draw on; None makes a figure. Axes that share the time
            axis keep all their bars.

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
    ax = axes(ax, (9, 1.3 + 0.6 * len(lanes)))
    for row in rows:
        lane = plain_name(row.device)
        frame = {"edgecolor": STRIKING, "lw": 4} if row.name in mark else {}
        width = (row.end - row.start) * 1e3
        bar(ax, lanes.index(lane), row.start * 1e3, width, device_look(lane) | frame)
    lanes_from_top(ax, lanes)
    time_axis(ax, ROOM * 1e3 * max(row.end for row in rows))
    ax.set_xlabel("time since the first operation (ms)")
    ax.set_title(title)
    return ax
