"""Find, read, name and write notebooks: what every tool here shares."""

from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.prose import headings

ROOT = Path(__file__).resolve().parent.parent
NAME = "[0-9][0-9]_*.ipynb"
KERNELSPEC = {
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
    "name": "python3",
}
LANGUAGE = {
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
}
CELL_METADATA = {"tags", "slideshow", "jupyter"}


class CourseError(Exception):
    """A source of the course is not as a tool needs it; the text says where and what to do."""


def lessons(root: Path = ROOT) -> list[Path]:
    return sorted((root / "notebooks").glob(NAME))


def solutions(root: Path = ROOT) -> list[Path]:
    return sorted((root / "notebooks" / "solutions").glob(NAME))


def exercises(root: Path = ROOT) -> list[Path]:
    return sorted((root / "notebooks" / "exercises").glob(NAME))


def label(path: Path) -> str:
    """`00_x.ipynb` for a lesson, `solutions/00_x.ipynb` for its solutions."""
    folder = path.parent.name
    return f"{folder}/{path.name}" if folder in ("solutions", "exercises") else path.name


def read(path: Path) -> NotebookNode:
    try:
        nb = nbformat.read(path, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError) as error:
        raise CourseError(f"{label(path)}: not a notebook: {error}") from error
    if not all("id" in cell for cell in nb.cells):
        raise CourseError(f"{label(path)}: cells have no ids; open and save it in JupyterLab.")
    return nb


def text_of(nb: NotebookNode) -> str:
    """The file's text, as JupyterLab writes it."""
    return nbformat.writes(nb) + "\n"


def tidy(nb: NotebookNode) -> NotebookNode:
    """Strip, in place, the metadata that differs from one machine or editor to the next."""
    nb.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    nb.nbformat, nb.nbformat_minor = 4, 5
    for cell in nb.cells:
        kept = {k: v for k, v in cell.metadata.items() if k in CELL_METADATA and v}
        cell.metadata = nbformat.from_dict(kept)
    return nb


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def code_cells(nb: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """(index, cell) of every code cell that is not empty."""
    for index, cell in enumerate(nb.cells):
        if cell.cell_type == "code" and cell.source.strip():
            yield index, cell


def heading_above(nb: NotebookNode, index: int) -> str:
    """The title that a reader sees above (or in) cell `index`."""
    for cell in reversed(nb.cells[: index + 1]):
        if cell.cell_type == "markdown" and (found := headings(cell.source)):
            return found[0][1] if cell is nb.cells[index] else found[-1][1]
    return "no heading"


def where(nb: NotebookNode, index: int) -> str:
    """`cell 7 (2 · Two towers)`: cells are counted from 1, text and code alike."""
    return f"cell {index + 1} ({heading_above(nb, index)})"
