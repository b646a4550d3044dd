"""The glossary is made from the bold terms of the lessons."""

import pytest
from small_course import course, lesson, text, write

from tools import glossary
from tools.notebooks import CourseError, read, text_of


@pytest.fixture
def root(tmp_path):
    return course(tmp_path)


def say(root, name, source, *tags):
    """Add a cell of text to a lesson."""
    path = root / "notebooks" / name
    nb = read(path)
    nb.cells.insert(5, text(source, *tags, id=f"said-{len(nb.cells)}"))
    path.write_text(text_of(nb), encoding="utf-8")


def terms(root, content):
    (root / "tools" / "glossary_terms.toml").write_text(content, encoding="utf-8")


def build(root):
    return glossary.build(root)[root / "notebooks" / "glossary.md"]


def test_terms_with_sentence_chinese_and_lesson_in_alphabetical_order(root):
    say(root, "03_draw_a_line.ipynb", "First. A **tower** is a `copy` | more. Last.")
    say(root, "00_start_here.ipynb", "All **Devices** count. A *session* is none.")
    terms(root, 'tower = "塔"\ndevice = "设备"\n')
    assert build(root).splitlines()[-2:] == [
        "| device | 设备 | All **Devices** count. | [00 · Start here](00_start_here.ipynb) |",
        r"| tower | 塔 | A **tower** is a `copy` \| more. "
        "| [03 · Draw a line](03_draw_a_line.ipynb) |",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "> **Predict first.** How many?",
        "**Watch out!** No. **Why?** Yes. **Note:** so.",
        "## A **title**",
        "| **a** | b |\n|---|---|\n| **c** | d |",
        "```\n**code**\n```\n\n`**code**`",
        "That is **42** or **1.5**.",
    ],
)
def test_what_is_no_term(root, source):
    say(root, "03_draw_a_line.ipynb", source)
    assert build(root) == glossary.INTRO


def test_objectives_and_generated_cells_define_nothing(root):
    say(root, "03_draw_a_line.ipynb", "A **tower**.", "generated")
    assert "**draw**" in lesson().cells[2].source
    assert build(root) == glossary.INTRO


def test_problems_name_the_place(root):
    say(root, "00_start_here.ipynb", "A **device** here. A **step** there.")
    say(root, "03_draw_a_line.ipynb", "Two **devices** again.")
    terms(root, 'device = "设备"\nworker = "工作"\n')
    with pytest.raises(CourseError) as caught:
        build(root)
    twice, chinese, unused = str(caught.value).splitlines()
    assert twice.startswith("03_draw_a_line.ipynb: cell 6 (1 · Look first): **devices** is bold in")
    assert "00_start_here.ipynb: cell 6 (1 · Look first) too" in twice
    assert chinese.startswith("00_start_here.ipynb: cell 6 (1 · Look first): **step** has no Chin")
    assert unused == 'tools/glossary_terms.toml: "worker" is bold in no lesson; remove it.'


def test_bold_twice_in_one_cell_is_a_problem_too(root):
    write(root / "notebooks" / "03_draw_a_line.ipynb", lesson())
    say(root, "03_draw_a_line.ipynb", "A **step**. Another **step**.")
    terms(root, 'step = "步"')
    with pytest.raises(CourseError, match="bold once"):
        build(root)
