"""Set how much GPU memory TensorFlow may take, in today's calls.

TensorFlow refuses growth together with a limit in one order of the calls; in
the other it drops the growth without a word. Growth that differs between GPUs
it refuses only when it starts. ``set_gpu_memory`` refuses all of these at once,
before it changes anything.
"""

from collections.abc import Sequence

from utils.numbers import whole

DIFFERS = "Memory growth cannot differ between GPU devices"


def set_gpu_memory(
    *, growth: bool | Sequence[bool] = False, limit_mb: int | None = None
) -> tuple[str, ...]:
    """Set the memory of every visible GPU, all alike, before TensorFlow starts.

    Either growth (``tf.config.experimental.set_memory_growth``) or a limit
    (``tf.config.set_logical_device_configuration``). Asking again for what is
    set already changes nothing.

    Args:
        growth: True to take memory as it is needed. It holds for the whole
            program, so a value per visible GPU is taken only if all are alike.
        limit_mb: the most that the program may take of each GPU, in MB.

    Returns:
        Names of the GPUs that were set; empty if TensorFlow sees none.

    Raises:
        TypeError: a value is not True or False, or not a whole number.
        ValueError: growth and a limit, in one call or one after the other;
            neither; growth that differs; growth on a machine whose CPU is
            split; another limit than the one that is set.
        RuntimeError: TensorFlow has already initialised its devices.

    Introduced in lesson 02.
    """
    import tensorflow as tf

    gpus = tf.config.get_visible_devices("GPU")
    growth = _same(growth, len(gpus))
    _check(growth, limit_mb)
    limits = {gpu: tf.config.get_logical_device_configuration(gpu) for gpu in gpus}
    growing = [gpu for gpu in gpus if tf.config.experimental.get_memory_growth(gpu)]
    wanted = [tf.config.LogicalDeviceConfiguration(memory_limit=limit_mb)]
    if growth:
        _refuse_limits(limits)
        if gpus:
            _refuse_split_cpu(tf)
    elif growing:
        raise ValueError(
            f"limit_mb={limit_mb}, but {_short(growing[0])} is set to grow: TensorFlow would "
            "drop the growth silently. Restart the kernel and set one of them."
        )
    elif other := [gpu for gpu in gpus if limits[gpu] not in (None, wanted)]:
        raise ValueError(
            f"limit_mb={limit_mb}, but {_short(other[0])} is already cut into "
            f"{limits[other[0]]}. Restart the kernel to set another limit."
        )
    try:
        for gpu in gpus:
            if growth:
                tf.config.experimental.set_memory_growth(gpu, True)
            else:
                tf.config.set_logical_device_configuration(gpu, wanted)
    except RuntimeError as error:
        raise RuntimeError(
            "TensorFlow has already initialised its devices (any tensor or variable does "
            "that). Restart the kernel and make this the first call. TensorFlow says: "
            f"{error}"
        ) from error
    return tuple(_short(gpu) for gpu in gpus)


def _same(growth: bool | Sequence[bool], gpus: int) -> bool:
    values = [growth] if isinstance(growth, bool) else growth
    if not isinstance(values, Sequence) or not all(isinstance(v, bool) for v in values):
        raise TypeError(f"growth={growth!r}: give True or False; it holds for the whole program.")
    if len(set(values)) != 1:
        raise ValueError(
            f"growth={growth!r}: TensorFlow says {DIFFERS!r}. Give True or False for all, and "
            "hide a GPU that this program is not to use (CUDA_VISIBLE_DEVICES)."
        )
    if values is growth and len(values) != gpus:
        raise ValueError(f"growth={growth!r} has {len(values)} values for {gpus} visible GPU(s).")
    return values[0]


def _check(growth: bool, limit_mb: int | None) -> None:
    if growth and limit_mb is not None:
        raise ValueError(
            f"growth=True and limit_mb={limit_mb}: TensorFlow takes one of them. Give growth "
            "to share with programs that you trust, a limit to be sure."
        )
    if not growth and limit_mb is None:
        raise ValueError("Give growth=True or limit_mb=…, such as set_gpu_memory(limit_mb=4096).")
    if limit_mb is not None:
        whole("limit_mb", limit_mb, 1)


def _refuse_limits(limits: dict) -> None:
    for gpu, limit in limits.items():
        if limit is not None:
            raise ValueError(
                f"growth=True, but {_short(gpu)} already has a limit: {limit}. TensorFlow takes "
                "one of them. Restart the kernel and set one."
            )


def _refuse_split_cpu(tf) -> None:
    # TensorFlow then takes the GPUs for split too, and drops their growth.
    for cpu in tf.config.list_physical_devices("CPU"):
        if tf.config.get_logical_device_configuration(cpu) is not None:
            raise ValueError(
                f"growth=True, but {_short(cpu)} is split into logical devices: TensorFlow "
                "would drop the growth silently. Restart the kernel and leave the CPU whole."
            )


def _short(device) -> str:
    return device.name.removeprefix("/physical_device:")
