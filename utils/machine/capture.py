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
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

_taking = threading.RLock()  # descriptors belong to the process, not a thread


@dataclass
class Captured:
    """The text that went to one descriptor; filled when the block ends.

    Bytes that are not UTF-8 are kept as surrogates, so that ``write_back``
    gives back exactly what came.
    """

    text: str = ""

    def _fill(self, file) -> None:
        file.seek(0)
        self.text = file.read().decode("utf-8", errors="surrogateescape")


@contextmanager
def captured(*descriptors: int) -> Iterator[dict[int, Captured]]:
    """Take what native code writes to ``descriptors`` (1, 2) inside the block.

    Python's own ``print`` is not taken: where ``sys.stdout`` or
    ``sys.stderr`` would write through a taken descriptor, it keeps writing
    to where that descriptor led before.

    Yields:
        ``{descriptor: Captured}``; each ``text`` is set when the block ends,
        also when it ends with an exception.

    Raises:
        RuntimeError: another thread is inside such a block.

    Introduced in lesson 03, where the placement log is read this way.
    """
    takes = {fd: Captured() for fd in descriptors}
    with ExitStack() as undo:  # undoes all of it, in reverse, whatever fails
        if not _taking.acquire(blocking=False):
            raise RuntimeError(
                "another thread is capturing what native code writes: one "
                "block at a time, all threads of the process share its "
                "descriptors."
            )
        undo.callback(_taking.release)
        _flush()
        _detour_python_streams(descriptors, undo)
        for fd, take in takes.items():
            saved = os.dup(fd)
            undo.callback(os.close, saved)
            file = undo.enter_context(tempfile.TemporaryFile())
            undo.callback(take._fill, file)
            os.dup2(file.fileno(), fd)
            undo.callback(os.dup2, saved, fd)
        undo.callback(_flush)
        yield takes


def write_back(descriptor: int, text: str) -> None:
    """Write text that was taken from a descriptor but is not ours to keep."""
    if text:
        _flush()
        data = text.encode("utf-8", errors="surrogateescape")
        while data:  # a descriptor may take less than it is given
            data = data[os.write(descriptor, data) :]


class _Detour:
    """A stream that leads elsewhere while its descriptor is taken.

    Loggers made inside the block keep it: after the block it leads to the
    stream that it stood for.
    """

    def __init__(self, stream) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


def _detour_python_streams(descriptors: tuple[int, ...], undo) -> None:
    """Let ``print`` go on writing to the place that a taken descriptor had."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            fd = stream.fileno()
        except (AttributeError, OSError, ValueError):
            continue  # a stream without a descriptor cannot be taken
        if fd in descriptors:
            detour = _Detour(
                os.fdopen(
                    os.dup(fd),
                    "w",
                    buffering=1,
                    encoding=stream.encoding,
                    errors=stream.errors,
                )
            )
            undo.callback(setattr, detour, "stream", stream)
            undo.callback(detour.stream.close)
            undo.callback(setattr, sys, name, stream)
            setattr(sys, name, detour)


def _flush() -> None:
    """Empty Python's and C's buffers, so that text lands on the right side."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # a process without a console has none
            stream.flush()
    # The placer prints with C's printf, which buffers when it does not
    # write to a terminal. TensorFlow runs on Linux and macOS only, where
    # the process itself offers C's fflush.
    ctypes.CDLL(None).fflush(None)
