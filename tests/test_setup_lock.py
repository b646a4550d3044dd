"""Two set-ups at once: the second waits for the first, and finds its work done."""

import os
import subprocess
import sys

import pytest
from test_tools_run import DEADLINE
from test_tools_setup import STAND_IN, House, environment


@pytest.fixture
def house(tmp_path):
    """A house whose Python makes no environment before something is written to the pipe `gate`."""
    house = House(tmp_path)
    house.gate = tmp_path / "gate"
    os.mkfifo(house.gate)
    stand_in = STAND_IN.replace('"-m venv "*)', f'"-m venv "*) read _ <"{house.gate}";')
    real = f'case "$*" in *fcntl*) exec "{sys.executable}" "$@" ;; esac\n'
    (house.bin / "python3").write_text(stand_in.replace("case", real + "case", 1))
    return house


def start(house: House) -> subprocess.Popen[str]:
    path = f"{house.bin}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        ["sh", str(house.root / "tools/setup_env.sh"), "--say"],
        env=environment(PATH=path, VERSION="3.12", CALLS=str(house.calls)),
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("killed", [False, True], ids=["finished", "killed"])
def test_the_second_waits_for_the_first(house, killed):
    with start(house) as first:
        assert first.stdout.readline().startswith("Setting up")  # it has the lock
        with start(house) as second:
            assert "waiting for its end" in second.stdout.readline()
            if killed:
                first.kill()  # what it has started goes on, and keeps the lock until it ends
            house.gate.write_text("go\n")
            first.wait(DEADLINE)
            said, _ = second.communicate(timeout=DEADLINE)
    assert second.returncode == 0 and "is ready" in said
    made = sum(call.startswith("-m venv") for call in house.calls.read_text().splitlines())
    assert made == 1
