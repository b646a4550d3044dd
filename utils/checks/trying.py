"""Call an answer: what it returned, how often it asked, how much it wants."""

from collections.abc import Callable

from utils.checks.normalising import whole
from utils.checks.outcome import not_yet


def returned(function: Callable, *arguments: object) -> object:
    """Call a learner's function; None is told as such, before anybody uses it.

    Introduced in lesson 00, behind every check.
    """
    name = getattr(function, "__name__", "the answer")
    if not callable(function):
        not_yet(f"the answer is a {type(function).__name__}; expected is a function.")
    result = function(*arguments)
    if result is None:
        not_yet(f"{name} returned None. Does it end with `return`?")
    return result


class Counted:
    """A function that leaves the check when it is called too often.

    Introduced in lesson 02, behind its checks.
    """

    def __init__(self, function: Callable, limit: int, cause: str) -> None:
        """Give what to call, how often it may be, and what to say beyond that."""
        self.calls = 0
        self._function, self._limit, self._cause = function, limit, cause

    def __call__(self, *arguments: object, **named: object) -> object:
        """Count, then call."""
        self.calls += 1
        if self.calls > self._limit:
            not_yet(self._cause)
        return self._function(*arguments, **named)


def at_most(value: object, limit: int, what: str) -> int:
    """Return a whole number that is small enough to compute with.

    Introduced in lesson 02, behind its checks.
    """
    number = whole(value, what)
    if number > limit:
        not_yet(f"{what} is {number}: more than {limit} is not tried here.")
    return number
