"""What the tests of the cluster programs share: where they are, one of them as a module."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

PROGRAMS = Path(__file__).resolve().parent.parent / "notebooks" / "programs"
BETWEEN_GRAPH = PROGRAMS / "between_graph.py"
DEADLINE = 180  # seconds; three processes with TensorFlow start in ten on two quiet cores
# How many times each kind of task is killed; `make soak` can ask for more.
KILLS = int(os.environ.get("COURSE_KILLS", "1"))


def module(name: str) -> ModuleType:
    """Import a program without running it; that loads no TensorFlow."""
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def labels(folder: Path) -> list[int]:
    """The steps in the names of the checkpoints in a folder, ascending."""
    return sorted(int(path.stem.split("-")[1]) for path in folder.glob("step-*.index"))


def weights_of(folder: Path, step: int) -> list:
    """The network's weights in a checkpoint, after comparing its label with its content."""
    import tensorflow as tf

    checkpoint = tf.train.load_checkpoint(str(folder / f"step-{step}"))
    assert checkpoint.get_tensor("global_step") == step
    names = ("kernel_1", "bias_1", "kernel_2", "bias_2")
    return [checkpoint.get_tensor(name) for name in names]
