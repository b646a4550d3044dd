"""The machine as a diagram: the host, its GPUs, and which are virtual."""

from matplotlib.axes import Axes

from utils.machine import Machine
from utils.pictures.parts import EDGE, axes, box, words

HEIGHT, CORNER = 1.5, 0.12  # of a box, and how round it is


def machine_diagram(machine: Machine, *, title: str, ax: Axes | None = None) -> Axes:
    """Draw the devices of a machine and what stands behind each of them.

    Args:
        machine: what ``begin`` or ``virtual_gpus`` returned.
        title: the finding, in words.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Introduced in lesson 00.
    """
    count = len(machine.gpus)
    ax = axes(ax, (max(9, 2.6 * count), 3.8))  # each box as wide as its text needs
    width = count * 3 - 0.4
    box(ax, 0, 2.0, width, HEIGHT, CORNER, "host")
    words(ax, width / 2, 2.0 + HEIGHT / 2, f"host\n{machine.host}", pad=3)
    for i, name in enumerate(machine.gpus):
        text = f"GPU {i}\n{name}\n{_behind(machine, i)}"
        box(ax, i * 3, 0, 2.6, HEIGHT, CORNER, f"GPU {i}")
        words(ax, i * 3 + 1.3, HEIGHT / 2, text, pad=3)
        ax.annotate(
            "",
            xy=(i * 3 + 1.3, HEIGHT),
            xytext=(i * 3 + 1.3, 2.0),
            arrowprops={"arrowstyle": "<->", "color": EDGE, "lw": 1.5},
        )
    ax.set_xlim(-0.2, count * 3 - 0.2)
    ax.set_ylim(-0.15, 2.0 + HEIGHT + 0.15)
    ax.set_axis_off()
    ax.set_title(title)
    return ax


def _behind(machine: Machine, gpu: int) -> str:
    if machine.kind == "virtual":
        return "part of the CPU"
    if machine.kind == "split":
        return f"part of card {machine.cards[gpu]}"
    return "a real card"
