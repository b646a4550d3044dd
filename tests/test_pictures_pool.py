"""utils.pictures.pool: what stands in the picture, read from the drawn objects."""

import matplotlib.pyplot as plt
import pytest

from utils import style
from utils.pictures import pool_over_steps


@pytest.fixture(autouse=True)
def look():
    style.apply()
    yield
    plt.close("all")


def test_tensors_below_the_pool():
    ax = pool_over_steps((20, 100, 10), (30, 126, 126), title="The pool stays")
    columns, outline = ax.patches[:3], ax.patches[3]
    assert [column.get_height() for column in columns] == [20, 100, 10]
    assert outline.get_data().values.tolist() == [30, 126, 126]
    assert [text.get_text() for text in ax.texts] == ["30 MB", "126 MB", "126 MB"]
    assert ax.get_title(loc="left") == "The pool stays"
    assert ax.get_ylabel() == "memory (MB)" and ax.get_xlabel() == "step of the program"
    assert columns[0].get_hatch(), "grey readers tell tensors from the pool"


def test_all_text_is_inside_and_large_enough():
    ax = pool_over_steps((1, 2), (2, 510), title="Inside")
    ax.figure.canvas.draw()
    page = ax.figure.bbox
    for text in [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_legend().texts]:
        box = text.get_window_extent()
        assert page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 <= page.y1
        assert text.get_fontsize() >= 12


def test_own_axes_and_an_empty_pool():
    own = plt.subplots()[1]
    assert pool_over_steps((0,), (0,), title="Nothing yet", ax=own) is own
    assert own.get_ylim()[1] > 0


@pytest.mark.parametrize(("needs", "pool"), [((), ()), ((1,), (2, 2)), ((1, 2), (2,))])
def test_lengths_that_do_not_match(needs, pool):
    with pytest.raises(ValueError, match=f"{len(needs)} steps and pool_mb {len(pool)}"):
        pool_over_steps(needs, pool, title="Wrong")
