"""tools.processes: whatever way it ends, nothing of a command is left."""

import sys

import psutil
import pytest

from tools.processes import running

PARENT = """
import signal, subprocess, sys, time
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


def test_children_end_too_even_those_that_do_not_listen(tmp_path):
    pipe = tmp_path / "log"
    with (
        pytest.raises(KeyboardInterrupt),
        running([sys.executable, "-c", PARENT], pipe, cwd=tmp_path, env={}, grace=0.5) as process,
    ):
        while not pipe.read_text().endswith("\n"):
            assert process.poll() is None
        child = int(pipe.read_text())
        assert psutil.pid_exists(child)
        raise KeyboardInterrupt
    assert not process.is_running()
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie"


def test_the_output_is_in_the_log_and_the_code_is_known(tmp_path):
    command = [sys.executable, "-c", "import sys; print('out'); sys.exit('err')"]
    with running(command, tmp_path / "log", cwd=tmp_path, env={}) as process:
        assert process.wait() == 1
    assert sorted((tmp_path / "log").read_text().split()) == ["err", "out"]
