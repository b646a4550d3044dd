"""The process that holds the tasks of one cluster, and ends them when its parent is gone.

`utils.cluster` starts this file as a program, in namespaces of its own where the system allows
it; nothing imports it. It reads one JSON command a line from its standard input and writes one
JSON event a line to its standard output:

    {"do": "start", "task": …, "argv": …, "env": …, "folder": …, "out": …, "log": …}
    {"do": "signal", "task": …, "number": …}        {"do": "stop"}
    {"event": "holding"}   {"event": "started" | "stopped", "task": …}
    {"event": "ended", "task": …, "code": …}

The end of its standard input means that the parent has closed it or died. It has one thread
only: a parent-death signal is sent when the *thread* that started the child ends.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

GRACE = 2.0  # seconds between asking a task to end and killing it
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # <linux/sockios.h>, <linux/if.h>
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# Loaded here, because nothing may be loaded between fork and exec.
PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def raise_loopback() -> None:
    """Switch on 127.0.0.1 and ::1: in a new network they are off."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def die_with_holder() -> None:
    """Let Linux kill this task when the holder ends, however that happens."""
    if PRCTL:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)


def say(event: str, **details: object) -> None:
    """Report to the parent; if it is gone, the end of standard input says so too."""
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps({"event": event, **details}), flush=True)


class Holder:
    """The tasks by name, each a process in a session and group of its own."""

    def __init__(self) -> None:
        """Begin without tasks."""
        self.tasks: dict[str, subprocess.Popen] = {}

    def start(self, command: dict) -> None:
        """Start a task with its output and its log in files."""
        with open(command["out"], "wb") as out, open(command["log"], "wb") as log:
            self.tasks[command["task"]] = subprocess.Popen(
                command["argv"],
                env=command["env"],
                cwd=command["folder"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_holder,
            )
        say("started", task=command["task"])

    def signal(self, task: str, number: int) -> None:
        """Send a signal to a task's whole group; a stop is reported once it has happened."""
        process = self.tasks.get(task)
        if process is None:
            return  # it has ended in the meantime
        self.send(process, number)
        if number == signal.SIGSTOP:
            if hasattr(os, "waitid"):  # not on macOS
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            say("stopped", task=task)

    @staticmethod
    def send(process: subprocess.Popen, number: int) -> None:
        """Signal a group, which may be empty by now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: for a zombie
            os.killpg(process.pid, number)

    def collect(self) -> None:
        """Report the tasks that have ended, and end what they left running."""
        for task, process in list(self.tasks.items()):
            if process.poll() is not None:
                self.send(process, signal.SIGKILL)
                del self.tasks[task]
                say("ended", task=task, code=process.returncode)

    def stop(self) -> None:
        """Ask every task to end, and kill those that have not after the grace period."""
        for process in self.tasks.values():
            self.send(process, signal.SIGTERM)
            self.send(process, signal.SIGCONT)
        end = time.monotonic() + GRACE
        for process in self.tasks.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
        for process in self.tasks.values():
            self.send(process, signal.SIGKILL)
            process.wait()


def serve(holder: Holder) -> bool:
    """Follow commands and watch the tasks. Return whether the parent asked for the end."""
    wake, wake_end = os.pipe()
    for end in (wake, wake_end):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.set_blocking(sys.stdin.fileno(), False)
    selector = selectors.DefaultSelector()
    selector.register(wake, selectors.EVENT_READ)
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
    unread = b""
    while True:
        ready = [key.fd for key, _ in selector.select()]
        if wake in ready:
            os.read(wake, 4096)
            holder.collect()
        if sys.stdin.fileno() in ready:
            part = os.read(sys.stdin.fileno(), 65536)
            *lines, unread = (unread + part).split(b"\n")
            for line in lines:
                command = json.loads(line)
                if command["do"] == "start":
                    holder.start(command)
                elif command["do"] == "signal":
                    holder.signal(command["task"], command["number"])
                else:
                    return True
            if not part:
                return False


def main() -> None:
    """Hold tasks: `holder.py FOLDER [--private]`, the second in a network of one's own."""
    folder, private = sys.argv[1], "--private" in sys.argv
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe
    if private:
        raise_loopback()
    say("holding")
    holder = Holder()
    asked = False
    try:
        asked = serve(holder)
    finally:
        holder.stop()
        if not asked:  # nobody else is left to clean up
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
