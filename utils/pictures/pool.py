"""What a program's tensors hold, and what its memory pool holds, step by step."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from utils.pictures.parts import EDGE, axes
from utils.style import CURVES


def pool_over_steps(
    needs_mb: Sequence[int], pool_mb: Sequence[int], *, title: str, ax: Axes | None = None
) -> Axes:
    """Draw the pool above what the tensors in it need.

    Args:
        needs_mb: what the tensors hold in each step, in MB.
        pool_mb: what the pool holds in each step, in MB.
        title: the finding, in words.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: the two have not the same length, or no step.

    Introduced in lesson 02.
    """
    if not len(needs_mb) == len(pool_mb) > 0:
        raise ValueError(
            f"needs_mb has {len(needs_mb)} steps and pool_mb {len(pool_mb)}: give a number "
            "per step to both."
        )
    ax = axes(ax, layout="constrained")
    steps = range(len(needs_mb))
    ax.bar(steps, needs_mb, 0.6, color=CURVES[4], hatch="//", edgecolor=EDGE, label="tensors")
    ax.stairs(
        pool_mb,
        [step - 0.5 for step in range(len(pool_mb) + 1)],
        baseline=None,
        color=CURVES[1],
        linewidth=3,
        label="pool",
    )
    for step, held in zip(steps, pool_mb, strict=True):
        ax.annotate(f"{held} MB", (step, held), (0, 4), textcoords="offset points", ha="center")
    ax.set_xticks(list(steps))
    ax.set_xlabel("step of the program")
    ax.set_ylabel("memory (MB)")
    ax.set_ylim(0, max(*pool_mb, 1) * 1.15)
    ax.set_title(title)
    # Below the axes' top edge nothing is free for sure, so it stands beside them.
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return ax
