"""What a lesson's first cell says: title, one sentence, minutes, needs, part."""

import re
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

from tools import minutes
from tools.notebooks import ROOT, CourseError, label, lessons, read, where
from tools.prose import headings, sentences

PARTS = {"-": "", "I": "One machine", "II": "Train on many devices", "III": "Many machines"}
OBJECTIVES = "By the end you can"  # what the second cell says
FORM = "45 min · needs nothing|03|03, 04 · part -|I|II|III"
LINE = re.compile(
    r"^(?P<minutes>\d+) min · needs (?P<needs>nothing|\d\d(?:, \d\d)*) · part (?P<part>-|I{1,3})$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Lesson:
    """A lesson as the course map shows it; `minutes` of its core, `practice` of its exercises."""

    path: Path
    title: str
    sentence: str
    minutes: int
    needs: tuple[str, ...]
    part: str
    practice: int

    @property
    def number(self) -> str:
        return self.path.name[:2]

    @property
    def name(self) -> str:
        return f"{self.number} · {self.title}"


def lesson(path: Path, nb: NotebookNode | None = None) -> Lesson:
    """Read a lesson's first cell; CourseError says what is missing."""
    nb = nb or read(path)
    source = nb.cells[0].source if nb.cells and nb.cells[0].cell_type == "markdown" else ""
    title = re.match(r"# +(.+)\n", source)
    if not title:
        raise CourseError(f"{label(path)}: cell 1: must be text that begins with `# Title`.")
    line = LINE.search(source)
    if not line:
        raise CourseError(f"{label(path)}: {where(nb, 0)}: needs a line `{FORM}`.")
    text = sentences(" ".join(source[title.end() : line.start()].split()))
    if not text:
        raise CourseError(
            f"{label(path)}: {where(nb, 0)}: needs one sentence between title and minutes."
        )
    needs = () if line["needs"] == "nothing" else tuple(line["needs"].split(", "))
    core, title = minutes.core(nb), title[1].strip()
    return Lesson(path, title, text[0], core, needs, line["part"], _practice(path))


def _practice(path: Path) -> int:
    solutions = path.parent / "solutions" / path.name
    return minutes.exercises(read(solutions)) if solutions.exists() else 0


def all_lessons(root: Path = ROOT) -> list[Lesson]:
    return [lesson(path) for path in lessons(root)]


def sections(nb: NotebookNode) -> list[tuple[int, str]]:
    """(cell index, title) of every H2, in order."""
    return [
        (index, title)
        for index, cell in enumerate(nb.cells)
        if cell.cell_type == "markdown"
        for level, title in headings(cell.source)
        if level == 2
    ]
