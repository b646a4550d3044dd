"""The program that measures a link: what it says and refuses before TensorFlow is loaded.

That all bytes come through is held by claim C26, in tests/claims/test_lesson_05.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LINK = Path(__file__).resolve().parent.parent / "notebooks" / "programs" / "link.py"
DEADLINE = 60  # seconds; without TensorFlow the program ends at once
TYPED = ["--ps_hosts=localhost:2222", "--worker_hosts=localhost:2223", "--job_name=worker"]


def typed(*words: str) -> subprocess.CompletedProcess:
    """Run the program with these words, as somebody would in a terminal."""
    env = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    return subprocess.run(
        [sys.executable, str(LINK), *words],
        capture_output=True,
        text=True,
        env=env,
        timeout=DEADLINE,
        check=False,
    )


def test_help_says_how_it_is_run_by_hand():
    done = typed("--help")
    assert done.returncode == 0 and done.stderr == ""
    for words in ("in two terminals", "--job_name=ps", "--rounds", "Ctrl-C", "no password"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (TYPED, "--task_index is missing"),
        ([*TYPED, "--task_index=1"], "index is 1"),
        ([*TYPED[1:], "--task_index=0"], "no ps"),
        ([*TYPED, "--task_index=0", "--rounds=0"], "--rounds=0: give 1 or more"),
        ([*TYPED, "--task_index=0", "--rounds=many"], "invalid int value"),
        ([], "No role"),
    ],
)
def test_wrong_arguments_end_it_at_once(words, message):
    done = typed(*words)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
