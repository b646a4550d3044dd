"""Write notebooks/claims.md: what the classic texts say, and what a test found.

Reads the decorator `@claim(...)` of the tests in tests/claims without importing them.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import generated
from tools.lessons import all_lessons, sections
from tools.notebooks import CourseError, read

VERDICTS = {
    "true": "holds as the texts say it",
    "changed": "true in a new form",
    "false today": "no longer so, or never was",
}
ORIGINS = {
    "constructed": "only hardware can settle it; the test uses data made up in the tool's format",
    "recorded": "the test uses data taken from a real machine or package",
}
INTRO = """# What the classic texts say, tried

The classic books and papers on this subject make factual claims about TensorFlow. The course
tries them one by one on the TensorFlow it installs: each row is held by a test in
`tests/claims`, and the lesson in the last column shows it. This page is made by
`make exercises` from those tests.

"""


@dataclass(frozen=True)
class Claim:
    """One claim: its id, the claim in our words, and what a test says about it."""

    id: str
    text: str
    verdict: str
    lesson: str
    section: str
    finding: str
    hardware: bool = False  # only hardware could settle it
    data: str = ""  # the file under data/ that the test reads instead

    def __post_init__(self) -> None:
        if not re.fullmatch(r"C\d\d", self.id):
            raise ValueError(f"claim id {self.id!r}: must be C and two digits, as in C07.")
        if self.verdict not in VERDICTS:
            raise ValueError(
                f"claim {self.id}: verdict {self.verdict!r} must be one of {', '.join(VERDICTS)}."
            )
        if not re.fullmatch(r"\d\d", self.lesson):
            raise ValueError(f"claim {self.id}: lesson {self.lesson!r} must be two digits.")
        for field in ("text", "section", "finding"):
            if not getattr(self, field).strip():
                raise ValueError(f"claim {self.id}: {field} is empty.")


def _claims_in(path: Path) -> Iterator[tuple[str, Claim]]:
    """(place, claim) of each decorated test in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if not isinstance(call, ast.Call) or getattr(call.func, "id", "") != "claim":
                continue
            place = f"tests/claims/{path.name}:{call.lineno}: {node.name}"
            if not node.name.startswith("test_"):
                raise CourseError(f"{place}: only a test can carry a claim.")
            try:
                arguments = [ast.literal_eval(value) for value in call.args]
                named = {kw.arg: ast.literal_eval(kw.value) for kw in call.keywords}
                yield place, Claim(*arguments, **named)
            except (TypeError, ValueError) as error:
                raise CourseError(
                    f"{place}: {error} (all arguments must be written out as plain values)"
                ) from error


def collect(root: Path) -> list[Claim]:
    """All claims by id; each is carried by one test, others for it stand undecorated."""
    places: dict[str, str] = {}
    claims = []
    for path in sorted((root / "tests" / "claims").glob("test_*.py")):
        for place, claim in _claims_in(path):
            if claim.id in places:
                raise CourseError(
                    f"{place}: {claim.id} is carried by {places[claim.id]} too; "
                    "decorate one test, leave further tests of the claim plain."
                )
            places[claim.id] = place
            claims.append(claim)
    return sorted(claims, key=lambda claim: claim.id)


def origin(path: Path) -> str:
    """How a data file came about, by the first word of its own statement of origin."""
    if not path.is_file():
        raise CourseError(f"{path}: no such data file.")
    text = path.read_text(encoding="utf-8")
    stated = json.loads(text)["origin"] if path.suffix == ".json" else text.lstrip("# ")
    word = re.match(r"\w*", stated)[0].lower()
    if word not in ORIGINS:
        raise CourseError(
            f"{path}: its origin begins with {word!r}; must be one of {', '.join(ORIGINS)}."
        )
    return word


def _verdict(claim: Claim, root: Path) -> str:
    if claim.data:
        return f"{claim.verdict} ({origin(root / 'data' / claim.data)} case)"
    return claim.verdict + (" (not run here)" if claim.hardware else "")


def page(claims: list[Claim], root: Path) -> str:
    course = {lesson.number: lesson for lesson in all_lessons(root)}
    titles = {n: {title for _, title in sections(read(e.path))} for n, e in course.items()}
    count = Counter(claim.verdict for claim in claims)
    lines = [f"- **{v}** ({count[v]}): {meaning}" for v, meaning in VERDICTS.items()]
    lines += [f"- *{word} case*: {meaning}" for word, meaning in ORIGINS.items()]
    lines += ["- *not run here*: only hardware can settle it; the test compares its source", ""]
    lines += ["| id | claim | verdict | what we found | lesson |", "|---|---|---|---|---|"]
    for claim in claims:
        if claim.lesson not in course:
            raise CourseError(f"tests/claims: {claim.id}: there is no lesson {claim.lesson}.")
        lesson = course[claim.lesson]
        if claim.section not in titles[claim.lesson]:
            raise CourseError(
                f"tests/claims: {claim.id}: {lesson.path.name} has no section `{claim.section}`; "
                f"it has: {', '.join(sorted(titles[claim.lesson]))}."
            )
        verdict = _verdict(claim, root)
        link = f"[{lesson.name}]({lesson.path.name}), {claim.section}"
        lines.append(generated.row((claim.id, claim.text, verdict, claim.finding, link)))
    return INTRO + "\n".join(lines) + "\n"


def build(root: Path) -> generated.Files:
    """The page of claims as it must be."""
    return {root / "notebooks" / "claims.md": page(collect(root), root)}


if __name__ == "__main__":
    sys.exit(generated.main(build, __doc__))
