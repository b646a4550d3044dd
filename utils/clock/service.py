"""How long a worker needs for one gradient: service times, drawn from a seed.

``RandomState`` gives the same random bits on every machine, but logarithms and
exponentials may differ in their last bit from processor to processor. So every
time is a whole number of ticks, each about a millionth of the unit: the last
bits are rounded away, and events come in the same order everywhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from utils.numbers import real, whole

TICKS = 2**20  # in one unit
BLOCK = 128  # times drawn at once; another number would be other luck

Draw = Callable[[np.random.RandomState, int], np.ndarray]


@dataclass(frozen=True)
class Service:
    """The service times of a worker.

    Attributes:
        name: what stands in labels.
        unit: the unit of ``draw`` in simulated seconds, usually the mean.
        draw: ``draw(random, size)`` returns ``size`` times in units, drawn
            from a NumPy ``RandomState``. For a distribution of your own:
            ``Service("uniform", 1.0, lambda r, n: r.uniform(0.5, 1.5, n))``.

    Introduced in lesson 08.
    """

    name: str
    unit: float
    draw: Draw

    def __post_init__(self) -> None:
        """Refuse a unit that is no time."""
        real(f"unit of {self.name}", self.unit, above=0)

    def times(self, random: np.random.RandomState, seed: int, worker: int) -> Iterator[float]:
        """Yield this worker's service times in simulated seconds, for ever.

        Every worker has its own luck, so its k-th gradient takes equally
        long under every policy.

        Args:
            random: sown anew for every block of times; workers may share it,
                because making one costs more than sowing it.
            seed: of the whole clock, 0 to 2**32 − 1.
            worker: the worker's index.

        Raises:
            ValueError: ``draw`` gave a negative or endless time.
        """
        for block in count():
            random.seed([seed, worker, block])
            drawn = np.asarray(self.draw(random, BLOCK), dtype=float)
            if drawn.shape != (BLOCK,):
                raise ValueError(
                    f"draw of {self.name} returned shape {drawn.shape} when "
                    f"asked for {BLOCK} times: return an array of {BLOCK}."
                )
            wrong = drawn[~((drawn >= 0) & (drawn < np.inf))]
            if wrong.size:
                raise ValueError(
                    f"{self.name} gave a service time of {wrong[0]}: times "
                    "must be finite and not negative."
                )
            # A worker that needs no time at all would work for ever at once.
            ticks = np.maximum(np.rint(drawn * TICKS), 1)
            yield from (ticks / TICKS * self.unit).tolist()


def fixed(seconds: float) -> Service:
    """Return service times that are always the same.

    Raises:
        TypeError, ValueError: ``seconds`` is not a positive number.

    Introduced in lesson 08.
    """
    seconds = real("seconds", seconds, above=0)
    return Service(f"fixed {seconds:g} s", seconds, lambda _, n: np.ones(n))


def exponential(mean: float) -> Service:
    """Return exponential service times: most are short, a few are long.

    Args:
        mean: in simulated seconds.

    Raises:
        TypeError, ValueError: ``mean`` is not a positive number.

    Introduced in lesson 08.
    """
    mean = real("mean", mean, above=0)

    def draw(random, size):
        return random.standard_exponential(size)

    return Service(f"exponential, mean {mean:g} s", mean, draw)


def lognormal(mean: float, sigma: float = 0.5) -> Service:
    """Return lognormal service times: their logarithm is normal.

    A lognormal has the mean exp(μ + σ²/2) (Johnson, Kotz and Balakrishnan,
    "Continuous univariate distributions", volume 1, 1994, chapter 14), so
    μ = −σ²/2 here gives the mean 1 in units of ``mean``.

    Args:
        mean: in simulated seconds.
        sigma: standard deviation of the logarithm; 0 is ``fixed``.

    Raises:
        TypeError, ValueError: ``mean`` is not positive or ``sigma`` negative.

    Introduced in lesson 08.
    """
    mean = real("mean", mean, above=0)
    sigma = real("sigma", sigma, low=0)

    def draw(random, size):
        return np.exp(sigma * random.standard_normal(size) - sigma**2 / 2)

    return Service(f"lognormal, mean {mean:g} s, σ {sigma:g}", mean, draw)


def stragglers(usual: Service, chance: float, delay: float) -> Service:
    """Return service times that are usual, but now and then much longer.

    With probability ``chance`` an exponential delay is added.

    Args:
        usual: the service times without a delay.
        chance: probability of a delay, 0 to 1.
        delay: mean of the delay in simulated seconds.

    Raises:
        TypeError, ValueError: an argument is not of this kind or range.

    Introduced in lesson 08.
    """
    _check(usual)
    chance = real("chance", chance, low=0, high=1)
    extra = real("delay", delay, above=0) / usual.unit

    def draw(random, size):
        times = usual.draw(random, size)
        late = random.random_sample(size) < chance
        return times + late * extra * random.standard_exponential(size)

    name = f"{usual.name}, {chance:.0%} with a delay of {delay:g} s"
    return Service(name, usual.unit, draw)


def one_slow(usual: Service, workers: int, factor: float) -> list[Service]:
    """Return the service times of a fleet whose last worker is slow.

    Args:
        usual: the service times of the others.
        workers: how many workers there are, the slow one included.
        factor: the slow worker needs this many times as long, at least 1.

    Returns:
        One ``Service`` per worker.

    Raises:
        TypeError, ValueError: an argument is not of this kind or range.

    Introduced in lesson 08.
    """
    _check(usual)
    workers = whole("workers", workers, 1)
    factor = real("factor", factor, low=1)
    name = f"{usual.name}, times {factor:g}"
    slow = replace(usual, name=name, unit=usual.unit * factor)
    return [usual] * (workers - 1) + [slow]


def _check(usual: Service) -> None:
    if not isinstance(usual, Service):
        raise TypeError(f"usual={usual!r}: give service times, such as fixed(1.0).")
