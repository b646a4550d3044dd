"""Pictures of training show what the trace says, and no NaN."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from utils.clock import (
    VirtualClock,
    asynchronous,
    exponential,
    fixed,
    one_slow,
    spare_replicas,
)
from utils.pictures import curves, staleness_histogram, training_curves, worker_timeline


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def _bars(ax):
    return sorted(
        (round(p.get_y() + p.get_height() / 2), p.get_x(), p.get_x() + p.get_width())
        for p in ax.patches
    )


def _legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def _quadratic(weights, batch):
    return float(weights[0] @ weights[0]) / 2, [weights[0]]


def _run(rate, updates=40, **keywords):
    return VirtualClock([fixed(1.0)] * 2).run(
        asynchronous(),
        updates,
        gradient=_quadratic,
        weights=[np.ones(1)],
        rate=rate,
        **keywords,
    )


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
    assert ax.get_title(loc="left") == "One is slow" or ax.get_title() == "One is slow"
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
    with pytest.raises(ValueError, match=r"5000 gradients before until=None.*1 to 400"):
        worker_timeline(trace, title="Too much")
    with pytest.raises(ValueError, match="0 gradients before until=0"):
        worker_timeline(trace, title="Nothing", until=0)


def test_histogram_is_in_percent_with_mean_and_largest():
    ax = staleness_histogram({"a": np.array([0, 2, 2, 2]), "b": [1, 1]}, title="Stale")
    a, b = ax.patches
    assert a.get_data().values.tolist() == [25, 0, 75]
    assert a.get_data().edges.tolist() == [-0.5, 0.5, 1.5, 2.5]
    assert b.get_data().values.tolist() == [0, 100]
    assert _legend(ax) == ["a: mean 1.5, largest 2", "b: mean 1, largest 1"]
    assert a.get_hatch() != b.get_hatch()
    assert "%" in ax.get_ylabel()
    with pytest.raises(ValueError, match="'empty' has no gradients"):
        staleness_histogram({"empty": []}, title="")
    with pytest.raises(ValueError, match="no run to draw"):
        staleness_histogram({}, title="")


@pytest.mark.parametrize("against", ["time", "updates"])
def test_loss_against_time_and_updates(against):
    trace = _run(0.1)
    ax = training_curves({"rate 0.1": trace}, title="Learns", against=against)
    (line,) = ax.lines
    x = trace.times if against == "time" else np.arange(1, 41)
    assert line.get_xdata().tolist() == x.tolist()
    assert line.get_ydata().tolist() == trace.losses.tolist()
    assert "simulated" in ax.get_xlabel() and against in ax.get_xlabel()


@pytest.mark.parametrize("against", ["time", "updates"])
def test_what_was_measured(against):
    trace = _run(0.1, measure=lambda w: w[0][0], every=8)
    ax = training_curves(
        {"w": trace}, title="Falls", ylabel="weight", measured=True, against=against
    )
    expected = trace.measured.time if against == "time" else trace.measured.update
    assert ax.lines[0].get_xdata().tolist() == expected.tolist()
    assert ax.lines[0].get_ydata().tolist() == trace.measured.value.tolist()
    assert ax.get_ylabel() == "weight"


@pytest.mark.parametrize("rate", [3.0, 1e200])
def test_a_diverged_run_is_named_and_does_not_squash_the_others(rate):
    good, bad = _run(0.1), _run(rate)
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
    ax = training_curves({"bad": _run(3.0)}, title="Diverges")
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
    ax = training_curves({"at once": at_once, "bad": _run(3.0)}, title="Both")
    assert len(ax.lines[1].get_ydata()) >= 1


def test_lines_differ_in_more_than_colour():
    x = np.arange(3)
    ax = curves({str(i): (x, x * i) for i in range(4)}, title="", xlabel="", ylabel="")
    looks = {(line.get_linestyle(), line.get_color()) for line in ax.lines}
    assert len({style for style, _ in looks}) == 4


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_never_drawn_unnamed(value):
    with pytest.raises(ValueError, match="'a' has values that are not finite: if this run"):
        curves({"a": ([0, 1], [0, value])}, title="", xlabel="", ylabel="")
    ax = curves({"a": ([0, 1], [0, value])}, title="", xlabel="", ylabel="", diverged=["a"])
    assert ax.lines[0].get_ydata().tolist() == [0]


def test_nothing_to_draw_is_an_error():
    bare = VirtualClock([fixed(1.0)]).run(asynchronous(), 3)
    with pytest.raises(ValueError, match="'bare' has nothing to draw: run it with a gradient"):
        training_curves({"bare": bare}, title="")
    with pytest.raises(ValueError, match="run it with a measure"):
        training_curves({"run": _run(0.1)}, title="", measured=True)
    with pytest.raises(ValueError, match='against=\'steps\': give "time" or "updates"'):
        training_curves({"run": _run(0.1)}, title="", against="steps")
    with pytest.raises(ValueError, match="no line to draw"):
        curves({}, title="", xlabel="", ylabel="")
