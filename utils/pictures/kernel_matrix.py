"""The kernels of a device type as a picture: operations by dtypes."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from utils.pictures.parts import axes, table_axes
from utils.placement import Kernel, kernels_of, lists_gpu_kernels
from utils.style import CURVES

DEVICE, HOST, ONLY_CPU, NONE = "device", "host memory", "CPU only", ""
ROW, COLUMN, BELOW = 0.42, 0.85, 0.75  # inches; the last for the dtypes' names
# One label and look per answer: the shapes differ, so that grey is enough.
LOOKS = {
    DEVICE: ("on the GPU", {"marker": "o", "color": CURVES[0], "s": 130}),
    HOST: (
        "GPU, in host memory",
        {"marker": "s", "color": CURVES[5], "s": 130, "edgecolor": "black"},
    ),
    ONLY_CPU: ("CPU only", {"marker": "x", "color": "black", "s": 80, "linewidth": 2.5}),
}


def kernel_memory(op: str, dtype: str) -> str:
    """Say whether an operation runs on a GPU, and in which memory.

    Args:
        op: type of the operation, such as ``"AddV2"``.
        dtype: name of its first type, such as ``"int32"``; for an operation
            without a type attribute, that of its first input.

    Returns:
        ``"device"``; ``"host memory"`` if all its tensors of that type stay
        in the host's memory; ``"CPU only"``; or ``""`` if not even a CPU has
        a kernel for it.

    Raises:
        ValueError: TensorFlow has no such operation.

    Introduced in lesson 04, behind ``kernel_matrix``.
    """
    table = kernels_of(op)
    attribute, data = _data(op)
    found = [
        _in_host_memory(kernel, data)
        for kernel in table.kernels("GPU")
        if _takes(kernel, op, attribute, dtype)
    ]
    if found:
        return HOST if all(found) else DEVICE
    on_cpu = any(_takes(k, op, attribute, dtype) for k in table.kernels("CPU"))
    return ONLY_CPU if on_cpu else NONE


def kernel_matrix(
    ops: Sequence[str], dtypes: Sequence[str], *, title: str, ax: Axes | None = None
) -> Axes:
    """Draw which operations have a kernel for which dtypes.

    A disc is a kernel, a square one that works in host memory, a cross an
    operation that only the CPU can do; an empty place is not possible at all.

    Args:
        ops: types of operations, from top to bottom.
        dtypes: names of dtypes, from left to right.
        title: the finding, in words; where the build lists no kernels for
            GPUs, the picture says that instead.
        ax: axes to draw on; None makes a figure of the right size.

    Returns:
        The matplotlib ``Axes``.

    Introduced in lesson 04.
    """
    ax = axes(ax, (2.6 + COLUMN * len(dtypes), 1.9 + ROW * len(ops)))
    for answer, (label, look) in LOOKS.items():
        places = [
            (x, y)
            for y, op in enumerate(ops)
            for x, dtype in enumerate(dtypes)
            if kernel_memory(op, dtype) == answer
        ]
        ax.scatter([x for x, _ in places], [y for _, y in places], label=label, zorder=3, **look)
    table_axes(ax, dtypes, ops, rotation=25, ha="right")
    ax.grid(color="#DDDDDD", zorder=0)
    below = -BELOW / (ax.get_position().height * ax.figure.get_figheight())
    ax.legend(loc="upper left", bbox_to_anchor=(0, below), ncols=3, frameon=False)
    if not lists_gpu_kernels():
        title = "This build of TensorFlow lists no GPU kernels"
    ax.set_title(title)
    return ax


def _data(op: str) -> tuple[str, set[str]]:
    """Return the first type attribute and the arguments that have its type."""
    from tensorflow.python.framework import op_def_registry  # no public door

    definition = op_def_registry.get(op)
    types = (a.name for a in definition.attr if a.type in ("type", "list(type)"))
    attribute = next(types, "")
    arguments = [*definition.input_arg, *definition.output_arg]
    data = {a.name for a in arguments if attribute in (a.type_attr, a.type_list_attr)}
    return attribute, data if attribute else {a.name for a in arguments}


def _takes(kernel: Kernel, op: str, attribute: str, dtype: str) -> bool:
    if attribute:
        allowed = kernels_of(op).dtypes("CPU", attribute)
        return dtype in dict(kernel.dtypes).get(attribute, allowed)
    from tensorflow.python.framework import op_def_registry  # see _data

    inputs = op_def_registry.get(op).input_arg
    return bool(inputs) and _name(inputs[0].type) == dtype


def _name(number: int) -> str:
    import tensorflow as tf

    return tf.dtypes.as_dtype(number).name


def _in_host_memory(kernel: Kernel, data: set[str]) -> bool:
    return bool(data) and data <= set(kernel.host_memory)
