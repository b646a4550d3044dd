"""Numbers that a caller gives: checked, with one clear error."""

import math
import operator
from numbers import Real


def whole(name: str, value: int, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int.

    Raises:
        TypeError: not a whole number (a bool is not one here).
        ValueError: below ``low``, or above ``high`` where there is one.

    Introduced in lesson 08, behind ``VirtualClock``.
    """
    allowed = f"of at least {low}" if high is None else f"from {low} to {high}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:  # NumPy's booleans and arrays, too
        number = None
    if number is None:
        raise TypeError(f"{name}={value!r}: give a whole number {allowed}.")
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name}={number}: give a whole number {allowed}.")
    return number


def real(
    name: str,
    value: float,
    *,
    above: float = -math.inf,
    low: float = -math.inf,
    high: float = math.inf,
    what: str = "number",
) -> float:
    """Return ``value`` as a finite float.

    Args:
        name: how the caller knows the value.
        value: a Python or NumPy number.
        above: every value must be larger than this.
        low: the smallest value allowed.
        high: the largest value allowed.
        what: how the error calls what is wanted, with its unit.

    Raises:
        TypeError: not a number (a bool is not one here).
        ValueError: out of range, or not finite.

    Introduced in lesson 08, behind ``VirtualClock``.
    """
    limits = {"greater than": above, "of at least": low, "of at most": high}
    allowed = " and ".join(
        f"{word} {limit}" for word, limit in limits.items() if math.isfinite(limit)
    )
    advice = f"{name}={value!r}: give a finite {what} {allowed}".rstrip() + "."
    if isinstance(value, bool) or not isinstance(value, Real):  # NumPy's numbers are Real, too
        raise TypeError(advice)
    number = float(value)
    fits = number > above and low <= number <= high
    if not fits or not math.isfinite(number):
        raise ValueError(advice)
    return number
