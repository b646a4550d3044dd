"""The machine: its host, its GPUs, and which of them are virtual.

On a machine without a GPU the CPU is split into n + 1 logical devices: CPU:0
stays the host, CPU:1 to CPU:n stand for the GPUs. One GPU is split by memory
limit. Where there are at least n GPUs, the real ones are used. A notebook
writes ``tf.device(machine.gpus[0])`` and runs unchanged on all of them.
"""

import os
import re
from dataclasses import dataclass

from utils.machine.errors import reason
from utils.machine.startup import restart
from utils.numbers import whole

MOST_GPUS = 64
# A slice of a real GPU holds the course's networks many times over, and
# eight slices fit on the smallest cards still in use.
SLICE_MEMORY_MB = 1024
WITHOUT_GPUS = (
    " A restart alone repeats this. The course also runs without the GPUs: restart the kernel, "
    "and before begin() run `import os; os.environ['CUDA_VISIBLE_DEVICES'] = '-1'`."
)


@dataclass(frozen=True)
class Machine:
    """The devices that the notebooks of the course use.

    Attributes:
        host: name of the host for ``tf.device``.
        gpus: names of the GPUs for ``tf.device``, virtual or real.
        kind: ``"virtual"`` (parts of the CPU), ``"split"`` (parts of real
            GPUs) or ``"real"``.
        cards: for each GPU the number of the real one behind it, as
            TensorFlow counts; empty if the GPUs are virtual.
        cores: CPU cores that this process may use.

    Introduced in lesson 00.
    """

    host: str
    gpus: tuple[str, ...]
    kind: str
    cards: tuple[int, ...]
    cores: int

    def __str__(self) -> str:
        """Return what the machine consists of, in one line."""
        count = f"{len(self.gpus)} GPU{'s' * (len(self.gpus) != 1)}"
        real = len(set(self.cards))
        what = {
            "virtual": "virtual: parts of the CPU stand for them",
            "split": f"virtual: parts of {real} real one{'s' * (real != 1)}",
            "real": "real",
        }[self.kind]
        return f"host and {count} ({what})"

    @property
    def limits(self) -> str:
        """Return how much real parallel work this machine allows."""
        if self.kind != "virtual":
            return f"{len(set(self.cards))} real GPU(s) do the work."
        most = min(len(self.gpus), self.cores)
        return (
            f"{self.cores} CPU core(s) do the work of {len(self.gpus)} "
            f"virtual GPUs: expect at most {most} to compute at the same time."
        )


_machine: Machine | None = None


def virtual_gpus(n: int) -> Machine:
    """Set up ``n`` GPUs, virtual where the machine has fewer real ones.

    Devices can be set up once per process. Calling again with the same
    number returns the same machine.

    Args:
        n: how many GPUs, 1 to 64.

    Returns:
        The machine; its device names go into ``tf.device``.

    Raises:
        TypeError, ValueError: ``n`` is not a whole number from 1 to 64.
        RuntimeError: TensorFlow's devices are already set up differently.

    Introduced in lesson 01 (``begin`` calls it for you before that).
    """
    global _machine
    n = whole("gpus", n, 1, MOST_GPUS)
    if _machine is not None:
        if len(_machine.gpus) == n:
            return _machine
        raise RuntimeError(
            f"{n} GPUs asked for, but this process already runs with "
            f"{len(_machine.gpus)}. TensorFlow sets up its devices once per "
            "process: restart the kernel and ask for the new number first."
        )
    import tensorflow as tf

    cards = tf.config.list_physical_devices("GPU")
    try:
        planned = _set_up(tf, n, cards)
    except RuntimeError as error:
        raise RuntimeError(
            f"{n} GPUs asked for, but TensorFlow has already initialised its "
            "devices (any tensor or variable does that). "
            f"{restart('make this the first call.')} TensorFlow says: {error}"
        ) from error
    _verify(tf, planned)
    _machine = planned
    return _machine


def current_machine() -> Machine:
    """Return the machine that was set up.

    Raises:
        RuntimeError: none was set up yet.

    Introduced in lesson 00, behind ``session_config``.
    """
    if _machine is None:
        raise RuntimeError(
            "No devices are set up yet: call begin() in the notebook's first "
            "cell, or virtual_gpus(n)."
        )
    return _machine


def plain_name(device: str) -> str:
    """Return what a device is in the course: ``host``, ``GPU 0``, ``GPU 1``…

    Args:
        device: any device name of TensorFlow, short (``/CPU:1``) or full
            (``/job:localhost/replica:0/task:0/device:CPU:1``).

    Returns:
        The plain name on the machine that was set up; ``TYPE n`` for a device that
        is not part of it; ``unplaced`` for an empty name.

    Raises:
        ValueError: the text is not a device name.

    Introduced in lesson 00.
    """
    if not device:
        return "unplaced"
    kind, index = _kind_and_index(device)
    if _machine is not None:
        names = [_kind_and_index(name) for name in _machine.gpus]
        if (kind, index) in names:
            return f"GPU {names.index((kind, index))}"
    return "host" if (kind, index) == ("CPU", 0) else f"{kind} {index}"


def _set_up(tf, n: int, cards: list) -> Machine:
    """Configure TensorFlow's devices and say what was configured."""
    cores = _cores()
    logical = tf.config.LogicalDeviceConfiguration
    if not cards:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [logical()] * (n + 1))
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(n + 1)
        names = tuple(f"/CPU:{i}" for i in range(1, n + 1))
        return Machine("/CPU:0", names, "virtual", (), cores)
    names = tuple(f"/GPU:{i}" for i in range(n))
    if len(cards) >= n:
        tf.config.set_visible_devices(cards[:n], "GPU")
        for card in cards[:n]:
            tf.config.experimental.set_memory_growth(card, True)
        return Machine("/CPU:0", names, "real", tuple(range(n)), cores)
    behind = _spread(n, len(cards))
    for number, card in enumerate(cards):
        slices = [logical(memory_limit=SLICE_MEMORY_MB)] * behind.count(number)
        tf.config.set_logical_device_configuration(card, slices)
    return Machine("/CPU:0", names, "split", behind, cores)


def _spread(n: int, cards: int) -> tuple[int, ...]:
    """Return the card behind each of ``n`` virtual GPUs, evenly, in order."""
    return tuple(i * cards // n for i in range(n))


def _verify(tf, planned: Machine) -> None:
    """Initialise the devices and compare them with what was planned."""
    want = {_kind_and_index(name) for name in (planned.host, *planned.gpus)}
    said = ""
    try:
        there = tf.config.list_logical_devices()
    except (RuntimeError, tf.errors.OpError) as error:
        there, said = [], f" TensorFlow says: {reason(error)}"
    found = {_kind_and_index(device.name) for device in there}
    if not want <= found:
        remedy = "" if planned.kind == "virtual" else WITHOUT_GPUS
        raise RuntimeError(
            f"TensorFlow did not set up the devices it was asked for: wanted "
            f"{sorted(want)}, found {sorted(found)}.{remedy}{said}"
        )


def _kind_and_index(device: str) -> tuple[str, int]:
    # "/job:worker/task:1" ends like a device, but names a whole process.
    found = re.search(r"(?:^|/|device:)(?!job:|replica:|task:)([A-Za-z_]+):(\d+)$", device)
    if not found:
        raise ValueError(
            f"{device!r} is not the name of one device: expected a form like "
            "'/CPU:0' or '/job:localhost/replica:0/task:0/device:GPU:1'."
        )
    return found.group(1).upper(), int(found.group(2))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
