"""Write notebooks/glossary.md: every term where a lesson defines it, in English and Chinese.

A term in **bold** in a lesson's running text is its definition. No terms are the verbs of the
objectives, and labels: they end with a punctuation mark inside the bold, as in **Watch out.**
The Chinese comes from tools/glossary_terms.toml, which also decides how the English is written.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from tools import generated
from tools.lessons import OBJECTIVES, Lesson, all_lessons
from tools.notebooks import CourseError, read, tags, where
from tools.prose import bold, paragraphs, sentences

TERMS = "tools/glossary_terms.toml"
LABEL = re.compile(r"[.?!:…]$|^\W*\d[\d\W]*$")  # **Watch out.**, and numbers
INTRO = """# Glossary

Every term where the course defines it: the sentence is the lesson's, the link leads there.
This page is made by `make exercises` from the **bold** terms of the lessons.

| term | 中文 | the sentence that defines it | lesson |
|---|---|---|---|
"""


def key(term: str) -> str:
    """The same for `tower` and `Towers`."""
    return term.casefold().removesuffix("s")


class Definition(NamedTuple):
    """A bold term, the sentence around it, and where it stands."""

    term: str
    sentence: str
    lesson: Lesson
    place: str


def definitions(lesson: Lesson) -> list[Definition]:
    nb = read(lesson.path)
    return [
        Definition(term, sentence, lesson, f"{lesson.path.name}: {where(nb, index)}")
        for index, cell in enumerate(nb.cells)
        if cell.cell_type == "markdown"
        and "generated" not in tags(cell)
        and OBJECTIVES not in cell.source
        for paragraph in paragraphs(cell.source)
        for sentence in sentences(paragraph)
        for term in bold(sentence)
        if not LABEL.search(term)
    ]


def problems(found: list[Definition], chinese: dict[str, str]) -> list[str]:
    """What keeps the glossary from having each term once, in both languages."""
    first: dict[str, Definition] = {}
    errors = []
    for definition in found:
        earlier = first.setdefault(key(definition.term), definition)
        if earlier is not definition:
            errors.append(
                f"{definition.place}: **{definition.term}** is bold in {earlier.place} too; "
                "a term is bold once, where it is defined."
            )
    written = {key(term) for term in chinese}
    for definition in first.values():
        if key(definition.term) not in written:
            errors.append(
                f"{definition.place}: **{definition.term}** has no Chinese; add "
                f'`"{definition.term}" = "…"` to {TERMS}.'
            )
    errors += [
        f'{TERMS}: "{term}" is bold in no lesson; remove it.'
        for term in chinese
        if key(term) not in first
    ]
    return errors


def page(found: list[Definition], chinese: dict[str, str]) -> str:
    spelling = {key(term): term for term in chinese}
    rows = []
    for definition in found:
        term = spelling[key(definition.term)]
        link = f"[{definition.lesson.name}]({definition.lesson.path.name})"
        rows.append(generated.row((term, chinese[term], definition.sentence, link)) + "\n")
    return INTRO + "".join(sorted(rows, key=str.casefold))


def build(root: Path) -> generated.Files:
    """The glossary as it must be."""
    found = [d for lesson in all_lessons(root) for d in definitions(lesson)]
    chinese = tomllib.loads((root / TERMS).read_text(encoding="utf-8"))
    if errors := problems(found, chinese):
        raise CourseError("\n".join(errors))
    return {root / "notebooks" / "glossary.md": page(found, chinese)}


if __name__ == "__main__":
    sys.exit(generated.main(build, __doc__))
