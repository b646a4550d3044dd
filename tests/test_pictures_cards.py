"""utils.pictures.cards: what stands in the pictures, read from the drawn objects."""

import matplotlib.pyplot as plt
import pytest

from utils import style
from utils.cards import example, read_cards
from utils.memory import Program, do_they_fit
from utils.pictures import cards_diagram, held_over_time
from utils.pictures.cards import FAILED, NOTE
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


def blocks(ax):
    """Height in GB of every filled bar."""
    return [round(bar.get_height(), 2) for bar in ax.patches if bar.get_fill()]


def everything_is_inside(ax):
    ax.figure.canvas.draw()
    page = ax.figure.bbox
    drawn = [*ax.texts, ax.title, ax.yaxis.label, *ax.get_xticklabels()]
    for text in drawn:
        box = text.get_window_extent()
        if not (page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 <= page.y1):
            return False
    return True


def test_the_second_program_stands_outside():
    ax = cards_diagram(do_they_fit(FOUR[:1], programs(2)), title="The second fails")
    assert ax.get_title(loc="left") == "The second fails"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["card 0\nTesla T4"]
    assert ax.get_ylabel() == "memory (GB)"
    label, free, failure = texts(ax)[0], texts(ax)[1], texts(ax)[2]
    assert (label, free) == ("A: 13.7 GB", "free: 1.0 GB")
    assert failure.startswith("B fails:") and "out\nof memory" in failure.replace("\xa0", " ")
    # A: all of it, what it uses; B: what it needs, at its own place.
    needs = round((2000 + 296) / 1024, 2)
    assert blocks(ax) == [13.72, needs, needs]
    outside = [bar for bar in ax.patches if bar.get_linestyle() == "--"]
    assert len(outside) == 1 and outside[0].get_x() > 1
    assert everything_is_inside(ax)


def test_all_that_fits_is_in_the_card():
    ax = cards_diagram(do_they_fit(FOUR[:1], programs(2, fraction=0.4)), title="Two fit")
    assert texts(ax)[:3] == ["A: 6.2 GB", "B: 6.2 GB", "free: 2.4 GB"]
    assert not [bar for bar in ax.patches if bar.get_linestyle() == "--"]
    assert everything_is_inside(ax)


def test_a_program_that_gets_less_stands_in_the_card_with_a_note():
    little = [Program(name, 1000, fraction=0.4) for name in "ABC"]
    ax = cards_diagram(do_they_fit(FOUR[:1], little), title="The third gets less")
    assert "C: 2.3 GB" in texts(ax)
    (note,) = [text for text in texts(ax) if "gets less than it asked for" in text]
    assert "CUDA_ERROR_OUT_OF_MEMORY" in note
    assert not [bar for bar in ax.patches if bar.get_linestyle() == "--"]
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
    where = {t.get_text(): t.get_position()[0] for t in ax.texts if t.get_text().startswith("B")}
    assert 0 < where["B: 13.7 GB"] < 1
    at = [t.get_position()[0] for t in ax.texts if t.get_text() == "A: 13.7 GB"]
    assert len(at) == 2 and min(at) > 2.9
    assert texts(ax).count("free: 14.7 GB") == 1  # card 1
    assert everything_is_inside(ax)


def test_a_time_step():
    later = Program("B", 9000, growth=True, starts=2)
    fit = do_they_fit(FOUR[:1], [Program("A", (500, 6000, 500, 500), growth=True), later])
    for step, label in ((0, "A: 0.8 GB"), (1, "A: 8.3 GB"), (2, "A: 8.3 GB"), (None, "A: 8.3 GB")):
        ax = cards_diagram(fit, title="Growth", step=step)
        assert label in texts(ax)
        assert any(text.startswith("B fails") for text in texts(ax)) is (step not in (0, 1))
    for step in (-1, 4):
        with pytest.raises(ValueError, match=f"step={step}: this model has the steps 0 to 3"):
            cards_diagram(fit, title="Growth", step=step)


def test_programs_differ_in_more_than_colour():
    ax = cards_diagram(do_they_fit(FOUR[:1], programs(4, limit_mb=2100)), title="Four")
    looks = {(bar.get_facecolor()[:3], bar.get_hatch()) for bar in ax.patches if bar.get_fill()}
    assert len({colour for colour, _ in looks}) == len({hatch for _, hatch in looks}) == 4


@pytest.mark.parametrize("given", [programs(2), programs(6, limit_mb=5000)])
def test_text_is_large_enough(given):
    ax = cards_diagram(do_they_fit(FOUR, given), title="Sizes")
    sizes = [text.get_fontsize() for text in [*ax.texts, *ax.get_xticklabels(), ax.yaxis.label]]
    assert min(sizes) >= 12


def test_own_axes_and_failures_in_their_colour():
    own = plt.subplots()[1]
    ax = cards_diagram(do_they_fit(FOUR[:1], programs(2)), title="Mine", ax=own)
    assert ax is own
    assert [text.get_color() for text in ax.texts if "fails" in text.get_text()] == [FAILED]


def test_no_card_to_draw():
    with pytest.raises(ValueError, match="no card to draw"):
        cards_diagram(do_they_fit([], []), title="Nothing")


def test_a_picture_is_small_and_the_same_each_time(tmp_path):
    def draw(name):
        fit = do_they_fit(FOUR, [*programs(3, visible="3,2"), Program("D", 1)])
        path = tmp_path / name
        cards_diagram(fit, title="Twice").figure.savefig(path)
        return path.read_bytes()

    picture = draw("a.png")
    assert picture == draw("b.png")
    assert len(picture) < 100_000


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
    assert [first.get_label(), second.get_label()] == [
        "GPU 0: peak 3.00 MB",
        "GPU 1: peak 4.00 MB",
    ]
    assert first.get_markevery() == [1]
    assert (first.get_linestyle(), first.get_color()) != (
        second.get_linestyle(),
        second.get_color(),
    )
    assert ax.get_xlabel().endswith("(ms)") and ax.get_ylabel().endswith("(MB)")


def test_nothing_to_draw_over_time():
    with pytest.raises(ValueError, match="no operation of this run took memory"):
        held_over_time(Trace(None, (), (), (), (), {}), title="Nothing")
