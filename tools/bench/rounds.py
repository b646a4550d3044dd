"""Processes that train, each in its way, and rounds in which they take turns.

Threads, logical devices and cores are fixed once per process, so each way has one of its own.
Only one of them works at a time, so what is compared was measured within the same seconds.
"""

import contextlib
import gc
import math
import multiprocessing
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import psutil

from tools import nbenv
from tools.bench.figure import watched

SPAWN = multiprocessing.get_context("spawn")  # a new interpreter: TensorFlow is not inherited
DEADLINE = 180  # seconds until a process that does not answer is given up
WARM_UP = 3  # steps; the first builds the graph
TURN = 0.5  # seconds
TURNS = 4  # of each way, in a round of the command
LEAST = 2  # steps in a turn
MEMORY = 0.8  # GB that a process may need


class ChildFailed(RuntimeError):
    """A process failed, ended, or did not answer in time."""


class Way(NamedTuple):
    """What a process trains, how, and on what: `gpus` virtual GPUs on some of the cores."""

    make: str  # towers or mirrored of `tools.bench.ways`, or stages
    network: str
    batch: int
    cores: Sequence[int]
    gpus: int = 1
    cuts: int = 1  # micro-batches of the stages


def build(way: Way) -> Callable:
    """Fix cores, devices and threads, in this order, and return the step."""
    os.sched_setaffinity(0, way.cores)  # before TensorFlow makes threads: they inherit it
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    logical = [tf.config.LogicalDeviceConfiguration()] * (way.gpus + 1)
    tf.config.set_logical_device_configuration(cpu, logical)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(len(way.cores))

    from tools.bench.networks import NETWORKS
    from tools.bench.stages import stages
    from tools.bench.ways import mirrored, towers
    from utils.training import mnist

    data = mnist.load()
    x, y = mnist.inputs(data.train_images[: way.batch]), data.train_labels[: way.batch]
    gpus = [f"/CPU:{number + 1}" for number in range(way.gpus)]
    if way.make == "stages":
        return stages(NETWORKS[way.network], gpus, x, y, way.cuts).step
    make = {"towers": towers, "mirrored": mirrored}[way.make]
    return make(NETWORKS[way.network], gpus, x, y).step


def measure(step: Callable, steps: int) -> dict[str, object]:
    """Seconds of each step, processor seconds of this process so far, and the last loss."""
    seconds = []
    gc.disable()
    for _ in range(steps):
        start = time.perf_counter()
        loss = float(step())
        seconds.append(time.perf_counter() - start)
    gc.enable()
    return {"seconds": seconds, "cpu": time.process_time(), "loss": loss}


def serve(orders: Connection, way: Way) -> None:
    """In the process: work on as many steps as each order says; a text is an error."""
    nbenv.apply()
    os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "1"})
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)  # TensorFlow writes there whatever the log level is
    try:
        step = build(way)
        orders.send({})
        with contextlib.suppress(EOFError):  # the other side is gone
            while True:
                orders.send(measure(step, orders.recv()))
    except Exception:
        orders.send(traceback.format_exc())


class Child:
    """A process that trains in one way."""

    def __init__(self, name: str, way: Way) -> None:
        self.name = name
        self.cpu = 0.0  # its processor seconds, as of its last answer
        self.loss = math.nan
        self.orders, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=serve, args=(theirs, way), daemon=True)
        self.process.start()
        theirs.close()

    def answer(self) -> dict:
        """Wait until it is ready, or has done what it was told."""
        try:
            found = self.orders.recv() if self.orders.poll(DEADLINE) else "no answer in time"
        except (EOFError, ConnectionResetError):
            self.process.join()
            found = f"it ended with code {self.process.exitcode}"
        if isinstance(found, str):
            raise ChildFailed(f"The process for {self.name!r}: {found}")
        return found

    def work(self, steps: int) -> list[float]:
        """Let it work on so many steps; return the seconds of each."""
        with contextlib.suppress(BrokenPipeError):  # the answer will say why
            self.orders.send(steps)
        found = self.answer()
        self.cpu, self.loss = found["cpu"], found["loss"]
        return found["seconds"]

    def close(self) -> None:
        self.orders.close()
        self.process.terminate()
        self.process.join()


@contextlib.contextmanager
def started(ways: Mapping[str, Way]) -> Iterator[list[Child]]:
    """A process for each way, all ready; they end with the block."""
    with contextlib.ExitStack() as stack:
        children = []
        for name, way in ways.items():
            children.append(Child(name, way))
            stack.callback(children[-1].close)
        for child in children:
            child.answer()
        yield children


def take_turns(
    children: Sequence[Child], steps: Mapping[str, int], turns: int
) -> dict[str, list[float]]:
    """The seconds of every step, by name; every second time round it goes backwards."""
    times: dict[str, list[float]] = {child.name: [] for child in children}
    for number in range(turns):
        for child in children[::-1] if number % 2 else children:
            times[child.name] += child.work(steps[child.name])
    return times


def steps_for(seconds: float, times: Sequence[float]) -> int:
    """How many steps fill a turn of so many seconds."""
    return max(LEAST, round(seconds / min(times)))


def check_alike(children: Sequence[Child], tolerance: float = 1e-3) -> None:
    """Raise unless the children, after equally many steps, have the same loss."""
    first = children[0]
    for child in children:
        if not math.isclose(child.loss, first.loss, rel_tol=tolerance):
            raise RuntimeError(
                f"{child.name!r} has the loss {child.loss}, but {first.name!r} {first.loss}, after "
                "the same steps: they do not train alike, so their times say nothing."
            )


class Times(NamedTuple):
    """Seconds of a step: the best, the quartiles around the median, and the median."""

    best: float
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, times: Sequence[float]) -> "Times":
        low, median, high = statistics.quantiles(times, n=4, method="inclusive")
        return cls(min(times), low, median, high)

    def faster(self, than: "Times") -> tuple[float, float]:
        """How many times as fast: by the best steps, and by the median ones."""
        return than.best / self.best, than.median / self.median

    def cells(self) -> tuple[float, float, str]:
        """Best and median in milliseconds, and between which times the middle half lies."""
        return self.best * 1e3, self.median * 1e3, f"{self.low * 1e3:.1f}–{self.high * 1e3:.1f}"


def measured(ways: Mapping[str, Way], turns: int) -> tuple[dict[str, Times], float]:
    """Train in each of these ways; return the times of a step, and the others' share."""
    with started(ways) as children:
        first = {child.name: child.work(WARM_UP) for child in children}
        check_alike(children)
        steps = {name: steps_for(TURN, times) for name, times in first.items()}
        with watched(lambda: sum(child.cpu for child in children)) as load:
            times = take_turns(children, steps, turns)
    return {name: Times.of(of) for name, of in times.items()}, load.others


def core_numbers() -> list[int]:
    """The cores that this process may use; none where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def obstacle(cores: int, children: int) -> str | None:
    """Why it cannot be measured here, in a sentence."""
    if not hasattr(os, "sched_setaffinity"):
        return "Not measured: this system cannot hold a process to one core (Linux can)."
    if cores < 2:
        return "Not measured: this needs 2 cores, and this process may use only 1."
    free = psutil.virtual_memory().available / 1e9
    if free < children * MEMORY:
        need = f"{children} processes need about {children * MEMORY:.1f} GB of memory"
        return f"Not measured: {need}, and {free:.1f} GB are free."
    return None
