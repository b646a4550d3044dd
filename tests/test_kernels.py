"""The table of kernels, on the kernels of the installed TensorFlow."""

import re

import pytest

from utils.placement import has_kernel, kernel_for, kernels, kernels_of

FLOATS = {"float16", "float32", "float64", "bfloat16"}

pytestmark = pytest.mark.skipif(
    not kernels.lists_gpu_kernels(), reason="this build of TensorFlow lists no kernels for GPUs"
)


def node(op, **dtypes):
    from tensorflow.compat import v1

    made = v1.NodeDef(op=op)
    for attribute, dtype in dtypes.items():
        made.attr[attribute].type = getattr(v1, dtype).as_datatype_enum
    return made


def rows(op, *device_types):
    """The printed table as lists of cells, continued cells joined."""
    lines = str(kernels_of(op, device_types or ("CPU", "GPU"))).splitlines()
    assert lines[0] == op
    edges = [found.start() for found in re.finditer(r"(?:^|(?<=  ))\S", lines[1])]
    found = []
    for line in lines[1:]:
        cells = [line[a:b].strip() for a, b in zip(edges, [*edges[1:], None], strict=True)]
        if cells[0]:
            found.append(cells)
        else:
            joined = zip(found[-1], cells, strict=True)
            found[-1] = [f"{old} {new}".strip() for old, new in joined]
    return found


def test_a_variable_of_whole_numbers_has_no_gpu_kernel():
    for op in ("VarHandleOp", "VariableV2"):
        on_gpu = kernels_of(op).dtypes("GPU")
        assert "int32" not in on_gpu
        assert on_gpu >= FLOATS | {"int64", "bool", "complex64"}
        assert "int32" in kernels_of(op).dtypes("CPU")


def test_products_of_matrices_of_whole_numbers_run_on_the_cpu_only():
    assert "int32" in kernels_of("MatMul").dtypes("CPU")
    assert "int32" not in kernels_of("MatMul").dtypes("GPU")
    assert kernels_of("MatMul").dtypes("GPU") >= FLOATS


@pytest.mark.parametrize("op", ["StringJoin", "DecodeJpeg"])
def test_says_where_there_is_no_kernel(op):
    assert ["GPU", "no kernel"] in rows(op)
    assert kernels_of(op).kernels("GPU") == ()


def test_marks_arguments_in_host_memory():
    table = rows("AddV2")
    assert table[0] == ["device", "T", "in host memory"]
    assert ["GPU", "int32", "x, y, z"] in table
    floats = next(row for row in table if row[0] == "GPU" and row[2] == "-")
    assert floats[1].split(", ") == sorted(floats[1].split(", ")) and "float32" in floats[1]


def test_a_kernel_for_any_type_counts_for_a_type_without_its_own():
    assert not any(k.device_type == "GPU" for k in kernels_of("VarHandleOp").kernels("GPU"))
    assert kernel_for(node("VarHandleOp", dtype="float32"), "GPU").device_type == "DEFAULT"
    assert kernel_for(node("VarHandleOp", dtype="int32"), "GPU") is None
    # The CPU's own kernel fits every dtype, so those for any type add no row.
    assert [row for row in rows("VarHandleOp") if row[0] == "CPU"] == [["CPU", "any", "-"]]


def test_a_device_types_own_kernel_comes_before_one_for_any_type():
    assert kernel_for(node("AddV2", T="int32"), "GPU").device_type == "GPU"
    assert kernel_for(node("AddV2", T="int32"), "CPU").device_type == "CPU"


def test_every_type_attribute_counts():
    assert kernel_for(node("Shape", T="float32", out_type="int64"), "GPU").host_memory == (
        "output",
    )
    assert set(kernel_for(node("Shape", T="int32", out_type="int64"), "GPU").host_memory) == {
        "input",
        "output",
    }
    assert kernel_for(node("Shape", T="float32", out_type="float32"), "GPU") is None
    assert kernel_for(node("Shape", T="float32"), "GPU") is None
    assert kernels_of("Shape").dtypes("GPU", "out_type") == {"int32", "int64"}


def test_a_labelled_kernel_is_for_nodes_that_ask_for_it():
    asking = node("KernelLabelRequired")
    assert kernel_for(asking, "CPU") is None
    asking.attr["_kernel"].s = b"overload_1"
    assert kernel_for(asking, "CPU").label == "overload_1"


def test_asks_an_operation_of_a_graph(machine):
    import tensorflow as tf

    with tf.Graph().as_default():
        whole = tf.raw_ops.MatMul(a=[[1]], b=[[1]]).op
        real = tf.raw_ops.MatMul(a=[[1.0]], b=[[1.0]]).op
    assert [has_kernel(whole, kind) for kind in ("CPU", "GPU")] == [True, False]
    assert [has_kernel(real, kind) for kind in ("CPU", "GPU")] == [True, True]


def test_a_build_without_gpu_kernels_says_so(monkeypatch):
    kernels._best.cache_clear()
    monkeypatch.setattr(kernels, "lists_gpu_kernels", lambda: False)
    try:
        assert "GPU     this build lists no GPU kernels" in str(kernels_of("NoOp"))
        assert kernels_of("VarHandleOp").dtypes("GPU") == frozenset()
        assert kernel_for(node("NoOp"), "GPU") is None
    finally:
        kernels._best.cache_clear()


def test_long_lists_continue_below_themselves():
    text = str(kernels_of("Cast"))
    assert max(map(len, text.splitlines())) < 120
    cells = dict(zip(*rows("Cast", "GPU"), strict=True))
    assert set(cells["SrcT"].split(", ")) == kernels_of("Cast").dtypes("GPU")


@pytest.mark.parametrize(
    ("ask", "part"),
    [
        (lambda: kernels_of("matmul"), "TensorFlow has no operation 'matmul'. Similar: MatMul"),
        (lambda: kernels_of("MatMul").dtypes("GPU", "dtype"), "'dtype'; it has: T."),
        (lambda: kernels_of("NoOp").dtypes("CPU"), "it has: none."),
    ],
)
def test_what_is_not_there_is_one_clear_error(ask, part):
    with pytest.raises(ValueError) as caught:
        ask()
    assert part in str(caught.value)
