"""Every exercise notebook, untouched, runs to its end, and every check says so."""

import pytest

from tools.notebooks import code_cells, exercises, label, tags
from tools.outputs import run
from tools.rulebook.stored import output_text


@pytest.mark.parametrize("path", exercises(), ids=label)
def test_untouched_exercises_run_to_the_end(path):
    before = path.read_bytes()
    nb = run(path)
    said = {cell.id: output_text(cell) for _, cell in code_cells(nb) if "check" in tags(cell)}
    assert said
    assert {id: text for id, text in said.items() if "not attempted" not in text} == {}
    assert path.read_bytes() == before
