"""Reading markdown, notebooks and first cells."""

import pytest
from small_course import code, lesson, notebook, text, write

from tools import prose
from tools.lessons import lesson as front
from tools.lessons import sections
from tools.notebooks import CourseError, heading_above, read, text_of, where

PAGE = """# Title

A **device** runs *things*. On it,
e.g. a GPU, one **parameter server** waits! `**no**` is code.

| **cell** | b |
|---|---|
| c | **d** |

```python
# not a heading, **not bold**
```

> **Predict first.** How many?

- One **item** more
"""


def test_headings_are_not_comments_in_code():
    assert prose.headings(PAGE) == [(1, "Title")]
    assert prose.headings("### A `b` *c*\n\nSetext\n---") == [(3, "A `b` *c*"), (2, "Setext")]


def test_paragraphs_leave_out_headings_tables_and_code():
    assert prose.paragraphs(PAGE) == [
        "A **device** runs *things*. On it, e.g. a GPU, one **parameter server** waits! "
        "`**no**` is code.",
        "**Predict first.** How many?",
        "One **item** more",
    ]


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        ("**Watch out.** It is 1.5 GB, e.g. Here.", ["**Watch out.**", "It is 1.5 GB, e.g. Here."]),
        ('He says "go." Then `x`. `y` stays.', ['He says "go."', "Then `x`.", "`y` stays."]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences(paragraph, expected):
    assert prose.sentences(paragraph) == expected


def test_bold_terms():
    assert prose.bold(PAGE) == ["device", "parameter server", "cell", "d", "Predict first.", "item"]
    assert prose.bold("an **in-graph `x`\nreplication**") == ["in-graph x replication"]


def test_links_of_markdown_and_html():
    source = '[a](b.ipynb) ![p](c.png) <img src="d.png">\n\n<a href="e">f</a>'
    assert sorted(prose.links(source)) == ["b.ipynb", "c.png", "d.png", "e"]


def test_words_and_plain_text():
    source = "# Not counted\n\nIt's three-fold `x.y`.\n\n<details>Hint here</details>"
    assert prose.words(source) == 3
    assert prose.plain(source).split() == [
        "Not",
        "counted",
        "It's",
        "three-fold",
        ".",
        "Hint",
        "here",
    ]


def test_place_of_a_cell():
    nb = notebook(text("# A\n\n## B"), code("x"), text("words"), code("y"), text("## C\n\n### D"))
    assert [heading_above(nb, i) for i in range(5)] == ["A", "B", "B", "B", "C"]
    assert where(nb, 3) == "cell 4 (B)"
    assert heading_above(notebook(code("x")), 0) == "no heading"
    assert sections(nb) == [(0, "B"), (4, "C")]


def test_written_text_is_read_back(tmp_path):
    path = write(tmp_path / "03_a.ipynb", lesson())
    assert text_of(read(path)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("content", ["not json", '{"a": 1}'])
def test_read_names_a_file_that_is_no_notebook(tmp_path, content):
    path = tmp_path / "03_a.ipynb"
    path.write_text(content)
    with pytest.raises(CourseError, match="03_a.ipynb: not a notebook"):
        read(path)


def test_first_cell(tmp_path):
    entry = front(tmp_path / "05_draw.ipynb", lesson("Draw", "5 min · needs 01, 03 · part III"))
    assert (entry.number, entry.name) == ("05", "05 · Draw")
    assert entry.sentence == "You draw the draw here."
    assert (entry.practice, entry.needs, entry.part) == (0, ("01", "03"), "III")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("No title", "begins with `# Title`"),
        ("# Title\n\nOne sentence.", "needs a line `45 min"),
        ("# Title\n\nOne sentence.\n\n45 min · needs 3 · part I", "needs a line `45 min"),
        ("# Title\n\n45 min · needs 03 · part I", "one sentence between"),
    ],
)
def test_first_cell_that_is_incomplete(tmp_path, source, problem):
    with pytest.raises(CourseError, match=problem) as caught:
        front(tmp_path / "05_draw.ipynb", notebook(text(source)))
    assert str(caught.value).startswith("05_draw.ipynb: cell 1")
