"""Run what `make test` holds many times over, under conditions that differ; print a summary.

Rounds in parallel, one serial, one on a single core, one without a network; then every kind of
kill of a cluster's task at many random moments, and every lesson with each cell run twice. The
output of every row goes to a log file of its own, kept when something failed.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.notebooks import ROOT
from tools.processes import running
from utils.table import table

# A network of one's own, with nothing but loopback in it, raised without any other program.
RAISE_LOOPBACK = """
import fcntl, os, socket, struct, sys
up = struct.pack("16sh14x", b"lo", 1)  # struct ifreq with the flag IFF_UP
fcntl.ioctl(socket.socket(), 0x8914, up)  # SIOCSIFFLAGS
os.execvp(sys.argv[1], sys.argv[1:])
"""
OFFLINE = ["unshare", "--user", "--map-root-user", "--net", sys.executable, "-c", RAISE_LOOPBACK]
KILLS = 20  # of each kind
HANDED_DOWN = ("ARGS", "JOBS", "ROUNDS", "NB")  # make passes them on if its user gave them


class Outcome(NamedTuple):
    """How one row ended: `verdict` is passed, FAILED or skipped; `detail` says more."""

    verdict: str
    seconds: float
    detail: str


class Row(NamedTuple):
    """One line of the summary. `run` gets the path of the log file it may write."""

    name: str
    run: Callable[[Path], Outcome]


def counts(report: Path) -> str:
    """`312 passed, 0 failed, 4 skipped` from pytest's XML report."""
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    tests = failed = skipped = 0
    for suite in suites:
        tests += int(suite.get("tests"))
        failed += int(suite.get("failures")) + int(suite.get("errors"))
        skipped += int(suite.get("skipped"))
    return f"{tests - failed - skipped} passed, {failed} failed, {skipped} skipped"


def execute_to_log(command: Sequence[str], log: Path, environment: dict[str, str]) -> int:
    """Run a command with its output in `log`; its exit code."""
    # SIGINT, so that pytest ends its kernels when this is stopped
    with running(command, log, cwd=ROOT, env=environment, ending=signal.SIGINT) as process:
        return process.wait()


def suite(
    log: Path,
    *,
    jobs: int | None = None,
    before: Sequence[str] = (),
    only: str = "",
    more: dict[str, str] | None = None,
) -> Outcome:
    """`make test` once: under the command `before`, some tests `only`, with `more` environment."""
    # What the calling make exports for its own children would change this one.
    foreign = (*HANDED_DOWN, *(k for k in os.environ if k.startswith(("MAKE", "MFLAGS"))))
    environment = {k: v for k, v in os.environ.items() if k not in foreign}
    report = log.with_suffix(".xml")
    environment |= {"PYTEST_ADDOPTS": f"--junitxml={shlex.quote(str(report))}"} | (more or {})
    command = [*before, "make", "test", *([f"JOBS={jobs}"] if jobs else [])]
    command += [f"ARGS={only}"] if only else []
    start = time.perf_counter()
    code = execute_to_log(command, log, environment)
    seconds = time.perf_counter() - start
    detail = counts(report) if report.exists() else f"no report: exit code {code}"
    return Outcome("FAILED" if code else "passed", seconds, detail)


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and what it starts, on a single core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def on_one_core(log: Path) -> Outcome:
    if not hasattr(os, "sched_setaffinity"):
        return Outcome("skipped", 0, "this system cannot keep a program on one core")
    with one_core():
        return suite(log)


def offline(log: Path) -> Outcome:
    if not shutil.which("unshare"):
        return Outcome("skipped", 0, "the program unshare (Linux) is not here")
    trial = subprocess.run([*OFFLINE, "true"], capture_output=True, text=True)
    if trial.returncode:
        lines = trial.stderr.strip().splitlines() or [f"exit code {trial.returncode}"]
        return Outcome("skipped", 0, f"no private network allowed here: {lines[-1]}")
    return suite(log, before=OFFLINE)


def random_kills(log: Path) -> Outcome:
    """The tests that kill or suspend tasks of a cluster, each `KILLS` times at other moments."""
    tests = "tests/test_programs_train.py tests/test_programs_failures.py"
    return suite(log, only=tests, more={"COURSE_KILLS": str(KILLS)})


def each_cell_twice(log: Path) -> Outcome:
    """Every lesson, each cell run again at once: `tools.twice`."""
    start = time.perf_counter()
    code = execute_to_log([sys.executable, "-m", "tools.twice"], log, dict(os.environ))
    detail = "each second output was compared with the first"
    return Outcome("FAILED" if code else "passed", time.perf_counter() - start, detail)


def without_a_home(log: Path) -> Outcome:
    """A kernel with pictures, for a user whose home folder is not there."""
    return suite(log, only="notebooks/00_start_here.ipynb", more={"HOME": "/nonexistent"})


def rows(rounds: int) -> list[Row]:
    """The rows of the summary, in the order they are run."""
    parallel = [Row(f"in parallel, {n} of {rounds}", suite) for n in range(1, rounds + 1)]
    return [
        *parallel,
        Row("serial", lambda log: suite(log, jobs=1)),
        Row("on one core", on_one_core),
        Row("offline", offline),
        Row("without a home", without_a_home),
        Row(f"{KILLS} random kills", random_kills),
        Row("each cell twice", each_cell_twice),
    ]


def soak(plan: Sequence[Row], folder: Path) -> list[Outcome]:
    """Run every row, also after one has failed; a line for each as it ends."""
    width = max(len(row.name) for row in plan)
    outcomes = []
    for number, row in enumerate(plan, 1):
        print(f"{row.name.ljust(width)}  running …", flush=True)
        outcome = row.run(folder / f"{number:02}.log")
        print(f"{row.name.ljust(width)}  {outcome.verdict}: {outcome.detail}", flush=True)
        outcomes.append(outcome)
    return outcomes


def summary(plan: Sequence[Row], outcomes: Sequence[Outcome]) -> str:
    """The table: a line for each row."""
    lines = [("condition", "verdict", "seconds", "detail")]
    for row, (verdict, seconds, detail) in zip(plan, outcomes, strict=True):
        lines.append((row.name, verdict, f"{seconds:.1f}", detail))
    return table(lines, right=[2])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="in parallel (default: 3)")
    options = parser.parse_args(argv)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: give 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = rows(options.rounds)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    print(f"Logs: {folder}")
    outcomes = soak(plan, folder)
    print(f"\n{summary(plan, outcomes)}")
    if any(outcome.verdict == "FAILED" for outcome in outcomes):
        print(f"The logs are kept in {folder}; 01.log is the first row's.")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
