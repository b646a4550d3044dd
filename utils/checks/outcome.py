"""How every check reports: not attempted, not yet (with the likely cause), correct.

A check is a function that looks at a learner's answer. It calls ``not_yet``
with the likely cause when something is wrong, and returns when all is right.
The decorator ``check`` turns that into one of the three outcomes, printed.
A check never stops a notebook that is run to its end. With COURSE_STRICT=1 in
the environment, as teachers and tests set it, anything but correct raises.
"""

import dis
import functools
import os
from collections.abc import Callable
from typing import NoReturn

from utils.machine import reason

# What a body that does nothing compiles to, on any version of Python.
_IDLE = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}


class ExerciseNotDone(AssertionError):
    """Raised under COURSE_STRICT=1 when an exercise is not correct yet."""


class _NotYet(Exception):
    """Carries the likely cause from inside a check to its report."""


def not_yet(cause: str) -> NoReturn:
    """Leave a check: the answer is wrong, and this is the likely cause.

    Args:
        cause: what the learner probably did, and where to look. Never the
            answer itself.

    Introduced in lesson 00, behind every check.
    """
    raise _NotYet(cause)


def untouched(answer: object) -> bool:
    """Tell whether an answer is still the stub that the exercise gave.

    A stub is ``...``, or a function whose body is nothing but a docstring,
    ``...`` or ``pass``; containers are stubs if all they hold is.

    Introduced in lesson 00, behind every check.
    """
    if answer is ...:
        return True
    if isinstance(answer, (list, tuple, set, dict)) and answer:
        held = answer.values() if isinstance(answer, dict) else answer
        return all(untouched(part) for part in held)
    # A tf.function keeps the learner's function under this name.
    answer = getattr(answer, "python_function", answer)
    code = getattr(answer, "__code__", None)
    return code is not None and all(
        step.opname in _IDLE and (step.opcode not in dis.hasconst or step.argval in (None, ...))
        for step in dis.get_instructions(code)
    )


def check(exercise: str, why: str) -> Callable:
    """Make a check out of a function that looks at the answer.

    Args:
        exercise: its number, such as ``"0.1"``.
        why: why a correct answer matters; printed with "correct".

    Returns:
        A decorator. The decorated check prints the outcome and returns
        None. The learner's own exceptions are reported as "not yet" with
        their type and text.

    Introduced in lesson 00, behind every check.
    """

    def decorate(look: Callable) -> Callable:
        @functools.wraps(look)
        def run(*answers) -> None:
            outcome, message = _judge(look, answers)
            text = f"Exercise {exercise}: {outcome}"
            report = f"{text}: {message}" if message else text
            if outcome == "correct":
                report += f"\nWhy it matters: {why}"
            print(report)
            if outcome != "correct" and os.environ.get("COURSE_STRICT") == "1":
                raise ExerciseNotDone(report)

        return run

    return decorate


def _judge(look: Callable, answers: tuple) -> tuple[str, str]:
    if not answers or any(untouched(answer) for answer in answers):
        return "not attempted", "fill in the cell above, then run this again."
    try:
        look(*answers)
    except _NotYet as cause:
        return "not yet", str(cause)
    except Exception as error:  # the learner's code may raise anything
        text = reason(error) if str(error).strip() else "no message"
        return (
            "not yet",
            f"your code raised {type(error).__name__}: {text}",
        )
    return "correct", ""
