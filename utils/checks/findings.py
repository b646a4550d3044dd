"""What learners found in a program of their own: asked for, and kept for lesson 12."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from utils import COURSE
from utils.checks.outcome import check, not_yet

MY = COURSE / "my"
FILE = "findings.json"
LEAST_WORDS = 5


def own(exercise: str, why: str) -> Callable:
    """Make the check of an exercise on the learner's own program or machine.

    No number can be compared there. The check asks for a sentence with a number in it, and
    keeps it in ``my/findings.json`` if the notebook runs in the folder ``my``.

    Args:
        exercise: its number, such as ``"5.5"``.
        why: why the finding matters; printed with "correct".

    Returns:
        A check that takes the finding, a text.

    Introduced in lesson 00, behind the last exercise of each lesson.
    """

    @check(exercise, why)
    def look(finding: str) -> None:
        if not isinstance(finding, str):
            not_yet(f"wanted is a sentence in quotation marks; this is a {type(finding).__name__}.")
        if len(finding.split()) < LEAST_WORDS:
            not_yet(f"write a sentence of at least {LEAST_WORDS} words: what did you find, where?")
        if not re.search(r"\d", finding):
            not_yet("name a number: how many, how much, which device?")
        _keep(exercise, finding.strip())

    return look


def _keep(exercise: str, finding: str) -> None:
    """Write the finding down, if a learner's own copy is running."""
    if not Path.cwd().is_relative_to(MY):
        return
    file = MY / FILE
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    found[exercise] = finding
    new = file.with_suffix(".new")
    new.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(new, file)  # never half a file
