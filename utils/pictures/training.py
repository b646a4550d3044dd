"""Workers of one training: who worked when, how stale their gradients were."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from utils.clock import ClockTrace
from utils.pictures.parts import (
    EDGE,
    at_least_one,
    axes,
    bar,
    lanes_from_top,
    time_axis,
    words,
)
from utils.style import LINES, device_look

MOST_BARS = 400
DROPPED = {"facecolor": "white", "edgecolor": EDGE, "linestyle": ":"}
UPDATE = {"color": EDGE, "linestyle": "--", "linewidth": 0.8}


def worker_timeline(
    trace: ClockTrace, *, title: str, until: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw when each worker of a simulated run computed its gradients.

    One lane per worker, one bar per gradient, from reading to writing. A
    dashed line is an update of the weights, or several at the same moment.
    The number in a bar is the staleness: the updates from its start to its
    end, its own not counted. A white, dotted bar is a gradient that did not
    count. Gaps are waiting; what was still under way when the run ended is
    not drawn, so let the run last longer than the picture.

    Args:
        trace: a run of the virtual clock.
        title: the finding, in words.
        until: simulated seconds to draw; None draws the whole run.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``. The time axis is in simulated seconds.

    Raises:
        ValueError: nothing to draw, or too many bars to tell apart.

    Introduced in lesson 08.
    """
    rows = np.flatnonzero(trace.start < (np.inf if until is None else until))
    if not 0 < len(rows) <= MOST_BARS:
        raise ValueError(
            f"{len(rows)} gradients before until={until}: choose until so "
            f"that there are 1 to {MOST_BARS}."
        )
    ax = axes(ax, (9, 1.7 + 0.6 * trace.workers))
    right = trace.end[rows].max() if until is None else until
    for i in rows:
        _bar(ax, trace, i, right)
    ax.vlines(trace.times[trace.times <= right], -0.5, trace.workers, **UPDATE)
    lanes_from_top(ax, [f"worker {w}" for w in range(trace.workers)])
    if until is None:
        time_axis(ax)
    else:  # the bars that go on then are cut on purpose
        ax.set_xlim(0, until)
    ax.set_xlabel("simulated time (s)", loc="left")
    ax.set_title(title)
    keys = [Line2D([], [], label="update", **UPDATE)]
    if not trace.written[rows].all():
        keys.append(Patch(label="did not count", **DROPPED))
    below = {"loc": "upper right", "bbox_to_anchor": (1, 0)}
    ax.legend(handles=keys, ncols=2, borderaxespad=2, **below)
    return ax


def _bar(ax: Axes, trace: ClockTrace, i: int, right: float) -> None:
    worker, start = trace.worker[i], trace.start[i]
    width = trace.end[i] - start
    look = device_look(f"GPU {worker}") if trace.written[i] else DROPPED
    bar(ax, worker, start, width, look)
    seen = min(start + width, right) - start
    if trace.written[i] and seen > 0.04 * right:
        age = str(trace.staleness[i])
        words(ax, start + seen / 2, worker, age, pad=1.5, fontsize=12, zorder=3)


def staleness_histogram(
    staleness: Mapping[str, np.ndarray], *, title: str, ax: Axes | None = None
) -> Axes:
    """Draw how many gradients had which staleness, for one or more runs.

    Args:
        staleness: label → one whole number per gradient, simulated
            (``trace.staleness``) or measured.
        title: the finding, in words.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``. It ends where 1 % of a run's gradients are
        left; the legend tells the mean of all and the largest.

    Raises:
        ValueError: no run, or a run without gradients.

    Introduced in lesson 08.
    """
    at_least_one(staleness, "run")
    for label, values in staleness.items():
        if not len(values):
            raise ValueError(f"{label!r} has no gradients to count.")
    ax = axes(ax, (9, 4))
    for turn, (label, values) in enumerate(staleness.items()):
        share = 100 * np.bincount(values) / len(values)
        summary = f"mean {np.mean(values):.3g}, largest {np.max(values)}"
        look = device_look(f"GPU {turn}")
        colour = look["facecolor"]
        ax.stairs(
            share,
            np.arange(len(share) + 1) - 0.5,
            fill=True,
            label=f"{label}: {summary}",
            linewidth=2,
            linestyle=LINES[turn % len(LINES)],
            **{**look, "facecolor": (colour, 0.3), "edgecolor": colour},
        )
    most = max(np.quantile(values, 0.99) for values in staleness.values())
    ax.set_xlim(-0.7, most + 1.7)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("staleness (updates between read and write)")
    ax.set_ylabel("gradients (%)")
    ax.set_title(title)
    ax.margins(y=0.3)  # room for the legend
    ax.legend(loc="upper right")
    return ax
