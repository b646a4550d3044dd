"""Claims of the classic texts that lesson 02 tries."""

import pytest

from tests.claims.ledger import claim
from utils.cards import example, read_cards, read_processes, visible_cards
from utils.memory import Program, do_they_fit, real_pool

FOUR = read_cards(example("four_cards"))
CARD = FOUR[:1]


@claim(
    "C08",
    "By default a program takes all memory of every visible GPU, so a second one fails for lack "
    "of memory.",
    verdict="changed",
    lesson="02",
    section="1 · Why the second program dies",
    finding=(
        "It takes nearly all of every visible card. A second program does start, on the few "
        "hundred MB that are left, and fails when its tensors need more (a model of "
        "TensorFlow's source, held against the logs of real cards)."
    ),
    hardware=True,
)
def test_the_default_takes_nearly_all():
    alone = do_they_fit(FOUR, [Program("A", 2000)])
    held = {card.index: alone.pools["A", card.index][0] for card in FOUR}
    assert set(held) == {0, 1, 2, 3}
    # A free Tesla T4 logged "with 13756 MB memory"
    # (https://www.tensorflow.org/guide/tf_numpy_type_promotion).
    assert all(abs(mb - 13756) < 10 for mb in held.values())
    (process,) = read_processes(example("default"))
    assert 0.9 < process.memory_mb / CARD[0].memory_mb < 1

    def second(needs_mb):
        return do_they_fit(CARD, [Program("A", 2000), Program("B", needs_mb)])

    failed = second(2000)
    assert [failure.program for failure in failed.failures] == ["B"]
    # Cards that were held by another program left 69 and 190 MB
    # (https://github.com/NVIDIA/DALI/issues/1813, tensorflow/tensorflow issue 8170).
    left = failed.failures[0].gets_mb
    assert 50 < left < 500
    assert second(left).fits, "a small second program works"


@claim(
    "C09",
    "CUDA_VISIBLE_DEVICES hides cards, and its order renumbers them: with 3,2 the program's "
    "GPU 0 is card 3.",
    verdict="true",
    lesson="02",
    section="3 · Which card is GPU 0?",
    finding=(
        "So NVIDIA's guide defines it. A number that no card has ends the list, and cards that "
        "differ are numbered fastest first unless CUDA_DEVICE_ORDER is PCI_BUS_ID."
    ),
    hardware=True,
)
def test_visible_devices_hide_and_renumber():
    def seen(value):
        return [card.index for card in visible_cards(FOUR, value)]

    assert seen("3,2") == [3, 2]
    assert seen("0,1") == [0, 1]
    assert seen(None) == [0, 1, 2, 3]
    assert seen("0,4,1") == [0]
    shown = {process.card for process in read_processes(example("visible_3_2"))}
    assert shown == {2, 3}, "nvidia-smi goes on to count all cards"
    unlike = read_cards(example("unlike_cards"))
    with pytest.raises(ValueError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
        visible_cards(unlike, "0")
    assert visible_cards(unlike, "0", "PCI_BUS_ID") == unlike[:1]


@claim(
    "C10",
    "With a memory fraction of 0.4 two programs share a card and three do not; nvidia-smi then "
    "shows about 40 % for each.",
    verdict="true",
    lesson="02",
    section="4 · Give each program a share",
    finding=(
        "Two get their 40 %, and a little more shows, because CUDA's context comes on top. The "
        "third is not sent away: it asks for 10 % less until it gets something, and fails if "
        "that is too little (a model of TensorFlow's source)."
    ),
    hardware=True,
)
def test_a_fraction_of_0_4_is_for_two():
    programs = [Program(name, 2000, fraction=0.4) for name in "ABC"]
    assert do_they_fit(CARD, programs[:2]).fits
    (failure,) = do_they_fit(CARD, programs).failures
    assert failure.program == "C" and 0 < failure.gets_mb < failure.may_take_mb
    shown = [process.memory_mb for process in read_processes(example("fraction"))]
    assert len(shown) == 2
    assert all(0.40 < mb / CARD[0].memory_mb < 0.43 for mb in shown)

    little = do_they_fit(CARD, [*programs[:2], Program("C", 1000, fraction=0.4)])
    (failure,) = little.failures
    assert not failure.ends and little.pools["C", 0] == (failure.gets_mb,)


@claim(
    "C11",
    "Growth takes memory as it is needed and never returns it.",
    verdict="changed",
    lesson="02",
    section="5 · Growth: take what is needed, and keep it",
    finding=(
        "TensorFlow's allocator, run on the CPU, takes regions of 2, 4, 8 … MB, so more than is "
        "needed, and keeps them when the tensors are gone. On a GPU its source has one "
        "exception: before it would fail it exchanges empty regions for a larger one."
    ),
)
def test_growth_keeps_what_it_took():
    needs = (1, 20, 100, 10, 0, 60)
    pool = real_pool(needs)
    assert pool == (2, 30, 126, 126, 126, 126)
    assert all(held >= need for held, need in zip(pool, needs, strict=True))
    model = do_they_fit(CARD, [Program("A", needs, growth=True)])
    assert model.pools["A", 0] == pool, "what the model says of neighbours rests on this"
