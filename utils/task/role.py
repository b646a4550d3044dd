"""Who is who in a cluster: read from the command line or TF_CONFIG, and checked.

TensorFlow accepts many wrong descriptions of a cluster and then waits for ever. Here they are
refused, in plain Python, before TensorFlow is loaded.
"""

import argparse
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ADDRESS = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})", re.ASCII)
EXAMPLE = (
    '{"cluster": {"ps": ["localhost:2222"], "worker": ["localhost:2223", "localhost:2224"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


class RoleError(ValueError):
    """The description of a cluster, or of a task's place in it, is wrong; the message says how.

    Introduced in lesson 05.
    """


@dataclass(frozen=True)
class Role:
    """A cluster, and one task's place in it.

    Attributes:
        cluster: addresses `host:port` of each job's tasks.
        job: of this task.
        index: of this task in its job.

    Introduced in lesson 05.
    """

    cluster: dict[str, list[str]]
    job: str
    index: int

    @property
    def name(self) -> str:
        """Job and index, as in `worker 1`."""
        return f"{self.job} {self.index}"

    @property
    def is_chief(self) -> bool:
        """Whether this task initialises the variables and writes checkpoints."""
        first = "chief" if "chief" in self.cluster else "worker"
        return (self.job, self.index) == (first, 0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the four classic arguments: `--ps_hosts --worker_hosts --job_name --task_index`.

    Introduced in lesson 05.
    """
    group = parser.add_argument_group("role", "needed unless the variable TF_CONFIG gives them")
    group.add_argument("--ps_hosts", metavar="HOST:PORT,…", help="every parameter server")
    group.add_argument("--worker_hosts", metavar="HOST:PORT,…", help="every worker")
    group.add_argument("--job_name", metavar="JOB", help="this task's job: ps or worker")
    group.add_argument("--task_index", metavar="N", help="this task's number in its job, from 0")


def role_of(
    options: argparse.Namespace,
    environment: Mapping[str, str] = os.environ,
    *,
    needs: Sequence[str] = ("ps", "worker"),
    allows: Sequence[str] = (),
) -> Role:
    """Return the role that the command line or TF_CONFIG gives.

    Args:
        options: parsed by a parser that went through `add_arguments`.
        environment: where TF_CONFIG is looked up.
        needs: jobs that the program cannot do without.
        allows: further jobs that it knows.

    Raises:
        RoleError: neither or both give it, or what they give is wrong.

    Introduced in lesson 05.
    """
    words = (options.ps_hosts, options.worker_hosts, options.job_name, options.task_index)
    typed, text = any(word is not None for word in words), environment.get("TF_CONFIG")
    if typed and text is not None:
        raise RoleError(
            "The role is on the command line and in the variable TF_CONFIG too. Leave one out "
            "(`unset TF_CONFIG`): an old value would go unnoticed."
        )
    if not typed and text is None:
        raise RoleError(
            "No role: give --ps_hosts, --worker_hosts, --job_name and --task_index, or set the "
            f"variable TF_CONFIG, such as {EXAMPLE}"
        )
    role = _from_words(*words) if typed else parse_tf_config(text)
    _check_jobs(role.cluster, needs, allows)
    return role


def parse_tf_config(text: str) -> Role:
    """Return the role that the text of TF_CONFIG gives.

    Raises:
        RoleError: it is not JSON, something is missing, or something is wrong.

    Introduced in lesson 05.
    """
    try:
        config = json.loads(text)
    except ValueError as error:
        raise RoleError(f"TF_CONFIG is not JSON ({error}). Write it like {EXAMPLE}") from None
    if not isinstance(config, dict) or not isinstance(config.get("cluster"), dict):
        raise RoleError(f'TF_CONFIG has no object "cluster". Write it like {EXAMPLE}')
    task = config.get("task")
    if not isinstance(task, dict) or not {"type", "index"} <= task.keys():
        raise RoleError(
            'TF_CONFIG has no "task" with "type" and "index": it must say which task this '
            f"process is. Write it like {EXAMPLE}"
        )
    return _checked(config["cluster"], task["type"], task["index"])


def _from_words(ps: str | None, workers: str | None, job: str | None, index: str | None) -> Role:
    for name, word in (("job_name", job), ("task_index", index)):
        if word is None:
            raise RoleError(f"--{name} is missing: which task is this process?")
    if not re.fullmatch(r"[0-9]+", index):
        raise RoleError(f"--task_index={index} is not a whole number from 0.")
    hosts = {"ps": ps, "worker": workers}
    cluster = {job: text.split(",") for job, text in hosts.items() if text}
    return _checked(cluster, job, int(index))


def _checked(cluster: dict, job: object, index: object) -> Role:
    if "workers" in cluster:
        raise RoleError('The cluster has a job "workers": TensorFlow calls it "worker".')
    for name, addresses in cluster.items():
        _check_addresses(name, addresses)
    every = Counter(address for addresses in cluster.values() for address in addresses)
    for address, times in every.items():
        if times > 1:
            raise RoleError(
                f"The address {address} is in the cluster {times} times: every task needs its "
                "own. TensorFlow would wait for ever."
            )
    if not isinstance(job, str) or job not in cluster:
        have = ", ".join(cluster) or "none"
        raise RoleError(f"This task is of the job {job!r}, but the cluster's jobs are: {have}.")
    if isinstance(index, bool) or not isinstance(index, int):
        raise RoleError(f"The task's index is {index!r}: give a number, without quotes.")
    if not 0 <= index < len(cluster[job]):
        raise RoleError(
            f"The task's index is {index}, but the cluster has {len(cluster[job])} task(s) of "
            f"the job {job}: give 0 to {len(cluster[job]) - 1}."
        )
    return Role(cluster, job, index)


def _check_addresses(job: str, addresses: object) -> None:
    if not isinstance(addresses, list) or not addresses:
        raise RoleError(f"The job {job} has {addresses!r}: give a list of addresses host:port.")
    for address in addresses:
        found = ADDRESS.fullmatch(address) if isinstance(address, str) else None
        if not found or not 0 < int(found[1]) < 65536:
            raise RoleError(
                f"The job {job} has the address {address!r}: write host:port, such as "
                "localhost:2222, without http:// and without spaces."
            )


def _check_jobs(cluster: dict, needs: Sequence[str], allows: Sequence[str]) -> None:
    missing = [job for job in needs if job not in cluster]
    if missing:
        raise RoleError(
            f"The cluster has no {' and no '.join(missing)}: this program needs at least one "
            f"task of each of the jobs {', '.join(needs)}."
        )
    unknown = [job for job in cluster if job not in (*needs, *allows)]
    if unknown:
        raise RoleError(
            f"The cluster has the job {unknown[0]}, which this program does not know: it knows "
            f"{', '.join([*needs, *allows])}. TensorFlow would wait for its tasks for ever."
        )
