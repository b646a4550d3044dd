"""tools.marks: real checks in real kernels, one row a notebook."""

import nbformat
import pytest

from tools import marks

RIGHT = '{"a": "driver", "b": "libraries", "c": "visibility", "d": "build"}'


def hand_in(folder, name, answer):
    cells = [
        "from utils.checks.lesson01 import check_01_layers, check_01_short",
        f"check_01_layers({answer})\nundefined",
        "check_01_short(...)",
    ]
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    (folder / name).mkdir()
    nbformat.write(nb, folder / name / "01_exercises.ipynb")


def test_who_solved_what(tmp_path, capsys):
    hand_in(tmp_path, "Li", RIGHT)
    hand_in(tmp_path, "Noor", '{"a": "driver"}')
    assert marks.main(tmp_path) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[:4] == [
        ["1.1", "1.2", "correct"],
        ["Li/01_exercises.ipynb", "+", ".", "1"],
        ["Noor/01_exercises.ipynb", "-", ".", "0"],
        ["correct", "in", "all", "1", "0"],
    ]


@pytest.mark.parametrize(("text", "part"), [(None, "no notebooks"), ("{", "not a notebook")])
def test_what_cannot_be_marked_is_named(tmp_path, capsys, text, part):
    if text:
        (tmp_path / "broken.ipynb").write_text(text)
    assert marks.main(tmp_path) == 1
    assert part in capsys.readouterr().out
