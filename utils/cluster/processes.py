"""The processes of a cluster while it runs: started, signalled, waited for, and ended together."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from utils.cluster.forked import warm_environment, warm_process
from utils.cluster.isolation import HolderPipes, Refused
from utils.cluster.live import LiveLine
from utils.cluster.member import Task
from utils.numbers import real

OPEN = "The ports of this cluster are open to the network, without a password"
MOST_SEEN = 40  # characters of each task in the line that shows progress
POLL = 0.05  # seconds between two looks at the files that the tasks write


class ClusterError(RuntimeError):
    """A task failed, or the cluster cannot do what was asked; the message names the task.

    Introduced in lesson 05.
    """


class DeadlineError(ClusterError):
    """What was waited for did not happen in time; the message says who is in the way.

    Introduced in lesson 05.
    """


class PortTaken(ClusterError):
    """Another program has taken a port that was free a moment ago.

    Introduced in lesson 05, behind `LocalCluster`.
    """


class Processes:
    """Tasks that live and end together, and a folder for what they write.

    Args:
        isolated: None for a private network where allowed; True insists; False declines.
        deadline: seconds to wait for anything before giving up.
        warm: what a process must have imported TensorFlow with to be forked; None starts anew.

    Raises:
        ClusterError: a private network is insisted on, and the system refuses it.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    def __init__(self, isolated: bool | None, deadline: float, warm: dict[str, str] | None) -> None:
        """Make the folder and start the process that will hold the tasks."""
        self.tasks: dict[str, Task] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="cluster-"))
        self._deadline = deadline
        self._warm = warm
        self._live = LiveLine()
        self._texts: dict[str, tuple[str, str]] | None = None
        try:
            self.isolated, self._holder = self._hold(isolated)
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    def _hold(self, wanted: bool | None) -> tuple[bool, HolderPipes]:
        reason = "isolated=False"
        if wanted is not False:
            try:
                return True, self._pipes(private=True)
            except Refused as refused:
                if wanted:
                    raise ClusterError(f"isolated=True is refused here: {refused}.") from refused
                reason = str(refused)
        self._live.note(f"{OPEN} ({reason}): start it on a network that you trust.")
        return False, self._pipes(private=False)

    def _pipes(self, private: bool) -> HolderPipes:
        warm = None if self._warm is None else warm_process(self._warm)
        if warm:
            try:
                with contextlib.suppress(Refused):  # start it anew, or hear the same reason again
                    return HolderPipes(self.folder, private, warm, self._deadline, self._show_start)
            finally:
                self._live.clear()
        return HolderPipes(self.folder, private)

    def _show_start(self) -> None:
        self._live.show("starting")

    def start(self, task: Task, argv: Sequence[str], env: dict[str, str]) -> None:
        """Start a task in the folder, with output and log in files there."""
        task.starts += 1
        task.state, task.code = "running", None
        warm = self._holder.warm
        self._send(
            "start",
            task=task.name,
            argv=list(argv),
            env=env,
            folder=str(self.folder),
            out=str(task.out),
            log=str(task.log),
            warm=warm is not None and warm.environment == warm_environment(env),
        )

    def signal(self, task: Task, number: int) -> None:
        """Send a signal to a task and to what it has started."""
        self._send("signal", task=task.name, number=number)

    def until(
        self,
        done: Callable[[], object],
        deadline: float | None,
        what: str,
        late: Callable[[], Sequence[Task]],
    ) -> object:
        """Return the first true value of `done`, asked whenever something may have happened.

        Raises:
            DeadlineError: it was not true in time: those that are `late` have not done `what`.
        """
        seconds = self._deadline if deadline is None else check_deadline(deadline)
        end = time.monotonic() + seconds
        try:
            while True:
                self.listen(min(POLL, max(0.0, end - time.monotonic())))
                if value := done():
                    return value
                if time.monotonic() >= end:
                    raise DeadlineError(self._lateness(seconds, what, late()))
                self._live.show(self._progress())
        finally:
            self._live.clear()

    def listen(self, seconds: float) -> None:
        """Take in what has happened to the tasks, after waiting at most so long for news."""
        try:
            events = self._holder.events(seconds)
        except Refused as gone:
            raise ClusterError(
                f"The process that holds the tasks has ended ({gone}), and they with it."
            ) from gone
        for event in events:
            task = self.tasks[event["task"]]
            if event["event"] == "ended":
                task.state, task.code = "ended", event["code"]
            elif event["event"] == "stopped" and task.alive:
                task.state = "suspended"

    def text(self, task: Task) -> tuple[str, str]:
        """Return output and log of a task, also after the end."""
        return self._texts[task.name] if self._texts else task.text()

    def close(self) -> None:
        """End everything; keep what the tasks wrote, and remove the folder."""
        try:
            with contextlib.suppress(ClusterError):  # the holder may be gone
                self.listen(0)
            self._holder.close()
        finally:
            self._texts = {name: task.text() for name, task in self.tasks.items()}
            for task in self.tasks.values():
                if task.alive:
                    task.state = "stopped"
            shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, do: str, **details: object) -> None:
        try:
            self._holder.send(do, **details)
        except BrokenPipeError:
            self.listen(0)  # says why

    def _progress(self) -> str:
        now = {
            task.name: (task.lines() or ["starting"])[-1] if task.alive else task.state
            for task in self.tasks.values()
        }
        return " · ".join(f"{name}: {text[:MOST_SEEN]}" for name, text in now.items())

    def _lateness(self, seconds: float, what: str, late: Sequence[Task]) -> str:
        """Say who has not done it, what those wait for, and who cannot help them any more."""
        text = f"Waited {seconds:g} s for {', '.join(task.name for task in late)} {what}."
        text += "".join(f" {task.name} {hint}." for task in late if (hint := task.hint()))
        for task in self.tasks.values():
            if task.state == "suspended":
                text += f" {task.name} is suspended."
            elif task.state == "killed" or task.code:
                text += f" {task.name} {task.ending()}."
        return text


def check_deadline(seconds: float) -> float:
    """Return a number of seconds above 0, or raise TypeError or ValueError.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    return real("deadline", seconds, above=0, what="number of seconds")
