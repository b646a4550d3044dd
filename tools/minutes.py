"""How long a reader needs for a lesson, computed from what is on the page.

The figures are for somebody who reads English as a second language and runs each cell. They
were set by hand once; what counts is that all lessons are measured in the same way.
"""

import re
import sys
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks import read, tags

WORDS = 140  # words of prose a minute: a native reader of technical text makes about 200
OUTPUT_WORDS = 180  # words of output a minute: numbers and short lines
CODE_LINE = 6  # seconds to read a line of code
CELL = 15  # seconds to run a cell and find its output; also for a listing between fences
PREDICTION = 60  # seconds to think and write down a guess
PICTURE = 60  # seconds to look at a picture and its axes
END_OF_CORE = "Key points"

_FENCE = re.compile(r"```.*?\n(.*?)```", re.DOTALL)
_WORD = re.compile(r"[\w'’-]+")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_EXERCISE = re.compile(r"^#+ Exercise .*\((\d+) min", re.MULTILINE)


def _words(text: str, a_minute: int) -> float:
    return len(_WORD.findall(text)) / a_minute * 60


def _lines(code: str) -> float:
    """Comments are prose."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    comments = [line for line in lines if line.startswith("#")]
    return CODE_LINE * (len(lines) - len(comments)) + _words(" ".join(comments), WORDS)


def _output(output: NotebookNode) -> float:
    data = output.get("data", {})
    if "image/png" in data:
        return PICTURE
    text = output.get("text") or data.get("text/plain") or output.get("evalue", "")
    return _words(text, OUTPUT_WORDS)


def seconds(cell: NotebookNode) -> float:
    """Seconds that a cell takes a reader; waiting for its result is inside `CELL`.

    Map and navigation are looked up, not read.
    """
    if "generated" in tags(cell):
        return 0.0
    if cell.cell_type == "code":
        return CELL + _lines(cell.source) + sum(map(_output, cell.outputs))
    listings = _FENCE.findall(cell.source)
    prose = _FENCE.sub("", cell.source)
    return (
        _words(prose, WORDS)
        + sum(CELL + _lines(listing) for listing in listings)
        + PREDICTION * prose.count("**Predict first")
        + PICTURE * prose.count("![")
    )


def sections(nb: NotebookNode) -> dict[str, float]:
    """Minutes of each section by its title; what stands before the first has the title ""."""
    found, title = {"": 0.0}, ""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and (heading := _SECTION.search(cell.source)):
            title = heading[1].strip()
        found[title] = found.get(title, 0.0) + seconds(cell) / 60
    return found


def core_sections(nb: NotebookNode) -> dict[str, float]:
    """The sections before Key points."""
    core = {}
    for title, minutes in sections(nb).items():
        if title.startswith(END_OF_CORE):
            break
        core[title] = minutes
    return core


def core(nb: NotebookNode) -> int:
    """Minutes of a lesson, without Key points and what follows."""
    return round(sum(core_sections(nb).values()))


def exercises(nb: NotebookNode) -> int:
    """Minutes of an exercise notebook, as the titles of its exercises say."""
    texts = (cell.source for cell in nb.cells if cell.cell_type == "markdown")
    return sum(int(minutes) for text in texts for minutes in _EXERCISE.findall(text))


def main(paths: list[str]) -> None:
    """Print the minutes of each section of some notebooks."""
    for path in paths:
        nb = read(Path(path))
        print(f"{path}: core {core(nb)} min")
        for title, minutes in sections(nb).items():
            print(f"  {minutes:5.1f}  {title or 'before the first section'}")


if __name__ == "__main__":
    main(sys.argv[1:])
