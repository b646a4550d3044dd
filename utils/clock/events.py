"""A run of the clock: a heap of events, the earliest of which is next."""

from array import array
from collections import Counter
from heapq import heappop, heappush
from itertools import count

import numpy as np

from utils.clock.learner import Flight, Learner
from utils.clock.policies import Policy
from utils.clock.result import ClockTrace, Measured
from utils.clock.service import Service

NOT_COMPUTED = float("nan")
# End, order, flight: of two that end together, the first to start is next.
Event = tuple[float, int, Flight]
COLUMNS = {
    "worker": np.int64,
    "read_version": np.int64,
    "write_version": np.int64,
    "start": np.float64,
    "end": np.float64,
    "written": np.bool_,
    "loss": np.float64,
}


class Run:
    """The state of one run: heap, version, and what was written so far.

    ``learner`` is None where only the events are simulated.

    Introduced in lesson 08, behind ``VirtualClock``.
    """

    def __init__(
        self,
        workers: list[Service],
        seed: int,
        policy: Policy,
        updates: int,
        learner: Learner | None,
    ) -> None:
        """Begin at time 0 with version 0."""
        self.policy, self.updates, self.learner = policy, updates, learner
        random = np.random.RandomState(0)  # sown anew for every block
        self.service = [w.times(random, seed, i) for i, w in enumerate(workers)]
        self.steps = [0] * len(workers)
        self.heap: list[Event] = []
        self.order = count()
        # One row after another. Flat, because a million tuples are slow.
        self.rows = array("d")
        self.times: list[float] = []
        self.rate = learner.rate if learner else 0.0
        if learner:
            learner.look(0, 0.0, ())

    @property
    def over(self) -> bool:
        """Whether the updates are made, or the learner has to stop."""
        if len(self.times) >= self.updates:
            return True
        return self.learner is not None and self.learner.over

    def synchronous(self) -> None:
        """All start together; the first ``needed`` end the step."""
        needed = self.policy.needed or len(self.service)
        now = 0.0
        while not self.over:
            version = len(self.times)
            for worker in range(len(self.service)):
                self._start(worker, now)
            first = [heappop(self.heap) for _ in range(needed)]
            now = first[-1][0]
            # By worker: the sum of the gradients is rounded alike whoever
            # comes first.
            first.sort(key=lambda event: event[2].worker)
            self._write(first, now, self.rate)
            late = sorted(f for _, _, f in self.heap)
            self.heap.clear()
            for flight in late:
                self._row(flight, version, now, False, NOT_COMPUTED)

    def asynchronous(self) -> None:
        """Each worker writes when it ends, and starts again if it may."""
        policy, rate = self.policy, self.rate
        line = Line(len(self.service), policy.ahead)
        for worker in range(len(self.service)):
            self._start(worker, 0.0)
        while not self.over:
            event = heappop(self.heap)
            now, _, flight = event
            version = len(self.times)
            staleness = version - flight.version
            if policy.accepts(staleness):
                self._write([event], now, policy.rate(rate, staleness))
            else:
                self._row(flight, version, now, False, NOT_COMPUTED)
            for worker in line.after(flight.worker):
                self._start(worker, now)

    def trace(self) -> ClockTrace:
        """Return the rows as columns, and how the run ended."""
        columns = np.array(self.rows).reshape(-1, len(COLUMNS)).T
        learner = self.learner
        measured = learner.measured if learner else []
        return ClockTrace(
            policy=self.policy.name,
            workers=len(self.service),
            **{
                name: column.astype(dtype)
                for (name, dtype), column in zip(COLUMNS.items(), columns, strict=True)
            },
            times=np.array(self.times, np.float64),
            weights=learner.weights if learner else None,
            measured=Measured(
                np.array([m[0] for m in measured], np.int64),
                np.array([m[1] for m in measured], np.float64),
                np.array([m[2] for m in measured], np.float64),
            ),
            divergence=learner.divergence if learner else None,
            reached=learner.reached if learner else False,
        )

    def _start(self, worker: int, now: float) -> None:
        """Let a worker read the weights and compute."""
        weights = self.learner.weights if self.learner else None
        step = self.steps[worker]
        self.steps[worker] = step + 1
        flight = Flight(worker, step, len(self.times), now, weights)
        end = now + next(self.service[worker])
        heappush(self.heap, (end, next(self.order), flight))

    def _write(self, events: list[Event], now: float, rate: float) -> None:
        """Write the average of the gradients that ended, once."""
        version = len(self.times)
        losses = [NOT_COMPUTED] * len(events)
        if self.learner:
            flights = [flight for _, _, flight in events]
            losses = self.learner.step(flights, rate)
            self.learner.look(version + 1, now, losses)
        for (end, _, flight), loss in zip(events, losses, strict=True):
            self._row(flight, version, end, True, loss)
        self.times.append(now)

    def _row(self, flight: Flight, version: int, end: float, written: bool, loss: float) -> None:
        worker, _, read, start, _ = flight
        self.rows.extend((worker, read, version, start, end, written, loss))


class Line:
    """Who may start: nobody more than ``ahead`` steps before the slowest.

    Introduced in lesson 08, behind ``bounded_staleness``.
    """

    def __init__(self, workers: int, ahead: int | None) -> None:
        """Begin with nothing finished; ``ahead=None`` lets nobody wait."""
        self.ahead = ahead
        self.done = [0] * workers  # gradients that each has ended
        self.slowest = 0  # the smallest of them
        self.at = Counter({0: workers})  # how many workers are at each count
        self.waiting: list[int] = []

    def after(self, worker: int) -> list[int]:
        """Return who may start now that ``worker`` has ended a gradient."""
        if self.ahead is None:
            return [worker]
        before = self.done[worker]
        self.done[worker] += 1
        self.at[before] -= 1
        self.at[before + 1] += 1
        if self.at[self.slowest] == 0:  # it was the last one at this count
            self.slowest += 1
            ready, self.waiting = [*self.waiting, worker], []
            return ready
        if before + 1 - self.slowest <= self.ahead:
            return [worker]
        self.waiting.append(worker)
        return []
