"""What the operations of a traced step held, and when."""

from collections import defaultdict

import numpy as np

from utils.runs.trace import Trace


def memory_over_time(trace: Trace) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the memory that each device's operations held during a step.

    Variables, fed, constant and received values are not in it. The sum of
    what was taken is exact (``Trace.allocated``); when it was given back, and
    so the peak, differs from run to run.

    Args:
        trace: a traced run.

    Returns:
        For each device that took memory, two arrays of equal length: seconds
        from the first allocation, and the bytes held from then on.

    Introduced in lesson 02.
    """
    found = defaultdict(list)
    for record in trace.allocations:
        found[record.device].append((record.time, record.bytes))
    curves = {}
    for device in sorted(found):
        seconds, sizes = zip(*found[device], strict=True)
        curves[device] = np.array(seconds), np.cumsum(sizes)
    return curves
