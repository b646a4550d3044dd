"""tools.working_copy: the learner's copies are complete, lead to each other, and are never lost."""

import shutil

import nbformat
import pytest

from tools import working_copy as wc
from tools.notebooks import ROOT


@pytest.fixture
def course(tmp_path, capsys):
    """A course of its own, and `run(*words)`: the command in it, with what it printed."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")

    def run(*words):
        code = wc.main(list(words), tmp_path)
        return code, capsys.readouterr().out

    return tmp_path, run


def test_every_link_of_a_copy_leads_to_a_file_and_lessons_lead_to_copies(course):
    root, run = course
    run()
    copies = list((root / "my").rglob("*.ipynb"))
    assert len(copies) == len(list((root / "notebooks").rglob("*.ipynb")))
    for copy in copies:
        for cell in nbformat.read(copy, 4).cells:
            for link in wc.LINK.findall(cell.source if cell.cell_type == "markdown" else ""):
                to = (copy.parent / link).resolve()
                assert wc.WEB.match(link) or to.is_file(), f"{copy.name}: {link}"
                assert to.suffix != ".ipynb" or to.is_relative_to(root / "my"), link


def test_no_answer_is_stored_under_a_question_but_solutions_keep_theirs(course):
    root, run = course
    run()

    def outputs(path):
        cells = nbformat.read(path, 4).cells
        return [out for cell in cells if cell.cell_type == "code" for out in cell.outputs]

    assert outputs(root / "notebooks" / "00_start_here.ipynb")
    assert not outputs(root / "my" / "00_start_here.ipynb")
    assert outputs(root / "my" / "solutions" / "00_solutions.ipynb")


def test_a_copy_is_never_overwritten_and_a_fresh_one_keeps_it(course):
    root, run = course
    run()
    mine = root / "my" / "05_exercises.ipynb"
    nb = nbformat.read(mine, 4)
    nb.cells[0].source = "my words"
    nbformat.write(nb, mine)
    before = mine.read_text(encoding="utf-8")
    assert run() == (0, "")
    assert mine.read_text(encoding="utf-8") == before
    code, said = run("--fresh", "5")
    assert (code, said.count("\n")) == (0, 1), "only the file that differs is set aside"
    assert mine.with_name("05_exercises_old1.ipynb").read_text(encoding="utf-8") == before
    assert "my words" not in mine.read_text(encoding="utf-8")
    assert "nothing to do" in run("--fresh", "05_exercises.ipynb")[1]


def test_a_lesson_that_has_changed_is_announced_until_it_is_fetched(course):
    root, run = course
    run()
    source = root / "notebooks" / "05_run_in_parallel.ipynb"
    nb = nbformat.read(source, 4)
    nb.cells[-2].source += "\nA new sentence."
    nbformat.write(nb, source)
    assert "make fresh NB=05_run_in_parallel.ipynb" in run()[1]
    run("--fresh", "05_run_in_parallel.ipynb")
    assert run() == (0, "")


def test_a_lesson_that_is_not_there_is_one_sentence(course):
    code, said = course[1]("--fresh", "77")
    assert code == 1 and "NB=77" in said and not (course[0] / "my").exists()
