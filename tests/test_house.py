"""The house: commands, set-up, files of the repository, and the tools that run and measure."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbformat import v4
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tools import bench, bench_figure, browser_smoke, run, soak
from tools.execute import CellFailed, execute

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"(?m)^([a-z]+):", MAKEFILE)) - {"ready"}
DEADLINE = 120  # seconds until a test gives up waiting


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


# --- set-up, with a stand-in for Python that only writes down how it was called

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
        (self.root / "jupyter_config").mkdir()
        shutil.copy(ROOT / "jupyter_config/ipython_kernel_config.py", self.root / "jupyter_config")
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


# --- executing notebooks


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook of the given code cells; the last one stands under its own heading."""

    def write(name: str, *sources: str, tags: tuple[str, ...] = ()) -> Path:
        cells = [v4.new_markdown_cell("# A lesson"), *map(v4.new_code_cell, sources)]
        cells.insert(-1, v4.new_markdown_cell("## 2 · The last part"))
        cells[-1].metadata["tags"] = list(tags)
        path = tmp_path / name
        nbformat.write(v4.new_notebook(cells=cells), str(path))
        return path

    return write


def test_execute_returns_outputs_and_leaves_the_file(notebook):
    path = notebook("00_a.ipynb", "x = 6", "print(x * 7)\n1 / 0", tags=("raises-exception",))
    before = path.read_bytes()
    seen = []
    result = execute(path, on_cell=lambda *numbers: seen.append(numbers))
    assert seen == [(1, 2), (2, 2)]
    assert result.cells[-1].outputs[0].text == "42\n"
    assert result.cells[-1].outputs[1].ename == "ZeroDivisionError"
    assert path.read_bytes() == before


def test_execute_says_where_a_kernel_died(notebook):
    path = notebook("00_a.ipynb", "import os", "os.write(2, b'out of luck\\n'); os.abort()")
    with pytest.raises(CellFailed) as raised:
        execute(path)
    failure = raised.value
    assert (failure.notebook, failure.heading, failure.cell) == (path, "2 · The last part", 2)
    assert failure.ename == "DeadKernel"


def start_run(*paths: Path, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tools.run", *map(str, paths)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def test_run_reports_a_failing_lesson_and_goes_on(notebook):
    bad = notebook("00_bad.ipynb", "x = 1", "raise ValueError('first line\\nlast line')")
    good = notebook("01_good.ipynb", "1")
    with start_run(bad, good) as process:
        output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert f"{bad} failed" in output
    assert "section '2 · The last part', code cell In [2]" in output
    assert "ValueError: last line" in output and "make lab" in output
    assert re.search(r"(?m)00_bad.ipynb +\d+\.\d  FAILED$", output)
    assert re.search(r"(?m)01_good.ipynb +\d+\.\d  ok$", output)
    assert output.endswith("1 of 2 failed\n")


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_leaves_no_kernel(notebook, tmp_path, kind):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    code = f"import os, time\nopen({str(pipe)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"

    def heed() -> None:  # what a shell starts in the background ignores SIGINT
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with start_run(notebook("00_a.ipynb", code), preexec_fn=heed) as process:
        assert select.select([reader], [], [], DEADLINE)[0], "the kernel did not start"
        kernel = int(os.read(reader, 20))
        os.close(reader)
        process.send_signal(kind)
        output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130 and "no kernel is left running" in output
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)


def test_run_counts_every_lesson(capsys):
    failure = CellFailed(Path("notebooks/01_b.ipynb"), "2 · Part", 3, "KeyError", "'x'")
    results = [run.Result(Path("notebooks/00_a.ipynb"), 1.25, None)]
    run.report(results, 20)
    assert capsys.readouterr().out.endswith("all 1 ok\n")
    run.report([*results, run.Result(failure.notebook, 2.0, failure)], 20)
    output = capsys.readouterr().out
    assert "notebooks/01_b.ipynb failed" in output and "1 of 2 failed" in output


# --- soak


