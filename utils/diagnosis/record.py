"""What a machine says about its GPUs, as plain facts and no judgement.

``utils.diagnosis.probe.observe`` asks this machine for them, ``load_machine``
reads those of another one from data/machines, and ``utils.diagnosis.layer_table.diagnose``
says what they mean.

Introduced in lesson 01.
"""

import json
from dataclasses import asdict, dataclass, fields

from utils import DATA

MACHINES = DATA / "machines"


@dataclass(frozen=True)
class Card:
    """One line of nvidia-smi. Memory in MiB, None if unknown; text is empty if unknown."""

    index: int
    name: str
    memory_mib: int | None
    driver: str
    uuid: str

    def __str__(self) -> str:
        """Return its number, name and memory."""
        memory = "" if self.memory_mib is None else f" ({self.memory_mib} MiB)"
        return f"{self.index} {self.name}{memory}"


@dataclass(frozen=True)
class NvidiaSmi:
    """What ``nvidia-smi`` answered when it was asked for its cards.

    Attributes:
        found: whether there is such a program.
        code: its exit code; None if there is none (not found, not started, cut at the deadline).
        output: what it wrote.
    """

    found: bool
    code: int | None = None
    output: str = ""

    @property
    def cards(self) -> tuple[Card, ...]:
        """Return the cards it listed, in its order."""
        return tuple(card for line in self.output.splitlines() if (card := _card(line)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what else it said: its lines that are no cards."""
        return tuple(
            line.strip() for line in self.output.splitlines() if line.strip() and not _card(line)
        )


@dataclass(frozen=True)
class Library:
    """Whether TensorFlow's process can load a library.

    Attributes:
        name: file name.
        loaded: True if it loads from a folder where TensorFlow looks, None if that is not known.
        error: what the dynamic loader says if not, or why that is not known.
        elsewhere: a folder that has it, but in which TensorFlow does not look.
    """

    name: str
    loaded: bool | None
    error: str = ""
    elsewhere: str = ""


@dataclass(frozen=True)
class Gpu:
    """A GPU that TensorFlow sees; ``model`` and ``capability`` are empty if it does not say."""

    name: str
    model: str = ""
    capability: str = ""

    def __str__(self) -> str:
        """Return its short name, model and compute capability."""
        capability = f"(compute capability {self.capability})" if self.capability else ""
        parts = (self.name.removeprefix("/physical_device:"), self.model, capability)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Observation:
    """Everything ``diagnose`` needs to know about a machine and this process.

    Attributes:
        system: ``"Linux"``, ``"Windows"`` or ``"Darwin"`` (macOS).
        processor: its kind, as in ``"x86_64"``.
        wsl: whether Linux runs in the Windows Subsystem for Linux.
        python: the interpreter (``sys.executable``).
        environment: the folder of its packages (``sys.prefix``).
        activated: the environment that was activated where this process was started.
        bus_cards: NVIDIA cards on the PCI bus; None where that cannot be read.
        nvidia_smi: what nvidia-smi answered.
        driver_library: whether the driver's library loads; None if not asked.
        visible_devices: CUDA_VISIBLE_DEVICES now; None if not set.
        device_order: CUDA_DEVICE_ORDER now; None if not set.
        tensorflow: version; None if it cannot be imported.
        import_error: why it cannot be imported; empty if it can.
        cuda_build: whether TensorFlow was built with CUDA.
        cuda_version, cudnn_version: those it was built with; empty if none.
        libraries: the CUDA libraries the build needs; empty if not asked.
        gpus: what TensorFlow sees.

    Introduced in lesson 01.
    """

    system: str
    processor: str
    wsl: bool
    python: str
    environment: str
    activated: str | None
    bus_cards: int | None
    nvidia_smi: NvidiaSmi
    driver_library: Library | None
    visible_devices: str | None
    device_order: str | None
    tensorflow: str | None
    import_error: str
    cuda_build: bool
    cuda_version: str
    cudnn_version: str
    libraries: tuple[Library, ...]
    gpus: tuple[Gpu, ...]

    @property
    def visible_cards(self) -> tuple[Card, ...] | None:
        """Return the cards that CUDA_VISIBLE_DEVICES lets through, in its order.

        The list ends at the first entry that names no card. Numbers are taken as nvidia-smi's:
        sure only for cards of one model, or with CUDA_DEVICE_ORDER=PCI_BUS_ID. None where the
        cards are not known (no nvidia-smi, or parts of cards are named).
        """
        cards, value = self.nvidia_smi.cards, self.visible_devices
        if not cards or "MIG-" in (value or ""):
            return None
        if value is None:
            return cards
        chosen = []
        for entry in (part.strip() for part in value.split(",")):
            by_number = [c for c in cards if entry.isdecimal() and c.index == int(entry)]
            by_uuid = [c for c in cards if entry.startswith("GPU-") and c.uuid.startswith(entry)]
            if len(by_number + by_uuid) != 1:
                break
            chosen += by_number + by_uuid
        return tuple(chosen)

    def to_json(self) -> str:
        """Return the observation as JSON text."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Observation":
        """Return the observation that ``to_json`` wrote.

        Raises:
            ValueError: the text is no JSON, or a field is missing or unknown.
        """
        return _observation(json.loads(text))


def recorded_machines() -> tuple[str, ...]:
    """Return the names of the machines in data/machines, for ``load_machine``.

    Introduced in lesson 01.
    """
    return tuple(sorted(path.stem for path in MACHINES.glob("*.json")))


def load_machine(name: str) -> Observation:
    """Return a machine from data/machines; its README says what each one is.

    Raises:
        ValueError: there is no such machine, or its file is not complete.

    Introduced in lesson 01.
    """
    if name not in recorded_machines():
        raise ValueError(f"no machine {name!r}; there are: {', '.join(recorded_machines())}")
    record = json.loads((MACHINES / f"{name}.json").read_text(encoding="utf-8"))
    return _observation(record["observation"])


def _card(line: str) -> Card | None:
    """Return the card in a line of nvidia-smi's answer, None if the line is something else."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) < 5 or not cells[0].isdecimal():
        return None
    # "[N/A]", "[Not Supported]", "[Unknown Error]": nvidia-smi does not know.
    memory, driver, uuid = ("" if cell.startswith("[") else cell for cell in cells[-3:])
    name = ", ".join(cells[1:-3])
    return Card(int(cells[0]), name, int(memory) if memory.isdecimal() else None, driver, uuid)


def _observation(data: dict) -> Observation:
    data = _fitting(Observation, data)
    data["nvidia_smi"] = NvidiaSmi(**_fitting(NvidiaSmi, data["nvidia_smi"]))
    if data["driver_library"] is not None:
        data["driver_library"] = Library(**_fitting(Library, data["driver_library"]))
    data["libraries"] = tuple(Library(**_fitting(Library, x)) for x in data["libraries"])
    data["gpus"] = tuple(Gpu(**_fitting(Gpu, x)) for x in data["gpus"])
    return Observation(**data)


def _fitting(kind: type, data: dict) -> dict:
    """Return a copy of ``data`` if its keys are fields of ``kind``, else raise."""
    if not isinstance(data, dict):
        raise ValueError(f"{kind.__name__}: expected an object with its fields, got {data!r}")
    known = {field.name for field in fields(kind)}
    needed = {field.name for field in fields(kind) if not hasattr(kind, field.name)}
    if not needed <= set(data) <= known:
        raise ValueError(
            f"{kind.__name__}: missing {sorted(needed - set(data))}, "
            f"unknown {sorted(set(data) - known)}"
        )
    return dict(data)
