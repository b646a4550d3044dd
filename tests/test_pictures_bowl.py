"""The picture of one weight in a bowl, drawn from runs of the virtual clock."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from utils import style
from utils.clock import VirtualClock, asynchronous, fixed, synchronous
from utils.pictures import bowl


@pytest.fixture(autouse=True)
def closed():
    style.apply()
    yield
    plt.close("all")


def _slope(weights, batch):
    return weights[0] ** 2 / 2, [weights[0]]


def _roll(policy, devices, updates=3, rate=0.75, **options):
    return VirtualClock([fixed(1.0)] * devices).run(
        policy,
        updates,
        gradient=_slope,
        weights=[np.array(1.0)],
        rate=rate,
        **{"measure": lambda weights: weights[0], "every": 1, **options},
    )


def _loss(x):
    return x**2 / 2


def _arrows(ax):
    """(from, to, update) of each arrow."""
    return [(a.xyann[0], a.xy[0], a.xy[1]) for a in ax.texts]


def _circles(ax):
    return [
        (float(line.get_xdata()[0]), int(line.get_ydata()[0]))
        for line in ax.lines
        if line.get_fillstyle() == "none"
    ]


def test_two_devices_push_the_same_ball():
    """Both read 1, rate 0.75: the second slope, and the third, come from a place behind."""
    (ax,) = bowl({"two": _roll(asynchronous(), 2)}, _loss, title="t")
    assert _arrows(ax) == [(1.0, 0.25, 1), (0.25, -0.5, 2), (-0.5, -0.6875, 3)]
    assert _circles(ax) == [(1.0, 1), (1.0, 2), (0.25, 3)]


def test_an_average_is_one_arrow_from_where_it_was_read():
    (ax,) = bowl({"two": _roll(synchronous(), 2)}, _loss, title="t")
    assert [start for start, _, _ in _arrows(ax)] == [x for x, _ in _circles(ax)]
    assert len(_arrows(ax)) == 3
    labels = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert labels == ["slope read here", "average"]


def test_one_panel_per_run_with_its_label_and_a_look_per_device():
    traces = {
        "one": _roll(asynchronous(), 1),
        "three": _roll(asynchronous(), 3, rate=0.4),
        "average": _roll(synchronous(), 3),
    }
    axes = bowl(traces, _loss, title="The finding")
    figure = axes[0].figure
    assert figure.get_suptitle() == "The finding"
    assert [ax.get_title(loc="left") for ax in figure.axes[:3]] == list(traces)
    keys = figure.legends[0].get_lines()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["slope read here", "average", "device 0", "device 1", "device 2"]
    looks = {(line.get_color(), line.get_linestyle()) for line in keys[1:]}
    assert len(looks) == 4, "colour and line style tell the devices apart"
    assert len({line.get_linestyle() for line in keys[2:]}) == 3, "in grey too"


def test_the_range_holds_every_point():
    (ax,) = bowl({"far": _roll(asynchronous(), 2, updates=8, rate=1.3)}, _loss, title="t")
    low, high = ax.get_xlim()
    assert all(low < x < high for arrow in _arrows(ax) for x in arrow[:2])


def test_the_minimum_is_marked():
    (ax,) = bowl({"one": _roll(asynchronous(), 1)}, _loss, title="t")
    (line,) = [line for line in ax.lines if list(line.get_ydata()) == [0, 1]]
    assert line.get_xdata()[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("traces", "words"),
    [
        ({}, "no run to draw"),
        ({"a": _roll(asynchronous(), 2, every=2)}, "'a' has no position after each update"),
        ({"a": _roll(asynchronous(), 2, updates=9)}, "'a' has 9 updates: give at most 8"),
    ],
)
def test_what_cannot_be_drawn_is_refused(traces, words):
    with pytest.raises(ValueError, match=words):
        bowl(traces, _loss, title="t")
    assert not plt.get_fignums(), "nothing is left half drawn"