def fake_row(verdict: str, seen: list) -> soak.Row:
    def outcome(log: Path) -> soak.Outcome:
        seen.append(log.name)
        return soak.Outcome(verdict, 1.5, f"it {verdict}")

    return soak.Row(f"a {verdict} row", outcome)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [(["passed", "skipped"], 0), (["FAILED", "passed"], 1)],
)
def test_soak_runs_every_row_and_fails_if_one_does(monkeypatch, capsys, tmp_path, verdicts, code):
    seen = []
    monkeypatch.setattr(soak, "rows", lambda rounds: [fake_row(v, seen) for v in verdicts])
    monkeypatch.setattr(soak.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "logs"))
    monkeypatch.setattr(soak.signal, "signal", lambda *_: None)
    (tmp_path / "logs").mkdir()
    assert soak.main(["--rounds", "2"]) == code
    assert seen == ["01.log", "02.log"]
    table = capsys.readouterr().out.split("condition")[1]
    for verdict in verdicts:
        assert re.search(rf"a {verdict} row +{verdict} +1\.5  it {verdict}", table)
    assert (tmp_path / "logs").exists() == bool(code)


def test_soak_has_its_rows():
    names = [row.name for row in soak.rows(2)]
    assert names[:2] == ["in parallel, 1 of 2", "in parallel, 2 of 2"]
    others = ["serial", "on one core", "offline", "without a home", "20 random kills"]
    assert names[2:] == others


def test_soak_kills_at_many_moments(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        soak, "execute_to_log", lambda command, log, env: seen.append((command, env)) or 1
    )
    soak.random_kills(tmp_path / "x.log")
    ((command, environment),) = seen
    assert environment["COURSE_KILLS"] == "20"
    assert command[:2] == ["make", "test"]
    files = command[2].removeprefix("ARGS=").split()
    assert len(files) == 2
    assert all("KILLS" in (soak.ROOT / file).read_text() for file in files)


def test_soak_counts_from_the_report_of_pytest(monkeypatch, tmp_path):
    report = (
        '<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" />'
        "</testsuites>"
    )
    commands = []

    def pytest_run(command, log, env):
        commands.append((command, env["PYTEST_ADDOPTS"]))
        assert "of the make above" not in env.values()
        log.with_suffix(".xml").write_text(report)
        return 2

    monkeypatch.setattr(soak, "execute_to_log", pytest_run)
    for name in ("ARGS", "JOBS", "ROUNDS", "NB", "MAKEFLAGS"):
        monkeypatch.setenv(name, "of the make above")
    outcome = soak.suite(tmp_path / "a b.log", jobs=1, before=["under"])
    assert (outcome.verdict, outcome.detail) == ("FAILED", "4 passed, 3 failed, 3 skipped")
    command, options = commands[0]
    assert command == ["under", "make", "test", "JOBS=1"]
    assert options == f"--junitxml='{tmp_path / 'a b.xml'}'"


def test_soak_says_why_it_cannot_go_offline(monkeypatch, tmp_path):
    monkeypatch.setattr(soak.shutil, "which", lambda name: None)
    outcome = soak.offline(tmp_path / "x.log")
    assert outcome.verdict == "skipped" and "unshare" in outcome.detail


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_one_core_is_one_core_and_only_inside():
    before = os.sched_getaffinity(0)
    with soak.one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


# --- bench


def test_bench_summary_is_best_median_and_spread():
    assert bench_figure.summary([3.0, 2.0, 4.0]) == (2.0, 3.0, 1.0)


def test_bench_reads_the_load_of_the_machine(tmp_path):
    stat = tmp_path / "stat"
    #             user nice system idle iowait irq softirq steal guest guest_nice
    stat.write_text("cpu  100 10 20 700 30 5 5 130 40 0\ncpu0 1 2 3\n")
    per_second = os.sysconf("SC_CLK_TCK")
    assert bench_figure.processor_seconds(stat) == (270 / per_second, 1000 / per_second)
    assert bench_figure.processor_seconds(tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("others", "words"),
    [(0.05, "5.0% of the processors (quiet)"), (0.051, "no verdict"), (None, "unknown")],
)
def test_bench_gives_no_verdict_on_a_busy_machine(others, words):
    assert words in bench_figure.verdict(others)


def test_bench_counts_living_children_as_its_own(monkeypatch):
    before, after = (10.0, 100.0), (14.0, 108.0)
    for own, others in (([0.0, 3.0], 1 / 8), ([2.0, 7.0], 0.0)):
        readings = iter([before, after])
        monkeypatch.setattr(bench_figure, "processor_seconds", lambda r=readings: next(r))
        monkeypatch.setattr(bench_figure, "own_seconds", lambda: 5.0)
        seconds = iter(own)
        with bench_figure.watched(lambda s=seconds: next(s)) as load:
            pass
        assert load.others == others


