"""Write `previous | contents | next` into every notebook, the course map, and all minutes.

The map goes into the cell `course-map` of lesson 00 and between two markers in README.md.
Title, needs, part and sentence come from the first cell of each lesson; minutes are computed
from its page (`tools.minutes`), and go into that cell, the map and TEACHING.md.
"""

import re
import sys
from pathlib import Path

from nbformat import NotebookNode, v4

from tools import generated, minutes
from tools.lessons import PARTS, Lesson, all_lessons
from tools.notebooks import CourseError, label, read, solutions, text_of

CELL = "navigation"
MAP = "course-map"
MINUTES = re.compile(r"^\d+(?= min · needs )", re.MULTILINE)
MARKERS = re.compile(r"(<!-- course map: begin -->\n).*?(<!-- course map: end -->)", re.DOTALL)


def _has_practice(lesson: Lesson) -> bool:
    return (lesson.path.parent / "solutions" / lesson.path.name).exists()


def _link(text: str, target: str) -> str:
    return f"[{text}]({target})"


def _around(course: list[Lesson], lesson: Lesson, up: str = "") -> str:
    """Links to the lessons before and after, and to the map; `up` leads to notebooks/."""
    here = course.index(lesson)
    links = []
    if here > 0:
        before = course[here - 1]
        links.append(_link(f"← {before.name}", up + before.path.name))
    links.append(_link("contents", up + course[0].path.name))
    if here + 1 < len(course):
        after = course[here + 1]
        links.append(_link(f"{after.name} →", up + after.path.name))
    return " | ".join(links)


def for_lesson(course: list[Lesson], lesson: Lesson) -> str:
    around = _around(course, lesson)
    if not _has_practice(lesson):
        return around
    practice = [_link(kind, f"{kind}/{lesson.path.name}") for kind in ("exercises", "solutions")]
    return f"Practice: {' | '.join(practice)}\n\n{around}"


def for_practice(course: list[Lesson], path: Path, other: str) -> str:
    """For exercises, `other` is "solutions"; for solutions it is "exercises"."""
    home = next((lesson for lesson in course if lesson.path.name == path.name), None)
    if home is None:
        raise CourseError(f"{label(path)}: there is no lesson notebooks/{path.name}.")
    back = [
        _link(f"lesson {home.name}", f"../{path.name}"),
        _link(other, f"../{other}/{path.name}"),
    ]
    return f"Back to: {' | '.join(back)}\n\n{_around(course, home, '../')}"


def with_navigation(nb: NotebookNode, text: str) -> NotebookNode:
    """`nb`, changed in place: its last cell is the navigation."""
    nb.cells = [cell for cell in nb.cells if cell.id != CELL]
    nb.cells.append(v4.new_markdown_cell(text, id=CELL, metadata={"tags": ["generated"]}))
    return nb


def course_map(course: list[Lesson], up: str = "") -> str:
    """The table of lessons; `up` leads to notebooks/."""
    rows = [
        "| part | lesson | minutes | exercises | needs | what you learn |",
        "|---|---|---:|---:|---|---|",
    ]
    part = "-"
    for lesson in course:
        begins = f"{lesson.part} · {PARTS[lesson.part]}" if lesson.part != part else ""
        part = lesson.part
        link = _link(lesson.name, up + lesson.path.name)
        needs = ", ".join(lesson.needs) or "nothing"
        times = str(lesson.minutes), str(lesson.practice)
        rows.append(generated.row((begins, link, *times, needs, lesson.sentence)))
    core, practice = (sum(getattr(x, kind) for x in course) for kind in ("minutes", "practice"))
    hours = f"about {round((core + practice) / 60)} hours"
    rows.append(generated.row(("", "all lessons", str(core), str(practice), "", hours)))
    return "\n".join(rows)


def _lesson_text(course: list[Lesson], lesson: Lesson) -> str:
    nb = with_navigation(read(lesson.path), for_lesson(course, lesson))
    nb.cells[0].source = MINUTES.sub(str(lesson.minutes), nb.cells[0].source)
    if lesson is course[0]:
        for cell in nb.cells:
            if cell.id == MAP:
                cell.source = course_map(course)
                break
        else:
            raise CourseError(
                f"{lesson.path.name}: has no markdown cell with the id `{MAP}`, tagged "
                "`generated`, for the course map; add an empty one."
            )
    return text_of(nb)


def _for_teachers(text: str, course: list[Lesson]) -> str:
    """TEACHING.md with the minutes of each lesson's sections."""
    for lesson in course:
        table = ["| section | minutes |", "|---|---:|"]
        for title, spent in minutes.core_sections(read(lesson.path)).items():
            table.append(generated.row((title or "opening", str(max(1, round(spent))))))
        head = re.compile(rf"(^## {lesson.number} .*\n)\n?(?:\|.*\n)*", re.MULTILINE)
        text = head.sub(lambda m, table=table: "\n".join([m[1], *table, ""]), text)
    return text


def build(root: Path) -> generated.Files:
    """Lessons, solutions, README.md and TEACHING.md as they must be."""
    course = all_lessons(root)
    files: generated.Files = {lesson.path: _lesson_text(course, lesson) for lesson in course}
    for path in solutions(root):
        text = for_practice(course, path, "exercises")
        files[path] = text_of(with_navigation(read(path), text))
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    if not MARKERS.search(text):
        raise CourseError(
            "README.md: needs the lines `<!-- course map: begin -->` and "
            "`<!-- course map: end -->`, where the course map goes."
        )
    table = course_map(course, "notebooks/")
    teaching = root / "TEACHING.md"
    if teaching.exists():
        files[teaching] = _for_teachers(teaching.read_text(encoding="utf-8"), course)
    files[readme] = MARKERS.sub(lambda m: f"{m[1]}{table}\n{m[2]}", text)
    return files


if __name__ == "__main__":
    sys.exit(generated.main(build, __doc__))
