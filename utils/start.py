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

from utils import style
from utils.machine import Machine, captured, check_flags, devices, restart, write_back
from utils.numbers import whole

LARGEST_SEED = 2**32 - 1
XLA_DEVICES = "--tf_xla_enable_xla_devices"
_begun: dict[str, int | bool] | None = None  # what the first begin was given


def begin(gpus: int = 2, seed: int = 42, names: bool = False, xla: bool = False) -> Machine:
    """Start a lesson: the same devices, numbers and look on every machine.

    Call it before TensorFlow is imported. A second call with the same
    ``gpus``, ``names`` and ``xla`` changes no device and sows the seed again.

    Args:
        gpus: how many GPUs the notebook uses, virtual where there are none.
        seed: for the random numbers of Python, NumPy and eager TensorFlow; a
            ``tf.Graph`` has a seed of its own.
        names: True where the names of operations are the lesson: switches
            oneDNN off, which renames some (``MatMul`` to ``_MklMatMul``)
            and makes convolutions faster.
        xla: True adds ``/device:XLA_CPU:0``, a second type of device on
            any machine, which lacks some kernels (lesson 04).

    Returns:
        The machine: ``machine.host`` and ``machine.gpus`` are device names.

    Raises:
        TypeError, ValueError: an argument is not possible.
        RuntimeError: TensorFlow was imported before, the notebook began with
            other arguments, or TensorFlow refuses the flags for XLA.

    Introduced in lesson 00.
    """
    global _begun
    gpus = whole("gpus", gpus, 1, devices.MOST_GPUS)
    seed = whole("seed", seed, 0, LARGEST_SEED)
    for name, value in {"names": names, "xla": xla}.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name}={value!r}: give True or False.")
    asked = {"gpus": gpus, "names": names, "xla": xla}
    if _begun is None:
        _check_first()
        check_flags()
        with _environment(names, xla), _quiet():
            machine = devices.virtual_gpus(gpus)
        _begun = asked
    elif _begun != asked:
        raise RuntimeError(
            f"{_call(asked)} after {_call(_begun)}: devices and operation "
            "names are fixed once per process. Restart the kernel, then run "
            "the setup cell."
        )
    else:
        machine = devices.virtual_gpus(gpus)
    _sow(seed)
    style.apply()
    return machine


def _call(given: dict[str, int | bool]) -> str:
    return f"begin({', '.join(f'{k}={v}' for k, v in given.items())})"


def _check_first() -> None:
    if "tensorflow" in sys.modules:
        raise RuntimeError(
            "TensorFlow was imported before begin(), so its messages and "
            "operation names can no longer be set. "
            + restart("run the setup cell first: begin(...), then import tensorflow.")
        )


@contextmanager
def _environment(names: bool, xla: bool) -> Iterator[None]:
    """Set what TensorFlow reads at import; if that fails, put it back."""
    before = {
        name: os.environ.get(name)
        for name in (
            "TF_CPP_MIN_LOG_LEVEL",
            "TF_ENABLE_ONEDNN_OPTS",
            "TF_XLA_FLAGS",
        )
    }
    # Level 3 keeps C++ warnings off the page; errors reach us as exceptions.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if names:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    if xla:
        flags = os.environ.get("TF_XLA_FLAGS", "").split()
        os.environ["TF_XLA_FLAGS"] = " ".join([*flags, XLA_DEVICES])
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
