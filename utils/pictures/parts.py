"""What the pictures draw alike: axes, lanes, a time axis, tables, boxes, words on white."""

from collections.abc import Sequence, Sized

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from utils.style import device_look

EDGE = "#333333"
STRIKING = "#B03A00"  # what the reader is to see first: a transfer, a failure, a path


def axes(ax: Axes | None, size: tuple[float, float] | None = None, **more: object) -> Axes:
    """Return ``ax``, or the axes of a new figure of this size in inches.

    Introduced in lesson 00, behind the pictures.
    """
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, **more)[1]


def at_least_one(given: Sized, kind: str, example: str = "") -> None:
    """Raise ValueError if there is nothing to draw.

    Introduced in lesson 00, behind the pictures.
    """
    if not len(given):
        raise ValueError(f"no {kind} to draw: give at least one{example}.")


def lane_order(name: str) -> tuple[int, str, int]:
    """Sort key for lanes: the host, then the GPUs by number, then others.

    Introduced in lesson 00, behind the pictures.
    """
    kind, _, index = name.partition(" ")
    rank = {"host": 0, "GPU": 1}.get(kind, 2)
    return rank, kind, int(index) if index.isdigit() else 0


def lanes_from_top(ax: Axes, names: Sequence[str]) -> None:
    """Make a lane per name, the first on top.

    Introduced in lesson 00, behind the pictures.
    """
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)


def bar(ax: Axes, lane: int, left: float, width: float, look: dict, height: float = 0.6) -> None:
    """Draw a bar in a lane, with a look of ``utils.style.device_look``.

    Introduced in lesson 00, behind the pictures.
    """
    ax.barh(lane, width, left=left, height=height, label="_", **look)


def time_axis(ax: Axes, right: float = 0.0) -> None:
    """Begin the time axis at 0, and end it at ``right`` or behind the last bar.

    Axes that share it keep all their bars, in whatever order they are drawn.

    Introduced in lesson 00, behind the pictures.
    """
    shared = ax.get_shared_x_axes().get_siblings(ax)
    ax.set_xlim(0, max(right, *(each.dataLim.x1 for each in shared)))


def table_axes(ax: Axes, columns: Sequence[str], rows: Sequence[str], **labels: object) -> None:
    """Make a place per column and row, the first row on top; ``labels`` are for the columns.

    Introduced in lesson 04, behind ``kernel_matrix``.
    """
    ax.set_xticks(range(len(columns)), columns, **labels)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def box(
    ax: Axes, left: float, top: float, width: float, height: float, corner: float, device: str
) -> None:
    """Draw a box with round corners that looks like a device.

    Introduced in lesson 00, behind ``machine_diagram``.
    """
    style = f"round,pad=0,rounding_size={corner}"
    ax.add_patch(FancyBboxPatch((left, top), width, height, boxstyle=style, **device_look(device)))


def words(ax: Axes, x: float, y: float, text: str, pad: float = 1, **more: object) -> None:
    """Write on white, around the middle, so that no hatch crosses the letters.

    Introduced in lesson 00, behind the pictures.
    """
    white = {"facecolor": "white", "edgecolor": "none", "pad": pad}
    ax.text(x, y, text, ha="center", va="center", bbox=white, **more)
