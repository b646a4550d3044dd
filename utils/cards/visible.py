"""Which card is the program's GPU 0: CUDA_VISIBLE_DEVICES as a pure function.

TensorFlow numbers the GPUs in the order in which CUDA hands them to it, from
0. ``visible_cards`` works that order out from two environment variables. Its
rules are those of NVIDIA's CUDA Programming Guide, 5.2.1.1
"CUDA_VISIBLE_DEVICES" and 5.2.1.2 "CUDA_DEVICE_ORDER":
https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html

The guide is silent about a card that is named twice, blanks, empty entries,
other words, indices and UUIDs in one list, and a UUID that begins no card's or
several cards'. A driver does something with each of them; the next one may do
something else. They are refused. The guide also has names for parts of a card
(``MIG-<GPU-UUID>/<GPU instance>/<compute instance>``); they are not covered.
"""

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Sequence

from utils.cards.nvidia_smi import Card

ORDERS = ("FASTEST_FIRST", "PCI_BUS_ID")
CHILD_SECONDS = 120  # a deadline: importing TensorFlow takes about 3
_INDEX = re.compile(r"-?[1-9][0-9]*|0")
_UUID = re.compile(r"GPU-[0-9a-fA-F][0-9a-fA-F-]*")
_CHILD = """
import os, tensorflow as tf
for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
    print("child:", os.environ.get(name, "unset") or "empty")
print("child:", len(tf.config.list_physical_devices("GPU")))
"""


def visible_cards(
    cards: Sequence[Card], visible: str | None = None, order: str | None = None
) -> tuple[Card, ...]:
    """Return what a program sees: the program's GPU i is entry i.

    The rules of NVIDIA's guide (the module's text says what it leaves open):

    - unset: all cards; empty: none [5.2.1.1].
    - ``3,2``: numbers of cards, GPU 0 first; what is not named is "not
      visible" [5.2.1.1]. They count as nvidia-smi does [5.2.1.1] where the
      cards are alike, else in the order that ``order`` sets [5.2.1.2]: the two
      sections disagree there, and programs get the latter
      (https://github.com/tensorflow/tensorflow/issues/152).
    - an index that no card has, such as ``-1``, hides itself and all after
      it: "only devices with indices that appear before the invalid index in
      the list are visible" [5.2.1.1].
    - ``GPU-…``: a UUID or enough of its beginning to be "uniquely" one card's
      [5.2.1.1].

    Args:
        cards: the cards of the machine.
        visible: value of ``CUDA_VISIBLE_DEVICES``; None if it is not set.
        order: value of ``CUDA_DEVICE_ORDER``; None if it is not set, which
            is ``FASTEST_FIRST`` [5.2.1.2].

    Returns:
        The cards; none if the program sees no GPU.

    Raises:
        TypeError: a value is not text.
        ValueError: the guide does not define what happens, or parts of a card
            are named; the message says what to write instead.

    Introduced in lesson 02.
    """
    cards = tuple(cards)
    _check_text(visible, order)
    if visible is None:
        return tuple(_in_order(cards, order))
    seen: list[Card] = []
    for name in identifiers(visible):
        if name.startswith("GPU-"):
            card = _by_uuid(cards, name, visible)
        elif int(name) >= len(cards):
            break
        else:
            card = _in_order(cards, order)[int(name)]
        if card in seen:
            raise _undefined(visible, f"it names card {card.index} twice", "each card once")
        seen.append(card)
    return tuple(seen)


def identifiers(visible: str) -> tuple[str, ...]:
    """Return the indices or UUIDs in a value, up to the first negative index.

    Args:
        visible: value of ``CUDA_VISIBLE_DEVICES``.

    Raises:
        ValueError: as ``visible_cards``.

    Introduced in lesson 01, behind ``diagnose``: it needs no cards.
    """
    names = visible.split(",") if visible else []
    kinds = sorted({_kind(name, visible) for name in names})
    if len(kinds) > 1:
        raise _undefined(visible, f"it mixes {' and '.join(kinds)}", "one kind of name")
    return tuple(itertools.takewhile(lambda name: not name.startswith("-"), names))


