"""Measured speed-up against the number of towers, beside what theory allows."""

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from utils.numbers import real
from utils.pictures.parts import at_least_one, axes
from utils.style import CURVES, LINES, MARKERS


def amdahl(towers: ArrayLike, serial: float) -> np.ndarray:
    """Return the speed-up that Amdahl's law allows for a fixed amount of work.

    1 / (serial + (1 - serial) / towers): the serial part takes as long as
    ever, the rest is shared. Source: Amdahl, "Validity of the single
    processor approach to achieving large scale computing capabilities", 1967.

    Args:
        towers: how many share the work; a number or an array, 1 or more.
        serial: share of the work on one device that cannot be shared, 0 to 1.

    Introduced in lesson 06.
    """
    return 1 / (serial + (1 - serial) / np.asarray(towers))


def gustafson(towers: ArrayLike, serial: float) -> np.ndarray:
    """Return the speed-up for work that grows with the number of towers.

    serial + (1 - serial) * towers: each tower brings as much work as one has.
    Source: Gustafson, "Reevaluating Amdahl's law", 1988.

    Args:
        towers: a number or an array, 1 or more.
        serial: as in ``amdahl``.

    Introduced in lesson 06.
    """
    return serial + (1 - serial) * np.asarray(towers)


def speedup(
    measured: dict[int, float],
    *,
    serial: float,
    title: str,
    weak: bool = False,
    cores: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw measured speed-ups beside the ideal and what the serial part allows.

    Args:
        measured: number of towers to speed-up over one tower on one device.
        serial: share of one tower's step that cannot be shared, 0 to 1.
        title: what is compared, in words.
        weak: True if the work grew with the towers (Gustafson's line), False
            if it stayed the same (Amdahl's line).
        cores: cores that the towers share; drawn where there are fewer cores
            than towers. None where each tower has a device of its own.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``.

    Raises:
        ValueError: ``serial`` is no share, or nothing was measured.

    Introduced in lesson 06.
    """
    at_least_one(measured, "speed-up", ", such as {1: 1.0}")
    serial = real("serial", serial, low=0, high=1)
    ax = axes(ax, (6, 4))
    towers = sorted(measured)
    fine = np.linspace(1, towers[-1], 50)
    name, law = ("Gustafson", gustafson) if weak else ("Amdahl", amdahl)
    ax.plot(fine, fine, LINES[1], color="#666666", marker="", label="ideal")
    ax.plot(
        fine, law(fine, serial), LINES[3], color=CURVES[1], marker="",
        label=f"{name}, {serial:.0%} serial",
    )  # fmt: skip
    if cores is not None and cores < towers[-1]:
        label = f"{cores} core" + "s" * (cores != 1)
        ax.axhline(cores, ls=LINES[2], lw=1.2, color="#666666", label=label)
    ax.plot(
        towers, [measured[n] for n in towers], LINES[0], color=CURVES[0],
        marker=MARKERS[0], markersize=9, label="measured",
    )  # fmt: skip
    ax.set_xticks(towers)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("towers")
    ax.set_ylabel("times one tower on one core")
    ax.set_title(title)
    ax.legend(loc="upper left", frameon=False)
    return ax
