"""Who gets how much memory of which card: a model, the real allocator, the settings."""

from utils.memory.model import Fit, Program, Shortage, do_they_fit
from utils.memory.real_pool import real_pool
from utils.memory.settings import set_gpu_memory
from utils.memory.stand_in import StandIns, stand_in_gpus

__all__ = [
    "Fit",
    "Program",
    "Shortage",
    "StandIns",
    "do_they_fit",
    "real_pool",
    "set_gpu_memory",
    "stand_in_gpus",
]
