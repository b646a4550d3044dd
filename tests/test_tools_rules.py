"""Each rule for notebooks notices a notebook that breaks only this rule."""

import pytest
from bad_notebooks import BAD, code, frame, practice, stored
from small_course import course, lesson, solution, with_picture
from small_course import write as write_notebook

from tools import generate, generated, rules
from tools.rulebook import LESSON, RULES, Page
from tools.rulebook import code as code_rules

LOADED = (code, frame, practice, stored)  # importing them fills BAD


def page_of(tmp_path, kind, spoil=lambda nb: None):
    folder = tmp_path / "notebooks" / ("" if kind == LESSON else "solutions")
    folder.mkdir(parents=True, exist_ok=True)
    write_notebook(tmp_path / "notebooks" / "03_draw_a_line.ipynb", lesson())
    with_picture(tmp_path)
    nb = lesson() if kind == LESSON else solution()
    spoil(nb)
    return Page(folder / "03_draw_a_line.ipynb", nb)


@pytest.mark.parametrize("kind", ["lesson", "solution"])
def test_good_notebook_breaks_no_rule(tmp_path, kind):
    assert rules.problems_of(page_of(tmp_path, kind)) == []


@pytest.mark.parametrize(("rule", "wrong"), BAD, ids=lambda value: value)
def test_rule_notices(tmp_path, rule, wrong):
    kind, spoil = BAD[rule, wrong]
    found = rules.problems_of(page_of(tmp_path, kind, spoil))
    assert {name for name, _ in found} == {rule}
    assert all(text.startswith(page_of(tmp_path, kind).label) for _, text in found)


def test_every_rule_has_a_bad_notebook():
    assert {rule for rule, _ in BAD} == {rule.name for rule in RULES}


def test_excuse_must_be_needed(tmp_path, monkeypatch):
    page = page_of(tmp_path, "lesson")
    monkeypatch.setitem(code_rules.UNCHECKED, (page.label, "cell-6"), "seconds")
    assert [name for name, _ in rules.problems_of(page)] == ["unchecked_cells"]
    page.nb.cells[5].metadata["tags"] = ["nbval-ignore-output"]
    assert rules.problems_of(page) == []


@pytest.mark.parametrize(
    "source",
    ["tf.device('/CPU:0')", "x = y % 2", "make_input(3)", "tf.keras.Input(shape)", "a != b"],
)
def test_forbidden_code_lets_other_code_pass(tmp_path, source):
    def spoil(nb):
        nb.cells[5].source = source

    assert rules.problems_of(page_of(tmp_path, "lesson", spoil)) == []


def test_unwanted_words_may_stand_in_code(tmp_path):
    def spoil(nb):
        nb.cells[6].source += " The call `just()` adjusts it.\n\n```python\nsimply = 1\n```"

    assert rules.problems_of(page_of(tmp_path, "lesson", spoil)) == []


def test_problem_names_cell_and_heading(tmp_path):
    (_, problem), *_ = rules.problems_of(page_of(tmp_path, "lesson", code.trailing_semicolon))
    assert problem.startswith("03_draw_a_line.ipynb: cell 6 (1 · Look first): a trailing `;`")


def test_companions(tmp_path):
    root = course(tmp_path)
    generated.write(generate.build(root))
    assert rules.missing_companions(root) == []
    (root / "notebooks" / "solutions" / "03_draw_a_line.ipynb").unlink()
    (root / "TEACHING.md").write_text("# For teachers\n\n## 00 Start here\n")
    found = rules.missing_companions(root)
    assert len(found) == 2
    assert "solutions/03_draw_a_line.ipynb is missing" in found[0]
    assert "`## 03 …`" in found[1]


def test_links_of_pages(tmp_path):
    root = course(tmp_path)
    readme = root / "README.md"
    readme.write_text(readme.read_text() + "[a](TEACHING.md#x) [b](#c) [d](https://e.f)\n")
    assert rules.broken_links(root) == []
    readme.write_text(readme.read_text() + "[a](notebooks/gone.md)\n")
    assert rules.broken_links(root) == [
        "README.md: link to notebooks/gone.md, which does not exist"
    ]


def test_stale_files(tmp_path):
    root = course(tmp_path)
    generated.write(generate.build(root))
    assert rules.stale_files(root) == []
    (root / "notebooks" / "claims.md").write_text("old")
    assert rules.stale_files(root) == ["notebooks/claims.md: stale; run `make exercises`"]
