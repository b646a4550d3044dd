"""Claims of the classic texts that lesson 02 tries."""

from pathlib import Path

import pytest

from tests.claims.ledger import claim
from utils.cards import example, read_cards, read_processes, visible_cards
from utils.memory import Program, do_they_fit, real_pool

LESSON = Path(__file__).resolve().parents[2] / "notebooks" / "02_share_gpu_memory.ipynb"
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
        "TensorFlow's source; CUDA's context in it is fitted to the log of one card)."
    ),
    data="nvidia_smi/default.txt",
)
def test_the_default_takes_nearly_all():
    alone = do_they_fit(FOUR, [Program("A", 2000)])
    held = {card.index: alone.pools["A", card.index][0] for card in FOUR}
    assert set(held) == {0, 1, 2, 3}
    assert all(0.9 < mb / (CARD[0].memory_mb - alone.driver_mb) < 1 for mb in held.values())
    (process,) = read_processes(example("default"))
    assert process.memory_mb == held[0] + alone.context_mb, "one source for both"

    def second(needs_mb):
        return do_they_fit(CARD, [Program("A", 2000), Program("B", needs_mb)])

    failed = second(2000)
    assert [failure.program for failure in failed.failures] == ["B"]
    # Of A's reserve B's context takes its part, and B leaves a reserve of its own.
    left = failed.failures[0].gets_mb
    assert left == 1050 - alone.context_mb - 225
    assert second(left).fits, "a small second program works"


def test_the_lesson_adds_up_the_numbers_of_the_model():
    fit = do_they_fit(CARD, [Program("A", 2000), Program("B", 200)])
    total = CARD[0].memory_mb - fit.driver_mb
    ((first,), (second,)) = (fit.pools[name, 0] for name in "AB")
    free = total - first - fit.context_mb
    kept = free - fit.context_mb - second
    text = LESSON.read_text(encoding="utf-8")
    assert (
        f"{total:,} = {first:,} for A's pool + {fit.context_mb} for its context + {free:,} that "
        f"TensorFlow leaves free. Of these {free:,}, B's context takes {fit.context_mb} and "
        f"TensorFlow leaves {kept}, so B gets {second}."
    ) in text
    share = int(0.4 * total)
    assert f"0.4 of the {total:,} MB is a limit of {share:,} MB" in text
    assert f"{share:,} MB, appears here as {share + fit.context_mb:,}" in text


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
    data="nvidia_smi/four_cards.txt",
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
    data="nvidia_smi/fraction.txt",
)
def test_a_fraction_of_0_4_is_for_two():
    programs = [Program(name, 3000, fraction=0.4) for name in "ABC"]
    assert do_they_fit(CARD, programs[:2]).fits
    (failure,) = do_they_fit(CARD, programs).failures
    assert failure.program == "C" and failure.ends
    assert 0 < failure.gets_mb < failure.needs_mb < failure.may_take_mb
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
