"""Rules for exercises, which are written in the solution notebooks."""

import re
from typing import NamedTuple

from tools.notebooks import tags
from tools.prose import headings
from tools.rulebook import SOLUTION, Page, Problems, rule
from tools.rulebook.stored import output_text

FEWEST, MOST = 3, 7
TITLE = re.compile(r"Exercise (\d+)\.(\d+) — \S.* \(\d+ min, ★{1,3}\)")


class Exercise(NamedTuple):
    """An exercise: its title and the cells from there to the next title."""

    start: int
    title: str
    end: int


def exercises(page: Page) -> list[Exercise]:
    titles = [
        (index, level, title) for index, cell in page.text for level, title in headings(cell.source)
    ]
    found = []
    for number, (index, level, title) in enumerate(titles):
        if title.startswith("Exercise"):
            after = (i for i, other, _ in titles[number + 1 :] if other <= level)
            found.append(Exercise(index, title, next(after, len(page.nb.cells))))
    return found


@rule(SOLUTION)
def exercise_count(page: Page) -> Problems:
    if not FEWEST <= (count := len(exercises(page))) <= MOST:
        yield None, f"{count} exercises; {FEWEST} to {MOST} are right"


@rule(SOLUTION)
def exercise_titles(page: Page) -> Problems:
    lesson = int(page.path.name[:2])
    for number, exercise in enumerate(exercises(page), 1):
        found = TITLE.fullmatch(exercise.title)
        if not found or (int(found[1]), int(found[2])) != (lesson, number):
            form = f"Exercise {lesson}.{number} — Title (10 min, ★★)"
            yield exercise.start, f"title {exercise.title!r}: must be `### {form}`"


@rule(SOLUTION)
def hints(page: Page) -> Problems:
    for exercise in exercises(page):
        cells = page.nb.cells[exercise.start : exercise.end]
        if not any(c.cell_type == "markdown" and "<details>" in c.source for c in cells):
            yield exercise.start, "has no hint in <details>"


@rule(SOLUTION)
def exercise_cells(page: Page) -> Problems:
    """Something to fill in, then a check, in every exercise."""
    for exercise in exercises(page):
        kinds = [
            kind
            for cell in page.nb.cells[exercise.start : exercise.end]
            for kind in ("exercise", "check")
            if kind in tags(cell)
        ]
        if "exercise" not in kinds or kinds[-1] != "check":
            yield exercise.start, "needs a cell tagged `exercise`, followed by one tagged `check`"


@rule(SOLUTION)
def marked_solutions(page: Page) -> Problems:
    for index, cell in page.code:
        if ("exercise" in tags(cell)) != ("### BEGIN SOLUTION" in cell.source):
            yield index, "the tag `exercise` and `### BEGIN SOLUTION` must go together"


@rule(SOLUTION)
def correct_answers(page: Page) -> Problems:
    for index, cell in page.code:
        if "check" in tags(cell) and not re.search(r"\bcorrect\b", output_text(cell)):
            yield index, "the check does not say `correct` to the solution"
