"""What a run did: its trace, and what can be computed from it."""

from utils.runs.overlap import CriticalPath, critical_path, overlap
from utils.runs.pipeline import (
    BACKWARD,
    FORWARD,
    Step,
    durations,
    fill_and_drain,
    idle_share,
    most_at_once,
    ran,
    schedule,
)
from utils.runs.step_bytes import memory_over_time
from utils.runs.trace import Node, Trace, Transfer, trace

__all__ = [
    "BACKWARD",
    "CriticalPath",
    "FORWARD",
    "Node",
    "Step",
    "Trace",
    "Transfer",
    "critical_path",
    "durations",
    "fill_and_drain",
    "idle_share",
    "memory_over_time",
    "most_at_once",
    "overlap",
    "ran",
    "schedule",
    "trace",
]
