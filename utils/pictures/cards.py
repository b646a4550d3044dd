"""Cards and the programs that share their memory; what a step held over time."""

import textwrap

from matplotlib.axes import Axes

from utils.cards import Card
from utils.machine import plain_name
from utils.memory import Fit, Shortage
from utils.pictures.parts import EDGE, STRIKING, at_least_one, axes, lane_order, words
from utils.runs import Trace, memory_over_time
from utils.style import GPU_LOOKS, LINES, MARKERS, device_look

# Not the colours of GPU 0, 1 …: here a colour is a program.
PROGRAM_COLOURS = ("#0072B2", "#F0E442", "#D55E00", "#999999")
NOTE = (
    "MODEL of TensorFlow's GPU memory, nothing measured.\n"
    "Strong colour: CUDA context and tensors. Pale: reserved, not in use."
)
# Width of a card, the space to the next, the width of a program that failed.
BAR, GAP, ASIDE = 1.0, 0.45, 2.1
TEXT = {"fontsize": 12, "zorder": 4}


def cards_diagram(fit: Fit, *, title: str, ax: Axes | None = None) -> Axes:
    """Draw each card as a column, filled with what the programs hold there in the end.

    A column is what CUDA shows of a card. A block is a program's memory on it,
    its CUDA context included; the strong part at its bottom is what it uses,
    context and tensors. A program that has failed stands
    at the right, outside the cards, as high as what it needs, with the reason.

    Args:
        fit: what ``do_they_fit`` returned.
        title: the finding, in words.
        ax: axes to draw on; None makes a figure of the right size.

    Returns:
        The matplotlib ``Axes``. The memory axis is in GB (2**30 bytes).

    Raises:
        ValueError: there is no card.

    Introduced in lesson 02.
    """
    at_least_one(fit.cards, "card", ", to do_they_fit")
    wide = len(fit.cards) * (BAR + GAP) + len(fit.failures) * ASIDE
    ax = axes(ax, (max(1.4 + 1.6 * wide, 6.5), 4.4), layout="constrained")
    for column, card in enumerate(fit.cards):
        _draw_card(ax, fit, column, card)
    highest = (max(card.memory_mb for card in fit.cards) - fit.driver_mb) / 1024
    right = len(fit.cards) * (BAR + GAP)
    for failure in fit.failures:
        _draw_failed(ax, fit, failure, right, highest / 2)
        right += ASIDE
    ax.set_xlim(-GAP, right)
    needs = [(f.needs_mb + fit.context_mb) / 1024 for f in fit.failures]
    ax.set_ylim(0, max([highest, *needs]) * 1.04)
    middles = [column * (BAR + GAP) + BAR / 2 for column in range(len(fit.cards))]
    labels = [f"card {card.index}\n{card.name}" for card in fit.cards]
    ax.set_xticks(middles, labels)
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel("memory (GB)")
    ax.set_title(title)
    ax.text(0, -0.2, NOTE, transform=ax.transAxes, fontsize=12, va="top")
    return ax


def held_over_time(trace: Trace, *, title: str, ax: Axes | None = None) -> Axes:
    """Draw what the operations of a traced step held on each device, over time.

    The marker is the peak. Measured: it differs from run to run.

    Args:
        trace: a traced run.
        title: the finding, in words.
        ax: axes to draw on; None makes a figure.

    Returns:
        The matplotlib ``Axes``: milliseconds against MB (2**20 bytes).

    Raises:
        ValueError: no operation of the run took memory.

    Introduced in lesson 02.
    """
    curves = memory_over_time(trace)
    if not curves:
        raise ValueError("no operation of this run took memory: there is nothing to draw.")
    ax = axes(ax)
    for i, device in enumerate(sorted(curves, key=lambda name: lane_order(plain_name(name)))):
        seconds, held = curves[device]
        colour = device_look(plain_name(device))["facecolor"]
        ax.step(
            seconds * 1e3,
            held / 2**20,
            where="post",
            color=colour,
            linestyle=LINES[i % len(LINES)],
            marker=MARKERS[i % len(MARKERS)],
            markevery=[int(held.argmax())],
            markersize=10,
            markeredgecolor=EDGE,
            label=f"{plain_name(device)}: peak {held.max() / 2**20:.2f} MB",
        )
    ax.set_xlabel("time since the first allocation (ms)")
    ax.set_ylabel("held by operations (MB)")
    ax.set_ylim(bottom=0)
    ax.set_title(title)
    ax.legend()
    return ax


def _look(fit: Fit, program: str) -> dict:
    number = [p.name for p in fit.programs].index(program)
    hatch = GPU_LOOKS[number % len(GPU_LOOKS)][1]
    colour = PROGRAM_COLOURS[number % len(PROGRAM_COLOURS)]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": EDGE}


def _draw_card(ax: Axes, fit: Fit, column: int, card: Card) -> None:
    left, bottom = column * (BAR + GAP), 0.0
    for program in fit.programs:
        held = fit.pools.get((program.name, card.index), (None,))
        if held[-1] is None:
            continue
        height = (held[-1] + fit.context_mb) / 1024
        look = _look(fit, program.name)
        ax.bar(left, height, BAR, bottom, align="edge", alpha=0.35, **look)
        first = next(c for (name, c) in fit.pools if name == program.name)
        needs = program.needs(len(held) - 1, len(held)) if first == card.index else 0
        ax.bar(left, (needs + fit.context_mb) / 1024, BAR, bottom, align="edge", **look)
        text = f"{program.name}: {height:.1f} GB"
        words(ax, left + BAR / 2, bottom + height / 2, text, pad=2, **TEXT)
        bottom += height
    whole = (card.memory_mb - fit.driver_mb) / 1024
    ax.bar(left, whole, BAR, align="edge", fill=False, edgecolor=EDGE, linewidth=2)
    if whole - bottom > 0.06 * whole:
        text = f"free: {whole - bottom:.1f} GB"
        ax.text(left + BAR / 2, (bottom + whole) / 2, text, ha="center", va="center", **TEXT)


def _draw_failed(ax: Axes, fit: Fit, failure: Shortage, left: float, middle: float) -> None:
    what = "fails" if failure.ends else "gets less than it asked for"
    # No line breaks inside "card 0" and "275 MB".
    message = failure.message.replace("card ", "card\xa0").replace(" MB", "\xa0MB")
    lines = [f"{failure.program} {what}:", *textwrap.wrap(message, 26)]
    if failure.ends:  # else it stands in its card
        height = (failure.needs_mb + fit.context_mb) / 1024
        look = _look(fit, failure.program) | {"edgecolor": STRIKING}
        ax.bar(left, height, 0.3, align="edge", linestyle="--", linewidth=2, **look)
    ax.text(left + 0.38, middle, "\n".join(lines), va="center", color=STRIKING, fontsize=12)
