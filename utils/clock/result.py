"""What a run of the virtual clock did: one row per gradient."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Divergence(NamedTuple):
    """The update, counted from 1, at which a run diverged, and the sign."""

    update: int
    reason: str


class Measured(NamedTuple):
    """What ``measure`` returned: after which update, when, which value."""

    update: np.ndarray
    time: np.ndarray
    value: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class ClockTrace:
    """One run in simulated time. The columns hold one entry per gradient.

    The rows are in the order in which workers wrote; within a synchronous
    step first those that were averaged, by worker, then the late ones.

    Attributes:
        policy: the policy's name.
        workers: how many workers there are.
        worker: which worker computed the gradient, int64.
        read_version: number of updates made when the worker read, int64.
        write_version: number of updates made when it wrote, its own not
            counted, int64; for a gradient that was not written, when it was
            dropped.
        start: when the worker read, simulated seconds, float64.
        end: when it wrote, was dropped or gave up, simulated seconds.
        written: False for a gradient that did not count, bool.
        loss: at the weights it read; NaN where no gradient was computed
            (there is no function for it, or it did not count).
        times: when each update was made, simulated seconds, one per update.
        weights: the last weights; None without gradients.
        measured: what ``measure`` returned, empty without it.
        divergence: None, or where and why the run stopped early.
        reached: True if the run stopped because it was at its target.

    Introduced in lesson 08.
    """

    policy: str
    workers: int
    worker: np.ndarray
    read_version: np.ndarray
    write_version: np.ndarray
    start: np.ndarray
    end: np.ndarray
    written: np.ndarray
    loss: np.ndarray
    times: np.ndarray
    weights: list[np.ndarray] | None
    measured: Measured
    divergence: Divergence | None
    reached: bool

    @property
    def updates(self) -> int:
        """How many updates the weights got."""
        return len(self.times)

    @property
    def diverged(self) -> bool:
        """Whether the run stopped because it diverged."""
        return self.divergence is not None

    @property
    def staleness(self) -> np.ndarray:
        """The number of updates between read and write, per gradient."""
        return self.write_version - self.read_version

    @property
    def losses(self) -> np.ndarray:
        """The mean loss of the gradients of each update, one per update."""
        version = self.write_version[self.written]
        total = np.bincount(version, self.loss[self.written], self.updates)
        return total / np.bincount(version, minlength=self.updates)

    def __repr__(self) -> str:
        """Say in one line what was simulated and how it ended."""
        workers = f"{self.workers} worker" + "s" * (self.workers != 1)
        updates = f"{self.updates:,} update" + "s" * (self.updates != 1)
        text = (
            f"Simulated: {workers}, {self.policy}; {updates} in "
            f"{self.times[-1] if self.updates else 0:.4g} simulated seconds, "
            f"mean staleness {_mean(self.staleness[self.written]):.4g}"
        )
        if self.divergence:
            update, reason = self.divergence
            text += f"; diverged at update {update} ({reason})"
        if self.reached:
            text += "; reached its target"
        return text


def _mean(values: np.ndarray) -> float:
    return values.mean() if values.size else 0.0
