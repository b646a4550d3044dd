"""Which card is the program's GPU 0: CUDA_VISIBLE_DEVICES as a pure function.

TensorFlow numbers the GPUs in the order in which CUDA hands them to it, from
0. ``visible_cards`` works that order out from two environment variables. Its
rules are those of two guides of NVIDIA:

- [CUDA] CUDA Programming Guide, 5.2.1.1 "CUDA_VISIBLE_DEVICES" and 5.2.1.2
  "CUDA_DEVICE_ORDER",
  https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
- [MIG] Multi-Instance GPU User Guide, "MIG Device Names", section "CUDA
  Device Enumeration",
  https://docs.nvidia.com/datacenter/tesla/mig-user-guide/mig-device-names.html

What they do not define is refused, although a driver will do something with
it: the next driver may do something else.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence

from utils.cards.nvidia_smi import Card, Instance

ORDERS = ("FASTEST_FIRST", "PCI_BUS_ID")
CHILD_SECONDS = 120  # a deadline: importing TensorFlow takes about 3
_INDEX = re.compile(r"-?[1-9][0-9]*|0")
_UUID = re.compile(r"GPU-[0-9a-fA-F][0-9a-fA-F-]*")
_MIG = re.compile(r"MIG-\S+")
_CHILD = """
import os, tensorflow as tf
for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
    print("child:", os.environ.get(name, "unset") or "empty")
print("child:", len(tf.config.list_physical_devices("GPU")))
"""


def visible_cards(
    cards: Sequence[Card], visible: str | None = None, order: str | None = None
) -> tuple[Card | Instance, ...]:
    """Return what a program sees: the program's GPU i is entry i.

    Rules, with the guide that defines each:

    - unset: all cards; empty: none [CUDA 5.2.1.1].
    - ``3,2``: numbers of cards, GPU 0 first; what is not named is "not
      visible" [CUDA 5.2.1.1]. They count as nvidia-smi does [CUDA 5.2.1.1]
      where the cards are alike, else in the order that ``order`` sets [CUDA
      5.2.1.2]: the two sections disagree there, and programs get the latter
      (https://github.com/tensorflow/tensorflow/issues/152).
    - an index that no card has, such as ``-1``, hides itself and all after
      it: "only devices with indices that appear before the invalid index in
      the list are visible" [CUDA 5.2.1.1].
    - ``GPU-…``: a UUID or enough of its beginning to be "uniquely" one card's
      [CUDA 5.2.1.1].
    - ``MIG-<GPU-UUID>/<GPU instance>/<compute instance>`` [CUDA 5.2.1.1] or
      ``MIG-<UUID>`` [MIG]: one part of a card. "Only single MIG instance
      enumeration is supported" [CUDA 5.2.1.1].

    Args:
        cards: the cards of the machine.
        visible: value of ``CUDA_VISIBLE_DEVICES``; None if it is not set.
        order: value of ``CUDA_DEVICE_ORDER``; None if it is not set, which
            is ``FASTEST_FIRST`` [CUDA 5.2.1.2].

    Returns:
        Cards, or one ``Instance``; empty if the program sees no GPU.

    Raises:
        TypeError: a value is not text.
        ValueError: the guides do not define what happens; the message says
            what to write instead.

    Introduced in lesson 02.
    """
    cards = tuple(cards)
    _check_text(visible, order)
    if visible == "":
        return ()
    if visible is None:
        return tuple(_whole(card, "all cards") for card in _in_order(cards, order))
    names = visible.split(",")
    kinds = sorted({_kind(name, visible) for name in names})
    if len(kinds) > 1:
        raise _undefined(visible, f"it mixes {' and '.join(kinds)}", "one kind of name")
    if kinds == ["MIG names"]:
        return _by_mig(cards, names, visible)
    if kinds == ["UUIDs"]:
        return _by_uuid(cards, names, visible)
    return _by_index(cards, names, visible, order)


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
    for kind, pattern in (("indices", _INDEX), ("UUIDs", _UUID), ("MIG names", _MIG)):
        if pattern.fullmatch(name):
            return kind
    what = "has a space in it" if " " in visible else f"has {name!r} in it"
    raise _undefined(
        visible, what, "indices or UUIDs with commas between, such as '0,1', or one MIG name"
    )


def _undefined(visible: str, what: str, allowed: str) -> ValueError:
    return ValueError(
        f"CUDA_VISIBLE_DEVICES={visible!r}: {what}. NVIDIA's guide does not "
        f"define what happens then; give {allowed}."
    )


def _in_order(cards: tuple[Card, ...], order: str | None) -> list[Card]:
    """Return the cards as CUDA numbers them."""
    if order == "PCI_BUS_ID":
        return sorted(cards, key=lambda card: card.bus_id.lower())
    if len({card.name for card in cards}) <= 1:  # none is faster
        return sorted(cards, key=lambda card: card.index)
    speeds = [card.speed for card in cards]
    if None in speeds or len(set(speeds)) < len(speeds):
        raise ValueError(
            "These cards differ, and CUDA numbers them 'from fastest to slowest "
            "using a simple heuristic' that NVIDIA's guide does not give. Set "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID, or give every Card its own speed (0 "
            "is the fastest)."
        )
    return sorted(cards, key=lambda card: card.speed)


def _whole(card: Card, given: str) -> Card:
    if card.instances:
        raise ValueError(
            f"{given}: card {card.index} is in MIG mode. Which part a program "
            "gets then depends on the driver: name one, such as "
            f"CUDA_VISIBLE_DEVICES={card.instances[0].uuid}."
        )
    return card


def _by_index(cards, names, visible, order) -> tuple[Card, ...]:
    seen: list[Card] = []
    for name in names:
        if not 0 <= int(name) < len(cards):
            break
        card = _whole(_in_order(cards, order)[int(name)], f"index {name}")
        _once(card, seen, visible)
        seen.append(card)
    return tuple(seen)


def _by_uuid(cards, names, visible) -> tuple[Card, ...]:
    seen: list[Card] = []
    for name in names:
        found = [card for card in cards if card.uuid.startswith(name)]
        if len(found) != 1:
            raise _undefined(
                visible,
                f"{name} begins the UUIDs of {len(found)} cards",
                "enough of a UUID to be one card's",
            )
        card = _whole(found[0], name)
        _once(card, seen, visible)
        seen.append(card)
    return tuple(seen)


def _by_mig(cards, names, visible) -> tuple[Instance, ...]:
    if len(names) > 1:
        raise _undefined(
            visible, "it names several MIG parts, which depends on the driver", "one MIG name"
        )
    known = {}
    for card in cards:
        for part in card.instances:
            numbers = f"{part.gpu_instance}/{part.compute_instance}"
            known |= {part.uuid: part, f"MIG-{card.uuid}/{numbers}": part}
    if names[0] not in known:
        raise _undefined(visible, "no card has this MIG part", "the whole name of one")
    return (known[names[0]],)


def _once(card: Card, seen: list[Card], visible: str) -> None:
    if card in seen:
        raise _undefined(visible, f"it names card {card.index} twice", "each card once")


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
