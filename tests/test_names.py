"""A missing name is explained after the traceback, in a kernel as set-up leaves it."""

import nbformat
import pytest
from nbclient import NotebookClient

from utils.checks.names import why_missing


@pytest.mark.parametrize(
    ("name", "cell", "part"),
    [
        ("machine", "machine.gpus", "setup cell"),
        ("tf", "x = tf.constant(1)", "setup cell"),
        ("host", 'guess["where"] = host', 'write "host"'),
        ("nowhere", "nowhere + 1", ""),
        ("result", "print(result)", ""),
    ],
)
def test_the_reason(name, cell, part):
    found = why_missing(name, cell)
    assert part in found and bool(found) == bool(part)


def test_the_kernels_of_this_environment_say_it_after_the_traceback():
    cell = nbformat.v4.new_code_cell("print(machine)")
    nb = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(nb, allow_errors=True, timeout=60).execute()
    error, said = nb.cells[0].outputs
    assert error.ename == "NameError" and any("machine" in line for line in error.traceback)
    assert "Run that cell" in said.text
