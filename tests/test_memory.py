"""utils.memory: the model of GPU memory, and what it was checked against."""

import dataclasses

import pytest

from utils.cards import example, read_cards, read_processes
from utils.memory import Program, do_they_fit
from utils.memory.model import LABEL
from utils.memory.pool import Pool, default_limit_mb, reserve_mb

FOUR = read_cards(example("four_cards"))
CARD = FOUR[:1]
FOR_CUDA = 15102  # of a Tesla T4
CONTEXT = 296
DEFAULT = 13756
SHARE = 6040  # 0.4 of FOR_CUDA


def fit(*programs, cards=CARD, **more):
    return do_they_fit(cards, programs, **more)


def copies(count, **more):
    return [Program(name, 2000, **more) for name in "ABC"[:count]]


# --- what the course claims


def test_one_program_takes_nearly_all():
    alone = fit(*copies(1))
    assert alone.fits
    assert alone.pools == {("A", 0): (DEFAULT,)}
    assert 0.89 * CARD[0].memory_mb < DEFAULT


def test_default_twice_fails():
    both = fit(*copies(2))
    assert not both.fits
    (failure,) = both.failures
    assert (failure.program, failure.card, failure.step, failure.ends) == ("B", 0, 0, True)
    # B finds what A has left, keeps its own reserve of it, and needs more.
    assert failure.may_take_mb == failure.gets_mb == 1050 - CONTEXT - 225
    assert both.pools == {("A", 0): (DEFAULT,), ("B", 0): (None,)}


@pytest.mark.parametrize(("count", "fits"), [(1, True), (2, True), (3, False)])
def test_two_programs_with_a_fraction_of_0_4_fit_and_three_do_not(count, fits):
    some = fit(*copies(count, fraction=0.4))
    assert some.fits is fits
    assert [some.pools[name, 0] for name in "AB"[:count]] == [(SHARE,)] * min(count, 2)
    assert [failure.program for failure in some.failures] == ["C"] * (count == 3)


def test_a_third_program_that_needs_little_gets_less_than_promised_and_goes_on():
    (failure,) = fit(*copies(2, fraction=0.4), Program("C", 1000, fraction=0.4)).failures
    assert (failure.program, failure.ends, failure.may_take_mb) == ("C", False, SHARE)
    free = FOR_CUDA - 3 * CONTEXT - 2 * SHARE
    assert 0.9 * free < failure.gets_mb <= free  # asks for 10 % less until it gets it
    assert "goes on" in failure.message


def test_a_program_that_went_on_with_less_can_still_run_out():
    later = Program("C", (1000, 3000), fraction=0.4)
    (failure,) = fit(*copies(2, fraction=0.4), later).failures
    assert (failure.step, failure.needs_mb, failure.ends) == (1, 3000, True)


def test_a_fraction_is_of_the_total_and_a_limit_is_in_mb():
    half, limited = Program("A", 100, fraction=0.5), Program("B", 100, limit_mb=4096)
    both = fit(half, limited)
    assert both.fits
    assert both.pools == {("A", 0): (FOR_CUDA // 2,), ("B", 0): (4096,)}


def test_a_limit_holds_for_its_own_program_too():
    (failure,) = fit(Program("A", 5000, limit_mb=4096)).failures
    assert (failure.may_take_mb, failure.gets_mb, failure.needs_mb) == (4096, 4096, 5000)
    assert failure.message == "may take 4,096 MB of card 0, gets 4,096, needs 5,000: out of memory"


def test_growth_takes_what_is_needed_in_doubling_regions():
    grown = fit(Program("A", (0, 1, 2, 3, 6, 7, 1000), growth=True))
    assert grown.pools["A", 0] == (0, 2, 2, 6, 6, 14, 1022)


def test_growth_never_gives_back():
    needs = (500, 6000, 500, 500)
    later = Program("B", 9000, growth=True, starts=2)
    both = fit(Program("A", needs, growth=True), later)
    held = both.pools["A", 0]
    assert held == (510, 8190, 8190, 8190)
    assert all(after >= before for before, after in zip(held, held[1:], strict=False))
    assert [(failure.program, failure.step) for failure in both.failures] == [("B", 2)]
    # The same B fits where A never needed as much.
    assert fit(Program("A", (500, 500, 500, 500), growth=True), later).fits


def test_the_end_of_the_process_gives_back():
    ended, after = Program("A", (500, 6000), growth=True), Program("B", 9000, starts=2)
    both = fit(ended, after)
    assert both.fits
    assert both.pools == {("A", 0): (510, 8190, None), ("B", 0): (None, None, DEFAULT)}


def test_a_program_that_fails_ends_and_gives_back():
    greedy, patient = Program("A", (100, 20000), growth=True), Program("B", 9000, starts=1)
    both = fit(greedy, patient)
    assert [failure.program for failure in both.failures] == ["A"]
    assert both.pools["B", 0] == (None, DEFAULT)


def test_growth_can_fail_in_a_later_step():
    late = fit(Program("A", (100, 100, 14000), growth=True), Program("B", 1000, growth=True))
    (failure,) = late.failures
    assert (failure.program, failure.step, failure.needs_mb) == ("A", 2, 14000)


# --- several cards


def test_the_default_takes_every_visible_card():
    programs = [Program("A", 2000), Program("B", 2000, visible="3")]
    both = fit(*programs, cards=FOUR)
    assert [both.pools["A", card] for card in range(4)] == [(DEFAULT,)] * 4
    assert [(failure.program, failure.card) for failure in both.failures] == [("B", 3)]


def test_hiding_cards_makes_room():
    both = fit(*(Program(n, 2000, visible=v) for n, v in (("A", "3,2"), ("B", "0"))), cards=FOUR)
    assert both.fits
    assert set(both.pools) == {("A", 3), ("A", 2), ("B", 0)}


def test_what_is_needed_is_needed_on_gpu_0():
    both = fit(Program("A", 9000, growth=True, visible="3,2"), cards=FOUR)
    assert both.pools == {("A", 3): (DEFAULT,), ("A", 2): (0,)}


def test_a_program_without_gpus_takes_nothing():
    hidden = fit(Program("A", 2000, visible="-1"), Program("B", 2000))
    assert hidden.fits
    assert set(hidden.pools) == {("B", 0)}
    assert "sees no GPU" in str(hidden)


def test_no_room_for_a_context():
    many = fit(*(Program(str(i), 0, growth=True) for i in range(52)))
    assert [failure.program for failure in many.failures] == ["51"]
    assert many.failures[0].may_take_mb is None
    assert "CUDA context" in many.failures[0].message


# --- what it prints, and what it refuses


def test_every_output_says_that_it_is_a_model():
    text = str(fit(*(Program(name, 3000, fraction=0.4) for name in "ABC")))
    assert text.splitlines() == [
        LABEL,
        "program  setting       card  pool (MB)  verdict",
        "A        fraction 0.4     0      6,040  fits",
        "B        fraction 0.4     0      6,040  fits",
        "C        fraction 0.4     0          -  may take 6,040 MB of card 0, gets 2,134, "
        "needs 3,000: out of memory",
    ]
    assert LABEL.startswith("MODEL")
    assert "MODEL" in do_they_fit.__doc__


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"fraction": 0.4, "growth": True}, "give one of them, or none"),
        ({"limit_mb": 100, "growth": True}, "give one of them, or none"),
        ({"limit_mb": 100, "fraction": 0.4}, "give one of them, or none"),
        ({"fraction": 0.0}, "fraction=0.0: give a finite number greater than 0 and of at most 1"),
        ({"fraction": 1.5}, "fraction=1.5: give a finite number greater than 0 and of at most 1"),
        ({"fraction": 40}, "fraction=40: give a finite number greater than 0 and of at most 1"),
        ({"limit_mb": 0}, "limit_mb=0: give a whole number of at least 1"),
        ({"needs_mb": -1}, "needs_mb=-1: give a whole number of at least 0"),
        ({"needs_mb": (1, -1)}, "needs_mb=-1: give a whole number of at least 0"),
        ({"needs_mb": ()}, r"needs_mb=\(\): give one number for each time step"),
        ({"starts": -1}, "starts=-1: give a whole number of at least 0"),
    ],
)
def test_settings_that_make_no_sense(settings, why):
    with pytest.raises(ValueError, match=f"^A: .*{why}"):
        Program("A", **{"needs_mb": 1} | settings)


