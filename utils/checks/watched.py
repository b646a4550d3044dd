"""A lock and weights that notice how a worker uses them."""

from utils.checks.outcome import not_yet


class WatchedLock:
    """A lock that knows whether it is held, and lets others in when not.

    Introduced in lesson 08, behind its checks.
    """

    def __init__(self) -> None:
        """Begin unheld; ``released`` is called after each release."""
        self.held = False
        self.released = lambda: None

    def acquire(self, *_args: object, **_kwargs: object) -> bool:
        """Take the lock, or report a worker that waits for itself."""
        if self.held:
            not_yet("the lock is taken while it is held: that waits forever.")
        self.held = True
        return True

    def release(self) -> None:
        """Let go of the lock, and let others work."""
        if not self.held:
            not_yet("the lock is released, but it is not held.")
        self.held = False
        self.released()

    def __enter__(self) -> bool:
        """Take the lock."""
        return self.acquire()

    def __exit__(self, *_error) -> None:
        """Let go of the lock."""
        self.release()


class WatchedWeights:
    """Weights that another worker changes each time the lock is let go.

    ``truth`` holds, per update of the watched worker, the version that its
    gradient was computed from and the version that the update found.

    Introduced in lesson 08, behind its checks.
    """

    def __init__(self, lock: WatchedLock) -> None:
        """Begin with version 0."""
        self.truth: list[tuple[int, int]] = []
        self._lock, self._version = lock, 0
        lock.released = self._other_writes

    @property
    def version(self) -> int:
        """The number of updates so far."""
        self._locked("the version is taken")
        return self._version

    def read(self) -> tuple[str, int]:
        """Return weights that know their version."""
        self._locked("the weights are read")
        return "weights", self._version

    def write(self, gradients: object) -> None:
        """Make an update with ``("gradients", version)``."""
        self._locked("the update is written")
        if not (isinstance(gradients, tuple) and gradients[0] == "gradients"):
            not_yet("what is written is not what compute returned.")
        self.truth.append((gradients[1], self._version))
        self._version += 1

    def _other_writes(self) -> None:
        self._version += 1

    def _locked(self, what: str) -> None:
        if not self._lock.held:
            not_yet(f"{what} without the lock: another worker can write at that moment.")
