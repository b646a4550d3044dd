"""A process that has imported TensorFlow, and forks the holders of clusters and their tasks.

`utils.cluster` starts this file as a program, once for a kernel; nothing imports it. Importing
takes seconds, forking milliseconds. It does nothing else with TensorFlow: it asks for no devices,
runs no operation and starts no server, because threads do not survive a fork. NumPy's random
numbers are not loaded, or all tasks would draw the same.

Each message at its standard input, a Unix socket, is one request: the arguments of `holder.hold`
as JSON, with the two descriptors that the holder reads from and writes to. The end of it means
that the kernel is gone: then this process ends too, and each holder learns it from its own pipe.
"""

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path
from types import ModuleType

import holder  # the file beside this one

# Where Linux finds the words that `ps` shows: fields 48 and 49 of <man 5 proc_pid_stat>. The last
# of them is there to make room.
FIRST, END = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:47])


def show(*words: str) -> None:
    """Let `ps` show these words as the command line of this process."""
    room = END - FIRST
    text = " ".join(words).encode(errors="surrogateescape")[: room - 2]
    ctypes.memmove(FIRST, text.ljust(room - 1, b"\0") + b".", room)  # no 0 at the end: one text


def import_tensorflow() -> bytes:
    """Load TensorFlow; return what it wrote to standard error, for the log of each task."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # as `prepare` does
    log = os.memfd_create("log")
    os.dup2(log, 2)
    import tensorflow  # noqa: F401

    return os.pread(log, os.fstat(log).st_size, 0)


def answer_requests() -> dict | None:
    """Fork a holder for each request. Return None at the end; in a task what it is to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for holders
    requests = socket.socket(fileno=os.dup(0))
    while True:
        text, ends, _, _ = socket.recv_fds(requests, 65536, 2)
        if not text:
            return None
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            request = json.loads(text)
            show(sys.executable, holder.__file__, request["folder"])
            log = os.open(f"{request['folder']}/holder.log", os.O_WRONLY | os.O_CREAT, 0o666)
            requests.detach()
            holder.redirect(*ends, log)
            return holder.hold(**request)
        for end in ends:
            os.close(end)


def become(command: dict, log: bytes) -> tuple[str, ModuleType]:
    """Make this process what an interpreter is before it runs a program; return file and module."""
    if not command["warm"]:
        os.execve(command["argv"][0], command["argv"], command["env"])
    os.write(2, log)
    show(*command["argv"])
    os.environ.clear()
    os.environ.update(command["env"])
    del sys.modules["holder"]
    sys.argv = command["argv"][1:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    # A traceback begins in the program, not here.
    sys.excepthook = lambda kind, error, trace: sys.__excepthook__(
        kind, error.with_traceback(trace.tb_next), trace.tb_next
    )
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__file__ = sys.argv[0]
    return sys.argv[0], main


if __name__ == "__main__":
    show(sys.executable, sys.argv[0])
    LOG = import_tensorflow()
    TODO = answer_requests()
    if not TODO:
        os._exit(0)
    FILE, MAIN = become(TODO, LOG)
    # At the top, so that errors and exit codes are those of the interpreter.
    exec(compile(Path(FILE).read_bytes(), FILE, "exec"), vars(MAIN))
