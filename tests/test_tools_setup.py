"""tools/setup_env.sh, with a stand-in for Python that only writes down how it was called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def environment(**changes: str) -> dict[str, str]:
    """This environment without what a calling `make` has put into it."""
    ours = {"VENV", "PYTHON", "GPU", "ARGS", "NB", "JOBS"}
    kept = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith("MAKE")}
    return kept | changes


STAND_IN = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    *version_info*) echo "$VERSION" ;;
    *ensurepip*) exit "${ENSUREPIP:-0}" ;;
    *importlib.metadata*) echo 2.21.0 ;;
    "-m venv "*) rm -rf "$4"; mkdir -p "$4/bin"; : >"$4/pyvenv.cfg"; cp "$0" "$4/bin/python" ;;
    *" -r requirements.lock") exit "${LOCK:-0}" ;;
    *" -r requirements.txt") exit "${RANGES:-0}" ;;
esac
"""


class House:
    """A copy of the files that set-up needs, in a folder with a space, with a stand-in Python."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "my course"
        (self.root / "tools").mkdir(parents=True)
        for name in ("requirements.txt", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, self.root)
        shutil.copy(ROOT / "tools/setup_env.sh", self.root / "tools")
        shutil.copytree(ROOT / "jupyter_config", self.root / "jupyter_config")
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.calls = folder / "calls"
        self.python("python3")

    def python(self, name: str) -> None:
        (self.bin / name).write_text(STAND_IN)
        (self.bin / name).chmod(0o755)

    def set_up(self, *options: str, **changes: str) -> subprocess.CompletedProcess:
        """Run the set-up; `pip` of the result lists what pip was asked for."""
        self.calls.write_text("")
        settings = {"VERSION": "3.12", "CALLS": str(self.calls)} | changes
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", str(self.root / "tools/setup_env.sh"), *options],
            env=environment(PATH=path, **settings),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        calls = self.calls.read_text().splitlines()
        done.pip = [call.split("-m pip install ")[1] for call in calls if "pip install" in call]
        done.made = sum(call.startswith("-m venv") for call in calls)
        return done


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def test_set_up_installs_the_lock_once_and_is_then_silent(house):
    first = house.set_up()
    assert first.returncode == 0 and first.made == 1
    assert first.pip == ["-r requirements.lock", "--no-deps --no-build-isolation -e ."]
    assert "exact versions of requirements.lock" in first.stdout
    second = house.set_up()
    assert (second.returncode, second.stdout, second.pip) == (0, "", [])
    assert "is ready" in house.set_up("--say").stdout


def test_set_up_uses_the_ranges_and_says_so_where_the_lock_does_not_install(house):
    done = house.set_up(LOCK="1")
    assert done.returncode == 0
    assert done.pip[:2] == ["-r requirements.lock", "-r requirements.txt"]
    assert "ranges of requirements.txt" in done.stdout


def test_set_up_in_continuous_integration_insists_on_the_lock(house):
    done = house.set_up("--exact", LOCK="1")
    assert done.returncode != 0
    assert done.pip == ["-r requirements.lock"]
    assert "requirements.lock does not install" in done.stderr


def test_a_set_up_that_failed_does_not_look_finished(house):
    failed = house.set_up(LOCK="1", RANGES="1")
    assert failed.returncode != 0
    assert "run the command again" in " ".join(failed.stderr.split())
    again = house.set_up()
    assert again.returncode == 0 and again.made == 1
    assert "an earlier set-up was not finished" in again.stdout


def test_changed_requirements_update_the_environment_in_place(house):
    house.set_up()
    (house.root / "requirements.lock").write_text("numpy==2.0\n")
    # Without a network the update fails; the environment stays, and the old lock still does.
    assert house.set_up(LOCK="1", RANGES="1").returncode != 0
    shutil.copy(ROOT / "requirements.lock", house.root)
    done = house.set_up()
    assert done.returncode == 0 and done.made == 0
    assert done.pip[0] == "-r requirements.lock"


def test_a_moved_environment_is_made_anew(house):
    house.set_up()
    house.root = house.root.rename(house.root.with_name("moved"))
    done = house.set_up()
    assert done.returncode == 0 and done.made == 1
    assert "it was moved here from" in done.stdout and "my course" in done.stdout
    assert house.set_up().pip == []


def test_an_environment_whose_python_is_gone_is_made_anew(house):
    house.set_up()
    (house.root / ".venv/bin/python").unlink()
    assert house.set_up().made == 1


def test_set_up_never_empties_a_folder_that_is_no_environment(house, tmp_path):
    precious = tmp_path / "documents"
    precious.mkdir()
    (precious / "thesis").write_text("mine")
    done = house.set_up(VENV=str(precious))
    assert done.returncode != 0 and "not a virtual environment" in done.stderr
    assert (precious / "thesis").read_text() == "mine"


def test_cuda_libraries_come_at_the_installed_version_and_stay(house):
    house.set_up()
    assert house.set_up(GPU="1").pip[-1] == "tensorflow[and-cuda]==2.21.0"
    assert house.set_up().pip == []
    refused = house.set_up(GPU="yes")
    assert refused.returncode != 0 and "use GPU=1" in refused.stderr


@pytest.mark.parametrize("version", ["3.10", "3.14", "2.7", "4.0"])
def test_set_up_refuses_a_python_that_does_not_suit(house, version):
    done = house.set_up(VERSION=version)
    assert done.returncode != 0 and done.made == 0
    assert f"python3 is Python {version}, but the course needs Python 3.11 to 3.13" in done.stderr
    assert "PYTHON=" in done.stderr


def test_set_up_names_a_python_of_the_machine_that_suits(house):
    house.python("python3.13")
    old = house.bin / "old"
    old.write_text("#!/bin/sh\necho 3.9\n")
    old.chmod(0o755)
    done = house.set_up(PYTHON="old", VERSION="3.13")
    assert "add PYTHON=python3.13 to the make command" in done.stderr


def test_set_up_says_when_there_is_no_python_or_it_does_not_answer(house):
    assert "PYTHON=nowhere is not a Python" in house.set_up(PYTHON="nowhere").stderr
    assert "PYTHON=python3 is not a Python" in house.set_up(VERSION="Python was not found").stderr


def test_set_up_says_what_to_install_where_venv_is_missing(house):
    done = house.set_up(ENSUREPIP="1")
    assert done.returncode != 0 and done.made == 0
    assert "sudo apt install python3.12-venv" in " ".join(done.stderr.split())
