"""The picture of which task ran what."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.patches import FancyBboxPatch

from utils import style
from utils.pictures import who_ran_what

RAN = {
    "ps 0": {"Const": 1, "ReadVariableOp": 5},
    "worker 1": {"Const": 7, "MatMul": 3, "Sum": 0},
}


@pytest.fixture(autouse=True)
def closed():
    style.apply()
    yield
    plt.close("all")


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
    ax = who_ran_what(RAN, title="the finding")
    assert boxes(ax) == {
        ("ps 0", "Const"): "1×",
        ("ps 0", "ReadVariableOp"): "5×",
        ("worker 1", "Const"): "7×",
        ("worker 1", "MatMul"): "3×",
    }
    assert ax.get_title(loc="left") == "the finding"
    looks = [patch.get_hatch() for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    worker = style.device_look("GPU 1")["hatch"]
    assert looks == ["", "", worker, worker], "a worker looks like the GPU of its number"


def test_hidden_kinds_leave_no_row():
    ax = who_ran_what(RAN, title="", hide={"Const"}, ax=plt.subplots()[1])
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "ReadVariableOp", "MatMul", "Sum"
    ]  # fmt: skip
    assert len(boxes(ax)) == 2


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match=r"hide=\['Const'\] leaves none"):
        who_ran_what({"ps 0": {"Const": 1}}, title="", hide=["Const"])
