"""What tests share: a fresh Python process, this process's machine, what a check says."""

import functools
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable

import matplotlib
import pytest

from tools import nbenv

DEADLINE = 120  # seconds; a TensorFlow process usually needs under ten
matplotlib.use("Agg")


@functools.cache
def _machine():
    from utils.start import begin

    return begin(gpus=4, names=True)


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Begin before the first test file that brings in TensorFlow; `begin` has to come first."""
    if isinstance(collector, pytest.Module):
        source = collector.path.read_text(encoding="utf-8")
        if re.search(r"^(?:import|from) (?:utils|tensorflow)\b", source, re.MULTILINE):
            _machine()


@pytest.fixture(scope="session")
def machine():
    """The host and four GPUs, virtual where there are none; one per test process."""
    return _machine()


@pytest.fixture
def said(machine, capsys):
    """`said(check, answer)` runs an exercise's check and returns the first line it prints."""

    def run(check, *answers):
        check(*answers)
        return capsys.readouterr().out.splitlines()[0]

    return run


@pytest.fixture
def fresh(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`fresh(code, NAME="value")` runs Python code in a new process, in an empty folder.

    The process has the notebooks' environment (`tools.nbenv`) and the variables given; a value
    of None removes one. Returns the CompletedProcess: stdout and stderr as text, returncode.
    """

    def run(code: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
        env = {**nbenv.apply(dict(os.environ)), "MPLBACKEND": "Agg", **variables}
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={name: value for name, value in env.items() if value is not None},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )

    return run
