"""What learners found in a program of their own is asked for, and kept in their folder only."""

import json

import pytest

from utils.checks import findings

FOUND = "My step moves 2 MB from GPU 0 to the host."


@pytest.fixture
def my(tmp_path, monkeypatch):
    monkeypatch.setattr(findings, "MY", tmp_path / "my")
    (tmp_path / "my" / "solutions").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "my")
    return tmp_path / "my" / "findings.json"


def test_a_finding_is_kept_beside_the_others(my, said):
    assert "correct" in said(findings.own("5.5", "w"), FOUND)
    assert "correct" in said(findings.own("3.4", "w"), f"  {FOUND}")
    assert json.loads(my.read_text()) == {"5.5": FOUND, "3.4": FOUND}


@pytest.mark.parametrize(
    ("answer", "part"),
    [(..., "not attempted"), (12, "wanted is a sentence"), ("2 MB", "at least 5 words"),
     ("My step moves much more than I thought.", "name a number")],
)  # fmt: skip
def test_what_is_no_finding_is_not_kept(my, said, answer, part):
    assert part in said(findings.own("5.5", "w"), answer)
    assert not my.exists()


def test_outside_the_learners_folder_nothing_is_written(my, said, monkeypatch):
    monkeypatch.chdir(my.parent.parent)
    assert "correct" in said(findings.own("5.5", "w"), FOUND)
    assert not my.exists()
