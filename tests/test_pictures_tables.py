"""Pictures of tables and schedules: pipelines, speed-ups, tasks, kernels."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import FancyBboxPatch

from utils import style
from utils.pictures import kernel_matrix, pipeline_lanes, speedup, who_ran_what
from utils.pictures.kernel_matrix import LOOKS, kernel_memory
from utils.pictures.speedup import amdahl, gustafson
from utils.placement import kernels
from utils.runs import fill_and_drain, schedule
from utils.style import device_look

STEPS = schedule(fill_and_drain(2, 3), [1, 1], [2, 1])
RAN = {
    "ps 0": {"Const": 1, "ReadVariableOp": 5},
    "worker 1": {"Const": 7, "MatMul": 3, "Sum": 0},
}
needs_list = pytest.mark.skipif(
    not kernels.lists_gpu_kernels(), reason="this build of TensorFlow lists no kernels for GPUs"
)


@pytest.fixture(autouse=True)
def _course_look(machine):
    style.apply()
    yield
    plt.close("all")


# --- pipelines


def test_a_bar_per_step_at_its_place():
    ax = pipeline_lanes(STEPS, title="", unit="steps")
    bars = {(round(b.get_x(), 9), b.get_y() + b.get_height() / 2): b for b in ax.patches}
    assert len(bars) == len(ax.patches) == len(STEPS)
    for step in STEPS:
        bar = bars[round(step.start, 9), step.stage]
        assert bar.get_width() == pytest.approx(step.end - step.start)
        assert bar.get_hatch() == device_look(f"GPU {step.stage}")["hatch"]
        assert bar.get_height() == pytest.approx(0.8 if step.kind == "forward" else 0.45)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["GPU 0", "GPU 1"]
    words = sorted(text.get_text() for text in ax.texts)
    assert words == sorted(["F0", "F1", "F2", "B0", "B1", "B2"] * 2)
    assert ax.get_xlim() == (0, max(step.end for step in STEPS))
    assert ax.get_xlabel() == "time (steps)"


def test_time_starts_with_the_first_step_and_may_go_on():
    late = [type(s)(s.stage, s.kind, s.micro_batch, s.start + 5, s.end + 5) for s in STEPS]
    ax = pipeline_lanes(late, title="", until=20)
    assert min(bar.get_x() for bar in ax.patches) == pytest.approx(0)
    assert ax.get_xlim() == (0, 20_000)
    assert ax.get_xlabel() == "time (ms)"


def test_narrow_bars_have_no_text():
    assert not pipeline_lanes(STEPS, title="", until=1000).texts


# --- speed-ups


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
    ax = speedup({4: 2.5, 1: 1.0, 2: 1.8}, serial=0.1, weak=weak, title="")
    lines = _lines(ax)
    assert set(lines) == {"ideal", "measured", f"{name}, 10% serial"}
    assert lines["measured"].tolist() == [[1, 1.0], [2, 1.8], [4, 2.5]]
    assert lines["ideal"][-1].tolist() == [4, 4]
    assert lines[f"{name}, 10% serial"][-1, 1] == pytest.approx(law(4, 0.1))
    looks = {(each.get_linestyle(), each.get_marker()) for each in ax.lines}
    assert len(looks) == 3, "in grey too"


@pytest.mark.parametrize(
    ("cores", "label"), [(1, "1 core"), (2, "2 cores"), (4, None), (None, None)]
)
def test_cores_are_drawn_where_they_run_out(cores, label):
    lines = _lines(speedup({1: 1.0, 4: 2.0}, serial=0.0, cores=cores, title="t"))
    found = [name for name in lines if "core" in name]
    assert found == ([label] if label else [])
    if label:
        assert set(lines[label][:, 1]) == {cores}


# --- tasks


def boxes(ax):
    """Task and kind of each box, with its text."""
    tasks = [label.get_text() for label in ax.get_xticklabels()]
    kinds = [label.get_text() for label in ax.get_yticklabels()]
    return {
        (tasks[round(x)], kinds[round(y)]): text.get_text()
        for text in ax.texts
        for x, y in [text.get_position()]
    }


def test_a_box_for_each_task_and_kind_that_it_ran():
    ax = who_ran_what(RAN, title="")
    assert boxes(ax) == {
        ("ps 0", "Const"): "1×",
        ("ps 0", "ReadVariableOp"): "5×",
        ("worker 1", "Const"): "7×",
        ("worker 1", "MatMul"): "3×",
    }
    looks = [patch.get_hatch() for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    worker = device_look("GPU 1")["hatch"]
    assert looks == ["", "", worker, worker], "a worker looks like the GPU of its number"


def test_hidden_kinds_leave_no_row():
    ax = who_ran_what(RAN, title="", hide={"Const"})
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "ReadVariableOp", "MatMul", "Sum"
    ]  # fmt: skip
    assert len(boxes(ax)) == 2


# --- kernels


@needs_list
@pytest.mark.parametrize(
    ("op", "dtype", "memory"),
    [
        ("VarHandleOp", "float32", "device"),  # its handle is on the host, its values are not
        ("VarHandleOp", "int64", "device"),
        ("VarHandleOp", "int32", "CPU only"),
        ("MatMul", "int32", "CPU only"),
        ("MatMul", "bool", ""),
        ("AddV2", "float32", "device"),
        ("AddV2", "int32", "host memory"),
        ("AddV2", "string", ""),
        ("Sum", "float32", "device"),  # only the axes are on the host
        ("Sum", "int32", "host memory"),
        ("Reshape", "float32", "device"),
        ("Reshape", "int32", "host memory"),
        ("Reshape", "string", "CPU only"),
        ("StringJoin", "string", "CPU only"),
        ("StringJoin", "float32", ""),
        ("DecodeJpeg", "string", "CPU only"),
        ("NoOp", "float32", ""),
    ],
)
def test_in_which_memory(op, dtype, memory):
    assert kernel_memory(op, dtype) == memory


def test_an_unknown_operation_is_one_clear_error():
    with pytest.raises(ValueError, match="no operation 'matmul'. Similar: MatMul"):
        kernel_memory("matmul", "float32")


def _marks(ax) -> dict[str, set]:
    return {
        dots.get_label(): {tuple(map(int, place)) for place in dots.get_offsets()}
        for dots in ax.collections
    }


@needs_list
def test_a_mark_for_each_kernel_and_the_marks_differ_in_shape():
    ops, dtypes = ("MatMul", "AddV2"), ("float32", "int32", "bool")
    ax = kernel_matrix(ops, dtypes, title="")
    assert _marks(ax) == {
        "on the GPU": {(0, 0), (0, 1)},
        "GPU, in host memory": {(1, 1)},
        "CPU only": {(1, 0)},
    }
    assert [label.get_text() for label in ax.get_yticklabels()] == list(ops)
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first row is on top"
    assert [label.get_text() for label in ax.get_xticklabels()] == list(dtypes)
    assert len({look["marker"] for _, look in LOOKS.values()}) == len(LOOKS)


def test_a_build_without_gpu_kernels_says_so_in_the_picture(monkeypatch):
    monkeypatch.setattr(kernels, "lists_gpu_kernels", lambda: False)
    monkeypatch.setitem(kernel_memory.__globals__, "lists_gpu_kernels", lambda: False)
    ax = kernel_matrix(("MatMul",), ("float32",), title="The finding")
    assert ax.get_title(loc="left") == "This build of TensorFlow lists no GPU kernels"
    assert _marks(ax)["CPU only"] == {(0, 0)}
