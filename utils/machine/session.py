"""Sessions that see the same devices as the rest of the notebook."""

from typing import TYPE_CHECKING

from utils.machine.devices import MOST_GPUS, SLICE_MEMORY_MB, current_machine
from utils.numbers import whole

if TYPE_CHECKING:
    import tensorflow as tf


def session_config(
    *,
    gpus: int | None = None,
    log_placement: bool = False,
    soft_placement: bool = False,
    inter_op: int | None = None,
) -> "tf.compat.v1.ConfigProto":
    """Return a session configuration that sees the machine's devices.

    Give a ``tf.compat.v1.Session`` any other ``ConfigProto`` and it sees a
    single CPU and none of the virtual GPUs.

    Args:
        gpus: use only the first ``gpus`` GPUs of the machine (all if None).
        log_placement: log every operation's device (lesson 03).
        soft_placement: move operations that cannot run where they are
            pinned (lesson 04). Off by default, as in any ConfigProto.
        inter_op: a pool of this many threads for this session alone
            (lesson 05); None shares the pool of the process.

    Returns:
        A ``tf.compat.v1.ConfigProto``.

    Raises:
        RuntimeError: no machine was set up yet.
        TypeError, ValueError: ``gpus`` or ``inter_op`` is not possible here.

    Introduced in lesson 00.
    """
    machine = current_machine()
    here = len(machine.gpus)
    wanted = here if gpus is None else whole("gpus", gpus, 1, MOST_GPUS)
    if wanted > here:
        raise ValueError(
            f"gpus={wanted}, but this machine was set up with {here}: ask "
            f"for 1 to {here}, or restart the kernel and begin(gpus={wanted})."
        )
    if inter_op is not None:
        inter_op = whole("inter_op", inter_op, 1, MOST_GPUS)
    import tensorflow as tf

    config = tf.compat.v1.ConfigProto(
        allow_soft_placement=soft_placement,
        log_device_placement=log_placement,
    )
    if machine.kind == "virtual":
        config.device_count["CPU"] = wanted + 1
        config.intra_op_parallelism_threads = 1
        config.inter_op_parallelism_threads = here + 1
    elif machine.kind == "split":
        _split_session(config, machine.cards)
    else:
        cards = ",".join(str(card) for card in machine.cards[:wanted])
        config.gpu_options.visible_device_list = cards
        config.gpu_options.allow_growth = True
    if inter_op is not None:
        pool = config.session_inter_op_thread_pool.add()
        pool.num_threads = inter_op
    return config


def _split_session(config, behind: tuple[int, ...]) -> None:
    """Tell a session the same slices that ``tf.config`` was told.

    All of them: a process cannot cut one card in two different ways.
    """
    cards = sorted(set(behind))
    config.gpu_options.visible_device_list = ",".join(map(str, cards))
    for card in cards:
        virtual = config.gpu_options.experimental.virtual_devices.add()
        virtual.memory_limit_mb.extend([SLICE_MEMORY_MB] * behind.count(card))
