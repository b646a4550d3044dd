"""What native code writes: file descriptors 1 and 2, taken for a while.

TensorFlow's C++ part writes straight to the descriptors of the process. A
notebook kernel shows that text, a kernel that a test started loses it, a
script mixes it with its own output. Taking the descriptors themselves works
alike in all three. A temporary file stands in for them, not a pipe: nothing
has to read along, so nothing can block.
"""

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


class Captured:
    """The text that went to one descriptor; filled when the block ends."""

    def __init__(self) -> None:
        self.text = ""


@contextmanager
def captured(*descriptors: int) -> Iterator[dict[int, Captured]]:
    """Take what native code writes to ``descriptors`` (1, 2) inside the block.

    Python's own ``print`` is not taken: where ``sys.stdout`` or
    ``sys.stderr`` would write through a taken descriptor, it keeps writing
    to where that descriptor led before.

    Yields:
        ``{descriptor: Captured}``; each ``text`` is set when the block ends,
        also when it ends with an exception.

    Introduced in lesson 03, where the placement log is read this way.
    """
    takes = {fd: Captured() for fd in descriptors}
    _flush()
    saved = {fd: os.dup(fd) for fd in descriptors}
    files = {fd: tempfile.TemporaryFile() for fd in descriptors}
    kept = _keep_python_streams(saved)
    for fd, file in files.items():
        os.dup2(file.fileno(), fd)
    try:
        yield takes
    finally:
        _flush()
        for name, (stream, stand_in) in kept.items():
            stand_in.close()
            setattr(sys, name, stream)
        for fd, file in files.items():
            os.dup2(saved[fd], fd)
            os.close(saved[fd])
            file.seek(0)
            takes[fd].text = file.read().decode("utf-8", errors="replace")
            file.close()


def write_back(descriptor: int, text: str) -> None:
    """Write text that was taken from a descriptor but is not ours to keep."""
    if text:
        _flush()
        data = text.encode("utf-8")
        while data:  # a descriptor may take less than it is given
            data = data[os.write(descriptor, data) :]


def _keep_python_streams(saved: dict[int, int]) -> dict[str, tuple]:
    """Let ``print`` go on writing to the place that a taken descriptor had."""
    kept = {}
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            fd = stream.fileno()
        except (AttributeError, OSError, ValueError):
            continue  # a stream without a descriptor cannot be taken
        if fd in saved:
            stand_in = os.fdopen(
                os.dup(saved[fd]), "w", buffering=1, encoding="utf-8"
            )
            kept[name] = (stream, stand_in)
            setattr(sys, name, stand_in)
    return kept


def _flush() -> None:
    """Empty Python's and C's buffers, so that text lands on the right side."""
    sys.stdout.flush()
    sys.stderr.flush()
    # The placer prints with C's printf, which buffers when it does not
    # write to a terminal. TensorFlow runs on Linux and macOS only, where
    # the process itself offers C's fflush.
    ctypes.CDLL(None).fflush(None)
