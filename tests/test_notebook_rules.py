"""Every lesson and solution keeps the rules; everything generated is up to date."""

import pytest

from tools import rules
from tools.notebooks import ROOT, label, lessons, solutions
from tools.rulebook import page


def told(problems: list[str]) -> str:
    return "\n".join(problems)


@pytest.mark.parametrize("path", [*lessons(), *solutions()], ids=label)
def test_notebook(path):
    problems = [problem for _, problem in rules.problems_of(page(path))]
    assert not problems, told(problems)


@pytest.mark.parametrize("check", [rules.missing_companions, rules.broken_links, rules.stale_files])
def test_course(check):
    problems = check(ROOT)
    assert not problems, told(problems)
