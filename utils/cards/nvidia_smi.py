"""What nvidia-smi prints, read into Python: its cards and its processes.

``data/nvidia_smi`` has examples; its ``README.md`` says what they are.
"""

import re
from dataclasses import dataclass

from utils import DATA

FOLDER = DATA / "nvidia_smi"
CARD_QUERY = "index,name,memory.total,pci.bus_id,uuid,compute_cap"
# nvidia-smi's name of a column: the attribute of Card. Old drivers do not know compute_cap.
_COLUMNS = {
    "index": "index",
    "name": "name",
    "memory.total [MiB]": "memory_mb",
    "pci.bus_id": "bus_id",
    "uuid": "uuid",
    "compute_cap": "capability",
    "driver_version": "driver",
}
# |    0   N/A  N/A            6008      C   python3                     14052MiB |
_PROCESS = re.compile(
    r"\|\s+(?P<card>\d+)\s+(?:\S+\s+\S+\s+)?(?P<pid>\d+)\s+(?P<kind>C|G|C\+G|M\+C)\s+"
    r"(?P<name>\S.*?)\s+(?P<memory>\d+)MiB\s+\|"
)


@dataclass(frozen=True)
class Card:
    """A card in the machine, as ``nvidia-smi`` lists it; text is empty if unknown.

    Attributes:
        index: number in nvidia-smi's list.
        name: the product, such as ``Tesla T4``.
        memory_mb: total memory in MB (2**20 bytes, nvidia-smi's MiB); None if unknown.
        bus_id: PCI address, such as ``00000000:00:04.0``.
        uuid: ``GPU-`` and a UUID.
        capability: CUDA compute capability, such as ``7.5``.
        driver: version of its driver, such as ``535.183.01``.

    Introduced in lesson 02.
    """

    index: int
    name: str
    memory_mb: int | None
    bus_id: str
    uuid: str
    capability: str = ""
    driver: str = ""

    def __str__(self) -> str:
        """Return its number, name and memory."""
        memory = "" if self.memory_mb is None else f" ({self.memory_mb} MiB)"
        return f"{self.index} {self.name}{memory}"


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
        The cards in nvidia-smi's order.

    Raises:
        ValueError: there are no headings, or a line does not fit them.

    Introduced in lesson 02.
    """
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    cards, other = read_listing("\n".join(lines))
    if other or not cards:
        raise ValueError(
            f"{other[0] if other else ''!r} is no card under its headings: give the output of "
            f"nvidia-smi --query-gpu={CARD_QUERY} --format=csv."
        )
    return cards


def read_listing(text: str) -> tuple[tuple[Card, ...], tuple[str, ...]]:
    """Read what ``nvidia-smi --query-gpu=… --format=csv`` wrote, warnings and errors too.

    Returns:
        The cards, in nvidia-smi's order, and the lines that are no cards.

    Introduced in lesson 01, behind ``diagnose``.
    """
    cards, other, columns = [], [], []
    for line in filter(None, map(str.strip, text.splitlines())):
        cells = line.split(", ")
        if not columns and {"index", "name", "uuid"} <= set(cells) <= set(_COLUMNS):
            columns = [_COLUMNS[cell] for cell in cells]
        elif columns and len(cells) == len(columns) and cells[0].isdecimal():
            cards.append(_card(dict(zip(columns, cells, strict=True))))
        else:
            other.append(line)
    return tuple(cards), tuple(other)


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


def _card(cells: dict[str, str]) -> Card:
    # "[N/A]", "[Not Supported]", "[Unknown Error]": nvidia-smi does not know.
    known = {name: "" if cell.startswith("[") else cell for name, cell in cells.items()}
    memory = known.get("memory_mb", "").removesuffix(" MiB")
    known |= {
        "index": int(known["index"]),
        "memory_mb": int(memory) if memory.isdecimal() else None,
    }
    return Card(**{"bus_id": ""} | known)
