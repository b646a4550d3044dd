"""Rules for the frame of a notebook: title, objectives, setup, sections."""

import ast
import re

from tools.lessons import OBJECTIVES, lesson
from tools.notebooks import CourseError, tags
from tools.prose import bullets, headings, links
from tools.rulebook import LESSON, SOLUTION, Page, Problems, rule

MOST_SECTIONS = 7
# Titles that close a lesson, in this order; (title, must be there)
CLOSING = (
    ("In your project", True),
    ("Key points", True),
    ("Then and now", True),
    ("Going further", False),
    ("In practice", True),
    ("Further reading", True),
)
SETUP = (
    "from utils.start import begin",
    "machine = begin(",
    "import tensorflow as tf",
)


@rule(LESSON, SOLUTION)
def one_title(page: Page) -> Problems:
    found = [(i, level) for i, cell in page.text for level, _ in headings(cell.source)]
    titles = [i for i, level in found if level == 1]
    if titles != [0]:
        cells = ", ".join(str(i + 1) for i in titles) or "no cell"
        yield None, f"the only H1 (`# Title`) must stand in cell 1; it stands in {cells}"


@rule(LESSON)
def front_matter(page: Page) -> Problems:
    try:
        entry = lesson(page.path, page.nb)
    except CourseError as error:
        yield 0, str(error)
        return
    late = [number for number in entry.needs if number >= entry.number]
    if late:
        yield 0, f"needs {', '.join(late)}: a lesson can only need earlier ones"


@rule(SOLUTION)
def solution_title(page: Page) -> Problems:
    title = next((t for _, cell in page.text[:1] for _, t in headings(cell.source)), "")
    if not re.search(r"(?i)\bsolutions\b", title):
        yield 0, f"the title {title!r} must say `solutions`; the exercises' title follows from it"


@rule(LESSON)
def objectives(page: Page) -> Problems:
    cell = page.nb.cells[2] if len(page.nb.cells) > 2 else None
    if cell is None or cell.cell_type != "markdown" or OBJECTIVES not in cell.source:
        yield 2, f"must say `{OBJECTIVES}` and list the objectives"
    elif not 3 <= (count := bullets(cell.source)) <= 6:
        yield 2, f"{count} objectives; 3 to 6 are right"


@rule(LESSON)
def opening(page: Page) -> Problems:
    number = page.path.name[:2]
    cell = page.nb.cells[1] if len(page.nb.cells) > 1 else None
    picture = rf"\w.*\n\n!\[[^\]]+\]\(pictures/{number}\.svg\)$"
    if cell is None or not re.search(picture, cell.source, re.DOTALL):
        yield (
            1,
            (
                "must open with somebody's problem and a picture of it: a paragraph, then "
                f"`![what one sees](pictures/{number}.svg)`, drawn by tools/openings.py"
            ),
        )


@rule(LESSON, SOLUTION)
def setup_cell(page: Page) -> Problems:
    marked = [index for index, cell in page.code if "setup" in tags(cell)]
    if not page.code or marked != [page.code[0][0]]:
        yield None, "the first code cell, and only that, carries the tag `setup`"
        return
    index, cell = page.code[0]
    try:
        written = [ast.unparse(statement) for statement in ast.parse(cell.source).body]
    except SyntaxError as error:
        yield index, f"is not Python: {error}"
        return
    starts = zip(written, SETUP, strict=False)
    if len(written) < len(SETUP) or not all(line.startswith(start) for line, start in starts):
        order = "`, then `".join(SETUP)
        yield index, f"must begin with `{order}`, then the other imports"


@rule(LESSON)
def section_titles(page: Page) -> Problems:
    closing = tuple(title for title, _ in CLOSING)
    number = 0
    for index, title in page.sections:
        if title.startswith((OBJECTIVES, *closing)):
            continue
        number += 1
        if not title.startswith(f"{number} · "):
            yield index, f"section {title!r}: must be `## {number} · Title`, or a closing section"
    if number > MOST_SECTIONS:
        yield None, f"{number} numbered sections; {MOST_SECTIONS} are the most"


@rule(LESSON)
def closing_sections(page: Page) -> Problems:
    names = [title for _, title in page.sections]
    found = []
    for closing, required in CLOSING:
        places = [i for i, name in enumerate(names) if name.startswith(closing)]
        if required and not places:
            yield None, f"the section `## {closing}` is missing"
        if len(places) > 1:
            yield None, f"{len(places)} sections `## {closing}`"
        found += places
    last = list(range(len(names) - len(found), len(names)))
    if found != last:
        order = ", ".join(title for title, _ in CLOSING)
        yield None, f"the closing sections come last, in the order {order}"


@rule(LESSON, SOLUTION)
def local_links(page: Page) -> Problems:
    for index, cell in enumerate(page.nb.cells):
        if cell.cell_type == "markdown":
            for target in links(cell.source):
                if not re.match(r"[a-z]+:|#", target):
                    file = page.path.parent / target.split("#")[0]
                    if not file.exists():
                        yield index, f"link to {target}, which does not exist"
