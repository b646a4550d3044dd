"""The picture of kernels: what its marks say, on the kernels of the installed TensorFlow."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text

from utils import style
from utils.pictures import kernel_matrix
from utils.pictures.kernel_matrix import LOOKS, kernel_memory
from utils.placement import kernels

needs_list = pytest.mark.skipif(
    not kernels.lists_gpu_kernels(), reason="this build of TensorFlow lists no kernels for GPUs"
)


@pytest.fixture(autouse=True)
def _course_look(machine):
    style.apply()
    yield
    plt.close("all")


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
    ax = kernel_matrix(ops, dtypes, title="The finding")
    assert _marks(ax) == {
        "on the GPU": {(0, 0), (0, 1)},
        "GPU, in host memory": {(1, 1)},
        "CPU only": {(1, 0)},
    }
    assert [label.get_text() for label in ax.get_yticklabels()] == list(ops)
    assert [label.get_text() for label in ax.get_xticklabels()] == list(dtypes)
    assert ax.get_title(loc="left") == "The finding"
    assert len({look["marker"] for look in LOOKS.values()}) == len(LOOKS)
    ax.figure.canvas.draw()
    shown = [t for t in ax.findobj(Text) if t.get_text() and t.get_visible()]
    assert min(text.get_fontsize() for text in shown) >= 12


def test_draws_where_it_is_told():
    mine = plt.figure().subplots()
    assert kernel_matrix(("MatMul",), ("float32",), title="t", ax=mine) is mine
    assert len(plt.get_fignums()) == 1


def test_a_build_without_gpu_kernels_says_so_in_the_picture(monkeypatch):
    monkeypatch.setattr(kernels, "lists_gpu_kernels", lambda: False)
    monkeypatch.setitem(kernel_memory.__globals__, "lists_gpu_kernels", lambda: False)
    ax = kernel_matrix(("MatMul",), ("float32",), title="The finding")
    assert ax.get_title(loc="left") == "This build of TensorFlow lists no GPU kernels"
    assert _marks(ax)["CPU only"] == {(0, 0)}
