"""Tasks of a cluster: how often each ran which kind of operation."""

import re
from collections.abc import Collection, Mapping

from matplotlib.axes import Axes

from utils.pictures.parts import axes, box, table_axes, words

ROW = 0.42  # inches for a kind of operation


def who_ran_what(
    ran: Mapping[str, Mapping[str, int]],
    *,
    title: str,
    hide: Collection[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw a column per task and a row per kind of operation.

    A box holds how often the task ran the kind; no box means never. Kinds
    that the first task ran come first.

    Args:
        ran: task, such as ``"ps 0"`` → kind of operation → how often, as
            ``utils.task.ran.ran_by_task`` returns it.
        title: the finding, in words.
        hide: kinds to leave out.
        ax: axes to draw on; None makes a figure of the right size.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: nothing is left to draw.

    Introduced in lesson 09.
    """
    kinds = [k for task in ran.values() for k in task if k not in set(hide)]
    kinds = list(dict.fromkeys(kinds))
    if not kinds:
        raise ValueError(f"nothing to draw: hide={sorted(hide)} leaves none.")
    ax = axes(ax, (4.5 + 1.7 * len(ran), 1.0 + ROW * len(kinds)))
    for column, (task, counts) in enumerate(ran.items()):
        for row, kind in enumerate(kinds):
            if counts.get(kind):
                box(ax, column - 0.3, row - 0.3, 0.6, 0.6, 0.1, _device(task))
                words(ax, column, row, f"{counts[kind]}×")
    table_axes(ax, list(ran), kinds)
    ax.xaxis.tick_top()
    ax.hlines([r + 0.5 for r in range(len(kinds) - 1)], -0.5, len(ran) - 0.5, "#DDDDDD", lw=1)
    ax.set_title(title)
    return ax


def _device(task: str) -> str:
    """A worker looks like the GPU of its number, a parameter server like the host."""
    worker = re.fullmatch(r"worker (\d+)", task)
    return f"GPU {worker[1]}" if worker else "host"
