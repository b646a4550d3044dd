"""Where operations run: the placement log, the kernels of this build, an imagined machine."""

from utils.placement.imagined import Failure, ImaginedMachine
from utils.placement.kernels import (
    Kernel,
    has_kernel,
    kernel_for,
    kernels_of,
    lists_gpu_kernels,
)
from utils.placement.log import Placement, PlacementLog, parse, placement_log

__all__ = [
    "Failure",
    "ImaginedMachine",
    "Kernel",
    "Placement",
    "PlacementLog",
    "has_kernel",
    "kernel_for",
    "kernels_of",
    "lists_gpu_kernels",
    "parse",
    "placement_log",
]
