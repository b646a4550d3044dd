"""The clock: workers with service times, and a seed."""

from collections import Counter
from collections.abc import Callable, Sequence

from utils.clock.events import Run
from utils.clock.learner import Learner
from utils.clock.policies import Policy, check_policy
from utils.clock.result import ClockTrace
from utils.clock.service import Service
from utils.numbers import whole


class VirtualClock:
    """Workers that train in simulated time: nothing here is measured.

    Each worker reads the weights, needs a drawn service time for a gradient,
    writes, and starts again. Reading and writing take no time. Events and
    versions depend on the seed alone, on every machine; weights depend on
    the last bits of your machine's arithmetic.

    Introduced in lesson 08.
    """

    def __init__(self, workers: Sequence[Service], seed: int = 42) -> None:
        """Make a clock.

        Args:
            workers: the service times of each worker, such as
                ``[exponential(1.0)] * 4``.
            seed: fixes all service times, 0 to 2**32 − 1.

        Raises:
            TypeError: ``workers`` is not a list of service times.
            ValueError: there are no workers, or the seed is out of range.
        """
        example = "give one per worker, such as [exponential(1.0)] * 4."
        if not isinstance(workers, Sequence) or isinstance(workers, str):
            raise TypeError(f"workers={workers!r} is no list: {example}")
        if not workers:
            raise ValueError(f"no workers: {example}")
        for worker in workers:
            if not isinstance(worker, Service):
                raise TypeError(f"workers hold {worker!r}, which is no service time: {example}")
        self.workers = list(workers)
        self.seed = whole("seed", seed, 0, 2**32 - 1)

    def __repr__(self) -> str:
        """Say how many workers of which kind there are."""
        kinds = Counter(worker.name for worker in self.workers)
        fleet = ", ".join(f"{n} × ({name})" for name, n in kinds.items())
        return f"Virtual clock (a simulation): {fleet}"

    def run(
        self,
        policy: Policy,
        updates: int,
        *,
        gradient: Callable | None = None,
        weights: Sequence | None = None,
        rate: float | None = None,
        batch: Callable | None = None,
        measure: Callable | None = None,
        every: int = 10,
        target: float | None = None,
    ) -> ClockTrace:
        """Simulate from time 0 until the weights have had ``updates``.

        Two runs of one clock have the same luck: the k-th gradient of a
        worker takes equally long in both. The update is
        ``weights − rate · gradient``; a synchronous step averages first.

        Args:
            policy: such as ``asynchronous()``.
            updates: how often the weights change, at least 1. A synchronous
                step is one update, whatever the number of workers.
            gradient: ``gradient(weights, batch)`` returns the loss and a
                list of gradients, one per array of weights. None simulates
                the events alone.
            weights: the first weights, a list of float arrays; never changed.
            rate: the learning rate.
            batch: ``batch(worker, step)`` returns what ``gradient`` gets;
                ``step`` counts the worker's own gradients from 0, those that
                did not count too. Without it ``gradient`` gets None.
            measure: ``measure(weights)`` returns a number to follow, such as
                the accuracy, at the start and every few updates.
            every: number of updates between two measurements.
            target: stop once ``measure`` returns this or more.

        Returns:
            The trace of the run. It stops early, and has diverged, when a loss
            or a weight is not finite or larger than a million.

        Raises:
            TypeError, ValueError: an argument is missing or not possible, or
                a function returned what does not fit.
        """
        check_policy(policy, len(self.workers))
        updates = whole("updates", updates, 1)
        learner = None
        if gradient is not None:
            if weights is None or rate is None:
                raise ValueError("gradient needs weights and a rate as well.")
            learner = Learner(gradient, weights, rate, batch, measure, every, target)
        elif any(given is not None for given in (weights, rate, batch, measure, target)):
            raise ValueError(
                "weights, rate, batch, measure and target need a gradient: "
                "give gradient(weights, batch) as well, or none of them."
            )
        run = Run(self.workers, self.seed, policy, updates, learner)
        if policy.rounds:
            run.synchronous()
        else:
            run.asynchronous()
        return run.trace()
