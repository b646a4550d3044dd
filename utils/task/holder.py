"""The process that holds the tasks of one cluster, and ends them when its parent is gone.

`utils.cluster` starts this file as a program, or lets `warm.py` fork it from a process that has
imported TensorFlow. It reads one JSON command a line from descriptor 0 and writes one JSON event
a line to descriptor 1:

    {"do": "start", "task": …, "argv": …, "env": …, "folder": …, "out": …, "log": …, "warm": …}
    {"do": "signal", "task": …, "number": …}        {"do": "stop"}
    {"event": "holding", "pid": …}   {"event": "started" | "stopped", "task": …}
    {"event": "ended", "task": …, "code": …}

The end of descriptor 0 means that the parent has closed it or died. It has one thread only: a
parent-death signal is sent when the *thread* that started the child ends. A task is a fork that
returns from all of this, with the command that says what to run, and runs it at the top.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time
from pathlib import Path

MOST_OPEN = 65536  # descriptors; this process has a handful
GRACE = 2.0  # seconds between asking a task to end and killing it
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # <linux/sockios.h>, <linux/if.h>
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
OWN = 0x10000000 | 0x40000000 | 0x20000000  # <linux/sched.h>: CLONE_NEWUSER, _NEWNET, _NEWPID
# Loaded here, because little may be loaded between fork and exec.
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def separate() -> None:
    """Go on in a process with a user, a network and process numbers of its own.

    It is process 1 there: once it ends, Linux kills all others.

    Raises:
        SystemExit: the system does not allow it; the message says so.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        if LIBC.unshare(OWN):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        maps = {"setgroups": "deny", "uid_map": f"0 {user} 1", "gid_map": f"0 {group} 1"}
        for name, text in maps.items():
            Path("/proc/self", name).write_text(text)
        if first := os.fork():
            os.waitpid(first, 0)
            os._exit(0)
        die_with_parent()
        with socket.socket() as any_socket:  # in a new network 127.0.0.1 and ::1 are off
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    except OSError as error:
        sys.exit(f"unshare: {error.strerror}")


def die_with_parent() -> None:
    """Let Linux kill this process when its parent ends, however that happens."""
    if LIBC:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def say(event: str, **details: object) -> None:
    """Report to the parent; if it is gone, the end of descriptor 0 says so too."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps({"event": event, **details}).encode() + b"\n")


def redirect(*descriptors: int) -> None:
    """Make these descriptors 0, 1 and 2, and close all others."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, MOST_OPEN)


def step_into(command: dict) -> None:
    """Make this process a task: session, signals, folder, and files for what it writes."""
    os.setsid()
    die_with_parent()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(command["folder"])
    new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    out, log = (os.open(command[name], new, 0o666) for name in ("out", "log"))
    redirect(os.open(os.devnull, os.O_RDONLY), out, log)


class Tasks:
    """The tasks by name, each a process in a session and group of its own."""

    def __init__(self) -> None:
        """Begin without tasks; the end of one can be waited for at `wake`."""
        self.pids: dict[str, int] = {}
        self.wake, wake_end = os.pipe()
        for end in (self.wake, wake_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def start(self, command: dict) -> bool:
        """Fork a task. Return whether this process is the task."""
        stepped_in, stepping = os.pipe()
        pid = os.fork()
        if not pid:
            try:  # what fails here must not run through the holder's code
                step_into(command)
            except BaseException as error:
                os.write(2, f"{error}\n".encode())
                os._exit(1)
            return True
        os.close(stepping)
        os.read(stepped_in, 1)  # ends once the task has a group that signals can reach
        os.close(stepped_in)
        self.pids[command["task"]] = pid
        say("started", task=command["task"])
        return False

    def signal(self, task: str, number: int) -> None:
        """Send a signal to a task's whole group; a stop is reported once it has happened."""
        pid = self.pids.get(task)
        if pid is None:
            return  # it has ended in the meantime
        self.send(pid, number)
        if number == signal.SIGSTOP:
            if hasattr(os, "waitid"):  # not on macOS
                os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            say("stopped", task=task)

    @staticmethod
    def send(pid: int, number: int) -> None:
        """Signal a group, which may be empty by now."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: for a zombie
            os.killpg(pid, number)

    def collect(self) -> None:
        """Report the tasks that have ended, and end what they left running."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wake, 4096)
        for task, pid in list(self.pids.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self.send(pid, signal.SIGKILL)
                del self.pids[task]
                say("ended", task=task, code=os.waitstatus_to_exitcode(status))

    def stop(self) -> None:
        """Ask every task to end, and kill those that have not after the grace period."""
        for pid in self.pids.values():
            self.send(pid, signal.SIGTERM)
            self.send(pid, signal.SIGCONT)
        end = time.monotonic() + GRACE
        while self.pids and (left := end - time.monotonic()) > 0:
            select.select([self.wake], [], [], left)
            self.collect()
        for pid in self.pids.values():
            self.send(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def serve(tasks: Tasks) -> dict | None:
    """Follow commands and watch the tasks.

    Returns:
        In a task the command that started it; in the holder the one to stop, or None if the
        parent is gone.
    """
    unread = b""
    while True:
        ready, _, _ = select.select([0, tasks.wake], [], [])
        if tasks.wake in ready:
            tasks.collect()
        if 0 in ready:
            part = os.read(0, 65536)
            if not part:
                return None
            *lines, unread = (unread + part).split(b"\n")
            for line in lines:
                command = json.loads(line)
                if command["do"] == "signal":
                    tasks.signal(command["task"], command["number"])
                elif command["do"] == "stop" or tasks.start(command):
                    return command


def hold(folder: str, private: bool) -> dict | None:
    """Hold tasks until the parent wants the end or is gone, in a network of one's own or not.

    Returns:
        None in the holder; in each task the command that says what to run.
    """
    pid = os.getpid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe
    if private:
        separate()
    say("holding", pid=pid)
    tasks, command = Tasks(), None
    try:
        command = serve(tasks)
    finally:
        if command is None or command["do"] == "stop":
            tasks.stop()
        if command is None:  # nobody else is left to clean up
            shutil.rmtree(folder, ignore_errors=True)
    return command if command and command["do"] == "start" else None


if __name__ == "__main__":
    if todo := hold(sys.argv[1], "--private" in sys.argv):
        os.execve(todo["argv"][0], todo["argv"], todo["env"])
