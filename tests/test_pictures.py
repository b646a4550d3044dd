"""What holds for every picture: title, size of text, same bytes, own axes, clear refusals."""

import io
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text

from utils import pictures, style
from utils.cards import example, read_cards
from utils.clock import VirtualClock, asynchronous, fixed, spare_replicas
from utils.machine import Machine
from utils.memory import Program, do_they_fit
from utils.runs import Node, Trace, Transfer, fill_and_drain, schedule
from utils.runs.trace import Allocation, Interval

TITLE = "The finding, in words"
GPU = "/job:localhost/replica:0/task:0/device:CPU:1"
TRACE = Trace(
    None,
    (Node("a", "Add", "/CPU:0", (), ()), Node("b", "MatMul", "/CPU:1", ("a",), ())),
    (Interval("a", "Add", "/CPU:0", 0, 1), Interval("b", "MatMul", "/CPU:1", 1, 3)),
    (Transfer("a", "/CPU:0", "/CPU:1", 8, False),),
    (),
    {},
    (Allocation(GPU, 0.0, 2**20), Allocation(GPU, 0.002, 2**20)),
)
NO_TRACE = Trace(None, (), (), (), (), {})
FREE = asynchronous()
CARDS = read_cards(example("four_cards"))
TWO = [Program("A", 2000), Program("B", 2000)]


def roll(policy, updates=3, every=1):
    """A run of the clock that pushes one weight from 1 towards 0."""
    return VirtualClock([fixed(1.0)] * 2).run(
        policy,
        updates,
        gradient=lambda weights, _: (float(weights[0]) ** 2 / 2, [weights[0]]),
        weights=[np.array(1.0)],
        rate=0.75,
        measure=lambda weights: weights[0],
        every=every,
    )


def line(values, **more):
    return partial(pictures.curves, {"a": ([0, 1], values)}, xlabel="x", ylabel="y", **more)


EXAMPLES = {
    "cards": partial(pictures.cards_diagram, do_they_fit(CARDS[:1], TWO)),
    "curves": line([1, 2]),
    "held": partial(pictures.held_over_time, TRACE),
    "kernels": partial(pictures.kernel_matrix, ("MatMul", "StringJoin"), ("float32", "string")),
    "lanes": partial(pictures.lanes, TRACE),
    "machine": partial(
        pictures.machine_diagram, Machine("/CPU:0", ("/CPU:1", "/CPU:2"), "virtual", (), 2)
    ),
    "pipeline": partial(pictures.pipeline_lanes, schedule(fill_and_drain(2, 3), [1, 1], [2, 1])),
    "pool": partial(pictures.pool_over_steps, (1, 2), (2, 510)),
    "speed-up": partial(pictures.speedup, {1: 1.0, 4: 2.0}, serial=0.1, cores=2),
    "staleness": partial(pictures.staleness_histogram, {"a": [0, 1, 1]}),
    "tasks": partial(pictures.who_ran_what, {"ps 0": {"Const": 1}, "worker 1": {"Sum": 2}}),
    "timeline": partial(pictures.timeline, TRACE, mark=("b",)),
    "training": partial(pictures.training_curves, {"a": roll(FREE)}),
    "workers": partial(pictures.worker_timeline, roll(spare_replicas(1, 1))),
    "bowl": lambda **given: pictures.bowl({"a": roll(FREE)}, np.square, **given)[0],
}
ON_AXES = {name: draw for name, draw in EXAMPLES.items() if name != "bowl"}
every_picture = pytest.mark.parametrize("draw", EXAMPLES.values(), ids=EXAMPLES)


@pytest.fixture(autouse=True)
def _course_look(machine):
    style.apply()
    yield
    plt.close("all")


def test_every_picture_has_an_example():
    assert len(EXAMPLES) == len(pictures.__all__)


@every_picture
def test_title_is_the_finding_and_text_can_be_read_from_afar(draw):
    figure = draw(title=TITLE).figure
    figure.canvas.draw()
    shown = [t for t in figure.findobj(Text) if t.get_text() and t.get_visible()]
    assert TITLE in [text.get_text() for text in shown]
    assert min(text.get_fontsize() for text in shown) >= 12


@every_picture
def test_the_file_is_small_and_the_same_each_time(draw):
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        draw(title=TITLE).figure.savefig(file, format="png")
    assert files[0].getvalue() == files[1].getvalue()
    assert len(files[0].getvalue()) < 100_000


@pytest.mark.parametrize("draw", ON_AXES.values(), ids=ON_AXES)
def test_draws_where_it_is_told(draw):
    mine = plt.figure().subplots()
    assert draw(title=TITLE, ax=mine) is mine
    assert mine.has_data() or mine.patches or mine.texts
    assert len(plt.get_fignums()) == 1


LOOP = Trace(
    None,
    (
        Node("first", "Add", "/CPU:0", (), ()),
        Node("a", "Add", "/CPU:0", ("b",), ()),
        Node("b", "Add", "/CPU:0", ("a", "first"), ()),
    ),
    *((), (), (), {}),
)
BARE = VirtualClock([fixed(1.0)]).run(FREE, 3)
LONG = VirtualClock([fixed(1.0)]).run(FREE, 401)
STEPS = schedule(fill_and_drain(2, 3), [1, 1], [2, 1])


