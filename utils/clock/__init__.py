"""A virtual clock: many workers train, in simulated time, on one machine.

What the clock shows is a simulation: the times are drawn from a seed, nothing
is measured. The gradients, where you give a function for them, are real.
"""

from utils.clock.policies import (
    Policy,
    asynchronous,
    bounded_staleness,
    divide_rate,
    drop_older,
    spare_replicas,
    synchronous,
)
from utils.clock.result import ClockTrace
from utils.clock.service import (
    Service,
    exponential,
    fixed,
    lognormal,
    one_slow,
    stragglers,
)
from utils.clock.simulation import VirtualClock

__all__ = [
    "ClockTrace",
    "Policy",
    "Service",
    "VirtualClock",
    "asynchronous",
    "bounded_staleness",
    "divide_rate",
    "drop_older",
    "exponential",
    "fixed",
    "lognormal",
    "one_slow",
    "spare_replicas",
    "stragglers",
    "synchronous",
]
