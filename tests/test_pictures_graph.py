"""Pictures of a run: the machine, when operations ran, which device ran what, what crossed."""

import random

import matplotlib.pyplot as plt
import numpy as np
import pytest
import tensorflow as tf
from matplotlib.colors import to_rgba
from matplotlib.text import Annotation, Text

from utils import style
from utils.machine import Machine, plain_name
from utils.pictures import lanes, machine_diagram, timeline
from utils.pictures.parts import lane_order
from utils.runs import Node, Trace, Transfer, trace
from utils.runs.trace import Interval

v1 = tf.compat.v1
HOST, GPU0, GPU1, GPU2 = (f"/CPU:{i}" for i in range(4))


@pytest.fixture(autouse=True)
def _course_look(machine):
    style.apply()
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def towers(machine):
    """The traced 4×3 example on two GPUs."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.host):
            x = v1.get_variable("input_data", initializer=np.arange(1, 13.0).reshape(4, 3))
            weights = v1.get_variable("b", initializer=np.float64([[1], [1], [2]]))
            parts = tf.split(x, 2)
        products = []
        for gpu, part in zip(machine.gpus, parts, strict=False):
            with tf.device(gpu):
                products.append(part @ weights)
        with tf.device(machine.host):
            output = tf.concat(products, axis=0, name="output")
    return trace(graph, output)


def _trace(nodes=(), transfers=(), controls=(), intervals=()) -> Trace:
    return Trace(None, tuple(nodes), tuple(intervals), tuple(transfers), tuple(controls), {})


def _node(name, device, inputs=(), controls=(), op="Add") -> Node:
    return Node(name, op, device, tuple(inputs), tuple(controls))


def _words(ax) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


def _arrows(ax) -> dict[str, int]:
    """How many arrows of each kind there are: thick or thin, data or control."""
    counts = {"thick data": 0, "thin data": 0, "thick control": 0, "thin control": 0}
    for text in ax.texts:
        if isinstance(text, Annotation) and text.arrow_patch:
            weight = "thick" if text.arrow_patch.get_linewidth() > 2 else "thin"
            kind = "control" if text.arrow_patch.get_linestyle() in (":", "dotted") else "data"
            counts[f"{weight} {kind}"] += 1
    return counts


def _boxes(ax) -> dict[str, Text]:
    """The node boxes by node name; a box says type, then name."""
    nodes = (t for t in ax.texts if t.get_bbox_patch() and "\n" in t.get_text())
    return {text.get_text().split("\n")[1]: text for text in nodes}


# --- the machine --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_machine_boxes_hold_their_words(count):
    gpus = tuple(f"/CPU:{i + 1}" for i in range(count))
    ax = machine_diagram(Machine("/CPU:0", gpus, "virtual", (), 2), title="")
    words = _words(ax)
    assert words[0] == "host\n/CPU:0"
    assert words[1:] == [f"GPU {i}\n/CPU:{i + 1}\npart of the CPU" for i in range(count)]
    assert len(ax.patches) == count + 1
    ax.figure.canvas.draw()
    texts = [text for text in ax.texts if text.get_text()]
    for text, box in zip(texts, ax.patches, strict=True):
        inner, outer = text.get_window_extent(), box.get_window_extent()
        assert outer.x0 < inner.x0 < inner.x1 < outer.x1
        assert outer.y0 < inner.y0 < inner.y1 < outer.y1
    looks = {(box.get_facecolor(), box.get_hatch()) for box in ax.patches}
    assert len(looks) == count + 1


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (Machine("/CPU:0", ("/GPU:0", "/GPU:1"), "real", (0, 1), 2), ["a real card"] * 2),
        (
            Machine("/CPU:0", ("/GPU:0", "/GPU:1", "/GPU:2"), "split", (0, 0, 1), 2),
            ["part of card 0", "part of card 0", "part of card 1"],
        ),
    ],
)
def test_machine_says_what_is_behind(machine, said):
    assert [word.split("\n")[2] for word in _words(machine_diagram(machine, title=""))[1:]] == said


# --- the timeline -------------------------------------------------------------------------------


def test_timeline_has_a_bar_per_interval(towers):
    ax = timeline(towers, title="")
    assert len(ax.patches) == len(towers.intervals)
    for bar, row in zip(ax.patches, towers.intervals, strict=True):
        assert bar.get_x() == pytest.approx(row.start * 1e3)
        assert bar.get_width() == pytest.approx((row.end - row.start) * 1e3)
        lane = ["host", "GPU 0", "GPU 1"].index(plain_name(row.device))
        assert bar.get_y() + bar.get_height() / 2 == pytest.approx(lane)
        assert bar.get_hatch() == style.device_look(plain_name(row.device))["hatch"]
    assert "(ms)" in ax.get_xlabel()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["host", "GPU 0", "GPU 1"]
    top, bottom = ax.get_ylim()[::-1]
    assert top < 0 < 2 < bottom  # the host is on top


@pytest.mark.parametrize("ops", [{"MatMul"}, ["MatMul"], "MatMul"])
def test_timeline_of_some_types(towers, ops):
    ax = timeline(towers, title="", ops=ops)
    assert len(ax.patches) == 2
    assert [label.get_text() for label in ax.get_yticklabels()] == ["GPU 0", "GPU 1"]


def test_one_type_is_not_its_letters():
    nodes = [_node("a", HOST, op="Const"), _node("b", HOST, op="Con")]
    assert set(_boxes(lanes(_trace(nodes), title="", hide="Const"))) == {"b"}
    rows = [Interval("a", "Mul", GPU0, 0, 1), Interval("b", "MatMul", GPU0, 1, 2)]
    assert len(timeline(_trace(intervals=rows), title="", ops="MatMul").patches) == 1


def test_timeline_frames_what_is_marked():
    rows = [Interval("a", "Mul", GPU0, 0, 1), Interval("b", "Mul", GPU1, 0, 1)]
    ax = timeline(_trace(intervals=rows), title="", mark=("b", "not drawn"))
    framed, plain = ax.patches[1], ax.patches[0]
    assert framed.get_linewidth() >= 3 * plain.get_linewidth()
    assert framed.get_edgecolor() != plain.get_edgecolor()
    assert framed.get_facecolor() == to_rgba(style.device_look("GPU 1")["facecolor"])


def test_lanes_in_the_order_of_devices():
    shuffled = ["GPU 10", "XLA_CPU 0", "GPU 2", "host", "GPU 0"]
    assert sorted(shuffled, key=lane_order) == ["host", "GPU 0", "GPU 2", "GPU 10", "XLA_CPU 0"]


# --- the lanes ----------------------------------------------------------------------------------


def test_lanes_of_the_example(towers):
    ax = lanes(towers, title="")
    assert _arrows(ax) == {
        "thick data": 6,  # the transfers
        "thin data": 3,  # input and axis to the split, axis to the merge
        "thick control": 0,
        "thin control": 0,
    }
    assert sorted(word for word in _words(ax) if word.endswith(" B")) == sorted(
        f"{t.bytes} B" for t in towers.transfers
    )
    boxes = _boxes(ax)
    assert {name: box.get_text().split("\n")[0] for name, box in boxes.items()} == {
        "input_data": "variable",  # a variable and its reads are one box
        "b": "variable",
        "split/split_dim": "Const",
        "split": "Split",
        "matmul": "MatMul",
        "matmul_1": "MatMul",
        "output": "ConcatV2",
    }


def test_lanes_put_each_operation_on_its_device(towers):
    ax = lanes(towers, title="")
    labels = {t.get_text(): t.get_position()[1] for t in ax.texts if t.get_weight() == "bold"}
    assert list(labels) == ["host", "GPU 0", "GPU 1"]
    assert ax.get_ylim()[0] > labels["GPU 1"] > labels["GPU 0"] > labels["host"] > 0
    home = {node.name: plain_name(node.device) for node in towers.nodes}
    places = [box.get_position() for box in _boxes(ax).values()]
    assert len(set(places)) == len(places)
    for name, box in _boxes(ax).items():
        y = box.get_position()[1]
        assert min(labels, key=lambda lane: abs(labels[lane] - y)) == home[name]
        colour = box.get_bbox_patch().get_facecolor()
        assert colour == to_rgba(style.device_look(home[name])["facecolor"])


def test_long_names_have_room_between_the_columns():
    """A label of a transfer must not fall onto a box."""
    long = "scope/of/a/scope/RandomStandardNormal"
    nodes = [
        _node("a", HOST),
        _node(long, GPU0, ["a"], op="RandomStandardNormal"),
        _node("c", GPU1, [long]),
    ]
    moved = [Transfer("a", HOST, GPU0, 4, False), Transfer(long, GPU0, GPU1, 4, False)]
    ax = lanes(_trace(nodes, moved), title="")
    ax.figure.canvas.draw()
    draw = ax.figure.canvas.get_renderer()
    spans = sorted(
        (box.get_window_extent(draw).x0, box.get_window_extent(draw).x1)
        for box in (text.get_bbox_patch() for text in ax.texts if "\n" in text.get_text())
    )
    gaps = [right[0] - left[1] for left, right in zip(spans[:-1], spans[1:], strict=True)]
    assert min(gaps) > 40, "pixels at 100 per inch"
    assert any(word.endswith("…" + long[-21:]) for word in _words(ax))


def test_what_waits_stands_to_the_right():
    nodes = [
        _node("c", HOST, ["a"], ["b"]),
        _node("a", GPU0),
        _node("b", GPU1, ["a"]),
        _node("d", HOST, ["c", "c"]),
    ]
    ax = lanes(_trace(nodes), title="")
    x = {name: box.get_position()[0] for name, box in _boxes(ax).items()}
    assert (x["a"], x["b"], x["c"], x["d"]) == (0, 1, 2, 3)
    assert sum(_arrows(ax).values()) == 4  # c to d once


def test_second_user_on_a_device_needs_no_second_transfer():
    nodes = [_node("a", HOST), _node("b", GPU0, ["a"]), _node("c", GPU0, ["a", "b"])]
    ax = lanes(_trace(nodes, [Transfer("a", HOST, GPU0, 16, False)]), title="")
    assert _arrows(ax) == {"thick data": 1, "thin data": 2, "thick control": 0, "thin control": 0}
    assert [word for word in _words(ax) if word.endswith(" B")] == ["16 B"]


def test_two_outputs_to_one_device_are_two_sizes():
    nodes = [_node("split", HOST), _node("b", GPU0, ["split", "split"])]
    moved = [Transfer("split", HOST, GPU0, size, False) for size in (8, 16)]
    assert "8 + 16 B" in _words(lanes(_trace(nodes, moved), title=""))


def test_control_edges_are_dotted_and_have_no_size():
    nodes = [
        _node("a", HOST),
        _node("b", GPU0, [], ["a"]),
        _node("c", GPU0, [], ["b"]),
        _node("d", GPU1, ["a"], ["a"]),
    ]
    moved = [Transfer("a", HOST, GPU1, 4, False)]
    signals = [Transfer("a", HOST, gpu, 0, True) for gpu in (GPU0, GPU1)]
    ax = lanes(_trace(nodes, moved, signals), title="")
    assert _arrows(ax) == {"thick data": 1, "thin data": 0, "thick control": 2, "thin control": 1}
    assert [word for word in _words(ax) if word.endswith(" B")] == ["4 B"]


def test_an_order_kept_by_a_read_stays():
    nodes = [
        _node("v", HOST, op="VarHandleOp"),
        _node("v/Read", HOST, ["v"], op="ReadVariableOp"),
        _node("after", HOST, [], ["v/Read"]),
        _node("v/Read_1", HOST, ["v"], ["after"], op="ReadVariableOp"),  # not a plain read
    ]
    ax = lanes(_trace(nodes), title="")
    assert set(_boxes(ax)) == {"v", "after", "v/Read_1"}
    assert _arrows(ax) == {"thick data": 0, "thin data": 1, "thick control": 0, "thin control": 2}


@pytest.mark.parametrize("hide", [("Const", "variable"), {"Const", "variable"}])
def test_hidden_types_stay_where_they_cross(hide):
    nodes = [
        _node("one", HOST, op="Const"),
        _node("two", HOST, op="Const"),
        _node("v", HOST, op="VarHandleOp"),
        _node("w", HOST, op="VarHandleOp"),
        _node("v/Read", HOST, ["v"], op="ReadVariableOp"),
        _node("w/Read", HOST, ["w"], op="ReadVariableOp"),
        _node("here", HOST, ["one", "v/Read"]),
        _node("there", GPU0, ["two", "w/Read"]),
    ]
    moved = [Transfer(name, HOST, GPU0, 4, False) for name in ("two", "w/Read")]
    ax = lanes(_trace(nodes, moved), title="", hide=hide)
    assert set(_boxes(ax)) == {"two", "w", "here", "there"}
    assert _arrows(ax)["thick data"] == 2


def test_a_result_is_drawn_only_if_it_travels(machine):
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [2], name="x")
        with tf.device(machine.gpus[0]):
            there = tf.exp(x, name="there")
        with tf.device(machine.host):
            here = tf.exp(there, name="here")
    run = trace(graph, [here, there], {x: [1, 2]})
    ax = lanes(run, title="")
    assert [word for word in _words(ax) if word.startswith("Result")] == ["Result\nthere"]
    # x goes there; what comes back is used by `here` and is a result: one transfer for both.
    assert len(run.transfers) == 2
    assert _arrows(ax)["thick data"] == 2


@pytest.mark.parametrize("seed", range(10))
def test_as_many_thick_arrows_as_transfers(seed):
    pick = random.Random(seed)
    nodes, moved = [], {}
    for i in range(20):
        inputs = pick.sample(nodes, min(len(nodes), pick.randint(0, 3)))
        node = _node(f"n{i}", pick.choice([HOST, GPU0, GPU1, GPU2]), [n.name for n in inputs])
        for source in inputs:
            if source.device != node.device:
                edge = source.name, source.device, node.device
                moved[edge] = Transfer(*edge, pick.randint(1, 99), False)
        nodes.append(node)
    pick.shuffle(nodes)
    ax = lanes(_trace(nodes, moved.values()), title="")
    assert _arrows(ax)["thick data"] == len(moved)
    assert sum(_arrows(ax).values()) == sum(len(node.inputs) for node in nodes)
    sizes = sorted(word for word in _words(ax) if word.endswith(" B"))
    assert sizes == sorted(f"{transfer.bytes} B" for transfer in moved.values())
