"""How every check reports: not attempted, not yet (with a cause), correct.

A check is a function that looks at a learner's answer. It calls ``not_yet``
when something is wrong, and returns when all is right. The decorator
``check`` turns that into one of the three outcomes, printed. A check never
stops a notebook that is run to its end. With COURSE_STRICT=1 in the
environment, as teachers and tests set it, anything but correct raises.

The rules for what a check says:

- The answer is normalised first (``normalising``), then judged. What is
  equal in another dress, or right by another algorithm, is correct.
- Name a cause only if a known wrong formula or a recognisable trait
  reproduces the answer. Otherwise say which input was tried, what was found
  and what kind was expected.
- For each condition in the exercise's statement there is one case that only
  this condition rejects. The conditions stand beside the check.
- Bound what an answer makes the check do before doing it (``trying``).
"""

import dis
import functools
import inspect
import os
import re
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from utils.checks.limits import TooLong, session_limit, time_limit
from utils.machine import reason

SECONDS = 20.0  # a check takes under two; its answer may not take more than this
# What a body that does nothing compiles to, on any version of Python.
_IDLE = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}
_OURS = (
    str(Path(__file__).resolve().parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)


class ExerciseNotDone(AssertionError):
    """Raised under COURSE_STRICT=1 when an exercise is not correct yet."""


class _NotYet(BaseException):
    """Carries the cause from inside a check; an answer's own ``except`` lets it through."""


def not_yet(cause: str) -> NoReturn:
    """Leave a check: the answer is wrong, and this is why.

    Args:
        cause: what the learner did if that is certain, or what was found
            and which kind was expected. Never the answer itself.

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


def check(exercise: str, why: str, seconds: float | None = None) -> Callable:
    """Make a check out of a function that looks at the answer.

    Args:
        exercise: its number, such as ``"0.1"``.
        why: why a correct answer matters; printed with "correct".
        seconds: how long the answer may take, ``SECONDS`` if None; half of
            it for one run of a session. See ``limits`` for what it can end.

    Returns:
        A decorator. The decorated check prints the outcome and returns
        None. Whatever the learner's code raises is "not yet", with its type
        and text; KeyboardInterrupt alone goes through.

    Introduced in lesson 00, behind every check.
    """

    def decorate(look: Callable) -> Callable:
        @functools.wraps(look)
        def run(*answers) -> None:
            outcome, message = _judge(look, answers, SECONDS if seconds is None else seconds)
            text = f"Exercise {exercise}: {outcome}"
            report = f"{text}: {message}" if message else text
            if outcome == "correct":
                report += f"\nWhy it matters: {why}"
            print(report)
            if outcome != "correct" and os.environ.get("COURSE_STRICT") == "1":
                raise ExerciseNotDone(report)

        return run

    return decorate


def _judge(look: Callable, answers: tuple, seconds: float) -> tuple[str, str]:
    try:
        with time_limit(seconds), session_limit(seconds / 2):
            names = [n for n, part in _named(look, answers) if untouched(part)]
            if names or not answers:
                parts = " and ".join(names) or "the answer"
                return "not attempted", f"{parts}: fill in the cell above, run it, then run this."
            for answer in answers:
                _no_part_open(answer)
            look(*answers)
    except KeyboardInterrupt:
        raise
    except _NotYet as cause:
        return "not yet", str(cause)
    except BaseException as error:  # the learner's code may raise anything
        # Where the timer rings inside TensorFlow, its bindings raise a RuntimeError instead.
        if isinstance(error, TooLong) or "REPLACED BY TooLong" in str(error):
            return "not yet", f"your code was still running after {seconds:g} seconds."
        return "not yet", _raised(error)
    return "correct", ""


def _named(look: Callable, answers: tuple) -> Iterator[tuple[str, object]]:
    """Each answer with its name: a function's own, or what the check calls it."""
    called = list(inspect.signature(look).parameters)
    for place, answer in enumerate(answers):
        name = getattr(answer, "__name__", "<lambda>")
        yield (called[min(place, len(called) - 1)] if name == "<lambda>" else name), answer


def _no_part_open(answer: object) -> None:
    if isinstance(answer, dict):
        for key, part in answer.items():
            if part is ...:
                name = key if str(key).isidentifier() else repr(key)
                not_yet(f"{name} has no answer yet.")
    elif isinstance(answer, (list, tuple)):
        for place, part in enumerate(answer):
            if part is ...:
                not_yet(f"part {place} of the answer is still open.")


def _raised(error: BaseException) -> str:
    """Say what was raised, and whose code raised it."""
    if isinstance(error, SystemExit):
        return "your code asked Python to exit: return the result instead."
    kind = type(error).__name__
    if kind == "DeadlineExceededError":
        return "TensorFlow waited until the check gave up. What does your graph wait for?"
    text = f"{kind}: {_own_line(error)}"
    if isinstance(error, NameError):
        text += ". Is it spelled so? If a cell above makes it, run that cell first."
    if _from_learner(error):
        return f"your code raised {text}"
    if hasattr(error, "error_code"):  # a tf.errors.OpError
        return f"TensorFlow could not run your graph: {text}"
    return f"what your code gave could not be used: {text}"


def _own_line(error: BaseException) -> str:
    """Return the error's sentence; inside a tf.function the one below the learner's line."""
    text = str(error)
    if not text.strip():
        return "no message"
    if not text.startswith("in user code:"):
        return reason(error)
    place = re.search(r'.*^    File "[^\n]*\n(?:        ([^\n]*)\n)?(.*)', text, re.DOTALL | re.M)
    line, rest = place.groups() if place else (None, text.partition("\n")[2])
    last = next((part.strip() for part in rest.splitlines() if part.strip()), "no message")
    last = last.removeprefix(f"{type(error).__name__}:").strip() or "no message"
    return f"{last} (in the line `{line.strip()}`)" if line else last


def _from_learner(error: BaseException) -> bool:
    """Tell whether a line outside the course and the libraries was running."""
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            return True
        trace = trace.tb_next
    return False
