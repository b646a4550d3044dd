"""The kernels of the installed TensorFlow: operation, device type, dtypes.

A kernel is the code of one operation for one type of device and certain
dtypes. TensorFlow lists all that were built into it, those for GPUs also
where there is no GPU. The list of a build without CUDA holds none for GPUs.
"""

import difflib
import textwrap
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

# Kernels listed for this "type" serve every device type that has none of its
# own for the node (op_kernel.cc of TensorFlow).
ANY_TYPE = "DEFAULT"
ALL = "any"
CELL = 44  # characters in a cell of the table before it continues below


@dataclass(frozen=True)
class Kernel:
    """One kernel: where it runs and for what.

    Attributes:
        device_type: ``"CPU"``, ``"GPU"``… or ``"DEFAULT"``: any type that
            has no kernel of its own.
        dtypes: pairs of a type attribute of the operation and the names of
            the dtypes it may have; an attribute that is missing may be any.
        host_memory: arguments that stay in the host's memory although the
            kernel belongs to another device.
        priority: the device type with the highest is preferred; mostly 0.
        label: asked for by an attribute of the node; mostly empty.

    Introduced in lesson 04.
    """

    device_type: str
    dtypes: tuple[tuple[str, frozenset[str]], ...]
    host_memory: tuple[str, ...]
    priority: int
    label: str

    def covers(self, other: "Kernel") -> bool:
        """Tell whether every node that ``other`` fits also fits this one."""
        theirs = dict(other.dtypes)
        return self.label == other.label and all(
            attribute in theirs and theirs[attribute] <= names for attribute, names in self.dtypes
        )


@dataclass(frozen=True)
class KernelTable:
    """The kernels of one operation; printed as a table.

    Introduced in lesson 04.
    """

    op: str
    device_types: tuple[str, ...]

    def kernels(self, device_type: str) -> tuple[Kernel, ...]:
        """Return the kernels that serve a device type, its own first."""
        own, rest = (
            [kernel for kernel in kernels if not kernel.label]
            for kernels in _serving(self.op, device_type)
        )
        return (*own, *(k for k in rest if not any(mine.covers(k) for mine in own)))

    def dtypes(self, device_type: str, attribute: str = "") -> frozenset[str]:
        """Return the dtypes that the operation may have on a device type.

        Args:
            device_type: ``"CPU"``, ``"GPU"``…
            attribute: which type of the operation; default its first.

        Returns:
            Names such as ``"float32"``; empty if there is no kernel.

        Raises:
            ValueError: the operation has no such type attribute.
        """
        allowed = _type_attributes(self.op)
        attribute = attribute or next(iter(allowed), "")
        if attribute not in allowed:
            raise ValueError(
                f"{self.op} has no type attribute {attribute!r}; it has: "
                f"{', '.join(allowed) or 'none'}."
            )
        found = (dict(kernel.dtypes) for kernel in self.kernels(device_type))
        return frozenset().union(*(kernel.get(attribute, allowed[attribute]) for kernel in found))

    def __str__(self) -> str:
        """Return a table: device type, dtypes, arguments in host memory."""
        kernels = [kernel for kind in self.device_types for kernel in self.kernels(kind)]
        limited = {attribute for kernel in kernels for attribute, _ in kernel.dtypes}
        attributes = [name for name in _type_attributes(self.op) if name in limited]
        lines = [["device", *attributes, "in host memory"]]
        for device_type in self.device_types:
            lines += self._lines(device_type, attributes)
        return "\n".join([self.op, *_columns(lines)])

    def _lines(self, device_type: str, attributes: list[str]) -> list[list[str]]:
        if device_type == "GPU" and not lists_gpu_kernels():
            return [[device_type, "this build lists no GPU kernels"]]
        rows: dict[tuple[str, ...], dict[str, set[str]]] = {}
        for kernel in self.kernels(device_type):
            row = rows.setdefault(kernel.host_memory, {a: set() for a in attributes})
            for attribute in attributes:
                row[attribute] |= dict(kernel.dtypes).get(attribute, {ALL})
        if not rows:
            return [[device_type, "no kernel"]]
        return [
            [
                device_type,
                *(ALL if ALL in row[a] else ", ".join(sorted(row[a])) for a in attributes),
                ", ".join(host) or "-",
            ]
            for host, row in sorted(rows.items())
        ]


def kernels_of(op: str, device_types: tuple[str, ...] = ("CPU", "GPU")) -> KernelTable:
    """Return which kernels the installed TensorFlow has for an operation.

    Args:
        op: type of the operation as the graph calls it, such as ``"MatMul"``.
        device_types: rows of the printed table.

    Raises:
        ValueError: TensorFlow has no such operation; names similar ones.

    Introduced in lesson 04.
    """
    _type_attributes(op)
    return KernelTable(op, device_types)


