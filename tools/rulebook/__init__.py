"""The rules every lesson and solution notebook keeps, one function each.

A rule is given a Page and yields what breaks it: (index of the cell or None, problem).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nbformat import NotebookNode

from tools.lessons import sections
from tools.notebooks import code_cells, label, read, tags

LESSON, SOLUTION = "lesson", "solution"
Problems = Iterator[tuple[int | None, str]]


@dataclass(frozen=True)
class Page:
    """A notebook as the rules see it."""

    path: Path
    nb: NotebookNode

    @property
    def label(self) -> str:
        return label(self.path)

    @property
    def kind(self) -> str:
        return SOLUTION if self.path.parent.name == "solutions" else LESSON

    @cached_property
    def code(self) -> list[tuple[int, NotebookNode]]:
        return list(code_cells(self.nb))

    @cached_property
    def text(self) -> list[tuple[int, NotebookNode]]:
        """(index, cell) of the markdown that people wrote."""
        return [
            (index, cell)
            for index, cell in enumerate(self.nb.cells)
            if cell.cell_type == "markdown" and "generated" not in tags(cell)
        ]

    @cached_property
    def sections(self) -> list[tuple[int, str]]:
        return sections(self.nb)


@dataclass(frozen=True)
class Rule:
    """One rule and the kinds of notebooks that keep it."""

    check: Callable[[Page], Problems]
    kinds: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.check.__name__


RULES: list[Rule] = []


def rule(*kinds: str) -> Callable[[Callable[[Page], Problems]], Callable[[Page], Problems]]:
    """Register a rule for these kinds of notebooks."""

    def register(check: Callable[[Page], Problems]) -> Callable[[Page], Problems]:
        RULES.append(Rule(check, kinds))
        return check

    return register


def page(path: Path) -> Page:
    return Page(path, read(path))
