"""Check the rules for notebooks without running them: frame, code, outputs, prose, exercises.

Prints `notebook: cell N (heading): problem` for each and exits 1 if there is any.
"""

import argparse
import re
import sys
from pathlib import Path

from tools import generate, generated
from tools.lessons import all_lessons
from tools.notebooks import ROOT, CourseError, lessons, solutions, where
from tools.prose import links
from tools.rulebook import RULES, Page, code, frame, page, practice, stored, writing

LOADED = (code, frame, practice, stored, writing)  # importing them fills RULES


def problems_of(page: Page) -> list[tuple[str, str]]:
    """(rule, problem with its place) for each rule that the notebook breaks."""
    found = []
    for rule in RULES:
        if page.kind in rule.kinds:
            for index, problem in rule.check(page):
                place = "" if index is None else f"{where(page.nb, index)}: "
                found.append((rule.name, f"{page.label}: {place}{problem}"))
    return found


def missing_companions(root: Path) -> list[str]:
    """Lessons without solutions, exercises or their half page for teachers."""
    teaching = root / "TEACHING.md"
    guide = teaching.read_text(encoding="utf-8") if teaching.exists() else ""
    found = []
    for lesson in all_lessons(root):
        name = lesson.path.name
        for folder in ("solutions", "exercises"):
            if not (root / "notebooks" / folder / name).exists():
                found.append(f"{name}: notebooks/{folder}/{name} is missing")
        if not re.search(rf"(?m)^## {lesson.number} ", guide):
            found.append(f"{name}: TEACHING.md has no heading `## {lesson.number} …`")
    return found


def broken_links(root: Path) -> list[str]:
    """Links in the pages of the course that lead to no file."""
    pages = [*root.glob("*.md"), *(root / "notebooks").glob("*.md"), *root.glob("data/*.md")]
    return [
        f"{file.relative_to(root)}: link to {target}, which does not exist"
        for file in sorted(pages)
        for target in links(file.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:|#", target) and not (file.parent / target.split("#")[0]).exists()
    ]


def stale_files(root: Path) -> list[str]:
    """Generated files that are not what their sources say."""
    try:
        stale = generated.stale(generate.build(root))
    except CourseError as error:
        return str(error).splitlines()
    return [f"{path.relative_to(root)}: stale; run `make exercises`" for path in stale]


def problems(paths: list[Path]) -> list[str]:
    return [problem for path in paths for _, problem in problems_of(page(path))]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="default: the whole course"
    )
    chosen = parser.parse_args(argv).notebooks
    try:
        found = problems(chosen or [*lessons(), *solutions()])
        if not chosen:
            found += missing_companions(ROOT) + broken_links(ROOT) + stale_files(ROOT)
    except CourseError as error:
        found = str(error).splitlines()
    print("\n".join(found) if found else "every rule holds")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
