"""utils.memory.real_pool: TensorFlow's own allocator, and the model that follows it."""

import pytest

from utils.cards import example, read_cards
from utils.memory import Program, do_they_fit, real_pool
from utils.memory.real_pool import _sizes

CARD = read_cards(example("four_cards"))[:1]
NEEDS = (0, 1, 20, 100, 10, 60, 250, 5)


@pytest.fixture(scope="module")
def pool():
    return real_pool(NEEDS)


def test_regions_double_and_stay(pool):
    assert pool == (0, 2, 30, 126, 126, 126, 254, 254)


def test_the_model_says_the_same(pool):
    model = do_they_fit(CARD, [Program("A", NEEDS, growth=True)])
    assert model.pools["A", 0] == pool


@pytest.mark.parametrize("needs", [(), (-1,), (1, 501)])
def test_sizes_that_make_no_sense(needs):
    with pytest.raises(ValueError, match="needs_mb=.*: give .* from 0 to 500"):
        real_pool(needs)


def test_a_program_that_fails(monkeypatch):
    monkeypatch.setitem(real_pool.__globals__, "_CHILD", "raise ImportError('no tensorflow here')")
    with pytest.raises(RuntimeError, match="(?s)ended with code 1: .*no tensorflow here"):
        real_pool((1,))


SILENT = "import sys; print('child: step', file=sys.stderr)"


def test_a_tensorflow_without_that_allocator(monkeypatch):
    monkeypatch.setitem(real_pool.__globals__, "_CHILD", SILENT)
    with pytest.raises(RuntimeError, match="ended with code 0"):
        real_pool((1,))


def test_sizes_from_the_log():
    line = "I0 bfc_allocator.cc:183] Total allocated bytes: {}MiB\n"
    steps = ["", line.format("2.00"), "other\n", line.format("6.00") + line.format("14.00")]
    assert _sizes(steps) == (0, 2, 2, 14)
