"""Lines that are seen while a cell runs, and belong to no result.

JupyterLab shows what a process writes to descriptor 1. A kernel that stores or compares outputs
does not take it. So what goes there is visible to a person and to nobody else.
"""

import io
import os
import sys
import time

PAUSE = 0.2  # seconds between two updates of the same line


def visible() -> bool:
    """Tell whether a person sees what goes to descriptor 1: a notebook or a terminal.

    A kernel that shows descriptor 1 has put a pipe there and gives the old one as the `fileno`
    of its stream; one that does not show it has no `fileno`.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    if not type(sys.stdout).__module__.startswith("ipykernel."):
        return os.isatty(1)
    try:
        return sys.stdout.fileno() != 1
    except io.UnsupportedOperation:
        return False


class LiveLine:
    """One line that is written over and over, and gone at the end.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    def __init__(self) -> None:
        """Begin with an empty line."""
        self._width = 0
        self._next = 0.0

    def show(self, text: str) -> None:
        """Replace the line, at most five times a second."""
        if time.monotonic() >= self._next and visible():
            self._next = time.monotonic() + PAUSE
            self._write(f"\r{text.ljust(self._width)}")
            self._width = max(self._width, len(text))

    def clear(self) -> None:
        """Wipe the line out."""
        if self._width:
            self._write(f"\r{' ' * self._width}\r")
            self._width = 0

    @staticmethod
    def note(text: str) -> None:
        """Write a line that stays, where a person sees it."""
        if visible():
            LiveLine._write(f"{text}\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stdout.flush()
        os.write(1, text.encode())
