"""Bring a learner's answer into one form, or say which kind was expected and what was found.

``utils.numbers`` is for the arguments of helpers. Here a value counts, not
its dress: ``4``, ``4.0``, ``np.int64(4)`` and ``tf.constant(4)`` are one answer.
Each function returns plain Python (or a NumPy array), or leaves the check.
"""

import itertools
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from utils.checks.outcome import not_yet

MOST_ITEMS = 10_000  # what is longer is not read: it may have no end
_KINDS = {bool: "the truth value", str: "the text", int: "the number", float: "the number"}


def plain(value: object) -> object:
    """Return Python's own form of a scalar of NumPy or TensorFlow; else the value.

    Introduced in lesson 00, behind every check.
    """
    if hasattr(value, "numpy") and hasattr(value, "shape"):
        try:
            value = value.numpy()
        except (NotImplementedError, TypeError):  # a variable of a graph has no value here
            return value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def found(value: object) -> str:
    """Say in a few words what an answer is, for "not yet".

    Introduced in lesson 00, behind every check.
    """
    value = plain(value)
    if value is None:
        return "None"
    for kind, name in _KINDS.items():
        if isinstance(value, kind):
            return f"{name} {reprlib.repr(value)}"
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        return f"a {type(value).__name__} with {len(value)} parts"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if hasattr(value, "graph") and hasattr(value, "shape"):
        return "a tensor of a graph, which has no value before a run"
    return f"a {type(value).__name__}"


def number(value: object, what: str = "the answer") -> float:
    """Return a finite number as a float.

    Introduced in lesson 00, behind every check.
    """
    value = plain(value)
    if not isinstance(value, (bool, str, complex)) and hasattr(value, "__float__"):
        try:
            result = float(value)
        except (TypeError, ValueError, OverflowError):
            result = math.nan
        if math.isfinite(result):
            return result
    not_yet(f"{what} is {found(value)}; expected is a finite number.")


def whole(value: object, what: str = "the answer") -> int:
    """Return a whole number as an int; 3.0 is one.

    Introduced in lesson 00, behind every check.
    """
    value = plain(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        not_yet(f"{what} is {found(value)}; expected is a whole number.")
    result = number(value, what)
    if result != round(result):
        not_yet(f"{what} is {found(value)}; expected is a whole number.")
    return round(result)


def truth(value: object, what: str = "the answer") -> bool:
    """Return True or False; ``np.bool_`` and a scalar tensor are fine, 0 and 1 are not.

    Introduced in lesson 01, behind its checks.
    """
    result = plain(value)
    if not isinstance(result, bool):
        not_yet(f"{what} is {found(value)}; expected is True or False.")
    return result


def text(value: object, what: str = "the answer") -> str:
    """Return a text as it is.

    Introduced in lesson 01, behind its checks.
    """
    result = plain(value)
    if not isinstance(result, str):
        not_yet(f"{what} is {found(value)}; expected is a text.")
    return str(result)


def same(name: object) -> object:
    """Return what two spellings of a name have in common: no capitals, no blanks.

    Introduced in lesson 01, behind its checks.
    """
    name = plain(name)
    return "".join(name.casefold().split()) if isinstance(name, str) else name


def choice(value: object, allowed: Sequence[str], what: str = "the answer") -> str:
    """Return which of the names allowed is meant, whatever its capitals and blanks.

    Introduced in lesson 01, behind its checks.
    """
    given = same(text(value, what))
    for name in allowed:
        if same(name) == given:
            return name
    not_yet(f"{what}: {reprlib.repr(value)} is none of {', '.join(allowed)}.")


def items(value: object, what: str = "the answer", length: int | None = None) -> list:
    """Return the parts of a list, tuple, array, tensor, set or generator, in its order.

    A text and a dict are none of these.

    Introduced in lesson 01, behind its checks.
    """
    value = plain(value)
    if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
        not_yet(f"{what} is {found(value)}; expected is a list.")
    parts = list(itertools.islice(value, MOST_ITEMS + 1))
    if len(parts) > MOST_ITEMS:
        not_yet(f"{what} has more than {MOST_ITEMS} parts.")
    if length is not None and len(parts) != length:
        not_yet(f"{what} has {len(parts)} parts; expected are {length}.")
    return parts


def table(value: object, keys: Iterable, what: str = "the answer") -> dict:
    """Return a dict with these keys, in their order, whatever their capitals and blanks.

    Introduced in lesson 01, behind its checks.
    """
    keys = list(keys)
    listed = ", ".join(map(str, keys))
    if not isinstance(value, Mapping):
        not_yet(f"{what} is {found(value)}; expected is a dict with the keys {listed}.")
    given = {same(key): part for key, part in value.items()}
    missing = [str(key) for key in keys if same(key) not in given]
    if len(missing) == len(keys):
        not_yet(f"{what} has none of the keys {listed}. Run the cell above first.")
    if missing:
        not_yet(f"{what} has no key {missing[0]}; keep all of its keys: {listed}.")
    if len(given) > len(keys):
        extra = next(str(k) for k in value if same(k) not in map(same, keys))
        not_yet(f"{what} has the key {extra}; keep only its own keys: {listed}.")
    return {key: given[same(key)] for key in keys}


def array(value: object, what: str = "the answer", shape: tuple | None = None) -> np.ndarray:
    """Return numbers as a NumPy array: from lists, tensors, variables.

    Args:
        value: what the answer gave.
        what: how the message calls it.
        shape: the shape expected, None for any.

    Introduced in lesson 00, behind its checks.
    """
    value = plain(value)
    try:
        result = np.asarray(value)
    except (ValueError, TypeError, NotImplementedError):
        result = np.asarray(None)
    if result.dtype.kind not in "iuf":
        not_yet(f"{what} is {found(value)}; expected is an array of numbers.")
    if shape is not None and result.shape != tuple(shape):
        not_yet(f"{what} has shape {result.shape}; expected is {tuple(shape)}.")
    return result


def tensor(value: object, what: str = "the result") -> object:
    """Return a tensor, of a graph or with a value.

    Introduced in lesson 00, behind its checks.
    """
    import tensorflow as tf

    if not tf.is_tensor(value):
        not_yet(f"{what} is {found(value)}; expected is one tensor.")
    return value
