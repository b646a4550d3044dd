"""What the tests of clusters share: small programs, and whether anything is left of them."""

import functools
import shlex
import subprocess
import tempfile
import textwrap
import time
from pathlib import Path

from utils.cluster import LocalCluster
from utils.cluster.isolation import HolderPipes, Refused

DEADLINE = 60  # seconds; what is waited for usually takes under one
ROLE = """
import argparse, json, os, signal, subprocess, sys, time
parser = argparse.ArgumentParser()
for word in ("ps_hosts", "worker_hosts", "job_name", "task_index"):
    parser.add_argument("--" + word, default="")
role, rest = parser.parse_known_args()
me = f"{role.job_name} {role.task_index}"
def wait():
    while True:
        signal.pause()
"""
HELLO = """
print("ready")
if role.job_name == "ps":
    wait()
print("hello from", me)
print(json.dumps({"task": me}))
"""


@functools.cache
def refusal() -> str:
    """Why this system refuses private namespaces; empty if it allows them."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            HolderPipes(Path(folder), private=True).close()
        except Refused as refused:
            return str(refused)
    return ""


def write(folder: Path, code: str) -> Path:
    program = folder / "program.py"
    program.write_text(ROLE + textwrap.dedent(code), encoding="utf-8")
    return program


def addresses(cluster: LocalCluster) -> dict[str, str]:
    """Where each task's server listens, in rank order."""
    words = dict(word[2:].split("=") for word in shlex.split(cluster.command("worker 0"))[2:6])
    hosts = {job: words.get(f"{job}_hosts", "").split(",") for job in ("ps", "worker")}
    return {f"{job} {index}": at for job in hosts for index, at in enumerate(hosts[job])}


def alive(folder: Path) -> list[str]:
    """Command lines of all processes that name this folder."""
    if not Path("/proc/self").exists():
        listed = subprocess.run(["ps", "-axww", "-o", "command="], capture_output=True, text=True)
        return [line for line in listed.stdout.splitlines() if str(folder) in line]
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has ended in the meantime
    return [line for line in lines if str(folder) in line]


def until(condition, what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"not in {DEADLINE} s: {what}"
        time.sleep(0.02)


def nothing_left(folder: Path) -> None:
    until(lambda: not alive(folder), f"no process is left of {alive(folder)}")
    assert not list(folder.glob("cluster-*"))
