"""TensorFlow's own memory settings, tried over GPUs that are not there.

Only the list of devices, which a driver would give, is invented. What takes,
refuses and combines the settings is TensorFlow's code; it is reached through
private modules, so a test holds that it still works this way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from utils.numbers import whole


class StandIns:
    """GPUs that TensorFlow's configuration takes for real ones.

    Attributes:
        cpu: the machine's CPU, as ``tf.config.list_physical_devices`` lists it.
        gpus: the GPUs beside it.

    Introduced in lesson 02.
    """

    def __init__(self, context: Any, cpu: Any, gpus: tuple) -> None:
        """Keep the stand-in for TensorFlow's state; ``stand_in_gpus`` makes it."""
        self._context = context
        self.cpu = cpu
        self.gpus = gpus

    @property
    def started(self) -> bool:
        """Whether something has made TensorFlow set up its devices."""
        return self._context._context_handle is not None

    @property
    def options(self) -> object:
        """Return the ``GPUOptions`` that TensorFlow would be started with now.

        Raises:
            ValueError: TensorFlow refuses to start with these settings.
        """
        return self._context.config.gpu_options


@contextmanager
def stand_in_gpus(count: int) -> Iterator[StandIns]:
    """Let TensorFlow's configuration see ``count`` GPUs, for a while.

    Inside, ``tf.config`` starts afresh and lists a CPU and the GPUs. What
    needs initialised devices marks them as initialised, so that TensorFlow
    then says "too late"; nothing can run on them. The notebook's own devices
    and settings come back at the end.

    Args:
        count: how many GPUs.

    Yields:
        The devices, and the options that they lead to.

    Raises:
        TypeError, ValueError: ``count`` is not a whole number from 0 to 64.

    Introduced in lesson 02.
    """
    count = whole("count", count, 0, 64)
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context

    names = ["CPU:0", *(f"GPU:{i}" for i in range(count))]
    listed = [f"/physical_device:{name}".encode() for name in names]
    before = context.context(), pywrap_tfe.TF_ListPhysicalDevices
    pywrap_tfe.TF_ListPhysicalDevices = lambda: listed
    context._context = _stand_in_context(context)
    try:
        cpu, *gpus = context.context().list_physical_devices()
        yield StandIns(context.context(), cpu, tuple(gpus))
    finally:
        context._context, pywrap_tfe.TF_ListPhysicalDevices = before


def _stand_in_context(context: Any) -> Any:
    class StandInContext(context.Context):
        def ensure_initialized(self) -> None:
            self._context_handle = self  # from now on it is too late
            self._logical_devices = [
                context.LogicalDevice(f"/device:{kind}:{i}", kind)
                for kind in ("CPU", "GPU")
                for i in range(sum(map(self._parts, self.get_visible_devices(kind))))
            ]

        def _parts(self, device: Any) -> int:
            return len(self.get_logical_device_configuration(device) or [device])

        @property
        def _handle(self):
            raise RuntimeError("Nothing runs on GPUs that are stand-ins: settings only.")

    return StandInContext()
