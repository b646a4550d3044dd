"""What nvidia-smi prints, read into Python: its cards and its processes.

``data/nvidia_smi`` has examples; its ``README.md`` says what they are.
"""

import re
from dataclasses import dataclass

from utils import DATA

FOLDER = DATA / "nvidia_smi"
CARD_QUERY = "index,name,memory.total,pci.bus_id,uuid,compute_cap"
_HEAD = "index, name, memory.total [MiB], pci.bus_id, uuid, compute_cap"
# |    0   N/A  N/A            6008      C   python3                     14052MiB |
_PROCESS = re.compile(
    r"\|\s+(?P<card>\d+)\s+(?:\S+\s+\S+\s+)?(?P<pid>\d+)\s+(?P<kind>C|G|C\+G|M\+C)\s+"
    r"(?P<name>\S.*?)\s+(?P<memory>\d+)MiB\s+\|"
)


@dataclass(frozen=True)
class Instance:
    """A part of a card in MIG mode, which CUDA treats as a GPU of its own.

    Attributes:
        uuid: its name in ``nvidia-smi -L``, ``MIG-`` and a UUID.
        gpu_instance, compute_instance: its numbers on the card.

    Introduced in lesson 02.
    """

    uuid: str
    gpu_instance: int
    compute_instance: int


@dataclass(frozen=True)
class Card:
    """A GPU in the machine, as ``nvidia-smi`` lists it.

    Attributes:
        index: number in nvidia-smi's list.
        name: the product, such as ``Tesla T4``.
        memory_mb: total memory in MB (2**20 bytes, nvidia-smi's MiB).
        bus_id: PCI address, such as ``00000000:00:04.0``.
        uuid: ``GPU-`` and a UUID.
        capability: CUDA compute capability, such as ``7.5``.
        speed: place in CUDA's own order, 0 the fastest; None if unknown.
        instances: its parts if it is in MIG mode.

    Introduced in lesson 02.
    """

    index: int
    name: str
    memory_mb: int
    bus_id: str
    uuid: str
    capability: str
    speed: int | None = None
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True)
class Process:
    """A process that holds memory on a card.

    Attributes:
        card: number of the card in nvidia-smi's list.
        pid: number of the process.
        kind: ``C`` for compute, ``G`` for graphics.
        name: its program.
        memory_mb: what it holds there, in MB (2**20 bytes).

    Introduced in lesson 02.
    """

    card: int
    pid: int
    kind: str
    name: str
    memory_mb: int


def example(name: str) -> str:
    """Return an example of nvidia-smi's output, from ``data/nvidia_smi``.

    The examples were written for the course in the format of the real tool;
    their first line says so.

    Args:
        name: the file's name without ``.txt``.

    Raises:
        ValueError: there is no such example; the message lists those there are.

    Introduced in lesson 02.
    """
    known = sorted(path.stem for path in FOLDER.glob("*.txt"))
    if name not in known:
        raise ValueError(f"{name!r} is no example of nvidia-smi; there are: {', '.join(known)}")
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def read_cards(text: str) -> tuple[Card, ...]:
    """Read the cards from ``nvidia-smi --query-gpu=CARD_QUERY --format=csv``.

    Args:
        text: the output, with its line of headings.

    Returns:
        The cards in nvidia-smi's order; ``speed`` and ``instances`` are not
        in this output.

    Raises:
        ValueError: the headings are others, or a line does not fit them.

    Introduced in lesson 02.
    """
    lines = [x.strip() for x in text.splitlines() if x.strip() and x[0] != "#"]
    if not lines or lines[0] != _HEAD:
        raise ValueError(
            f"This begins with {lines[:1]}, not with {_HEAD!r}: give the output of "
            f"nvidia-smi --query-gpu={CARD_QUERY} --format=csv."
        )
    return tuple(_card(line) for line in lines[1:])


def read_processes(text: str) -> tuple[Process, ...]:
    """Read the table of processes from the screen of a plain ``nvidia-smi``.

    Args:
        text: the whole screen, of a driver old or new.

    Returns:
        A row per process and card; none if no process runs. A row whose
        memory nvidia-smi does not know is left out.

    Raises:
        ValueError: the text has no table of processes.

    Introduced in lesson 02.
    """
    _, found, table = text.partition("| Processes:")
    if not found:
        raise ValueError("This text has no '| Processes:' table: give the screen of nvidia-smi.")
    return tuple(
        Process(int(row["card"]), int(row["pid"]), row["kind"], row["name"], int(row["memory"]))
        for row in _PROCESS.finditer(table)
    )


def _card(line: str) -> Card:
    cells = line.split(", ")
    memory = re.fullmatch(r"(\d+) MiB", cells[2]) if len(cells) == 6 else None
    if not memory or not cells[0].isdigit():
        raise ValueError(f"{line!r} does not fit the headings {_HEAD!r}.")
    index, name, _, bus_id, uuid, capability = cells
    return Card(int(index), name, int(memory[1]), bus_id, uuid, capability)
