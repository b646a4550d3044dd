"""The page of claims is made from the tests, which are not imported."""

import pytest
from claims.ledger import claim
from small_course import course

from tools import claims
from tools.notebooks import CourseError

GOOD = {
    "verdict": "changed",
    "lesson": "03",
    "section": "1 · Look first",
    "finding": "It is so.",
}
HEAD = "import no_such_module\nfrom .ledger import claim\n\n"


@pytest.fixture
def root(tmp_path):
    return course(tmp_path)


def decorated(name, id, **changes):
    fields = ", ".join(f"{key}={value!r}" for key, value in {**GOOD, **changes}.items())
    text = '"Every | CPU core\\n" "is one device"'
    return f'@claim("{id}", {text}, {fields})\ndef {name}():\n    pass\n\n'


def put(root, source, file="test_00.py"):
    (root / "tests" / "claims" / file).write_text(HEAD + source, encoding="utf-8")


def build(root):
    return claims.build(root)[root / "notebooks" / "claims.md"]


def test_page(root):
    data = root / "data"
    data.mkdir(exist_ok=True)
    (data / "card.txt").write_text("# Constructed, not recorded.\n", encoding="utf-8")
    (data / "list.json").write_text('{"origin": "recorded: here"}', encoding="utf-8")
    put(root, decorated("test_b", "C12", data="card.txt") + "def test_more():\n    pass\n")
    more = decorated("test_c", "C13", data="list.json") + decorated("test_d", "C14", hardware=True)
    put(root, more, "test_04.py")
    put(root, decorated("test_a", "C03", verdict="false today", lesson="00"), "test_03.py")
    page = build(root)
    shown = [line.split(" | ")[2] for line in page.splitlines()[-2:]]
    assert shown == ["changed (recorded case)", "changed (not run here)"]
    assert page.splitlines()[-4:-2] == [
        r"| C03 | Every \| CPU core is one device | false today | It is so. "
        "| [00 · Start here](00_start_here.ipynb), 1 · Look first |",
        r"| C12 | Every \| CPU core is one device | changed (constructed case) | It is so. "
        "| [03 · Draw a line](03_draw_a_line.ipynb), 1 · Look first |",
    ]
    assert "- **false today** (1): no longer so, or never was\n" in page
    assert "- **true** (0): holds as the texts say it\n" in page


def test_page_without_claims(root):
    assert build(root).startswith("# What the classic texts say, tried")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (decorated("test_a", "C01") + decorated("test_b", "C01"), "C01 is carried by .*test_a too"),
        (decorated("helper", "C01"), "helper: only a test can carry a claim"),
        (decorated("test_a", "C1"), "claim id 'C1'"),
        (decorated("test_a", "C01", verdict="maybe"), "verdict 'maybe' must be one of true"),
        (decorated("test_a", "C01", lesson="3"), "lesson '3' must be two digits"),
        (decorated("test_a", "C01", finding=" "), "finding is empty"),
        (decorated("test_a", "C01", hardwear=True), "hardwear"),
        (decorated("test_a", "C01", data="no.txt"), "no.txt: no such data file"),
        (decorated("test_a", "C01").replace("'It is so.'", "f'{x}'"), "plain values"),
        (decorated("test_a", "C01", lesson="07"), "C01: there is no lesson 07"),
        (decorated("test_a", "C01", section="2 · No"), "no section `2 · No`; it has: 1 · Look"),
    ],
)
def test_problems_are_named(root, source, problem):
    put(root, source)
    with pytest.raises(CourseError, match=problem):
        build(root)


def test_decorator_attaches_the_claim_and_returns_the_test():
    def test():
        return 5

    marked = claim("C01", "text", **GOOD)(test)
    assert marked is test
    assert (marked.claim.id, marked.claim.verdict, marked.claim.hardware) == (
        "C01",
        "changed",
        False,
    )


def test_decorator_refuses_what_the_page_would():
    with pytest.raises(ValueError, match="verdict 'wrong' must be one of true, changed"):
        claim("C01", "text", **{**GOOD, "verdict": "wrong"})
