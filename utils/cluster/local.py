"""Local clusters: one program started as several processes, watched and stopped from a notebook.

The processes are real; only the network between machines is missing. This file imports no
TensorFlow. A program says `ready` in a line of its own once its server listens, and may say in
its last line what happened, as a JSON object. By hand it runs without all this.
"""

import shlex
import signal
from collections.abc import Sequence
from pathlib import Path

from utils.cluster.launch import Launch
from utils.cluster.member import Task
from utils.cluster.processes import (
    ClusterError,
    DeadlineError,
    PortTaken,
    Processes,
    check_deadline,
)
from utils.numbers import whole

__all__ = ["ClusterError", "DeadlineError", "LocalCluster"]

TRIES = 3  # how often ports are chosen, if another program was faster


class LocalCluster:
    """A cluster of processes on this machine, as a context manager.

    Entering starts one process per task and returns once all say `ready`; leaving ends them
    all. Where Linux allows it the cluster has a network of its own, which nobody else can
    reach; elsewhere its ports are open, and a line in the notebook says so.

    Args:
        program: a Python file, run by this interpreter for every task.
        ps, workers: how many tasks of each job.
        arguments: added to every task's command line.
        tf_config: tell a task its role through the variable TF_CONFIG, not through arguments.
        deadline: seconds to wait for anything before giving up.
        isolated: None uses a private network where allowed; True insists; False declines.

    Attributes:
        isolated: whether the cluster has a network of its own (None before it starts).

    Raises:
        FileNotFoundError, TypeError, ValueError: an argument is not possible.
        ClusterError: on entering, a task failed, or was not ready in time (`DeadlineError`).

    Introduced in lesson 05.
    """

    def __init__(
        self,
        program: str | Path,
        *,
        ps: int = 1,
        workers: int = 2,
        arguments: Sequence[str] = (),
        tf_config: bool = False,
        deadline: float = 60.0,
        isolated: bool | None = None,
    ) -> None:
        """Check the arguments; nothing is started yet."""
        if not Path(program).is_file():
            raise FileNotFoundError(f"program={str(program)!r}: there is no such file here.")
        if isinstance(arguments, str):
            raise TypeError(f"arguments={arguments!r}: give a list of words, as in ['--sync'].")
        roles = [("ps", index) for index in range(whole("ps", ps, 0))]
        roles += [("worker", index) for index in range(whole("workers", workers, 1))]
        self._launch = Launch(
            Path(program), tuple(roles), tuple(str(word) for word in arguments), tf_config
        )
        self._deadline = check_deadline(deadline)
        self._wanted = isolated
        self._running = False
        self._processes: Processes | None = None

    def __enter__(self) -> "LocalCluster":
        """Start all tasks and wait until each says that it is ready."""
        if self._running:
            raise ClusterError("This cluster runs already: leave its `with` block first.")
        for tries_left in reversed(range(TRIES)):
            self._processes = Processes(self._wanted, self._deadline, self._launch.warm())
            self._running = True
            try:
                self._launch.start_all(self._processes)
                break
            except PortTaken:
                self._close()
                if not tries_left:
                    raise
            except BaseException:
                self._close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        """End all tasks."""
        self._close()

    @property
    def isolated(self) -> bool | None:
        """Whether the cluster has a network of its own; None before it starts."""
        return self._processes.isolated if self._processes else None

    def command(self, task: str) -> str:
        """Return what to type in a terminal to start this task by hand."""
        return shlex.join(self._launch.command(self._last(), self._task(task)))

    def wait(
        self, *names: str, deadline: float | None = None, check: bool = True
    ) -> dict[str, dict | None]:
        """Wait until tasks have ended: those named, else all but the parameter servers.

        Args:
            names: of tasks.
            deadline: seconds; None for the cluster's.
            check: False accepts tasks that fail.

        Returns:
            For each of them that was not killed the JSON object it printed last, or None.

        Raises:
            ClusterError: one of them, or a parameter server, failed.
            DeadlineError: some have not ended; the message says which, and who is dead.
        """
        now = self._now()
        chosen = [self._task(name) for name in names]
        chosen = chosen or [task for task in now.tasks.values() if task.job != "ps"]

        def ended() -> bool:
            for task in now.tasks.values():
                matters = task in chosen or task.job == "ps"
                if check and matters and task.state == "ended" and task.code:
                    raise ClusterError(f"{task.name} {task.ending()}.")
            return not any(task.alive for task in chosen)

        now.until(ended, deadline, "to end", lambda: [task for task in chosen if task.alive])
        return {task.name: task.result() for task in chosen if task.state == "ended"}

    def wait_for(self, task: str, text: str, deadline: float | None = None) -> str:
        """Wait until a task prints a line that begins with `text`, and return that line.

        Lines since its last start count, also those from before this call.

        Raises:
            ClusterError: the task ended without it.
            DeadlineError: it did not come in time.
        """
        one = self._task(task)

        def found() -> list[str]:
            alive = one.alive  # before the lines: it may print and end between the two looks
            lines = [line for line in one.lines() if line.startswith(text)]
            if not lines and not alive:
                raise ClusterError(f"{one.name} {one.ending()}, before it said {text!r}.")
            return lines

        return self._now().until(found, deadline, f"to say {text!r}", lambda: [one])[0]

    def kill(self, task: str) -> None:
        """End a task at once, as a power cut would (SIGKILL)."""
        one = self._alive(task)
        self._now().signal(one, signal.SIGKILL)
        self._now().until(lambda: not one.alive, None, "to die", lambda: [one])
        one.state = "killed"

    def suspend(self, task: str) -> None:
        """Stop a task where it is (SIGSTOP) until `resume`; return once it stands still."""
        one = self._alive(task)
        self._now().signal(one, signal.SIGSTOP)
        self._now().until(lambda: one.state != "running", None, "to stop", lambda: [one])

    def resume(self, task: str) -> None:
        """Let a suspended task go on (SIGCONT)."""
        one = self._alive(task)
        self._now().signal(one, signal.SIGCONT)
        one.state = "running"

    def restart(self, *names: str) -> None:
        """Start tasks anew, at the addresses they had, and wait until they are ready."""
        chosen = [self._task(name) for name in names]
        for task in chosen:
            if task.alive:
                self.kill(task.name)
        self._launch.start(self._now(), chosen)

    def output(self, task: str | None = None) -> str:
        """Return what a task has printed since its last start; None: all, in rank order."""
        last = self._last()
        if task is not None:
            return last.text(self._task(task))[0]
        lines = {name: last.text(one)[0].splitlines() for name, one in last.tasks.items()}
        return "\n".join(f"{name}: {line}" for name in lines for line in lines[name])

    def logs(self, task: str) -> str:
        """Return a task's log since its last start: what it wrote to its standard error."""
        return self._last().text(self._task(task))[1]

    def report(self) -> str:
        """Return a line for each task: how it is, and what its end means for the others."""
        if self._running:
            self._now().listen(0)
        return "\n".join(f"{task.name}: {task.story()}" for task in self._last().tasks.values())

    def _close(self) -> None:
        self._running = False
        self._processes.close()

    def _last(self) -> Processes:
        if self._processes is None:
            raise ClusterError("This cluster has not been started: use `with LocalCluster(…)`.")
        return self._processes

    def _now(self) -> Processes:
        if not self._running:
            raise ClusterError("This cluster does not run: use it inside its `with` block.")
        return self._processes

    def _task(self, name: str) -> Task:
        known = self._last().tasks
        if name not in known:
            raise ValueError(f"There is no task {name!r}: the tasks are {', '.join(known)}.")
        return known[name]

    def _alive(self, name: str) -> Task:
        task = self._task(name)
        self._now().listen(0)
        if not task.alive:
            raise ClusterError(f"{name} is not running: it {task.ending()}.")
        return task
