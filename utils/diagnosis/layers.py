"""What each layer's facts mean: found, whether a GPU can pass, what to do next.

Where TensorFlow does see a GPU, that is the better evidence: a question that
failed (no nvidia-smi in a container, say) is then reported, but is no fault.

Introduced in lesson 01, behind ``diagnose``.

Sources:
    "Install TensorFlow with pip", https://www.tensorflow.org/install/pip: the extra ``and-cuda``;
        no official GPU support on macOS; 2.10 was the last release with GPUs on native Windows;
        the packages for Linux on ARM are CPU builds.
    "Get started with tensorflow-metal", https://developer.apple.com/metal/tensorflow-plugin:
        Apple's own plug-in for the GPUs of a Mac.
    "CUDA Environment Variables", https://docs.nvidia.com/cuda/cuda-programming-guide/
        05-appendices/environment-variables.html: what CUDA_VISIBLE_DEVICES means.
    "Minor Version Compatibility", https://docs.nvidia.com/deploy/cuda-compatibility/
        minor-version-compatibility.html: the oldest driver for a version of CUDA.
    "CUDA on WSL User Guide", https://docs.nvidia.com/cuda/wsl-user-guide: the driver is that of
        Windows.
"""

import re

from utils.cards import Card, identifiers, visible_cards
from utils.diagnosis.record import Library, NvidiaSmi, Observation

Answer = tuple[str, bool | None, str]  # found, ok, next step

OLDEST_DRIVER = {"12": 525}  # for a major version of CUDA
INSTALL = "make setup GPU=1\nor, without make: python -m pip install 'tensorflow[and-cuda]'"
REPLACE = (
    "Replace it in this environment:\n"
    "python -m pip uninstall tensorflow tensorflow-cpu\n"
    "python -m pip install 'tensorflow[and-cuda]'\n"
    "or use the course's own environment: make setup GPU=1"
)
NO_CARD = "Nothing has to be mended: the course's virtual GPUs stand in for real ones."
HIDDEN = (
    "Start JupyterLab from a terminal without it (unset CUDA_VISIBLE_DEVICES). It is read once "
    "per process: a change in a running notebook does nothing."
)
READ_ONCE = "It is read once per process: set it before the kernel starts."
NUMBERS_DIFFER = (
    "The cards differ, so CUDA may number them differently from nvidia-smi. Set "
    "CUDA_DEVICE_ORDER=PCI_BUS_ID before the kernel starts."
)
# A part of what nvidia-smi says when it fails, and what helps then.
FAILURES = {
    "couldn't communicate with the NVIDIA driver": (
        "The driver is not running. Restart the computer; if that does not help, install the "
        "driver anew (a new Linux kernel needs it rebuilt)."
    ),
    "Driver/library version mismatch": (
        "The driver was updated while the old one was running. Restart the computer."
    ),
    "No devices were found": (
        "The driver answers, but gives this system no card. On a cluster, ask the scheduler for "
        "a GPU; elsewhere, restart the computer, then install the driver anew."
    ),
    "no answer within": (
        "Run nvidia-smi in a terminal. If it hangs there too, the driver does: restart the "
        "computer."
    ),
}


def system(seen: Observation) -> Answer:
    """Judge the operating system."""
    name = "macOS" if seen.system == "Darwin" else seen.system
    found = f"{name} on {seen.processor}" + (", inside Windows (WSL)" if seen.wsl else "")
    if seen.gpus or seen.system == "Linux":
        return found, True, ""
    if seen.system == "Windows":
        return (
            f"{found}: TensorFlow has no GPU support on native Windows since 2.11",
            False,
            "Install WSL2 (in a terminal of Windows: wsl --install) and set up the course there.\n"
            "https://www.tensorflow.org/install/pip",
        )
    if seen.system == "Darwin":
        return (
            f"{found}: TensorFlow has no official GPU support there",
            False,
            f"{NO_CARD} Apple offers a plug-in of its own, which the course does not use:\n"
            "https://developer.apple.com/metal/tensorflow-plugin",
        )
    return found, None, ""


def hardware(seen: Observation) -> Answer:
    """Judge whether there is a card."""
    smi, bus = seen.nvidia_smi, seen.bus_cards
    if smi.cards:
        found = f"nvidia-smi lists {_count(len(smi.cards), 'card')}: {_listed(smi.cards)}"
        return found + (f"; it also says {_quote(smi)}" if smi.remarks else ""), True, ""
    if seen.gpus:
        return "nvidia-smi lists no card, but TensorFlow reaches one", True, ""
    if bus is None:
        return "not known: nvidia-smi lists no card, and the PCI bus cannot be read", None, ""
    if bus == 0:
        return "no NVIDIA card on the PCI bus", False, NO_CARD
    return f"{_count(bus, 'NVIDIA card')} on the PCI bus", True, ""


