"""A ball in a bowl: where the updates of a run leave a single weight."""

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from utils.clock import ClockTrace
from utils.pictures.parts import EDGE, at_least_one
from utils.style import CURVES, LINES

MOST_UPDATES = 8
ARROW = {"arrowstyle": "-|>", "mutation_scale": 18, "shrinkA": 0, "shrinkB": 0}
READ = {"color": EDGE, "marker": "o", "fillstyle": "none", "ms": 13}


def bowl(traces: Mapping[str, ClockTrace], loss: Callable, *, title: str) -> np.ndarray:
    """Draw how the updates of a run push one weight; one column per run.

    Above, the weight on its loss before the first update. Below, one arrow
    per update, from the top: where the weight was and where it went. A
    circle marks where the slope was computed that this update uses. The thin
    line is the minimum.

    Args:
        traces: label → a simulated run of one weight, with
            ``measure=lambda weights: weights[0]`` and ``every=1``.
        loss: function of an array of positions, with its minimum near 0.
        title: the finding, in words.

    Returns:
        An array of the matplotlib ``Axes`` with the arrows, one per run.

    Raises:
        ValueError: no run, a run without the position after each update, or
            with more updates than can be told apart.

    Introduced in lesson 08.
    """
    import matplotlib.pyplot as plt

    at_least_one(traces, "run")
    for label, trace in traces.items():
        _check(label, trace)
    far = max(np.abs(t.measured.value).max() for t in traces.values())
    figure, axes = plt.subplots(
        2,
        len(traces),
        figsize=(4 * len(traces), 4.6),
        sharex=True,
        sharey="row",
        squeeze=False,
        height_ratios=(1, 1.5),
        layout="constrained",
    )
    x = np.linspace(-1.2 * far, 1.2 * far, 101)
    keys = {}
    for above, below, label in zip(*axes, traces, strict=True):
        trace = traces[label]
        start = trace.measured.value[0]
        above.plot(x, loss(x), color="#999999", marker="", linewidth=3)
        above.plot(start, loss(start), "o", ms=13, color=EDGE)
        above.set(title=label, yticks=[])
        below.axvline(x[np.argmin(loss(x))], color="#999999", linewidth=1)
        _pushes(below, trace, keys)
        below.set(xlabel="weight x")
    axes[0][0].set_ylabel("loss")
    most = max(trace.updates for trace in traces.values())
    axes[1][0].set(ylabel="update", yticks=range(1, most + 1), ylim=(most + 0.6, 0.4))
    read = Line2D([], [], linestyle="none", label="slope read here", **READ)
    keys = [read, *(keys[name] for name in sorted(keys))]
    figure.legend(handles=keys, loc="outside lower left", ncols=min(4, len(keys)))
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=14)
    return axes[1]


def _pushes(ax: Axes, trace: ClockTrace, keys: dict[str, Line2D]) -> None:
    """Draw one arrow per update; add the looks it used to ``keys``."""
    points = trace.measured.value
    for update in range(1, trace.updates + 1):
        rows = np.flatnonzero(trace.write_version == update - 1)
        ax.plot(points[trace.read_version[rows[0]]], update, **READ)
        name, look = _look(trace.worker[rows])
        keys[name] = Line2D([], [], marker="", label=name, **look)
        before, after = points[update - 1 : update + 1]
        ax.annotate("", (after, update), (before, update), arrowprops=ARROW | look)


def _look(workers: np.ndarray) -> tuple[str, dict]:
    if len(workers) > 1:
        return "average", {"color": EDGE, "linestyle": "-", "linewidth": 4}
    worker = int(workers[0])
    again, line = divmod(worker, len(LINES))
    return f"device {worker}", {
        "color": CURVES[worker % len(CURVES)],
        "linestyle": LINES[line],
        "linewidth": 2.5 / (1 + again),  # a fifth device is not told by its colour alone
    }


def _check(label: str, trace: ClockTrace) -> None:
    if len(trace.measured.value) != trace.updates + 1:
        raise ValueError(
            f"{label!r} has no position after each update: run it with "
            "measure=lambda weights: weights[0] and every=1."
        )
    if trace.updates > MOST_UPDATES:
        raise ValueError(
            f"{label!r} has {trace.updates} updates: give at most "
            f"{MOST_UPDATES}, or nobody can tell them apart."
        )
