"""Pictures of the clock's runs: bowl, workers, staleness, courses of training."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from utils import style
from utils.clock import (
    VirtualClock,
    asynchronous,
    exponential,
    fixed,
    one_slow,
    spare_replicas,
    synchronous,
)
from utils.pictures import bowl, curves, staleness_histogram, training_curves, worker_timeline


@pytest.fixture(autouse=True)
def _course_look():
    style.apply()
    yield
    plt.close("all")


def _roll(policy, devices, updates=3, rate=0.75, **options):
    """Run a clock whose workers push one weight from 1 towards 0."""
    return VirtualClock([fixed(1.0)] * devices).run(
        policy,
        updates,
        gradient=lambda weights, _: (float(weights[0]) ** 2 / 2, [weights[0]]),
        weights=[np.array(1.0)],
        rate=rate,
        **{"measure": lambda weights: weights[0], "every": 1, **options},
    )


# --- the bowl


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
    assert [ax.get_title(loc="left") for ax in figure.axes[:3]] == list(traces)
    keys = figure.legends[0].get_lines()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["slope read here", "average", "device 0", "device 1", "device 2"]
    looks = {(line.get_color(), line.get_linestyle()) for line in keys[1:]}
    assert len(looks) == 4, "colour and line style tell the devices apart"
    assert len({line.get_linestyle() for line in keys[2:]}) == 3, "in grey too"


def test_no_device_is_told_by_its_colour_alone():
    (ax,) = bowl({"eight": _roll(asynchronous(), 8, 8, 0.1)}, _loss, title="t")
    keys = ax.figure.legends[0].get_lines()[1:]
    assert len({(line.get_linestyle(), line.get_linewidth()) for line in keys}) == 8


def test_the_range_holds_every_point():
    (ax,) = bowl({"far": _roll(asynchronous(), 2, updates=8, rate=1.3)}, _loss, title="t")
    low, high = ax.get_xlim()
    assert all(low < x < high for arrow in _arrows(ax) for x in arrow[:2])


def test_the_minimum_is_marked():
    (ax,) = bowl({"one": _roll(asynchronous(), 1)}, _loss, title="t")
    (line,) = [line for line in ax.lines if list(line.get_ydata()) == [0, 1]]
    assert line.get_xdata()[0] == pytest.approx(0.0, abs=1e-12)


# --- workers, staleness, courses


def _bars(ax):
    return sorted(
        (round(p.get_y() + p.get_height() / 2), p.get_x(), p.get_x() + p.get_width())
        for p in ax.patches
    )


def _legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_timeline_has_a_bar_per_gradient_and_a_line_per_update():
    trace = VirtualClock(one_slow(fixed(1.0), 3, 2.5)).run(asynchronous(), 9)
    ax = worker_timeline(trace, title="One is slow")
    rows = zip(trace.worker, trace.start, trace.end, strict=True)
    assert _bars(ax) == sorted(rows)
    (lines,) = ax.collections
    assert [s[0][0] for s in lines.get_segments()] == trace.times.tolist()
    assert [int(t.get_text()) for t in ax.texts] == trace.staleness.tolist()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["worker 0", "worker 1", "worker 2"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # worker 0 on top
    assert "simulated" in ax.get_xlabel(), "a simulation must be labelled as one"
    assert _legend(ax) == ["update"]


def test_timeline_shows_what_did_not_count():
    trace = VirtualClock([fixed(1.0), fixed(3.0)]).run(spare_replicas(1, 1), 3)
    ax = worker_timeline(trace, title="Spare")
    white = [p for p in ax.patches if p.get_facecolor() == to_rgba("white")]
    assert [round(p.get_y() + 0.3) for p in white] == [1, 1, 1]
    assert len(ax.texts) == 3  # only what was written has a staleness
    assert _legend(ax) == ["update", "did not count"]


def test_timeline_of_the_beginning():
    trace = VirtualClock([exponential(1.0)] * 3).run(asynchronous(), 5000)
    ax = worker_timeline(trace, title="The first three seconds", until=3)
    assert ax.get_xlim() == (0, 3)
    assert len(ax.patches) == (trace.start < 3).sum()
    assert len(ax.collections[0].get_segments()) == (trace.times <= 3).sum()


def test_histogram_is_in_percent_with_mean_and_largest():
    ax = staleness_histogram({"a": np.array([0, 2, 2, 2]), "b": [1, 1]}, title="Stale")
    a, b = ax.patches
    assert a.get_data().values.tolist() == [25, 0, 75]
    assert a.get_data().edges.tolist() == [-0.5, 0.5, 1.5, 2.5]
    assert b.get_data().values.tolist() == [0, 100]
    assert _legend(ax) == ["a: mean 1.5, largest 2", "b: mean 1, largest 1"]
    assert a.get_hatch() != b.get_hatch()
    rare = staleness_histogram({"a": [0] * 98 + [5] * 2}, title="")
    assert rare.get_xlim() == (-0.7, pytest.approx(6.7)), "it ends where 1 % are left"
    assert "%" in ax.get_ylabel()


def test_loss_and_what_was_measured_against_time():
    trace = _roll(asynchronous(), 2, 40, 0.1, every=8)
    loss = training_curves({"rate 0.1": trace}, title="Learns").lines[0]
    assert loss.get_xdata().tolist() == trace.times.tolist()
    assert loss.get_ydata().tolist() == trace.losses.tolist()
    ax = training_curves({"w": trace}, title="Falls", ylabel="weight", measured=True)
    assert ax.lines[0].get_xdata().tolist() == trace.measured.time.tolist()
    assert ax.lines[0].get_ydata().tolist() == trace.measured.value.tolist()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("simulated time (s)", "weight")


@pytest.mark.parametrize("rate", [3.0, 1e200])
def test_a_diverged_run_is_named_and_does_not_squash_the_others(rate):
    good, bad = _roll(asynchronous(), 2, 40, 0.1), _roll(asynchronous(), 2, 40, rate)
    assert bad.diverged
    ax = training_curves({"good": good, "bad": bad}, title="Too large a rate")
    assert _legend(ax) == ["good", "bad (diverged)"]
    drawn, cross = ax.lines[1:]
    assert np.isfinite(drawn.get_ydata()).all() and len(drawn.get_ydata()) >= 1
    assert cross.get_marker() == "x"
    assert cross.get_ydata() == drawn.get_ydata()[-1]
    assert cross.get_color() == drawn.get_color()
    assert ax.get_ylim()[1] < 2.5 * good.losses.max() + 1
    plt.gcf().canvas.draw()


def test_only_diverged_runs_can_be_drawn_too():
    ax = training_curves({"bad": _roll(asynchronous(), 2, 40, 3.0)}, title="Diverges")
    assert _legend(ax) == ["bad (diverged)"]
    at_once = VirtualClock([fixed(1.0)]).run(
        asynchronous(),
        3,
        gradient=lambda w, _: (np.nan, [w[0]]),
        weights=[np.ones(1)],
        rate=0.1,
    )
    ax = training_curves({"at once": at_once}, title="Diverges at once")
    assert _legend(ax) == ["at once (diverged)"]
    assert not any(np.isnan(line.get_ydata()).any() for line in ax.lines)
    ax = training_curves(
        {"at once": at_once, "bad": _roll(asynchronous(), 2, 40, 3.0)}, title="Both"
    )
    assert len(ax.lines[1].get_ydata()) >= 1


def test_lines_differ_in_more_than_colour():
    x = np.arange(3)
    ax = curves({str(i): (x, x * i) for i in range(4)}, title="", xlabel="", ylabel="")
    looks = {(line.get_linestyle(), line.get_color()) for line in ax.lines}
    assert len({style for style, _ in looks}) == 4


def test_what_is_not_finite_is_not_drawn():
    lines = {"a": ([0, 1], [0, np.inf])}
    ax = curves(lines, title="", xlabel="", ylabel="", diverged=["a"])
    assert ax.lines[0].get_ydata().tolist() == [0]
