"""The course of training: one line per run, and which runs diverged."""

from collections.abc import Collection, Mapping

import numpy as np

from utils.clock import ClockTrace
from utils.style import LINES


def curves(
    lines: Mapping[str, tuple],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    diverged: Collection[str] = (),
    ax=None,
):
    """Draw one line per run; a run that diverged ends in a cross.

    Args:
        lines: label → (x, y), arrays of equal length.
        title: the finding, in words.
        xlabel: what x is, with its unit.
        ylabel: what y is, with its unit.
        diverged: labels of the runs that diverged. They are drawn until they
            leave the range of the others, so they do not squash them.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: no line, or one with values that are not finite but not
            among ``diverged``.

    Introduced in lesson 08.
    """
    import matplotlib.pyplot as plt

    lines = {k: (np.asarray(x), np.asarray(y)) for k, (x, y) in lines.items()}
    if not lines:
        raise ValueError("no line to draw: give at least one.")
    for label, (_, y) in lines.items():
        if label not in diverged and not np.isfinite(y).all():
            raise ValueError(
                f"{label!r} has values that are not finite: if this run "
                "diverged, name it in diverged."
            )
    if ax is None:
        ax = plt.subplots()[1]
    low, high = _range(lines, diverged)
    for turn, (label, (x, y)) in enumerate(lines.items()):
        bad = label in diverged
        if bad:
            inside = (y >= low) & (y <= high)
            end = len(y) if inside.all() else int(np.argmin(inside))
            x, y, label = x[:end], y[:end], f"{label} (diverged)"
        (line,) = ax.plot(
            x,
            y,
            linestyle=LINES[turn % len(LINES)],
            label=label,
            markevery=max(1, len(x) // 12),
        )
        if bad and len(x):
            ax.plot(x[-1], y[-1], "x", ms=14, mew=3, color=line.get_color())
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.legend()
    return ax


def training_curves(
    traces: Mapping[str, ClockTrace],
    *,
    title: str,
    ylabel: str = "loss",
    measured: bool = False,
    against: str = "time",
    ax=None,
):
    """Draw the course of simulated runs, and say which of them diverged.

    Args:
        traces: label → a run of the virtual clock with gradients.
        title: the finding, in words.
        ylabel: what is drawn, with its unit.
        measured: True draws what ``measure`` returned instead of the loss.
        against: ``"time"`` or ``"updates"``.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: another ``against``, or a run without such values.

    Introduced in lesson 08.
    """
    labels = {"time": "simulated time (s)", "updates": "updates (simulated)"}
    if against not in labels:
        raise ValueError(f'against={against!r}: give "time" or "updates".')
    lines = {}
    for label, trace in traces.items():
        x, y = _course(trace, measured, against)
        if not len(y) or (np.isnan(y).all() and not trace.diverged):
            what = "measure" if measured else "gradient"
            raise ValueError(f"{label!r} has nothing to draw: run it with a {what}.")
        lines[label] = (x, y)
    return curves(
        lines,
        title=title,
        xlabel=labels[against],
        ylabel=ylabel,
        diverged=[label for label, t in traces.items() if t.diverged],
        ax=ax,
    )


def _course(trace: ClockTrace, measured: bool, against: str):
    if measured:
        rows = trace.measured
        x = rows.time if against == "time" else rows.update
        return x, rows.value
    updates = np.arange(1, trace.updates + 1)
    return trace.times if against == "time" else updates, trace.losses


def _range(lines: Mapping[str, tuple], diverged: Collection[str]):
    """Return what is worth drawing of the lines that diverged."""
    values = [y[:1] if label in diverged else y for label, (_, y) in lines.items()]
    values = np.concatenate(values)
    values = values[np.isfinite(values)]
    low, high = values.min(initial=0), values.max(initial=1)
    return low - (high - low), high + (high - low)
