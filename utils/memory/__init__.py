"""Who gets how much memory of which card: a model, the real allocator, the settings."""

from utils.memory.model import Failure, Fit, Program, do_they_fit
from utils.memory.pool import Pool, default_limit_mb, reserve_mb
from utils.memory.real_pool import real_pool
from utils.memory.settings import set_gpu_memory
from utils.memory.stand_in import StandIns, stand_in_gpus

__all__ = [
    "Failure",
    "Fit",
    "Pool",
    "Program",
    "StandIns",
    "default_limit_mb",
    "do_they_fit",
    "real_pool",
    "reserve_mb",
    "set_gpu_memory",
    "stand_in_gpus",
]