def children_report(settings: Sequence[str | None], order: str | None = None) -> list[str]:
    """Start a program per setting and return what each was given.

    The programs run at the same time; each has ``CUDA_VISIBLE_DEVICES`` in
    its environment from the start (changed later, it has no effect), imports
    TensorFlow, reports and ends.

    Args:
        settings: values of ``CUDA_VISIBLE_DEVICES``; None leaves it unset.
        order: value of ``CUDA_DEVICE_ORDER``; None leaves it unset.

    Returns:
        One line per program: both variables as it read them, and how many
        GPUs TensorFlow lists there.

    Raises:
        RuntimeError: a program failed; the message has its last lines.
        subprocess.TimeoutExpired: a program did not end within two minutes.

    Introduced in lesson 02.
    """
    children = []
    try:
        for visible in settings:
            children.append(_start(visible, order))
        return [_report(child) for child in children]
    finally:
        for child in children:
            with child:  # closes its pipes and waits for its end
                child.kill()  # does nothing to one that has ended


def _check_text(visible: str | None, order: str | None) -> None:
    for name, value in (("visible", visible), ("order", order)):
        if value is not None and not isinstance(value, str):
            raise TypeError(
                f"{name}={value!r}: an environment variable is text, such as "
                "'0,1'; give None if it is not set."
            )
    if order is not None and order not in ORDERS:
        raise ValueError(
            f"CUDA_DEVICE_ORDER={order!r}: NVIDIA's guide defines {' and '.join(ORDERS)} only."
        )


def _kind(name: str, visible: str) -> str:
    for kind, pattern in (("indices", _INDEX), ("UUIDs", _UUID)):
        if pattern.fullmatch(name):
            return kind
    allowed = "indices or UUIDs with commas between, such as '0,1'"
    if name.startswith("MIG-"):
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES={visible!r}: it names a part of a card (MIG), which the "
            f"course does not cover; give {allowed}."
        )
    what = "has a space in it" if " " in visible else f"has {name!r} in it"
    raise _undefined(visible, what, allowed)


def _undefined(visible: str, what: str, allowed: str) -> ValueError:
    return ValueError(
        f"CUDA_VISIBLE_DEVICES={visible!r}: {what}. NVIDIA's guide does not "
        f"define what happens then; give {allowed}."
    )


def _in_order(cards: tuple[Card, ...], order: str | None) -> list[Card]:
    """Return the cards as CUDA numbers them."""
    if order == "PCI_BUS_ID":
        return sorted(cards, key=lambda card: card.bus_id.lower())
    if len({card.name for card in cards}) > 1:
        raise ValueError(
            "These cards differ, and CUDA numbers them 'from fastest to slowest "
            "using a simple heuristic' that NVIDIA's guide does not give. Set "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID."
        )
    return sorted(cards, key=lambda card: card.index)  # none is faster


def _by_uuid(cards: tuple[Card, ...], name: str, visible: str) -> Card:
    found = [card for card in cards if card.uuid.startswith(name)]
    if len(found) != 1:
        what = f"{name} begins the UUIDs of {len(found)} cards"
        raise _undefined(visible, what, "enough of a UUID to be one card's")
    return found[0]


def _start(visible: str | None, order: str | None) -> subprocess.Popen:
    given = {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": order}
    environment = {k: v for k, v in os.environ.items() if k not in given}
    environment |= {k: v for k, v in given.items() if v is not None}
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD],
        env=environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _report(child: subprocess.Popen) -> str:
    out, errors = child.communicate(timeout=CHILD_SECONDS)
    said = [line.removeprefix("child: ") for line in out.splitlines() if line[:7] == "child: "]
    if child.returncode or len(said) != 3:
        raise RuntimeError(
            f"The child program ended with code {child.returncode}: {errors[-500:].strip()}"
        )
    return (
        f"CUDA_VISIBLE_DEVICES {said[0]}, CUDA_DEVICE_ORDER {said[1]}: "
        f"TensorFlow lists {said[2]} GPU(s)"
    )