@pytest.mark.parametrize(
    ("draw", "given", "words"),
    [
        (pictures.bowl, ({}, np.square), "no run to draw: give at least one"),
        (
            pictures.bowl,
            ({"a": roll(asynchronous(), every=2)}, np.square),
            "'a' has no position after each",
        ),
        (
            pictures.bowl,
            ({"a": roll(asynchronous(), updates=9)}, np.square),
            "'a' has 9 updates: give at most 8",
        ),
        (pictures.cards_diagram, (do_they_fit([], []),), "no card to draw"),
        (partial(pictures.curves, xlabel="", ylabel=""), ({},), "no line to draw"),
        (line([0, np.nan]), (), "'a' has values that are not finite: if this run"),
        (line([0, np.inf]), (), "'a' has values that are not finite: if this run"),
        (pictures.held_over_time, (NO_TRACE,), "no operation of this run took memory"),
        (pictures.lanes, (LOOP,), r"has a loop \(a, b …\).*timeline"),
        (pictures.lanes, (NO_TRACE,), r"of the 0 operations of this run, hide=\[\] leaves none"),
        (partial(pictures.lanes, hide={"Add"}), (LOOP,), r"of the 3 operations.*hide=\['Add'\]"),
        (pictures.pipeline_lanes, ([],), "no step to draw: give at least one, from a schedule"),
        (partial(pictures.pipeline_lanes, unit="s"), (STEPS,), "unit='s': give one of ms, steps"),
        (pictures.pool_over_steps, ((), ()), "0 steps and pool_mb 0"),
        (pictures.pool_over_steps, ((1,), (2, 2)), "1 steps and pool_mb 2"),
        (partial(pictures.speedup, serial=0.1), ({},), "no speed-up to draw: .* such as {1: 1.0}"),
        (partial(pictures.speedup, serial=-0.1), ({1: 1.0},), "serial=-0.1: give a finite"),
        (partial(pictures.speedup, serial=1.5), ({1: 1.0},), "serial=1.5: give a finite"),
        (pictures.staleness_histogram, ({},), "no run to draw"),
        (pictures.staleness_histogram, ({"empty": []},), "'empty' has no gradients"),
        (
            partial(pictures.who_ran_what, hide=["Const"]),
            ({"ps 0": {"Const": 1}},),
            r"hide=\['Const'\] leaves none",
        ),
        (
            partial(pictures.timeline, ops={"Conv2D"}),
            (TRACE,),
            "no operation of type Conv2D ran; these types did: Add, MatMul",
        ),
        (pictures.timeline, (NO_TRACE,), "no operation ran; these types did: none"),
        (pictures.training_curves, ({},), "no line to draw"),
        (pictures.training_curves, ({"bare": BARE},), "'bare' has nothing to draw.* a gradient"),
        (partial(pictures.training_curves, measured=True), ({"bare": BARE},), "with a measure"),
        (pictures.worker_timeline, (LONG,), "401 gradients before until=None.*1 to 400"),
        (partial(pictures.worker_timeline, until=0), (LONG,), "0 gradients before until=0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, given, words):
    with pytest.raises(ValueError, match=words):
        draw(*given, title=TITLE)
    assert not plt.get_fignums(), "nothing is left half drawn"


# --- shared time axes ---------------------------------------------------------------------------


def _run(seconds):
    rows = [Interval("a", "Add", "/CPU:1", 0, 0.4 * seconds)]
    rows += [Interval("b", "Add", "/CPU:1", 0.5 * seconds, seconds)]
    return Trace(None, (), tuple(rows), (), (), {})


def _pipe(seconds):
    return schedule(fill_and_drain(2, 2), [seconds / 6] * 2, [seconds / 6] * 2)


def _fleet(seconds):
    return VirtualClock([fixed(seconds / 2)]).run(FREE, 2)


@pytest.mark.parametrize("lengths", [(1, 3), (3, 1), (2, 2)], ids=str)
@pytest.mark.parametrize(
    ("draw", "make"),
    [
        (pictures.timeline, _run),
        (pictures.pipeline_lanes, _pipe),
        (partial(pictures.pipeline_lanes, until=0.5), _pipe),
        (pictures.worker_timeline, _fleet),
    ],
    ids=["timeline", "pipeline", "pipeline until", "workers"],
)
def test_no_bar_lies_beyond_a_shared_time_axis(draw, make, lengths):
    axes = plt.subplots(2, sharex=True)[1]
    for ax, seconds in zip(axes, lengths, strict=True):
        draw(make(seconds), title=TITLE, ax=ax)
    for ax in axes:
        left, right = ax.get_xlim()
        ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
        assert ends and left == 0
        assert max(ends) <= right
    longest = max(bar.get_x() + bar.get_width() for ax in axes for bar in ax.patches)
    assert right <= 1.06 * longest, "and nothing is squeezed"
