"""A pipeline: one lane per stage, one bar per step, as planned or as it ran."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from utils.pictures.parts import at_least_one, axes, bar, lanes_from_top, time_axis, words
from utils.runs import BACKWARD, Step
from utils.style import device_look

UNITS = {"ms": (1e3, "time (ms)"), "steps": (1, "time (steps)")}
NARROW = 0.025  # of the width; a bar below this gets no text


def pipeline_lanes(
    steps: Sequence[Step],
    *,
    title: str,
    until: float | None = None,
    unit: str = "ms",
    ax: Axes | None = None,
) -> Axes:
    """Draw when each stage worked on which micro-batch.

    A bar says F (forward) or B (backward) and the number of the micro-batch; backward bars are
    also lower. Gaps are waiting.

    Args:
        steps: from ``utils.runs.pipeline.schedule`` or ``ran``, in seconds.
        title: the finding, in words.
        until: the time axis reaches at least this far, in seconds; None ends it with the last
            step. No step is cut off, here or on axes that share the time axis.
        unit: ``"ms"``, or ``"steps"`` for a plan whose durations are counted, not measured.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: no step, or another unit.

    Introduced in lesson 07.
    """
    at_least_one(steps, "step", ", from a schedule or a traced run")
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r}: give one of {', '.join(UNITS)}.")
    scale, label = UNITS[unit]
    stages = 1 + max(step.stage for step in steps)
    ax = axes(ax, (9, 1.3 + 0.7 * stages))
    first = min(step.start for step in steps)
    right = max(until or 0, max(step.end for step in steps) - first)
    for step in steps:
        _bar(ax, step, first, right, scale)
    lanes_from_top(ax, [f"GPU {stage}" for stage in range(stages)])
    time_axis(ax, right * scale)
    ax.set_xlabel(label)
    ax.set_title(title)
    return ax


def _bar(ax: Axes, step: Step, first: float, right: float, scale: float) -> None:
    left, width = (step.start - first) * scale, (step.end - step.start) * scale
    height = 0.45 if step.kind == BACKWARD else 0.8
    bar(ax, step.stage, left, width, device_look(f"GPU {step.stage}"), height)
    if width > NARROW * right * scale:
        text = f"{step.kind[0].upper()}{step.micro_batch}"
        words(ax, left + width / 2, step.stage, text, fontsize=12, clip_on=True, zorder=3)
