"""The course of training: one line per run, and which runs diverged."""

from collections.abc import Collection, Mapping

import numpy as np
from matplotlib.axes import Axes

from utils.clock import ClockTrace
from utils.pictures.parts import at_least_one, axes
from utils.style import LINES


def curves(
    lines: Mapping[str, tuple],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    diverged: Collection[str] = (),
    ax: Axes | None = None,
) -> Axes:
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
    at_least_one(lines, "line")
    lines = {k: (np.asarray(x), np.asarray(y)) for k, (x, y) in lines.items()}
    for label, (_, y) in lines.items():
        if label not in diverged and not np.isfinite(y).all():
            raise ValueError(
                f"{label!r} has values that are not finite: if this run "
                "diverged, name it in diverged."
            )
    ax = axes(ax)
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
    ax: Axes | None = None,
) -> Axes:
    """Draw the course of simulated runs, and say which of them diverged.

    Args:
        traces: label → a run of the virtual clock with gradients.
        title: the finding, in words.
        ylabel: what is drawn, with its unit.
        measured: True draws what ``measure`` returned instead of the loss.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: no run, or a run without such values.

    Introduced in lesson 08.
    """
    lines = {}
    for label, trace in traces.items():
        rows = trace.measured
        x, y = (rows.time, rows.value) if measured else (trace.times, trace.losses)
        if not len(y) or (np.isnan(y).all() and not trace.diverged):
            what = "measure" if measured else "gradient"
            raise ValueError(f"{label!r} has nothing to draw: run it with a {what}.")
        lines[label] = (x, y)
    return curves(
        lines,
        title=title,
        xlabel="simulated time (s)",
        ylabel=ylabel,
        diverged=[label for label, t in traces.items() if t.diverged],
        ax=ax,
    )


def _range(lines: Mapping[str, tuple], diverged: Collection[str]) -> tuple[float, float]:
    """Return what is worth drawing of the lines that diverged."""
    values = [y[:1] if label in diverged else y for label, (_, y) in lines.items()]
    values = np.concatenate(values)
    values = values[np.isfinite(values)]
    low, high = values.min(initial=0), values.max(initial=1)
    return low - (high - low), high + (high - low)
