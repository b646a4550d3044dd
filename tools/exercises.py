"""Make notebooks/exercises from notebooks/solutions.

Between `### BEGIN SOLUTION` and `### END SOLUTION` the answer becomes `...`, or what follows
the first marker on its line: `### BEGIN SOLUTION answer = ...`. Outputs go, cells tagged
`solution-only` go, and links between the two folders turn round.
"""

import re
import sys
from pathlib import Path

from nbformat import NotebookNode

from tools import generated
from tools.lessons import all_lessons
from tools.navigation import CELL, for_practice, with_navigation
from tools.notebooks import CourseError, exercises, label, read, solutions, tags, text_of, tidy
from tools.notebooks import where as place

MARKER = re.compile(r"^(?P<indent>\s*)### (?P<side>BEGIN|END) SOLUTION(?:\s+(?P<stub>.*))?$")
ANY_MARKER = re.compile(r"(?i)\b(begin|end)\s+solution\b")
TITLE = re.compile(r"\A# .*")


def stub(source: str) -> str:
    """A code cell without its answers; ValueError where the markers do not pair up."""
    lines = []
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        marker = MARKER.match(line)
        if not marker and ANY_MARKER.search(line):
            raise ValueError(
                f"line {number}: write a marker alone on its line, as `### BEGIN SOLUTION` or "
                "`### END SOLUTION`"
            )
        if marker:
            if inside is (marker["side"] == "BEGIN"):
                raise ValueError(f"line {number}: {marker['side']} SOLUTION has no partner")
            inside = not inside
            if inside:
                lines.append(marker["indent"] + (marker["stub"] or "..."))
        elif not inside:
            lines.append(line)
    if inside:
        raise ValueError("the last BEGIN SOLUTION has no END SOLUTION")
    return "\n".join(lines)


def _as_exercise_text(source: str) -> str:
    """Title and links of a solution's text, turned round."""
    source = TITLE.sub(
        lambda title: title[0].replace("Solutions", "Exercises").replace("solutions", "exercises"),
        source,
    )
    return source.replace("](../exercises/", "](../solutions/")


def exercise(nb: NotebookNode, name: str) -> NotebookNode:
    """The exercise notebook for a solution notebook, which is changed in place."""
    for index, cell in enumerate(nb.cells):
        if cell.cell_type == "markdown":
            cell.source = _as_exercise_text(cell.source)
        elif cell.cell_type == "code":
            try:
                cell.source = stub(cell.source)
            except ValueError as error:
                raise CourseError(f"{name}: {place(nb, index)}: {error}.") from error
            cell.outputs, cell.execution_count = [], None
    nb.cells = [c for c in nb.cells if "solution-only" not in tags(c) and c.id != CELL]
    return tidy(nb)


def build(root: Path) -> generated.Files:
    """Every exercise notebook as it must be; None for one whose solutions are gone."""
    course = all_lessons(root)
    files: generated.Files = dict.fromkeys(exercises(root))
    for path in solutions(root):
        nb = exercise(read(path), label(path))
        with_navigation(nb, for_practice(course, path, "solutions"))
        files[root / "notebooks" / "exercises" / path.name] = text_of(nb)
    return files


if __name__ == "__main__":
    sys.exit(generated.main(build, __doc__))
