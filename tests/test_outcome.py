"""The three outcomes of a check, and how it knows an answer that was not begun."""

import contextlib
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from utils.checks import outcome
from utils.checks.limits import session_limit
from utils.checks.outcome import ExerciseNotDone, check, not_yet, untouched

v1 = tf.compat.v1


@check("9.1", "numbers end at ten.")
def check_ten(answer, *more):
    """Say whether the answer is ten."""
    if callable(answer):
        answer = answer()
    if answer < 10:
        not_yet("too small. Did you count the host?")
    if answer > 10:
        raise ValueError(f"{answer} is too large\nand a second line")


@pytest.fixture
def said(capsys, monkeypatch):
    """What the check prints for these answers, as a learner runs it."""
    monkeypatch.delenv("COURSE_STRICT", raising=False)

    def run(*answers):
        assert check_ten(*answers) is None
        return capsys.readouterr().out

    return run


# --- the three outcomes -----------------------------------------------------------------------


def test_correct_and_why_it_matters(said):
    assert said(10) == "Exercise 9.1: correct\nWhy it matters: numbers end at ten.\n"


def test_not_yet_and_the_likely_cause(said):
    assert said(9) == "Exercise 9.1: not yet: too small. Did you count the host?\n"


@pytest.mark.parametrize(
    ("answers", "open_parts"),
    [
        ((), "the answer"),
        ((...,), "answer"),
        ((10, ...), "more"),
        ((..., 10), "answer"),
        (([..., ...],), "answer"),
        ((lambda: ...,), "answer"),
    ],
)
def test_not_attempted(said, answers, open_parts):
    advice = "fill in the cell above, run it, then run this."
    assert said(*answers) == f"Exercise 9.1: not attempted: {open_parts}: {advice}\n"


def test_not_attempted_names_the_function_that_is_open(said):
    assert "not attempted: stub_pass: fill" in said(10, stub_pass)
    assert "not attempted: stub_pass and stub_of_text: fill" in said(stub_pass, stub_of_text)
    assert "not attempted: stub_pass: fill" in said(tf.function(stub_pass))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"a": 1, "b": ...}, "b has no answer yet."),
        ({"two words": ..., "b": 1}, "'two words' has no answer yet."),
        ([1, ...], "part 1 of the answer is still open."),
    ],
)
def test_a_part_that_is_open(said, answer, text):
    assert said(answer) == f"Exercise 9.1: not yet: {text}\n"


def test_never_the_reason_why_before_it_is_correct(said):
    assert "numbers end" not in said(9) + said(...) + said(11)


# --- the learner's own errors -----------------------------------------------------------------


def _division():
    return 1 / 0


def _nothing_said():
    raise KeyError


def _assertion():
    raise AssertionError("   \n  mine\n")


def _of_a_session():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.get_variable("weights", initializer=[1.0]) + 1
    with v1.Session(graph=graph) as session:
        return session.run(x)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (11, "your code raised ValueError: 11 is too large"),
        ("ten", "your code raised TypeError: '<' not supported between instances of"),
        (_division, "your code raised ZeroDivisionError: division by zero"),
        (_nothing_said, "your code raised KeyError: no message"),
        (_assertion, "your code raised AssertionError: mine"),
        (_of_a_session, "your code raised FailedPreconditionError: "),
    ],
)
def test_exceptions_are_not_yet(said, answer, text):
    report = said(answer)
    assert report.startswith(f"Exercise 9.1: not yet: {text}")
    assert report.count("\n") == 1  # no traceback, no second line
    assert "Graph execution error" not in report
    assert not report.endswith(": \n")


def _exits():
    raise SystemExit(0)


def _leaves():
    class Strange(BaseException):
        pass

    raise Strange


def _unknown_name():
    return nowhere_made  # noqa: F821


@tf.function
def _symbolic():
    number = tf.constant(1)
    return number.numpy()


def _swallows_all_exceptions():
    try:
        not_yet("told.")
    except Exception:
        return 10


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (_exits, "your code asked Python to exit: return the result instead."),
        (_leaves, "your code raised Strange: no message"),
        (_unknown_name, "your code raised NameError: name 'nowhere_made' is not defined. Is it"),
        (_symbolic, "your code raised AttributeError: 'SymbolicTensor' object has no attribute"),
        (_symbolic, "'numpy' (in the line `return number.numpy()`)"),
        (_swallows_all_exceptions, "told."),
    ],
)
def test_nothing_leaves_a_check(said, answer, text):
    report = said(answer)
    assert report.startswith("Exercise 9.1: not yet: ")
    assert text in report
    assert report.count("\n") == 1


def test_an_answer_that_holds_itself(said):
    answer = []
    answer.append(answer)
    assert "not yet: what your code gave could not be used: RecursionError" in said(answer)


# --- whose code raised it -----------------------------------------------------------------------


def _by_the_course(answers):
    """A check whose code is the course's: what it raises is not the learner's doing."""
    source = "def look(answer):\n    answer()\n    float(None)"
    path = Path(outcome.__file__).with_name("lesson99.py")
    space: dict = {}
    exec(compile(source, str(path), "exec"), space)
    return check("9.3", "")(space["look"])(answers)


def test_what_the_check_does_is_not_what_the_learner_did(capsys):
    _by_the_course(lambda: 1)
    said = capsys.readouterr().out
    assert "not yet: what your code gave could not be used: TypeError: float() arg" in said