def test_a_figure_shows_its_notes_and_without_rows_no_verdict():
    rows = [("a", 1.0)]
    figure = bench_figure.Figure("Title", ("what", "s"), rows, 0.01, ("A note.",))
    lines = bench_figure.table(figure).splitlines()
    assert lines[-2:] == ["A note.", "Load by other programs: 1.0% of the processors (quiet)."]
    none = figure._replace(rows=[], others=None)
    assert bench_figure.table(none) == "Title\nA note."


def test_bench_times_every_lesson_and_writes_json(monkeypatch, tmp_path, capsys):
    names = [tmp_path / "notebooks" / name for name in ("00_a.ipynb", "01_b.ipynb")]
    executed = []
    monkeypatch.setattr(bench, "lessons", lambda: names)
    monkeypatch.setattr(bench, "execute", executed.append)
    target = tmp_path / "bench.json"
    assert bench.main(["--only", "lessons", "--rounds", "2", "--json", str(target)]) == 0
    assert executed == [names[0], names[0], names[1], names[1]]
    content = json.loads(target.read_text())
    figure = content["figures"]["lessons"]
    assert [row[0] for row in figure["rows"]] == ["00_a.ipynb", "01_b.ipynb", "together"]
    assert len(figure["columns"]) == len(figure["rows"][0])
    assert content["machine"]["cores"] >= 1 and str(tmp_path) not in target.read_text()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Executing the lessons" and lines[2].startswith("00_a.ipynb ")


def test_the_suite_is_compared_with_what_it_cannot_go_below(monkeypatch):
    monkeypatch.setattr(bench, "import_tensorflow", lambda: None)
    monkeypatch.setattr(bench, "seconds_of", lambda action, rounds: [4.0, 6.0, 5.0])
    monkeypatch.setattr(bench, "cores", lambda: 2)
    outcome = soak.Outcome("passed", 240.0, "9 passed, 0 failed, 1 skipped")

    def suite(log):
        log.write_text("first\nlast words\n")
        return outcome

    monkeypatch.setattr(bench.soak, "suite", suite)
    figure = bench.suite_against_floor(3)
    imports, floor, whole = figure.rows
    kernels = int(floor[0].split()[0])
    assert imports[1:] == (4.0, 5.0, 0.5)
    assert floor[1:3] == (kernels / 2 * 4.0, kernels / 2 * 5.0)
    assert whole[1] == 240.0
    assert figure.notes == (
        f"make test passed (9 passed, 0 failed, 1 skipped): {240 / (kernels * 2):.1f} × floor.",
    )
    outcome = outcome._replace(verdict="FAILED")
    (note,) = bench.suite_against_floor(3).notes
    assert "FAILED" in note and note.endswith("last words") and "×" not in note


# --- browser


def cell(**changes) -> dict:
    return {"empty": False, "count": 1, "running": False, "errors": [], "pictures": 0} | changes


def test_the_browser_check_finds_what_a_learner_would_stumble_over(notebook):
    path = notebook("00_a.ipynb", "1", "2", "3", tags=("raises-exception",))
    nb = nbformat.read(path, as_version=4)
    picture = v4.new_output("display_data", {"image/png": "AAAA"})
    nb.cells[1].outputs = [picture]
    nbformat.write(nb, str(path))
    good = [cell(pictures=1), cell(), cell(errors=["E: wanted"])]
    assert browser_smoke.problems_of({"cells": good}, path) == []
    bad = [cell(), cell(errors=["E: x"]), cell(count=None)]
    assert browser_smoke.problems_of({"cells": bad}, path) == [
        "code cell 1: 0 of 1 pictures",
        "code cell 2: E: x",
        "code cell 3 did not run",
    ]
    assert "2 code cells in the browser" in browser_smoke.problems_of({"cells": good[:2]}, path)[0]


def test_the_browser_check_says_how_to_get_chromium(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROMIUM", raising=False)
    assert browser_smoke.find_chromium() is None
    with pytest.raises(SystemExit, match="apt-get install chromium"):
        browser_smoke.main(["README.md"])