def test_programs_need_names_of_their_own():
    with pytest.raises(ValueError, match="'A', 'A'"):
        fit(Program("A", 1), Program("A", 2))


def test_what_a_program_sees_must_be_defined():
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES='0, 1'"):
        fit(Program("A", 1, visible="0, 1"))


def test_the_memory_of_a_card_must_be_known():
    unknown = dataclasses.replace(CARD[0], memory_mb=None)
    with pytest.raises(TypeError, match="memory_mb of card 0=None: give a whole number"):
        fit(Program("A", 1), cards=[unknown])


def test_nothing_to_ask():
    assert fit().fits and fit().pools == {}
    assert str(fit()).splitlines()[0] == LABEL


# --- TensorFlow's numbers


@pytest.mark.parametrize(
    ("free", "capability", "reserve"),
    [
        (2047, "9.0", 225),
        (2048, "5.2", 500),
        (8000, "6.1", 500),
        (15000, "7.0", 1050),
        (15000, "7.5", 1050),
        (40000, "8.0", 1536),
        (24000, "8.9", 1536),
        (80000, "9.0", 1800),
        (32000, "12.0", 1800),
    ],
)
def test_reserve(free, capability, reserve):
    assert reserve_mb(free, capability) == reserve
    assert default_limit_mb(free, capability) == free - reserve


@pytest.mark.parametrize("free", [0, 100, 225])
def test_with_very_little_left_tensorflow_keeps_no_reserve(free):
    assert default_limit_mb(free, "7.5") == free


def test_a_pool_never_passes_its_limit_or_what_is_free():
    pool = Pool(100, growth=True)
    assert not pool.extend(120, 1000)
    assert pool.held_mb == 100
    pool = Pool(1000, growth=False)
    assert pool.extend(50, 300)
    assert 270 < pool.held_mb <= 300
    assert not pool.extend(301, 300 - pool.held_mb)


def test_the_context_is_fitted_to_the_log_of_a_real_card():
    # "Created device … with 13756 MB memory … Tesla T4", on three free cards, in
    # https://www.tensorflow.org/guide/tf_numpy_type_promotion (TensorFlow 2.20).
    (held,) = fit(Program("A", 2000)).pools["A", 0]
    assert held == 13756
    assert (fit().context_mb, CARD[0].memory_mb - fit().driver_mb) == (CONTEXT, FOR_CUDA)


@pytest.mark.parametrize("name", ["default", "fraction", "growth"])
def test_the_examples_of_nvidia_smi_agree_with_the_model(name):
    programs = {
        "default": [Program("A", 2000)],
        "fraction": copies(2, fraction=0.4),
        "growth": [Program("A", 200, growth=True)],
    }[name]
    held = [mb + CONTEXT for (mb,) in fit(*programs).pools.values()]
    shown = [process.memory_mb for process in read_processes(example(name))]
    assert shown == held
