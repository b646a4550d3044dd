"""A cell that prints something else when it is run again is found."""

import pytest
from small_course import code, notebook, text, write

from tools import twice


@pytest.mark.parametrize(
    ("source", "found"),
    [("n = 1\nprint(n)", 0), ("seen.append(1)\nprint(len(seen))", 1), ("seen.pop()", 1)],
)
def test_a_cell_that_remembers_is_found(tmp_path, capsys, source, found):
    path = write(
        tmp_path / "03_a.ipynb",
        notebook(text("# A"), code("seen = [0]"), code(source, "raises-exception")),
    )
    assert twice.main([str(path)]) == found
    assert f"{found} cells print something else" in capsys.readouterr().out
    assert [p.name for p in tmp_path.iterdir()] == ["03_a.ipynb"]
