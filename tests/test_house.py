"""The house: the commands of make, and the files of the repository."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"(?m)^([a-z]+):", MAKEFILE)) - {"ready"}


def environment(**changes: str) -> dict[str, str]:
    """This environment without what a calling `make` has put into it."""
    ours = {"VENV", "PYTHON", "GPU", "ARGS", "NB", "JOBS"}
    kept = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith("MAKE")}
    return kept | changes


# --- make


def make(*arguments: str) -> str:
    done = subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_alone_lists_every_command_with_what_it_does():
    listing = make()
    listed = dict(re.findall(r"(?m)^  make ([a-z]+) +(\S.+)$", listing))
    assert set(listed) == TARGETS
    assert listing == make("help")
    assert all(len(line) <= 100 for line in listing.splitlines())


def test_every_command_is_phony_and_in_the_readme():
    phony = re.search(r"(?m)^\.PHONY: (.+)$", MAKEFILE)[1].split()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(phony) == TARGETS | {"ready"}
    rows = set(re.findall(r"(?m)^\| `make ?([a-z]*)", readme))
    assert rows == TARGETS - {"help"} | {""}


@pytest.mark.parametrize(("jobs", "words"), [("1", "jobs=0"), ("3", 'jobs="3"')])
def test_make_test_hides_gpus_and_compares_notebooks(jobs, words):
    recipe = make("-n", "test", f"JOBS={jobs}", "ARGS=-k towers")
    assert words in recipe
    assert "CUDA_VISIBLE_DEVICES=-1 " in recipe and " --nbval " in recipe
    assert "-k towers" in recipe


# --- files


def requirements(name: str) -> list[Requirement]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and line[0] not in "#-"]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_file_has_an_exact_version_in_every_range():
    lock = {plain(each.name): str(each.specifier) for each in requirements("requirements.lock")}
    assert all(re.fullmatch(r"==[^*]+", version) for version in lock.values())
    for each in requirements("requirements.txt"):
        assert Version(lock[plain(each.name)].removeprefix("==")) in each.specifier, each
    assert not {"torch", "jupytext", "many-devices"} & set(lock)


def test_the_lock_file_is_made_with_an_early_python():
    """On a later patch release pip picks versions that Debian 12's Python 3.11.2 cannot have."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    made_with = re.search(r"with Python (\d+\.\d+\.\d+)\.", lock)[1]
    assert Version("3.11") <= Version(made_with) <= Version("3.11.2")


def test_the_versions_of_python_agree_everywhere():
    script = (ROOT / "tools/setup_env.sh").read_text(encoding="utf-8")
    oldest, newest = (int(re.search(rf"(?m)^{n}=(\d+)", script)[1]) for n in ("OLDEST", "NEWEST"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    allowed = SpecifierSet(project["project"]["requires-python"])
    assert [n for n in range(30) if f"3.{n}" in allowed] == list(range(oldest, newest + 1))
    assert f"Python 3.{oldest} to 3.{newest}" in (ROOT / "README.md").read_text(encoding="utf-8")


# Tests of the rule that forbids such paths need some.
INVENTED_PATHS = re.compile(r"tests/(bad_notebooks/\w+|test_tools_(rules|sanitize))\.py")


def tracked(root: Path = ROOT) -> list[Path]:
    """The files that git knows; what else is in the folder is its user's."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if listing.returncode:
        pytest.skip("not a git checkout, so nobody knows which files belong to it")
    files = (root / name for name in listing.stdout.split("\0") if name)
    return [path for path in files if path.is_file()]


def test_a_file_of_the_users_own_is_not_read(tmp_path):
    for name in ("ours.txt", "log.txt"):
        (tmp_path / name).write_text("x")
    for command in (["init", "-q"], ["add", "ours.txt"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert tracked(tmp_path) == [tmp_path / "ours.txt"]


def test_no_file_names_a_registry_or_a_folder_of_some_machine():
    hosts = ["pypi" + ".org", "python" + "hosted.org", "npmjs" + ".org", "npmjs" + ".com"]
    names = ["ho" + "me", "ro" + "ot", "wo" + "rk", "tm" + "p", "Us" + "ers"]
    folders = rf"(?<![\w.$~)}}-])/(?:{'|'.join(names)})/"
    pattern = re.compile("|".join([*map(re.escape, hosts), folders]))
    found = []
    for path in tracked():
        name, content = path.relative_to(ROOT).as_posix(), path.read_bytes()
        if b"\0" in content or INVENTED_PATHS.fullmatch(name):
            continue
        for number, line in enumerate(content.decode("utf-8").splitlines(), 1):
            if match := pattern.search(line):
                found.append(f"{name}:{number}: {match[0]}")
    assert not found, "\n".join(found)


def test_scripts_can_be_started_and_have_no_syntax_error():
    assert os.access(ROOT / ".ci/run", os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / ".ci/run")], check=True)
    subprocess.run(["sh", "-n", str(ROOT / "tools/setup_env.sh")], check=True)


def test_jupyterlab_asks_nothing_and_nobody():
    folder = ROOT / "jupyter_config"
    app = json.loads((folder / "jupyter_lab_config.json").read_text())["LabApp"]
    assert app["news_url"] is None and app["extension_manager"] == "readonly"
    assert app["check_for_updates_class"] == "jupyterlab.NeverCheckForUpdate"
    settings = json.loads((folder / "labconfig/default_setting_overrides.json").read_text())
    news = settings["@jupyterlab/apputils-extension:notification"]
    assert news == {"checkForUpdates": False, "fetchNews": "false"}
