"""Pictures of memory: cards with their programs, the pool, what a step held."""

import matplotlib.pyplot as plt
import pytest

from utils import style
from utils.cards import example, read_cards
from utils.memory import Program, do_they_fit
from utils.pictures import cards_diagram, held_over_time, pool_over_steps
from utils.pictures.cards import NOTE
from utils.pictures.parts import STRIKING
from utils.runs import Trace
from utils.runs.trace import Allocation

FOUR = read_cards(example("four_cards"))
GPUS = "/job:localhost/replica:0/task:0/device:CPU:"


@pytest.fixture(autouse=True)
def look():
    style.apply()
    yield
    plt.close("all")


def programs(count, **more):
    return [Program(name, 2000, **more) for name in "ABCDEF"[:count]]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def outside(ax):
    """The dashed bars of programs that failed, right of the cards."""
    return [bar for bar in ax.patches if bar.get_linestyle() == "--"]


def everything_is_inside(ax):
    ax.figure.canvas.draw()
    page = ax.figure.bbox
    drawn = [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()]
    drawn += ax.get_legend().texts if ax.get_legend() else []
    boxes = [text.get_window_extent() for text in drawn if text.get_text()]
    return all(
        page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1
        for box in boxes
    )


def test_the_second_program_stands_outside():
    ax = cards_diagram(do_they_fit(FOUR[:1], programs(2)), title="The second fails")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["card 0\nTesla T4"]
    assert ax.get_ylabel() == "memory (GB)"
    label, free, failure = texts(ax)[:3]
    assert (label, free) == ("A: 13.7 GB", "free: 1.0 GB")
    assert failure.startswith("B fails:") and "out\nof memory" in failure.replace("\xa0", " ")
    assert [text.get_color() for text in ax.texts if "fails" in text.get_text()] == [STRIKING]
    # A: all of it, what it uses; B: what it needs, at its own place.
    needs = round((2000 + 296) / 1024, 2)
    filled = [round(bar.get_height(), 2) for bar in ax.patches if bar.get_fill()]
    assert filled == [13.72, needs, needs]
    assert len(outside(ax)) == 1 and outside(ax)[0].get_x() > 1
    assert everything_is_inside(ax)


def test_all_that_fits_is_in_the_card():
    ax = cards_diagram(do_they_fit(FOUR[:1], programs(2, fraction=0.4)), title="Two fit")
    assert texts(ax)[:3] == ["A: 6.2 GB", "B: 6.2 GB", "free: 2.4 GB"]
    assert not outside(ax)
    assert everything_is_inside(ax)


def test_a_program_that_gets_less_stands_in_the_card_with_a_note():
    little = [Program(name, 1000, fraction=0.4) for name in "ABC"]
    ax = cards_diagram(do_they_fit(FOUR[:1], little), title="The third gets less")
    assert "C: 2.3 GB" in texts(ax)
    (note,) = [text for text in texts(ax) if "gets less than it asked for" in text]
    assert "CUDA_ERROR_OUT_OF_MEMORY" in note
    assert not outside(ax)
    assert everything_is_inside(ax)


@pytest.mark.parametrize("given", [programs(2), programs(2, fraction=0.4), []])
def test_every_picture_says_that_it_is_a_model(given):
    ax = cards_diagram(do_they_fit(FOUR[:1], given), title="A title")
    assert NOTE in texts(ax) and NOTE.startswith("MODEL")


def test_four_cards_and_a_program_on_two_of_them():
    mixed = [Program("A", 2000, visible="3,2"), Program("B", 3000, visible="0")]
    ax = cards_diagram(do_they_fit(FOUR, mixed), title="A takes two")
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [f"card {i}\nTesla T4" for i in range(4)]
    (at,) = [t.get_position()[0] for t in ax.texts if t.get_text() == "B: 13.7 GB"]
    assert 0 < at < 1
    at = [t.get_position()[0] for t in ax.texts if t.get_text() == "A: 13.7 GB"]
    assert len(at) == 2 and min(at) > 2.9
    assert texts(ax).count("free: 14.7 GB") == 1  # card 1
    assert everything_is_inside(ax)


def test_a_pool_that_has_grown_stays_and_the_later_program_fails():
    later = Program("B", 9000, growth=True, starts=2)
    fit = do_they_fit(FOUR[:1], [Program("A", (500, 6000, 700, 700), growth=True), later])
    ax = cards_diagram(fit, title="Growth")
    assert "A: 8.3 GB" in texts(ax)
    assert [bar.get_height() for bar in ax.patches][1] == (700 + 296) / 1024, "used in the end"
    assert any(text.startswith("B fails") for text in texts(ax))


def test_programs_differ_in_more_than_colour():
    ax = cards_diagram(do_they_fit(FOUR[:1], programs(4, limit_mb=2100)), title="Four")
    looks = {(bar.get_facecolor()[:3], bar.get_hatch()) for bar in ax.patches if bar.get_fill()}
    assert len({colour for colour, _ in looks}) == len({hatch for _, hatch in looks}) == 4


def test_held_over_time(machine):
    mb = 2**20
    records = (
        Allocation(f"{GPUS}1", 0.0, mb),
        Allocation(f"{GPUS}2", 0.001, 4 * mb),
        Allocation(f"{GPUS}1", 0.002, 2 * mb),
        Allocation(f"{GPUS}1", 0.003, -mb),
    )
    ax = held_over_time(Trace(None, (), (), (), (), {}, records), title="The peak")
    first, second = ax.lines
    assert first.get_xdata().tolist() == [0, 2, 3]
    assert first.get_ydata().tolist() == [1, 3, 2]
    assert first.get_label() == "GPU 0: peak 3.00 MB"
    assert second.get_label() == "GPU 1: peak 4.00 MB"
    assert first.get_markevery() == [1]
    assert first.get_drawstyle() == "steps-post", "memory is held until the next change"
    assert first.get_linestyle() != second.get_linestyle()
    assert first.get_marker() != second.get_marker()
    assert first.get_color() != second.get_color()
    assert ax.get_xlabel().endswith("(ms)") and ax.get_ylabel().endswith("(MB)")


def test_tensors_below_the_pool():
    ax = pool_over_steps((20, 100, 10), (30, 126, 126), title="The pool stays")
    columns, outline = ax.patches[:3], ax.patches[3]
    assert [column.get_height() for column in columns] == [20, 100, 10]
    assert outline.get_data().values.tolist() == [30, 126, 126]
    assert texts(ax) == ["30 MB", "126 MB", "126 MB"]
    assert ax.get_ylabel() == "memory (MB)" and ax.get_xlabel() == "step of the program"
    assert columns[0].get_hatch(), "grey readers tell tensors from the pool"
    assert everything_is_inside(ax)


def test_an_empty_pool():
    assert pool_over_steps((0,), (0,), title="Nothing yet").get_ylim()[1] > 0