def driver(seen: Observation) -> Answer:
    """Judge whether a driver answers, and is new enough."""
    smi, library = seen.nvidia_smi, seen.driver_library
    loads = library is None or library.loaded is not False
    if smi.cards:
        return _driver_that_answers(seen, loads)
    if smi.found:
        found = f"nvidia-smi fails: {_quote(smi)}"
        said = " ".join(smi.remarks)
        advice = (step for part, step in FAILURES.items() if part in said)
        return (found, True, "") if seen.gpus else (found, False, next(advice, _install(seen)))
    found = "nvidia-smi is not installed here"
    if library is None:
        return (found, True, "") if seen.gpus else (found, None, _install(seen))
    found += f", but {library.name} loads" if loads else f", and {library.name} does not load"
    return (found, True, "") if loads or seen.gpus else (found, False, _install(seen))


def _driver_that_answers(seen: Observation, loads: bool) -> Answer:
    version, library = seen.nvidia_smi.cards[0].driver, seen.driver_library
    number = re.match(r"\d+", version)
    oldest = OLDEST_DRIVER.get(seen.cuda_version.split(".")[0], 0)
    if not seen.gpus and number and int(number[0]) < oldest:
        found = f"version {version} is too old: CUDA {seen.cuda_version} needs {oldest} or newer"
        return found, False, f"The driver has to be updated. {_install(seen)}"
    found = f"version {version or 'unknown'} answers"
    if loads or seen.gpus:
        return found, True, ""
    step = (
        "In a container: start it with --gpus all, and with compute among "
        "NVIDIA_DRIVER_CAPABILITIES. Elsewhere: install the driver anew."
    )
    if library.elsewhere:
        step = _look_in(library.elsewhere)
    return f"{found}, but {library.name} does not load", False, step


def interpreter(seen: Observation) -> Answer:
    """Judge whether this is the Python that has TensorFlow with CUDA."""
    found = f"{seen.python} runs this"
    other = seen.activated is not None and seen.activated != seen.environment
    if other:
        found += f", but {seen.activated} is activated"
    if seen.gpus:
        return found, True, ""
    if other and not (seen.cuda_build and all(x.loaded is not False for x in seen.libraries)):
        step = (
            "Use the environment that has TensorFlow with CUDA: start JupyterLab from it (the "
            "course's own: make lab), or choose its kernel."
        )
        return found, False, step
    step = "If a terminal shows a GPU and this does not, compare there:\n"
    return found, None, step + 'python -c "import sys; print(sys.executable)"'


def build(seen: Observation) -> Answer:
    """Judge whether TensorFlow is there and was built with CUDA."""
    if seen.tensorflow is None:
        return f"TensorFlow cannot be imported: {_sentence(seen.import_error)}", False, INSTALL
    name = f"TensorFlow {seen.tensorflow}"
    if seen.cuda_build:
        cudnn = f" and cuDNN {seen.cudnn_version}" if seen.cudnn_version else ""
        return f"{name} is built with CUDA {seen.cuda_version}{cudnn}", True, ""
    if seen.gpus:
        return f"{name} is built without CUDA; a plug-in provides the GPU", None, ""
    found = f"{name} is built without CUDA (a CPU build)"
    if seen.system == "Linux" and seen.processor != "x86_64":
        step = (
            f"TensorFlow's packages for Linux on {seen.processor} are CPU builds. Use a machine "
            "with x86_64, or the course's virtual GPUs."
        )
        return found, False, step
    return found, False, REPLACE


def libraries(seen: Observation) -> Answer:
    """Judge whether the CUDA libraries that the build needs can be loaded."""
    if seen.tensorflow is None:
        return "not asked: there is no TensorFlow that would need them", None, ""
    if not seen.cuda_build:
        return "not asked: this build needs none", None, ""
    if not seen.libraries:
        return "not asked: it is not known which ones this build needs", None, ""
    if any(library.loaded is None for library in seen.libraries):
        return f"not known: {seen.libraries[0].error}", None, ""
    missing = [library for library in seen.libraries if not library.loaded]
    if not missing:
        return f"all {len(seen.libraries)} load", True, ""
    names = ", ".join(library.name for library in missing)
    found = f"{len(missing)} of {len(seen.libraries)} cannot be loaded: {names}"
    broken = next((_sentence(x.error) for x in missing if not _absent(x)), "")
    found += f" ({broken})" if broken else ""
    return (found, True, "") if seen.gpus else (found, False, _mend(missing))


