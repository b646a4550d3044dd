"""One look for every picture: colours of devices, fonts, line styles.

The colours are those of Okabe and Ito, which stay apart for colour-blind
readers; a hatch repeats what each colour says, for those who see grey.
"""

import re
import sys

import matplotlib

HOST_COLOUR = "#BBBBBB"
# One (colour, hatch) per GPU; from the fifth on they repeat with more lines.
GPU_LOOKS = (
    ("#E69F00", "//"),
    ("#56B4E9", "\\\\"),
    ("#009E73", "xx"),
    ("#CC79A7", ".."),
)
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")


def apply() -> None:
    """Set the course's look for all pictures that follow; in a notebook they stand in it.

    What MPLBACKEND or a matplotlibrc say is replaced: a picture would vanish without a word.
    ``begin`` calls this; introduced in lesson 00.
    """
    matplotlib.rcdefaults()
    if kernel_shell := _kernel_shell():
        kernel_shell.enable_matplotlib("inline")
    matplotlib.rcParams.update(
        {
            "figure.figsize": (9, 4),
            "figure.dpi": 100,
            "font.family": "DejaVu Sans",
            "font.size": 13,
            "axes.titlesize": 14,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.labelsize": 13,
            "xtick.labelsize": 12,
            "ytick.labelsize": 12,
            "legend.fontsize": 12,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": matplotlib.cycler(color=CURVES)
            + matplotlib.cycler(marker=MARKERS[: len(CURVES)]),
            "lines.linewidth": 2,
            "hatch.linewidth": 0.6,
            "svg.hashsalt": "many-devices",
        }
    )


def _kernel_shell():
    """Return IPython's shell if this process is a notebook's kernel, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if hasattr(shell, "kernel") else None


def device_look(name: str) -> dict:
    """Return how a device is filled in every picture.

    Args:
        name: ``"host"`` or ``"GPU 0"``, ``"GPU 1"`` …, as
            ``utils.machine.devices.plain_name`` gives it; any other device is white.

    Returns:
        Keyword arguments for a matplotlib patch: face colour, hatch, edge.

    Introduced in lesson 00.
    """
    if name == "host":
        return {"facecolor": HOST_COLOUR, "hatch": "", "edgecolor": "#333333"}
    found = re.fullmatch(r"GPU (\d+)", name)
    if not found:
        return {"facecolor": "white", "hatch": "", "edgecolor": "#333333"}
    turn, index = divmod(int(found.group(1)), len(GPU_LOOKS))
    colour, hatch = GPU_LOOKS[index]
    return {
        "facecolor": colour,
        "hatch": hatch + hatch[0] * turn,
        "edgecolor": "#333333",
    }
