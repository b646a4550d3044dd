"""A pipeline: one lane per stage, one bar per step, as planned or as it ran."""

from collections.abc import Sequence

from utils.runs import BACKWARD, Step
from utils.style import device_look

UNITS = {"ms": (1e3, "time (ms)"), "steps": (1, "time (steps)")}
NARROW = 0.025  # of the width; a bar below this gets no text


def pipeline_lanes(
    steps: Sequence[Step], *, title: str, until: float | None = None, unit: str = "ms", ax=None
):
    """Draw when each stage worked on which micro-batch.

    A bar says F (forward) or B (backward) and the number of the micro-batch; backward bars are
    also lower. Gaps are waiting.

    Args:
        steps: from ``utils.runs.pipeline.schedule`` or ``ran``, in seconds.
        title: the finding, in words.
        until: where the time axis ends, in seconds; None ends it with the last step.
        unit: ``"ms"``, or ``"steps"`` for a plan whose durations are counted, not measured.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: no step, or another unit.

    Introduced in lesson 07.
    """
    if not steps:
        raise ValueError("no step to draw: give the steps of a schedule or of a traced run.")
    if unit not in UNITS:
        raise ValueError(f"unit={unit!r}: give one of {', '.join(UNITS)}.")
    scale, label = UNITS[unit]
    stages = 1 + max(step.stage for step in steps)
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(9, 1.3 + 0.7 * stages))[1]
    first = min(step.start for step in steps)
    right = max(step.end for step in steps) - first if until is None else until
    for step in steps:
        _bar(ax, step, first, right, scale)
    ax.set_yticks(range(stages), [f"GPU {stage}" for stage in range(stages)])
    ax.set_ylim(stages - 0.4, -0.6)
    ax.set_xlim(0, right * scale)
    ax.set_xlabel(label)
    ax.set_title(title)
    return ax


def _bar(ax, step: Step, first: float, right: float, scale: float) -> None:
    back = step.kind == BACKWARD
    left, width = (step.start - first) * scale, (step.end - step.start) * scale
    look = device_look(f"GPU {step.stage}")
    height = 0.45 if back else 0.8
    ax.barh(step.stage, width, left=left, height=height, label="_", **look)
    if width > NARROW * right * scale:
        ax.text(
            left + width / 2,
            step.stage,
            f"{step.kind[0].upper()}{step.micro_batch}",
            fontsize=12,
            ha="center",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            clip_on=True,
            zorder=3,
        )
