"""Run every cell of the lessons twice in a row: the second time it must print the same.

Learners run a cell again after a look at it. Cells that are not compared with what is stored
(`nbval-ignore-output`) are run twice, too, and not compared.
"""

import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbformat import NotebookNode

from tools import nbenv
from tools.execute import execute
from tools.notebooks import code_cells, lessons, read, tags, where


def printed(cell: NotebookNode) -> list[str]:
    """What a cell shows as text; a picture counts as one word."""
    found = []
    for output in cell.outputs:
        data = output.get("data", {})
        text = "a picture" if "image/png" in data else data.get("text/plain", "")
        found.append(output.get("text") or text or f"{output.ename}: {output.evalue}")
    return found


def doubled(nb: NotebookNode) -> NotebookNode:
    """The notebook with each code cell followed by itself."""
    twice = deepcopy(nb)
    twice.cells = []
    for index, cell in enumerate(nb.cells):
        twice.cells.append(deepcopy(cell))
        if cell.cell_type == "code":
            again = deepcopy(cell)
            again.id = f"again-{index}"
            twice.cells.append(again)
    return twice


def differences(path: Path, nb: NotebookNode) -> Iterator[str]:
    """A line for each cell of an executed doubled notebook that printed something else."""
    cells = [(index, cell) for index, cell in code_cells(nb)]
    for (index, first), (_, second) in zip(cells[::2], cells[1::2], strict=True):
        if "nbval-ignore-output" not in tags(first) and printed(first) != printed(second):
            yield f"{path.name}, {where(nb, index)}:\n  {printed(first)}\n  {printed(second)}"


def main(paths: list[str]) -> int:
    """Print the cells that differ; 1 if there are any."""
    nbenv.apply()
    found = 0
    for path in map(Path, paths) if paths else lessons():
        nb = doubled(read(path))
        with TemporaryDirectory(dir=path.parent, prefix=".twice-") as folder:
            copy = Path(folder) / path.name
            nbformat.write(nb, copy)
            ran = execute(copy, folder=path.parent)
        for line in differences(path, ran):
            found += 1
            print(line, flush=True)
    print(f"{found} cells print something else the second time")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
