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


def show(*words: str) -> None:
    """Let `ps` show these words as the command line of this process.

    They are written over those it was started with, of which the last is there to make room.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    first, end = map(int, fields[45:47])  # the 48th and 49th of `man 5 proc_pid_stat`
    room = end - first
    text = " ".join(words).encode(errors="surrogateescape")[: room - 2]
    ctypes.memmove(first, text.ljust(room - 1, b"\0") + b".", room)  # no 0 last: it is one text


def import_tensorflow() -> tuple[bytes, dict[str, str]]:
    """Load TensorFlow; return what it wrote to standard error, and the variables that it set."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # as `prepare` does
    before = os.environ.copy()
    log = os.memfd_create("log")
    os.dup2(log, 2)
    import tensorflow  # noqa: F401

    variables = {name: text for name, text in os.environ.items() if before.get(name) != text}
    return os.pread(log, os.fstat(log).st_size, 0), variables


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
            if not os.path.isdir(request["folder"]):
                os._exit(0)  # it was given up in the meantime
            show(sys.executable, holder.__file__, request["folder"])
            log = os.open(f"{request['folder']}/holder.log", os.O_WRONLY | os.O_CREAT, 0o666)
            requests.detach()
            holder.redirect(*ends, log)
            return holder.hold(**request)
        for end in ends:
            os.close(end)


def become(command: dict, log: bytes, variables: dict[str, str]) -> tuple[str, ModuleType]:
    """Make this process an interpreter that has imported TensorFlow; return its file and module."""
    if not command["warm"]:
        os.execve(command["argv"][0], command["argv"], command["env"])
    os.write(2, log)
    show(*command["argv"])
    os.environ.clear()
    os.environ.update(command["env"] | variables)
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
    import holder  # the file beside this one: nothing of `utils` is loaded here

    show(sys.executable, sys.argv[0])
    IMPORTED = import_tensorflow()
    TODO = answer_requests()
    if not TODO:
        os._exit(0)
    FILE, MAIN = become(TODO, *IMPORTED)
    # At the top, so that errors and exit codes are those of the interpreter.
    exec(compile(Path(FILE).read_bytes(), FILE, "exec"), vars(MAIN))
