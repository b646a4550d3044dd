"""A lesson's first line: environment, quiet import, seeds, style, devices.

What TensorFlow prints and how it names operations is decided when it is
imported. So ``begin`` comes before ``import tensorflow``, and this file
imports no TensorFlow by itself.
"""

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from utils import devices, style
from utils.capture import captured, write_back
from utils.devices import Machine

LARGEST_SEED = 2**32 - 1
_begun: tuple[int, bool] | None = None  # (gpus, names) of the first begin


def begin(gpus: int = 2, seed: int = 42, names: bool = False) -> Machine:
    """Start a lesson: the same devices, numbers and look on every machine.

    Call it before TensorFlow is imported. A second call with the same
    ``gpus`` and ``names`` changes no device and sows the seed again.

    Args:
        gpus: how many GPUs the notebook uses, virtual where there are none.
        seed: for Python's, NumPy's and TensorFlow's random numbers.
        names: True where the names of operations are the lesson: switches
            oneDNN off, which renames some (``MatMul`` to ``_MklMatMul``)
            and makes convolutions faster.

    Returns:
        The machine: ``machine.host`` and ``machine.gpus`` are device names.

    Raises:
        TypeError, ValueError: an argument is not possible.
        RuntimeError: TensorFlow was imported before, or the notebook began
            with other arguments.

    Introduced in lesson 00.
    """
    global _begun
    gpus = devices.check_count(gpus, "gpus")
    seed = devices.check_count(seed, "seed", 0, LARGEST_SEED)
    if not isinstance(names, bool):
        raise TypeError(f"names={names!r}: give True or False.")
    if _begun is None:
        _check_first()
        with _environment(names), _quiet():
            machine = devices.virtual_gpus(gpus)
        _begun = (gpus, names)
    elif _begun != (gpus, names):
        raise RuntimeError(
            f"begin(gpus={gpus}, names={names}) after begin(gpus={_begun[0]}, "
            f"names={_begun[1]}): devices and operation names are fixed once "
            "per process. Restart the kernel, then run the setup cell."
        )
    else:
        machine = devices.virtual_gpus(gpus)
    _sow(seed)
    style.apply()
    return machine


def _check_first() -> None:
    if "tensorflow" in sys.modules:
        raise RuntimeError(
            "TensorFlow was imported before begin(), so its messages and "
            "operation names can no longer be set. Restart the kernel and "
            "run the setup cell first: begin(...), then import tensorflow."
        )


@contextmanager
def _environment(names: bool) -> Iterator[None]:
    """Set what TensorFlow reads at import; if that fails, put it back."""
    before = {
        name: os.environ.get(name)
        for name in ("TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS")
    }
    # Level 3 keeps C++ warnings off the page; errors reach us as exceptions.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if names:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    try:
        yield
    except BaseException:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        raise


@contextmanager
def _quiet() -> Iterator[None]:
    """Import TensorFlow inside, without the lines it prints at import.

    It writes them before its own log level counts. If the import or the
    set-up of devices fails, they are the explanation, so they come back.
    """
    takes = {}
    try:
        with captured(2) as takes:
            import tensorflow as tf

            tf.get_logger().setLevel("ERROR")
            yield
    except BaseException:
        for descriptor, take in takes.items():
            write_back(descriptor, take.text)
        raise


def _sow(seed: int) -> None:
    import numpy as np
    import tensorflow as tf

    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)
