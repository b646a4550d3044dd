"""How long an answer may run: a timer for Python, a timeout for what waits in TensorFlow."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooLong(BaseException):
    """The timer rang. No Exception, so that ``except Exception`` lets it through."""


def _ring(_signal, _frame) -> None:
    raise TooLong


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TooLong`` where the body still runs Python after ``seconds``.

    It rings again every second, as an answer may catch the first. It does
    nothing where the system has no such signal (Windows) or outside the main
    thread. It cannot end what waits or computes inside a library, such as
    TensorFlow (``session_limit`` ends a session's run), nor a loop that
    catches everything. The timer that was set before is restored.

    Introduced in lesson 00, behind every check.
    """
    main = threading.current_thread() is threading.main_thread()
    if not (main and hasattr(signal, "setitimer")):
        yield
        return
    handler = signal.signal(signal.SIGALRM, _ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)


@contextmanager
def session_limit(seconds: float) -> Iterator[list]:
    """End every ``Session.run`` inside the body after ``seconds``.

    What waits in it (a queue, a barrier) then raises TensorFlow's
    ``DeadlineExceededError``. A shorter timeout of the run's own stays. It
    does not reach eager operations, ``make_callable`` and other processes.
    Yields the list of sessions whose ``run`` was called.

    Introduced in lesson 00, behind every check.
    """
    ran: list = []
    if "tensorflow" not in sys.modules:
        yield ran
        return
    v1 = sys.modules["tensorflow"].compat.v1
    base = next(kind for kind in v1.Session.__mro__ if "run" in vars(kind))
    run = base.run

    def limited(self, fetches, feed_dict=None, options=None, run_metadata=None):
        ran.append(self)
        own = v1.RunOptions()
        if options is not None:
            own.CopyFrom(options)
        limit = max(1, round(1000 * seconds))
        own.timeout_in_ms = min(own.timeout_in_ms or limit, limit)
        return run(self, fetches, feed_dict, own, run_metadata)

    base.run = limited
    try:
        yield ran
    finally:
        base.run = run
