"""The placement log: what TensorFlow says about where operations run."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field

from utils.machine import captured, plain_name, write_back
from utils.table import table

# The placer's lines, "matmul: (MatMul): /job:…/device:CPU:1", go to
# descriptor 1. Eager operations, at log level 0, go to descriptor 2 as
# "Executing op MatMul in device /job:…"; there the placer's lines come again.
# TensorFlow 1 left out the ": " before the device there.
_PLACER = re.compile(
    r"(?P<name>[A-Za-z0-9_.][\w.\\/>-]*): \((?P<op>[A-Za-z_][\w>]*)\)"
    r"(?:: )?(?P<device>/(?:job|replica|task|device):\S+)"
)
_EAGER = re.compile(r"(?:.*\] )?Executing op (?P<op>\S+) in device (?P<device>/\S+)")
# A session with the log on first says which card is which GPU.
_MAPPING = re.compile(
    r"^(?:.*\] )?Device mapping:.*\n|^/job:\S+ -> device: .*\n\n?",
    re.MULTILINE,
)
_AGAIN = re.compile(r".*placer\.cc:\d+\] ")


@dataclass(frozen=True)
class Placement:
    """One row of the log: an operation's name, type and device.

    ``name`` is empty for an eager operation, which has none. Introduced in
    lesson 03.
    """

    name: str
    op: str
    device: str


@dataclass
class PlacementLog:
    """The rows of a placement log, in the order TensorFlow logged them.

    At log level 0 the eager operations follow all others.

    Introduced in lesson 03.
    """

    rows: list[Placement] = field(default_factory=list)

    def device_of(self, name: str) -> str:
        """Return the device of the operation called ``name`` (its last row).

        Raises:
            KeyError: the log has no such operation; the message lists those
                it has.
        """
        for row in reversed(self.rows):
            if row.name == name:
                return row.device
        known = ", ".join(sorted({row.name for row in self.rows if row.name}))
        raise KeyError(f"no operation {name!r} in the log; it has: {known or 'none'}")

    def only(self, *names: str) -> "PlacementLog":
        """Return the last rows of these operations, in the order given.

        A variable brings operations of its own (``v/Assign`` …) into the
        log; this leaves them out of a printed table.

        Raises:
            KeyError: the log has no such operation.
        """
        last = {row.name: row for row in self.rows}
        for name in names:
            self.device_of(name)
        return PlacementLog([last[name] for name in names])

    def __str__(self) -> str:
        """Return a table: name, operation, plain name of the device."""
        cells = [("name", "operation", "device")]
        cells += [(row.name, row.op, plain_name(row.device)) for row in self.rows]
        return table(cells)


class _Unmapped:
    """A stream that leaves out the list of devices, written as one piece."""

    def __init__(self, stream) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(_MAPPING.sub("", text))
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


@contextmanager
def placement_log() -> Iterator[PlacementLog]:
    """Collect the placement log that TensorFlow writes inside the block.

    The log must be switched on where the operations run: in a session with
    ``session_config(log_placement=True)``. The rows are there when the block
    has ended. Text that is not part of the log is passed on unchanged, but
    for the list of devices with which a session begins its log. It works
    alike in JupyterLab, under a test runner and in a script.

    Yields:
        A ``PlacementLog``, empty until the block ends.

    Introduced in lesson 03.
    """
    log = PlacementLog()
    takes = {}
    try:
        # In IPython, TensorFlow prints the list of devices through Python.
        with captured(1, 2) as takes, redirect_stdout(_Unmapped(sys.stdout)):
            yield log
    finally:
        for descriptor, take in takes.items():
            rows, other = parse(take.text)
            log.rows += rows
            write_back(descriptor, _MAPPING.sub("", other))


def parse(text: str) -> tuple[list[Placement], str]:
    """Split text into the placement rows in it and everything else.

    Args:
        text: what a process with the placement log on wrote.

    Returns:
        The rows in order, and the lines that are none, unchanged. A line
        that repeats a row with a time stamp before it (the placer writes
        each row to both descriptors at log level 0) is neither.

    Introduced in lesson 03, to read the constructed logs of GPU machines.
    """
    rows, other = [], []
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        placed = _PLACER.fullmatch(bare)
        eager = _EAGER.fullmatch(bare)
        again = _AGAIN.match(bare)
        if placed:
            rows.append(Placement(*placed.groups()))
        elif eager:
            rows.append(Placement("", eager["op"], eager["device"]))
        elif not (again and _PLACER.fullmatch(bare[again.end() :])):
            other.append(line)
    return rows, "".join(other)
