"""What a run did: its trace, and what can be computed from it."""

from utils.runs.overlap import critical_path, overlap
from utils.runs.pipeline import (
    BACKWARD,
    FORWARD,
    Step,
    fill_and_drain,
    idle_share,
    schedule,
)
from utils.runs.step_bytes import memory_over_time
from utils.runs.trace import Node, Trace, Transfer, trace

__all__ = [
    "BACKWARD",
    "FORWARD",
    "Node",
    "Step",
    "Trace",
    "Transfer",
    "critical_path",
    "fill_and_drain",
    "idle_share",
    "memory_over_time",
    "overlap",
    "schedule",
    "trace",
]
