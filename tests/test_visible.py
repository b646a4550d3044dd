"""utils.cards.visible: which card is the program's GPU 0."""

import dataclasses
import sys

import pytest

from utils.cards import children_report, example, read_cards, visible, visible_cards

FOUR = read_cards(example("four_cards"))
T4, A100 = read_cards(example("unlike_cards"))


def seen(value, cards=FOUR, order=None):
    return [card.index for card in visible_cards(cards, value, order)]


@pytest.mark.parametrize(
    ("value", "cards"),
    [
        (None, [0, 1, 2, 3]),  # not set: all
        ("", []),  # set to nothing: none
        ("0,1", [0, 1]),
        ("3,2", [3, 2]),  # GPU 0 is card 3
        ("0,2", [0, 2]),  # a gap: GPU 1 is card 2
        ("2", [2]),
        ("-1", []),
        ("4", []),
        ("0,2,-1,1", [0, 2]),  # NVIDIA's own example
        ("0,4,1", [0]),  # out of range: it hides itself and all after it
        ("-1,0", []),
        ("1,-1,1", [1]),  # what is hidden is not looked at
    ],
)
def test_indices(value, cards):
    assert seen(value) == cards


@pytest.mark.parametrize(
    ("value", "cards"),
    [
        (FOUR[2].uuid, [2]),
        ("GPU-8932f937", [0]),  # NVIDIA's own example
        ("GPU-c2,GPU-1", [3, 2]),
        (f"{FOUR[1].uuid},{FOUR[0].uuid}", [1, 0]),
    ],
)
def test_uuids(value, cards):
    assert seen(value) == cards


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("0, 1", "has a space"),
        (" 0", "has a space"),
        (" 1 , 0", "has a space"),
        ("0,,1", "has '' in it"),
        ("0,", "has '' in it"),
        (",", "has '' in it"),
        ("0;1", "has '0;1' in it"),
        ("01", "has '01' in it"),
        ("+1", "has '\\+1' in it"),
        ("-0", "has '-0' in it"),
        ("1.0", "has '1.0' in it"),
        ("\u0661", "has '\u0661' in it"),  # a digit, but not one of 0 to 9
        ("all", "has 'all' in it"),
        ("NoDevFiles", "has 'NoDevFiles' in it"),
        ("0,-1,all", "has 'all' in it"),
        ("0,0", "names card 0 twice"),
        ("GPU-8932,GPU-8932f", "names card 0 twice"),
        ("GPU-89", "begins the UUIDs of 2 cards"),
        ("GPU-dead", "begins the UUIDs of 0 cards"),
        ("GPU-", "has 'GPU-' in it"),
        ("0,GPU-8932", "mixes UUIDs and indices"),
    ],
)
def test_what_the_guide_does_not_define(value, why):
    with pytest.raises(ValueError, match=f"(?s)^CUDA_VISIBLE_DEVICES=.*{why}.*does not define"):
        visible_cards(FOUR, value)


@pytest.mark.parametrize("given", [{"visible": 0}, {"visible": ["0"]}, {"order": 1}])
def test_a_variable_is_text(given):
    with pytest.raises(TypeError, match="an environment variable is text"):
        visible_cards(FOUR, **given)


@pytest.mark.parametrize("value", ["MIG-c6d4f1ef-42e4", f"0,MIG-{FOUR[0].uuid}/1/2"])
def test_parts_of_cards_are_not_covered(value):
    with pytest.raises(ValueError, match=r"part of a card \(MIG\), which the course does not"):
        visible_cards(FOUR, value)


def test_cards_that_differ_need_an_order():
    unlike = (T4, A100)
    for value, order in ((None, None), ("0", None), ("1", "FASTEST_FIRST")):
        with pytest.raises(ValueError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
            visible_cards(unlike, value, order)
    assert seen(None, unlike, "PCI_BUS_ID") == [0, 1]
    assert seen("1", unlike, "PCI_BUS_ID") == [1]
    # These do not depend on the order.
    assert seen("", unlike) == seen("-1", unlike) == seen("2", unlike) == []
    assert seen(A100.uuid, unlike) == [1]


def test_the_order_of_the_list_does_not_matter():
    assert seen("3,2", FOUR[::-1]) == seen("3,2", FOUR[::-1], "PCI_BUS_ID") == [3, 2]


def test_pci_order_is_that_of_the_addresses():
    moved = [dataclasses.replace(FOUR[0], bus_id="00000000:0A:00.0"), *FOUR[1:]]
    assert seen("0", moved, "PCI_BUS_ID") == [1]


@pytest.mark.parametrize("order", ["", "fastest_first", "SLOWEST_FIRST"])
def test_unknown_orders(order):
    with pytest.raises(ValueError, match="defines FASTEST_FIRST and PCI_BUS_ID only"):
        visible_cards(FOUR, "0", order)


def test_a_machine_without_cards():
    assert visible_cards((), None) == visible_cards((), "0") == visible_cards([], "") == ()


def test_children_report_what_they_were_given(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    assert children_report(["3,2", ""], "PCI_BUS_ID") == [
        "CUDA_VISIBLE_DEVICES 3,2, CUDA_DEVICE_ORDER PCI_BUS_ID: TensorFlow lists 0 GPU(s)",
        "CUDA_VISIBLE_DEVICES empty, CUDA_DEVICE_ORDER PCI_BUS_ID: TensorFlow lists 0 GPU(s)",
    ]


def test_a_variable_of_the_parent_can_be_taken_away(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setattr(visible, "_CHILD", QUICK.format(code=0))
    assert children_report([None]) == [
        "CUDA_VISIBLE_DEVICES unset, CUDA_DEVICE_ORDER unset: TensorFlow lists 0 GPU(s)"
    ]


QUICK = """
import os, sys
for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
    print("child:", os.environ.get(name, "unset"))
print("child: 0")
sys.exit({code})
"""


def test_a_child_that_fails(monkeypatch):
    monkeypatch.setattr(visible, "_CHILD", "raise ImportError('no tensorflow here')")
    with pytest.raises(RuntimeError, match="(?s)ended with code 1: .*no tensorflow here"):
        children_report(["0"])
    monkeypatch.setattr(visible, "_CHILD", QUICK.format(code=3))
    with pytest.raises(RuntimeError, match="ended with code 3"):
        children_report(["0"])


def test_no_child_is_left_when_one_hangs(monkeypatch):
    started = []
    start = visible._start

    def remember(*given):
        started.append(start(*given))
        return started[-1]

    monkeypatch.setattr(visible, "_start", remember)
    monkeypatch.setattr(visible, "_CHILD", "import time; time.sleep(600)")
    monkeypatch.setattr(visible, "CHILD_SECONDS", 0.01)
    with pytest.raises(visible.subprocess.TimeoutExpired):
        children_report(["0", "1"])
    assert [child.returncode for child in started] == [-9, -9]
    assert started[0].args[0] == sys.executable
