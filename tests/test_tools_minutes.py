"""The minutes of a page: each figure counts once, where it belongs."""

import pytest
from small_course import code, notebook, picture, printed, text

from tools import minutes


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        (text("word " * 140), 60),
        (text("**Predict first.** How many?"), 60 + 4 / 140 * 60),
        (text("```python\na = 1\nb = 2\n```"), 15 + 2 * 6),
        (text("![](pictures/05.svg)"), 60 + 4 / 140 * 60 - 60 / 140),
        (text("a map " * 100, "generated"), 0),
        (code("a = 1\n\nb = 2"), 15 + 2 * 6),
        (code("# " + "word " * 14), 15 + 6),
        (code("a", outputs=(printed("word " * 18),)), 15 + 6 + 6),
        (code("a", outputs=(picture(),)), 15 + 6 + 60),
    ],
)
def test_what_a_cell_takes(cell, seconds):
    assert minutes.seconds(cell) == pytest.approx(seconds)


def test_the_core_ends_before_the_key_points():
    page = notebook(
        text("# A"), text("## 1 · One\n\n" + "word " * 280), text("## Key points\n\nMuch."),
        text("## Going further\n\n" + "word " * 1400),
    )  # fmt: skip
    assert list(minutes.core_sections(page)) == ["", "1 · One"]
    assert minutes.core(page) == 2
    assert len(minutes.sections(page)) == 4


def test_exercises_say_their_own_minutes():
    page = notebook(
        text("## Exercise 5.1 — Do it (10 min, ★)"), text("## Exercise 5.2 — So (5 min, ★★)")
    )
    assert minutes.exercises(page) == 15
