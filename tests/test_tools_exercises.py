"""Exercises are made from solutions."""

import pytest
from small_course import code, course, notebook, printed, solution, text, write

from tools import exercises
from tools.notebooks import CourseError, read

FUNCTION = '''def total(x):
    """Return the sum."""
    ### BEGIN SOLUTION
    y = x
    return y.sum()
    ### END SOLUTION
'''


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (FUNCTION, 'def total(x):\n    """Return the sum."""\n    ...'),
        ("### BEGIN SOLUTION answer = ...\nanswer = 3\n### END SOLUTION", "answer = ..."),
        (
            "a = 1\n### BEGIN SOLUTION b = ...  # put it here\nb = 2\n### END SOLUTION\nif a:\n"
            "    ### BEGIN SOLUTION\n    c = 3\n    ### END SOLUTION\n\nprint(a)",
            "a = 1\nb = ...  # put it here\nif a:\n    ...\n\nprint(a)",
        ),
        ("    ### BEGIN SOLUTION\n    x\ny\n### END SOLUTION", "    ..."),
        ("print(1)  # no solution in it", "print(1)  # no solution in it"),
    ],
)
def test_stub(source, expected):
    assert exercises.stub(source) == expected


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("### BEGIN SOLUTION\nx = 1", "the last BEGIN SOLUTION has no END SOLUTION"),
        ("x = 1\n### END SOLUTION", "line 2: END SOLUTION has no partner"),
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION", "line 2: BEGIN SOLUTION"),
        ("# begin solution\nx = 1\n# end solution", "line 1: write a marker alone"),
        ("x = 1  ### BEGIN SOLUTION\n### END SOLUTION", "line 1: write a marker alone"),
    ],
)
def test_markers_must_pair_up(tmp_path, source, problem):
    with pytest.raises(ValueError, match=problem):
        exercises.stub(source)
    nb = notebook(text("## Exercise 3.1"), code(source))
    with pytest.raises(CourseError, match=r"solutions/03_a.ipynb: cell 2 \(Exercise 3.1\): .*\."):
        exercises.exercise(nb, "solutions/03_a.ipynb")


def test_title_and_links_turn_round():
    nb = notebook(
        text(
            "# Solutions: draw\n\nThe solutions of [it](../03.ipynb); [try](../exercises/03.ipynb)."
        )
    )
    assert exercises.exercise(nb, "a").cells[0].source == (
        "# Exercises: draw\n\nThe solutions of [it](../03.ipynb); [try](../solutions/03.ipynb)."
    )
    nb = notebook(text("# Draw — solutions"))
    assert exercises.exercise(nb, "a").cells[0].source == "# Draw — exercises"


def test_outputs_and_solution_only_cells_go_and_ids_stay():
    nb = notebook(
        text("Only here.", "solution-only"),
        code("x = 1", "solution-only"),
        code(FUNCTION, "exercise", outputs=(printed("done"),)),
        code("check(total)", "check", outputs=(printed("correct"),)),
    )
    made = exercises.exercise(nb, "a")
    assert [cell.id for cell in made.cells] == ["cell-3", "cell-4"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in made.cells)
    assert [cell.metadata.tags for cell in made.cells] == [["exercise"], ["check"]]


def test_all_exercises_of_a_course(tmp_path):
    root = course(tmp_path)
    gone = write(root / "notebooks" / "exercises" / "02_gone.ipynb", solution(2))
    files = exercises.build(root)
    assert files[gone] is None
    assert files == exercises.build(root)
    made = root / "notebooks" / "exercises" / "03_draw_a_line.ipynb"
    made.write_text(files[made], encoding="utf-8")
    last = read(made).cells[-1]
    assert last.id == "navigation"
    assert "[solutions](../solutions/03_draw_a_line.ipynb)" in last.source
