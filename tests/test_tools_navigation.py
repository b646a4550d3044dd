"""Navigation and course map."""

import re

import pytest
from small_course import course, lesson, solution, write

from tools import generate, generated, navigation
from tools.lessons import all_lessons
from tools.notebooks import CourseError, read


@pytest.fixture
def root(tmp_path):
    return course(tmp_path)


def last_cell(files, path):
    path.write_text(files[path], encoding="utf-8")
    return read(path).cells[-1]


def test_lessons_lead_to_their_neighbours_and_practice(root):
    write(root / "notebooks" / "05_last.ipynb", lesson("Last", "9 min · needs 03 · part I"))
    files = navigation.build(root)
    notebooks = root / "notebooks"
    first = last_cell(files, notebooks / "00_start_here.ipynb")
    assert first.metadata.tags == ["generated"]
    assert first.source == (
        "Practice: [exercises](exercises/00_start_here.ipynb) | "
        "[solutions](solutions/00_start_here.ipynb)\n\n"
        "[contents](00_start_here.ipynb) | [03 · Draw a line →](03_draw_a_line.ipynb)"
    )
    middle = last_cell(files, notebooks / "03_draw_a_line.ipynb").source
    assert middle.endswith(
        "[← 00 · Start here](00_start_here.ipynb) | [contents](00_start_here.ipynb) | "
        "[05 · Last →](05_last.ipynb)"
    )
    last = last_cell(files, notebooks / "05_last.ipynb").source
    assert last == "[← 03 · Draw a line](03_draw_a_line.ipynb) | [contents](00_start_here.ipynb)"


def test_solutions_lead_back(root):
    files = navigation.build(root)
    source = last_cell(files, root / "notebooks" / "solutions" / "03_draw_a_line.ipynb").source
    assert source == (
        "Back to: [lesson 03 · Draw a line](../03_draw_a_line.ipynb) | "
        "[exercises](../exercises/03_draw_a_line.ipynb)\n\n"
        "[← 00 · Start here](../00_start_here.ipynb) | [contents](../00_start_here.ipynb)"
    )


def test_map(root):
    first, second = course = all_lessons(root)
    table = navigation.course_map(course, "notebooks/")
    both = first.minutes + second.minutes
    assert table.splitlines()[2:] == [
        f"|  | [00 · Start here](notebooks/00_start_here.ipynb) | {first.minutes} | 30 | nothing "
        "| You draw the start here here. |",
        f"| I · One machine | [03 · Draw a line](notebooks/03_draw_a_line.ipynb) "
        f"| {second.minutes} | 30 | 00 | You draw the draw a line here. |",
        f"|  | all lessons | {both} | 60 |  | about {round((both + 60) / 60)} hours |",
    ]


def test_minutes_go_into_the_first_cell_and_the_page_for_teachers(root):
    lesson = all_lessons(root)[1]
    generated.write(generate.build(root))
    assert f"\n{lesson.minutes} min · needs 00 · part I" in read(lesson.path).cells[0].source
    pages = (root / "TEACHING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| (\d+) \|$", pages.partition("## 03")[2], re.MULTILINE)
    assert [title for title, _ in rows][:2] == ["opening", "1 · Look first"]


def test_map_is_written_into_readme_and_first_lesson(root):
    generated.write(generate.build(root))
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# Course\n\n<!-- course map: begin -->\n| part |")
    assert readme.endswith("|\n<!-- course map: end -->\n\nMore.\n")
    assert "old" not in readme
    cells = {cell.id: cell for cell in read(root / "notebooks" / "00_start_here.ipynb").cells}
    assert "[03 · Draw a line](03_draw_a_line.ipynb)" in cells["course-map"].source


def test_second_time_nothing_changes(root):
    assert generated.write(generate.build(root))
    assert generated.write(generate.build(root)) == []


def test_missing_places_are_named(root):
    readme = root / "README.md"
    text = readme.read_text()
    readme.write_text("# Course\n")
    with pytest.raises(CourseError, match="README.md: needs the lines"):
        navigation.build(root)
    readme.write_text(text)
    write(root / "notebooks" / "00_start_here.ipynb", lesson("A", "1 min · needs nothing · part -"))
    with pytest.raises(CourseError, match="00_start_here.ipynb: has no .* `course-map`"):
        navigation.build(root)


def test_solutions_without_lesson_are_named(root):
    write(root / "notebooks" / "solutions" / "07_alone.ipynb", solution(7))
    with pytest.raises(CourseError, match="solutions/07_alone.ipynb: there is no lesson"):
        navigation.build(root)