def has_kernel(operation: "tf.Operation", device_type: str) -> bool:
    """Tell whether an operation of a graph has a kernel for a device type.

    Args:
        operation: a ``tf.Operation``; its dtypes count.
        device_type: ``"CPU"``, ``"GPU"``…

    Introduced in lesson 04.
    """
    return kernel_for(operation.node_def, device_type) is not None


def kernel_for(node: "tf.compat.v1.NodeDef", device_type: str) -> Kernel | None:
    """Return the kernel that TensorFlow would take, or None.

    Args:
        node: a ``NodeDef`` with all its attributes.
        device_type: ``"CPU"``, ``"GPU"``…

    Introduced in lesson 04, behind ``has_kernel``.
    """
    label = node.attr["_kernel"].s.decode() if "_kernel" in node.attr else ""
    types = {
        name: _names(value.list.type or [value.type])
        for name, value in node.attr.items()
        if value.type or value.list.type
    }
    return _best(node.op, device_type, label, tuple(sorted(types.items())))


@cache
def lists_gpu_kernels() -> bool:
    """Tell whether this build of TensorFlow lists kernels for GPUs.

    Introduced in lesson 04.
    """
    from tensorflow.python.framework import kernels  # see _registered

    return any(k.device_type == "GPU" for k in kernels.get_all_registered_kernels().kernel)


@cache
def _registered(op: str) -> tuple[Kernel, ...]:
    # A private import: TensorFlow has no public door to this list. Kernels of
    # XLA devices join it when these devices are set up, so set them up first.
    from tensorflow.python.framework import kernels

    return tuple(
        Kernel(
            k.device_type,
            tuple((c.name, _names(c.allowed_values.list.type)) for c in k.constraint),
            tuple(k.host_memory_arg),
            k.priority,
            k.label,
        )
        for k in kernels.get_registered_kernels_for_op(op).kernel
    )


@cache
def _type_attributes(op: str) -> dict[str, frozenset[str]]:
    """Map the operation's type attributes to the dtypes they may have."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry  # private, see above

    definition = op_def_registry.get(op)
    if definition is None:
        near = difflib.get_close_matches(op, dir(tf.raw_ops), n=3)
        hint = f"Similar: {', '.join(near)}." if near else "See tf.raw_ops."
        raise ValueError(f"TensorFlow has no operation {op!r}. {hint}")
    every = frozenset(d.name for d in vars(tf.dtypes).values() if isinstance(d, tf.DType))
    return {
        a.name: _names(a.allowed_values.list.type) or every
        for a in definition.attr
        if a.type in ("type", "list(type)")
    }


def _names(types) -> frozenset[str]:
    import tensorflow as tf

    return frozenset(tf.dtypes.as_dtype(number).name for number in types)


def _serving(op: str, device_type: str) -> tuple[list[Kernel], list[Kernel]]:
    """Return a device type's own kernels and those for any type."""
    if device_type == "GPU" and not lists_gpu_kernels():
        return [], []  # such a build knows no GPU, so nothing serves one
    kernels = _registered(op)
    own = [kernel for kernel in kernels if kernel.device_type == device_type]
    return own, [kernel for kernel in kernels if kernel.device_type == ANY_TYPE]


@cache
def _best(op: str, device_type: str, label: str, types: tuple) -> Kernel | None:
    for kernels in _serving(op, device_type):
        fitting = [kernel for kernel in kernels if _fits(kernel, label, dict(types))]
        if fitting:
            return max(fitting, key=lambda kernel: kernel.priority)
    return None


def _fits(kernel: Kernel, label: str, types: dict[str, frozenset[str]]) -> bool:
    """Tell whether a node's label and dtypes are those of the kernel."""
    return kernel.label == label and all(
        attribute in types and types[attribute] <= allowed for attribute, allowed in kernel.dtypes
    )


def _columns(lines: list[list[str]]) -> list[str]:
    """Lay out cells as aligned text; a long cell continues below itself."""
    cells = [[textwrap.wrap(cell, CELL) for cell in line] for line in lines]
    wide = [
        max(len(part) for line in cells if i < len(line) - 1 for part in line[i])
        for i in range(len(lines[0]) - 1)
    ]
    text = []
    for line in cells:
        for parts in zip_longest(*line, fillvalue=""):
            padded = [f"{part:<{width}}" for part, width in zip(parts, wide, strict=False)]
            text.append("  ".join([*padded, *parts[len(wide) :]]).rstrip())
    return text
