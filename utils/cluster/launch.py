"""How the tasks of a cluster are started: one program, many roles, ports, and a handshake."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.cluster.forked import can_fork, warm_environment
from utils.cluster.member import Task
from utils.cluster.ports import free_ports
from utils.cluster.processes import ClusterError, PortTaken, Processes

READY = "ready"  # the line by which a task tells that its server listens
FIRST_PORT = 2222  # in a private network every port is free; the classic texts use this one
# Tasks talk to this machine only, and a role left over from elsewhere would mislead them.
DROP = {"tf_config", "http_proxy", "https_proxy", "grpc_proxy", "all_proxy"}


@dataclass(frozen=True)
class Launch:
    """What is started for each task.

    Attributes:
        program: the file that every task runs.
        roles: job and index of each task, in rank order.
        arguments: added to every command line.
        tf_config: whether a task learns its role from TF_CONFIG instead.

    Introduced in lesson 05, behind `LocalCluster`.
    """

    program: Path
    roles: tuple[tuple[str, int], ...]
    arguments: tuple[str, ...]
    tf_config: bool

    def warm(self) -> dict[str, str] | None:
        """Return what the process had that tasks can be forked from; None: start them anew."""
        return warm_environment(environment("worker")) if can_fork(self.program) else None

    def start_all(self, processes: Processes) -> None:
        """Give every task an address, start it, and wait until all are ready.

        Raises:
            PortTaken: another program was faster; choosing again may help.
            ClusterError: a task failed, or was not ready in time.
        """
        if processes.isolated:
            self._place(processes, range(FIRST_PORT, FIRST_PORT + len(self.roles)))
        else:
            with free_ports(len(self.roles)) as ports:
                self._place(processes, ports)
        self.start(processes, list(processes.tasks.values()))

    def start(self, processes: Processes, chosen: Sequence[Task]) -> None:
        """Start tasks at their addresses, and wait until they are ready. Raises as `start_all`."""
        cluster = addresses_by_job(processes)
        for task in chosen:
            env, role = environment(task.job), words_for(task, cluster)
            if self.tf_config:
                env["TF_CONFIG"], role = tf_config(task, cluster), []
            argv = [sys.executable, str(self.program.resolve()), *role, *self.arguments]
            processes.start(task, argv, env)
        self._wait_until_ready(processes, chosen)

    def command(self, processes: Processes, task: Task) -> list[str]:
        """Return the words that start a task by hand."""
        role = words_for(task, addresses_by_job(processes))
        return ["python", str(self.program), *role, *self.arguments]

    def _place(self, processes: Processes, ports: Sequence[int]) -> None:
        for (job, index), port in zip(self.roles, ports, strict=True):
            task = Task(job, index, f"localhost:{port}", processes.folder)
            processes.tasks[task.name] = task

    def _wait_until_ready(self, processes: Processes, chosen: Sequence[Task]) -> None:
        def late() -> list[Task]:
            return [task for task in chosen if READY not in task.lines()]

        def ready() -> bool:
            ended = [task for task in chosen if not task.alive]  # before the lines are read
            waiting = late()
            for task in ended:
                if task in waiting:
                    kind = PortTaken if task.port_taken() else ClusterError
                    raise kind(f"{task.name} {task.ending()}, before it said {READY!r}.")
            return not waiting

        processes.until(ready, None, f"to say {READY!r}", late)


def addresses_by_job(processes: Processes) -> dict[str, list[str]]:
    """Return what TensorFlow calls a cluster: the addresses of each job's tasks.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    cluster: dict[str, list[str]] = {}
    for task in processes.tasks.values():
        cluster.setdefault(task.job, []).append(task.address)
    return cluster


def words_for(task: Task, cluster: dict[str, list[str]]) -> list[str]:
    """Return a task's role as words of a command line.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    hosts = [f"--{job}_hosts={','.join(addresses)}" for job, addresses in cluster.items()]
    return [*hosts, f"--job_name={task.job}", f"--task_index={task.index}"]


def tf_config(task: Task, cluster: dict[str, list[str]]) -> str:
    """Return the same role as the text of the variable TF_CONFIG.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    return json.dumps({"cluster": cluster, "task": {"type": task.job, "index": task.index}})


def environment(job: str) -> dict[str, str]:
    """Return the environment of a task: this process's, without what would mislead it.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    env = {name: value for name, value in os.environ.items() if name.lower() not in DROP}
    env["PYTHONUNBUFFERED"] = "1"  # a line is in the file as soon as it is printed
    env["PYTHONUTF8"] = "1"
    env["TF_CPP_MIN_LOG_LEVEL"] = "0"  # what a task waits for is an INFO message
    env["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # several tasks share a card
    if job == "ps":
        env["CUDA_VISIBLE_DEVICES"] = "-1"  # it computes nothing that a GPU is good for
    return env
