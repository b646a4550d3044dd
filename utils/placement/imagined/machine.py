"""The imagined machine, and what the placer would do on it.

Nothing runs and no device is needed: the graph is read, the kernels come from
the list of the installed TensorFlow, and the rules of its placer are applied.
The rules do not know one device type from another, apart from which is
preferred, so what is checked against the real placer on CPU and XLA_CPU
devices is the same code that answers for GPUs.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.machine import MOST_GPUS
from utils.numbers import whole
from utils.placement.imagined.nodes import read
from utils.placement.imagined.placer import Placer
from utils.placement.imagined.words import PlacementError, Rule
from utils.placement.kernels import lists_gpu_kernels
from utils.table import table

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class ImaginedRow:
    """Where an operation would go, and the rule that decides it.

    Introduced in lesson 04.
    """

    name: str
    op: str
    device: str
    rule: Rule


@dataclass(frozen=True)
class ImaginedPlacement:
    """What the placer would do with a graph: a device each, or an error.

    Attributes:
        rows: the operations in the order of the graph; empty if it fails.
        error: what TensorFlow would raise, or None.

    Introduced in lesson 04.
    """

    rows: tuple[ImaginedRow, ...]
    error: PlacementError | None = None

    def device_of(self, name: str) -> str:
        """Return the full name of the device of the operation ``name``.

        Raises:
            PlacementError: the graph cannot be placed.
            KeyError: the graph has no such operation.
        """
        return self._row(name).device

    def rule_of(self, name: str) -> Rule:
        """Return the rule that decides for the operation ``name``.

        Raises:
            PlacementError: the graph cannot be placed.
            KeyError: the graph has no such operation.
        """
        return self._row(name).rule

    def _row(self, name: str) -> ImaginedRow:
        if self.error is not None:
            raise self.error
        for row in self.rows:
            if row.name == name:
                return row
        known = ", ".join(sorted(row.name for row in self.rows))
        raise KeyError(f"no operation {name!r} in the graph; it has: {known or 'none'}")

    def __str__(self) -> str:
        """Return a table: name, operation, plain name of the device, rule."""
        if self.error is not None:
            where = f"{self.error.kind}, at operation {self.error.operation}"
            return f"Cannot be placed ({where}).\n{self.error.message}"
        cells = [("name", "operation", "device", "rule")]
        cells += [(row.name, row.op, _role(row.device), str(row.rule)) for row in self.rows]
        return table(cells)


class ImaginedMachine:
    """A machine that need not exist, to ask where operations would go.

    Checked against the placement log of real sessions: graphs of constants,
    variables of both kinds, queues, control edges, metadata operations,
    colocation, placement functions and pins that conflict, on several CPU
    devices, and on an XLA_CPU device for kernels that are missing. From the
    build come the kernels and their priorities; that GPUs come before CPUs is
    TensorFlow's own order, and no real GPU has confirmed it here.

    Not imagined: operations that call functions or pass variants on (an
    error says so), loops of TensorFlow 1, a graph that grows after it has run
    (a variable that has run stays where it is), tasks other than the
    session's own, and the execution of a ``tf.function`` (its default device
    and its captured variables follow other rules).

    Introduced in lesson 04.
    """

    def __init__(self, cpus: int = 1, gpus: int = 2, others: dict[str, int] | None = None) -> None:
        """Imagine a machine.

        Args:
            cpus: how many CPU devices; CPU 0 is the host.
            gpus: how many GPUs.
            others: further device types with their counts, as
                ``{"XLA_CPU": 1}``.

        Raises:
            TypeError, ValueError: a count is not possible.
            RuntimeError: this build of TensorFlow lists no kernels for GPUs.
        """
        counts = {
            "CPU": whole("cpus", cpus, 1, MOST_GPUS),
            "GPU": whole("gpus", gpus, 0, MOST_GPUS),
        }
        for kind, count in (others or {}).items():
            if kind.upper() in counts:
                raise ValueError(f"others={others!r}: give {kind} by its own argument.")
            counts[kind] = whole(kind, count, 0, MOST_GPUS)
        if gpus and not lists_gpu_kernels():
            raise RuntimeError(
                f"gpus={gpus}, but this build of TensorFlow lists no kernels for GPUs, so "
                "nothing can be said about them. The builds for Linux on x86 list them."
            )
        self._counts = counts

    def __str__(self) -> str:
        """Return the devices of the machine in one line."""
        return ", ".join(f"{count} {kind}" for kind, count in self._counts.items() if count)

    def place(self, graph: "tf.Graph", soft: bool = False) -> ImaginedPlacement:
        """Say where a session would place each operation of a graph.

        Args:
            graph: a ``tf.Graph``; it is only read.
            soft: whether the session allows soft placement.

        Returns:
            The placement, or the error that TensorFlow would raise.

        Raises:
            TypeError: ``graph`` is not a ``tf.Graph``.
            ValueError: the graph holds what is not imagined.
        """
        import tensorflow as tf

        if not isinstance(graph, tf.Graph):
            raise TypeError(f"graph is a {type(graph).__name__}: give a tf.Graph.")
        nodes = read(graph, [kind for kind, count in self._counts.items() if count])
        try:
            placer = Placer(nodes, self._devices(tf), soft)
            placer.run()
        except PlacementError as error:
            return ImaginedPlacement((), error)
        return ImaginedPlacement(
            tuple(
                ImaginedRow(node.name, node.op, device.to_string(), rule)
                for node in nodes
                for device, rule in [placer.placed[node]]
            )
        )

    def _devices(self, tf) -> list:
        return [
            tf.DeviceSpec("localhost", 0, 0, kind, index)
            for kind, count in self._counts.items()
            for index in range(count)
        ]


def _role(device: str) -> str:
    kind, index = device.rsplit(":", 2)[1:]
    return "host" if (kind, index) == ("CPU", "0") else f"{kind} {index}"
