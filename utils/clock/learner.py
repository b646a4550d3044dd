"""The weights that the workers of a clock share, and their real gradients."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from utils.clock.result import Divergence
from utils.numbers import real, whole

Weights = list[np.ndarray]
BOUND = 1e6  # a loss or a weight larger than this has diverged


class Flight(NamedTuple):
    """A gradient under way: its worker, that worker's step, what was read."""

    worker: int
    step: int
    version: int
    start: float
    weights: Weights


class Learner:
    """Stochastic gradient descent on shared weights; stops if it diverges.

    The arguments are those of ``VirtualClock.run``, where they are explained.

    Introduced in lesson 08, behind ``VirtualClock``.
    """

    def __init__(
        self,
        gradient: Callable,
        weights: Sequence,
        rate: float,
        batch: Callable | None,
        measure: Callable | None,
        every: int,
        target: float | None,
    ) -> None:
        """Check the arguments and copy the first weights."""
        callables = {"gradient": gradient, "batch": batch, "measure": measure}
        for name, given in callables.items():
            if given is not None and not callable(given):
                raise TypeError(f"{name}={given!r}: give a function.")
        if measure is None and target is not None:
            raise ValueError(f"target={target!r} needs a measure to reach it.")
        self.gradient, self.batch, self.measure = gradient, batch, measure
        self.rate = real("rate", rate, above=0)
        self.every = whole("every", every, 1)
        self.target = None if target is None else real("target", target)
        self.weights = _first(weights)
        self.measured: list[tuple[int, float, float]] = []
        self.divergence: Divergence | None = None
        self.reached = False

    @property
    def over(self) -> bool:
        """Whether the run diverged or reached its target."""
        return self.divergence is not None or self.reached

    def step(self, flights: list[Flight], rate: float) -> list[float]:
        """Average the gradients, take one step, return the losses."""
        # What overflows is reported as divergence; a warning adds nothing.
        with np.errstate(over="ignore", invalid="ignore"):
            losses, gradients = zip(*map(self._compute, flights), strict=True)
            pairs = zip(self.weights, map(sum, zip(*gradients, strict=True)), strict=True)
            self.weights = [_frozen(w - rate * (t / len(flights))) for w, t in pairs]
        return list(losses)

    def look(self, update: int, now: float, losses: Sequence[float]) -> None:
        """See whether this update diverged; if not, measure when it is due."""
        reason = self._wrong(losses)
        if reason:
            self.divergence = Divergence(update, reason)
        elif self.measure is not None and update % self.every == 0:
            value = self.measure(self.weights)
            self.measured.append((update, now, float(value)))
            # Before `float`: 0.9 in float32 is less than 0.9 in float64.
            self.reached = self.target is not None and bool(value >= self.target)

    def _compute(self, flight: Flight) -> tuple[float, Weights]:
        batch = self.batch and self.batch(flight.worker, flight.step)
        answer = self.gradient(flight.weights, batch)
        try:
            loss, gradients = answer
            loss = float(loss)
            gradients = [_array(g, w.dtype) for g, w in zip(gradients, flight.weights, strict=True)]
        except (TypeError, ValueError) as error:
            raise TypeError(
                "gradient must return (loss, gradients): a number and one "
                f"array per array of weights, here {len(flight.weights)}. "
                f"What it returned does not fit: {error}"
            ) from error
        shapes = [g.shape for g in gradients]
        if shapes != [w.shape for w in flight.weights]:
            raise ValueError(
                f"gradient returned arrays of shapes {shapes} for weights of "
                f"shapes {[w.shape for w in flight.weights]}: return one "
                "gradient of the same shape per array."
            )
        return loss, gradients

    def _wrong(self, losses: Sequence[float]) -> str:
        for loss in losses:
            if not abs(loss) <= BOUND:
                return f"a loss of {loss:.4g}"
        for weight in self.weights:
            # NaN makes the maximum NaN, which is not within any bound.
            largest = np.abs(weight).max(initial=0)
            if not largest <= BOUND:
                return f"a weight of size {largest:.4g}"
        return ""


def _array(gradient, dtype) -> np.ndarray:
    if gradient is None:  # NumPy would make it NaN
        raise TypeError("a gradient is None; does the loss use that array?")
    return np.asarray(gradient, dtype=dtype)


def _first(weights: Sequence) -> Weights:
    if isinstance(weights, np.ndarray) or not isinstance(weights, Sequence):
        raise TypeError(
            f"weights is a {type(weights).__name__}: give a list of arrays, "
            "such as [np.array(3.0)]."
        )
    copies = [np.array(w) for w in weights]
    if not copies:
        raise ValueError("weights is empty: give at least one array.")
    for copy in copies:
        if copy.dtype.kind != "f" or not np.isfinite(copy).all():
            raise ValueError(
                f"weights hold an array of {copy.dtype} that is not all "
                "finite floats: give arrays such as np.array(3.0)."
            )
    return [_frozen(c) for c in copies]


def _frozen(array) -> np.ndarray:
    """Protect weights: workers still in flight have read these arrays."""
    array = np.asarray(array)
    array.flags.writeable = False
    return array