def _mend(missing: list[Library]) -> str:
    """Return how libraries get loaded: show TensorFlow where they are, or install them (anew)."""
    folders = list(dict.fromkeys(library.elsewhere for library in missing))
    if "" not in folders:
        return f"Installed, but TensorFlow does not look there. {_look_in(':'.join(folders))}"
    if not all(map(_absent, missing)):
        return (
            "A file is damaged, or one that it needs is missing. Install them anew:\n"
            "python -m pip install --force-reinstall 'tensorflow[and-cuda]'"
        )
    if any(library.name.startswith("libcudart") for library in missing):
        return f'{INSTALL}\n(TensorFlow\'s "Could not find cuda drivers" means libcudart.)'
    return INSTALL


def _look_in(folders: str) -> str:
    return f"Start JupyterLab again, with\nLD_LIBRARY_PATH={folders}"


def visibility(seen: Observation) -> Answer:
    """Judge whether CUDA_VISIBLE_DEVICES lets a card through."""
    value, cards = seen.visible_devices, seen.nvidia_smi.cards
    sure = len({card.name for card in cards}) < 2 or seen.device_order == "PCI_BUS_ID"
    step = "" if sure else NUMBERS_DIFFER
    if value is None:
        return "CUDA_VISIBLE_DEVICES is not set: every card is visible", True, step
    found = f"CUDA_VISIBLE_DEVICES={value or '(empty)'}"
    visible, error = _visible(seen)
    if error:
        judged = None if seen.gpus or "MIG-" in value else False
        return f"what {found} shows is not known", judged, f"{error} {READ_ONCE}"
    if visible is not None and len(seen.gpus) > len(visible):
        return f"{found} was set after TensorFlow had read it", None, READ_ONCE
    if visible is None:
        return f"{found} chooses the cards", True, step
    if not visible:
        why = ": no card has that number" if value[:1].isdecimal() else ""
        return f"{found} hides every card{why}", False, HIDDEN
    pairs = ", ".join(f"GPU:{i} is card {card.index}" for i, card in enumerate(visible))
    found += f" shows {_count(len(visible), 'card')}"
    return found + (f": {pairs}" if sure else ""), True, step


def _visible(seen: Observation) -> tuple[tuple[Card, ...] | None, str]:
    """Return the cards that are visible (None if unknown), and why the value has no meaning.

    The numbers are taken as nvidia-smi's: in another order they are as many.
    """
    cards, value = seen.nvidia_smi.cards, seen.visible_devices
    try:
        if cards:
            return visible_cards(cards, value, "PCI_BUS_ID"), ""
        return (None if value is None or identifiers(value) else ()), ""
    except ValueError as error:
        return None, str(error)


def tensorflow(seen: Observation) -> Answer:
    """Judge what TensorFlow itself lists."""
    ask = (
        "A card may be too old for this build. In a terminal TensorFlow says why:\n"
        'python -c "import tensorflow as t; t.config.list_physical_devices()"'
    )
    if not seen.gpus:
        return "TensorFlow sees no GPU", False, ask
    found = f"TensorFlow sees {_count(len(seen.gpus), 'GPU')}: {_listed(seen.gpus)}"
    visible, _ = _visible(seen)
    if visible and len(seen.gpus) < len(visible):
        return f"{found}; {_count(len(visible), 'card')} should be visible", True, ask
    return found, True, ""


def _install(seen: Observation) -> str:
    """Return how to get a driver."""
    if seen.wsl:
        step = "Install NVIDIA's driver in Windows, none inside WSL. Then, there:\nwsl --shutdown"
    else:
        step = (
            "Install NVIDIA's driver and restart the computer. In a container: start it with "
            "--gpus all."
        )
    return f"{step}\nhttps://www.nvidia.com/drivers"


def _absent(library: Library) -> bool:
    """Tell whether a library is not there, rather than there and broken."""
    return library.error.startswith(f"{library.name}: cannot open shared object file")


def _listed(things: tuple) -> str:
    return ", ".join(map(str, things))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _quote(smi: NvidiaSmi) -> str:
    words = _sentence(smi.remarks[0]) if smi.remarks else "no output"
    return words if smi.code is None else f'"{words}" (exit code {smi.code})'


def _sentence(text: str) -> str:
    """Return the first sentence of a message, without its full stop."""
    return re.split(r"\.\s", text.strip())[0].rstrip(".")
