"""Generated files are written, checked, and named when they are stale."""

import pytest
from small_course import course

from tools import generate, generated


@pytest.fixture
def main(tmp_path, monkeypatch):
    root = course(tmp_path)
    monkeypatch.setattr(generated, "ROOT", root)
    return lambda *arguments: generated.main(generate.build, "text", list(arguments))


def test_check_names_what_is_stale_and_writes_nothing(main, tmp_path, capsys):
    assert main("--check") == 1
    report = capsys.readouterr().out.splitlines()
    assert "notebooks/glossary.md: stale, run `make exercises`" in report
    assert len(report) == 12  # 2 lessons, solutions, exercises, pictures; 4 pages
    assert not (tmp_path / "notebooks" / "glossary.md").exists()


def test_write_then_check(main, tmp_path, capsys):
    assert main() == 0
    assert "README.md: written" in capsys.readouterr().out
    assert main("--check") == 0
    assert capsys.readouterr().out == "12 files up to date\n"
    gone = tmp_path / "notebooks" / "solutions" / "03_draw_a_line.ipynb"
    gone.unlink()
    assert main("--check") == 1
    assert "exercises/03_draw_a_line.ipynb: stale" in capsys.readouterr().out
    assert main() == 0
    assert not (tmp_path / "notebooks" / "exercises" / "03_draw_a_line.ipynb").exists()


def test_all_problems_are_told(main, tmp_path, capsys):
    (tmp_path / "README.md").write_text("# Course\n")
    (tmp_path / "tools" / "glossary_terms.toml").write_text('worker = "工作"')
    assert main() == 1
    report = capsys.readouterr().out
    assert "README.md: needs the lines" in report
    assert '"worker" is bold in no lesson' in report
    assert not (tmp_path / "notebooks" / "glossary.md").exists()


def test_table_row():
    assert generated.row(["a|b", "c\nd", ""]) == r"| a\|b | c d |  |"
