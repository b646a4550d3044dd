"""Run lessons with every code cell executed twice in a row: the second output must be the first.

Learners run a cell again. Left out are cells tagged `nbval-ignore-output` (nothing compares them,
for the reasons in tools/rulebook/unchecked.py) and the pictures of cells tagged `measured`, which
are of seconds.
"""

import argparse
import difflib
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools import nbenv
from tools.execute import CellFailed
from tools.notebooks import code_cells, heading_above, label, lessons, read, tags
from tools.outputs import rules, run, same_outputs, same_png
from tools.rulebook.stored import output_text


def doubled(nb: NotebookNode) -> NotebookNode:
    """The notebook with a copy of every code cell behind it; an error in a copy stops nothing."""
    cells = []
    for cell in nb.cells:
        cells.append(cell)
        if cell.cell_type == "code" and cell.source.strip():
            again = nbformat.from_dict(cell)
            again.id += "-again"
            again.metadata["tags"] = sorted({*tags(cell), "raises-exception"})
            cells.append(again)
    return nbformat.from_dict({**nb, "cells": cells})


def differences(nb: NotebookNode) -> list[str]:
    """Where the second output of a cell is not the first, in an executed doubled notebook."""
    found = []
    cells = [each for each in code_cells(nb) if "nbval-ignore-output" not in tags(each[1])]
    for (index, first), (_, second) in zip(cells[::2], cells[1::2], strict=True):
        same_picture = (lambda one, other: True) if "measured" in tags(first) else same_png
        if not same_outputs(first.outputs, second.outputs, rules(), same_picture):
            once, again = (output_text(cell).splitlines() for cell in (first, second))
            lines = list(difflib.unified_diff(once, again, "first", "second", lineterm=""))
            shown = "\n  ".join(lines or ["the picture differs"])
            found.append(f"{heading_above(nb, index)!r}, cell id {first.id!r}\n  {shown}")
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: every lesson")
    nbenv.apply()
    bad = 0
    for path in parser.parse_args(argv).notebooks or lessons():
        try:
            found = differences(run(path, doubled(read(path))))
        except CellFailed as error:
            found = [str(error)]
        bad += len(found)
        print(f"{label(path)}: {len(found) or 'no'} cells differ", *found, sep="\n", flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
