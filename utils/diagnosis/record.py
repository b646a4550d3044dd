"""What a machine says about its GPUs, as plain facts and no judgement.

``utils.diagnosis.probe.observe`` asks this machine for them, ``load_machine``
reads those of another one from data/machines, and ``utils.diagnosis.layer_table.diagnose``
says what they mean.

Introduced in lesson 01.
"""

import json
from dataclasses import dataclass

from utils import DATA
from utils.cards import Card, read_listing

MACHINES = DATA / "machines"


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
        return read_listing(self.output)[0]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what else it said: its lines that are no cards."""
        return read_listing(self.output)[1]


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


def load_machine(name: str) -> Observation:
    """Return a machine from data/machines; its README says what each one is.

    Raises:
        ValueError: there is no such machine; the message lists those there are.

    Introduced in lesson 01.
    """
    known = sorted(path.stem for path in MACHINES.glob("*.json"))
    if name not in known:
        raise ValueError(f"no machine {name!r}; there are: {', '.join(known)}")
    record = json.loads((MACHINES / f"{name}.json").read_text(encoding="utf-8"))
    seen = record["observation"]
    library = seen["driver_library"]
    seen["nvidia_smi"] = NvidiaSmi(**seen["nvidia_smi"])
    seen["driver_library"] = None if library is None else Library(**library)
    seen["libraries"] = tuple(Library(**each) for each in seen["libraries"])
    seen["gpus"] = tuple(Gpu(**each) for each in seen["gpus"])
    return Observation(**seen)
