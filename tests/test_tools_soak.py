"""tools.soak: its rows, their conditions and its summary; nothing is run many times here."""

import os
import re
from pathlib import Path

import pytest

from tools import soak


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
    assert names[2:6] == ["serial", "on one core", "offline", "without a home"]
    assert names[6:] == ["20 random kills", "each cell twice"]


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
