"""The picture of a pipeline: its bars, its lanes, its words."""

import matplotlib.pyplot as plt
import pytest

from utils.pictures import pipeline_lanes
from utils.runs import fill_and_drain, schedule
from utils.style import device_look

STEPS = schedule(fill_and_drain(2, 3), [1, 1], [2, 1])


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_a_bar_per_step_at_its_place():
    ax = pipeline_lanes(STEPS, title="a finding", unit="steps")
    bars = {(round(b.get_x(), 9), b.get_y() + b.get_height() / 2): b for b in ax.patches}
    assert len(bars) == len(STEPS)
    for step in STEPS:
        bar = bars[round(step.start, 9), step.stage]
        assert bar.get_width() == pytest.approx(step.end - step.start)
        assert bar.get_hatch() == device_look(f"GPU {step.stage}")["hatch"]
    heights = {s.kind: {bars[s.start, s.stage].get_height() for s in STEPS} for s in STEPS}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["GPU 0", "GPU 1"]
    words = sorted(text.get_text() for text in ax.texts)
    assert words == sorted(["F0", "F1", "F2", "B0", "B1", "B2"] * 2)
    assert heights and ax.get_title(loc="left") + ax.get_title() == "a finding"


def test_backward_is_lower_than_forward():
    ax = pipeline_lanes(STEPS, title="t")
    by_start = sorted(ax.patches, key=lambda bar: bar.get_x())
    assert by_start[-1].get_height() < by_start[0].get_height()


def test_time_starts_with_the_first_step_and_may_be_cut():
    late = [type(s)(s.stage, s.kind, s.micro_batch, s.start + 5, s.end + 5) for s in STEPS]
    ax = pipeline_lanes(late, title="t", until=20)
    assert min(bar.get_x() for bar in ax.patches) == pytest.approx(0)
    assert ax.get_xlim() == (0, 20_000)
    assert ax.get_xlabel() == "time (ms)"


def test_narrow_bars_have_no_text():
    ax = pipeline_lanes(STEPS, title="t", until=1000)
    assert not ax.texts


def test_axes_that_it_gets_and_no_step():
    ax = plt.subplots()[1]
    assert pipeline_lanes(STEPS, title="t", ax=ax) is ax
    with pytest.raises(ValueError, match="no step to draw"):
        pipeline_lanes([], title="t")
    with pytest.raises(ValueError, match="unit='s': give one of ms, steps"):
        pipeline_lanes(STEPS, title="t", unit="s")