def test_what_the_learner_did_below_the_check(capsys):
    _by_the_course(_division)
    assert "not yet: your code raised ZeroDivisionError" in capsys.readouterr().out


# --- bounds -------------------------------------------------------------------------------------


@check("9.2", "", seconds=0.2)
def check_soon(answer):
    """Call the answer, which has 0.2 seconds."""
    answer()


def _loop():
    while True:
        pass


def _loop_that_catches():
    while True:
        with contextlib.suppress(Exception):
            _loop()


def _catches_once():
    try:
        _loop()
    except BaseException:
        _loop()


def _waits_in_a_session():
    with tf.Graph().as_default(), v1.Session() as session:
        session.run(v1.FIFOQueue(1, [tf.float32]).dequeue())


@pytest.mark.parametrize("answer", [_loop, _loop_that_catches, _catches_once])
def test_an_endless_loop_ends(capsys, answer):
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    check_soon(answer)
    said = capsys.readouterr().out
    assert said == "Exercise 9.2: not yet: your code was still running after 0.2 seconds.\n"
    after = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    assert after == before


def test_a_wait_inside_tensorflow_ends(capsys):
    with session_limit(0.1), pytest.raises(tf.errors.DeadlineExceededError):
        _waits_in_a_session()
    check("9.4", "", seconds=40)(lambda answer: _limited(answer))(_waits_in_a_session)
    assert "not yet: TensorFlow waited until the check gave up." in capsys.readouterr().out


def _limited(answer):
    with session_limit(0.1):
        answer()


def test_sessions_are_as_before_afterwards():
    base = next(kind for kind in v1.Session.__mro__ if "run" in vars(kind))
    run = base.run
    with session_limit(5) as ran, tf.Graph().as_default(), v1.Session() as session:
        assert session.run(tf.constant(2)) == 2
        assert ran == [session]
    assert base.run is run


def test_no_timer_outside_the_main_thread(said):
    reports = []
    thread = threading.Thread(target=lambda: reports.append(said(9)))
    thread.start()
    thread.join()
    assert "not yet: too small" in reports[0]


def test_a_learner_can_interrupt():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_ten(interrupted)


# --- strict, as teachers and tests run it -----------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [(9, "not yet: too small"), (11, "not yet: your code"), (..., "not attempted")],
)
def test_strict_raises_what_it_printed(capsys, monkeypatch, answer, text):
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(ExerciseNotDone, match=f"Exercise 9.1: {text}") as caught:
        check_ten(answer)
    assert capsys.readouterr().out == f"{caught.value}\n"
    assert caught.value.__cause__ is None


def test_strict_is_silent_about_nothing_when_correct(capsys, monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    assert check_ten(10) is None
    assert capsys.readouterr().out.startswith("Exercise 9.1: correct")


@pytest.mark.parametrize("value", ["", "0"])
def test_only_1_is_strict(capsys, monkeypatch, value):
    monkeypatch.setenv("COURSE_STRICT", value)
    check_ten(9)
    assert "not yet" in capsys.readouterr().out


def test_a_check_keeps_its_name_and_text():
    assert check_ten.__name__ == "check_ten"
    assert check_ten.__doc__ == "Say whether the answer is ten."


# --- stubs --------------------------------------------------------------------------------------


def stub_with_text():
    """Say what to do.

    More of it.
    """
    ...


def stub_without_text(x, y=1, *more, z, **rest): ...


def stub_of_text():
    """Say what to do."""


def stub_pass():
    pass


def returns_after_doing(box):
    """Say what to do."""
    box.append(1)


def returns_nothing_after_a_sum(x):
    x + 1  # noqa: B018


def returns_its_argument(x):
    return x


def returns_five():
    """Say what to do."""
    return 5


def returns_false():
    return False


def raises():
    raise NotImplementedError


def assigns():
    x = 1  # noqa: F841


def loops():
    while True:
        pass


def makes_a_graph():
    with tf.Graph().as_default():
        pass


class Learner:
    def stub(self):
        """Say what to do."""
        ...

    def done(self):
        return self


def _closures():
    step = 1

    def stub(x):
        """Say what to do."""
        ...

    def done(x):
        return x + step

    return stub, done


STUB_INSIDE, DONE_INSIDE = _closures()


@pytest.mark.parametrize(
    "answer",
    [
        *(..., [...], (..., ...), {"a": ..., "b": ...}, {...}, [[...], {"a": (...,)}]),
        *(stub_with_text, stub_without_text, stub_of_text, stub_pass, lambda x: ...),
        *(STUB_INSIDE, Learner.stub, Learner().stub, [stub_pass, ...]),
        *(tf.function(stub_with_text), tf.function(stub_pass, jit_compile=False)),
    ],
)
def test_untouched(answer):
    assert untouched(answer)


@pytest.mark.parametrize(
    "answer",
    [
        *(None, 0, False, "", "...", 3.5, [], (), {}, set(), [..., 1], {"a": ..., "b": 2}),
        *(returns_after_doing, returns_nothing_after_a_sum, returns_its_argument, returns_five),
        *(returns_false, raises, assigns, loops, makes_a_graph, lambda x: x, lambda: 0),
        *(DONE_INSIDE, Learner.done, Learner().done, Learner, print, [stub_pass, returns_five]),
        *(tf.function(returns_its_argument), tf.constant([1.0]), tf.Graph()),
    ],
)
def test_touched(answer):
    assert not untouched(answer)


def test_arrays_are_answers():
    assert not untouched(np.zeros(3))
    assert not untouched([np.zeros(3), ...])
