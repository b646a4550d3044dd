"""The speed-up picture: its lines, its points, what it refuses."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from utils.pictures import amdahl, gustafson, speedup


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def _lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


def test_the_laws():
    assert amdahl(1, 0.3) == gustafson(1, 0.3) == 1
    assert amdahl(4, 0.0) == gustafson(4, 0.0) == 4
    assert amdahl(4, 1.0) == gustafson(4, 1.0) == 1
    assert amdahl(10**9, 0.25) == pytest.approx(4), "never more than 1 / serial"
    assert amdahl(3, 0.5) == pytest.approx(1.5)
    assert gustafson(3, 0.5) == pytest.approx(2.0)
    assert np.allclose(amdahl(np.array([1, 2]), 0.5), [1, 4 / 3])


@pytest.mark.parametrize(
    ("weak", "name", "law"), [(False, "Amdahl", amdahl), (True, "Gustafson", gustafson)]
)
def test_points_stand_beside_the_ideal_and_the_law(weak, name, law):
    ax = speedup({4: 2.5, 1: 1.0, 2: 1.8}, serial=0.1, weak=weak, title="a finding")
    lines = _lines(ax)
    assert set(lines) == {"ideal", "measured", f"{name}, 10% serial"}
    assert lines["measured"].tolist() == [[1, 1.0], [2, 1.8], [4, 2.5]]
    assert lines["ideal"][-1].tolist() == [4, 4]
    assert lines[f"{name}, 10% serial"][-1, 1] == pytest.approx(law(4, 0.1))
    assert ax.get_title(loc="left") + ax.get_title() == "a finding"
    assert ax.get_xlabel() and ax.get_ylabel()


@pytest.mark.parametrize(
    ("cores", "label"), [(1, "1 core"), (2, "2 cores"), (4, None), (None, None)]
)
def test_cores_are_drawn_where_they_run_out(cores, label):
    lines = _lines(speedup({1: 1.0, 4: 2.0}, serial=0.0, cores=cores, title="t"))
    found = [name for name in lines if "core" in name]
    assert found == ([label] if label else [])
    if label:
        assert set(lines[label][:, 1]) == {cores}


def test_it_draws_on_the_axes_it_gets():
    ax = plt.subplots()[1]
    assert speedup({1: 1.0}, serial=0.0, title="t", ax=ax) is ax


@pytest.mark.parametrize("serial", [-0.1, 1.5])
def test_a_share_is_between_0_and_1(serial):
    with pytest.raises(ValueError, match="from 0 to 1"):
        speedup({1: 1.0}, serial=serial, title="t")


def test_nothing_measured():
    with pytest.raises(ValueError, match="measured is empty"):
        speedup({}, serial=0.1, title="t")
