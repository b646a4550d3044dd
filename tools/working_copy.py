"""The learner's own copy of the course, in the folder my/.

    python -m tools.working_copy              copy what is missing; say which copies are behind
    python -m tools.working_copy --fresh 05   copy anew, and keep the old files beside the new ones

The copies of lessons and exercises have no outputs, so no answer stands under its question. A
copy is never overwritten.
"""

import argparse
import hashlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import nbformat
from ipykernel.ipkernel import IPythonKernel
from nbformat import NotebookNode

from tools.notebooks import ROOT, CourseError, exercises, lessons, read, solutions, text_of

MY = "my"
KEY = "many_devices"  # in a copy's metadata: where it comes from
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(?=[)#])")  # the target of a link in Markdown
WEB = re.compile(r"[a-z]+:")


def targets(root: Path) -> dict[Path, Path]:
    """Where the copy of each notebook of the course is."""
    my = root / MY
    found = {path: my / path.name for path in lessons(root)}
    found |= {path: my / f"{path.name[:2]}_exercises.ipynb" for path in exercises(root)}
    for path in solutions(root):
        found[path] = my / "solutions" / f"{path.name[:2]}_solutions.ipynb"
    return found


def with_links(text: str, source: Path, target: Path, copies: dict[Path, Path]) -> str:
    """A cell's text with its links as they must be in the copy."""

    def turned(link: re.Match) -> str:
        if WEB.match(link[1]):
            return link[1]
        to = Path(os.path.normpath(source.parent / link[1]))
        return Path(os.path.relpath(copies.get(to, to), target.parent)).as_posix()

    return LINK.sub(turned, text)


def copy_of(source: Path, target: Path, copies: dict[Path, Path], keep_outputs: bool) -> str:
    """The text of a notebook's copy, as JupyterLab would save it."""
    nb = read(source)
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = with_links(cell.source, source, target, copies)
        elif cell.cell_type == "code" and not keep_outputs:
            cell.outputs, cell.execution_count = [], None
    # With anything else here JupyterLab calls a notebook unsaved as soon as it is open.
    nb.metadata.language_info = nbformat.from_dict(IPythonKernel.language_info)
    nb.metadata[KEY] = {"source": source.parent.name + "/" + source.name, "cells": digest(nb)}
    return text_of(nb)


def digest(nb: NotebookNode) -> str:
    """A hash of what a person wrote in a notebook; outputs do not count."""
    written = "\0".join(f"{cell.cell_type}\0{cell.source}" for cell in nb.cells)
    return hashlib.sha256(written.encode()).hexdigest()


def texts(root: Path) -> dict[Path, str]:
    """The text of every copy as it is made now; solutions keep their outputs."""
    copies = targets(root)
    return {
        target: copy_of(source, target, copies, keep_outputs=source.parent.name == "solutions")
        for source, target in copies.items()
    }


def make_missing(wanted: dict[Path, str]) -> tuple[list[Path], list[Path]]:
    """Copy what is missing. Returns the new copies, and those that the course has changed since."""
    new, behind = [], []
    for target, text in wanted.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            new.append(target)
        except FileExistsError:
            if origin(target) not in (None, nbformat.reads(text, 4).metadata[KEY]["cells"]):
                behind.append(target)
    return new, behind


def origin(copy: Path) -> str | None:
    """The hash of the notebook that a copy was made from; None if the copy does not tell."""
    try:
        return nbformat.read(copy, 4).metadata.get(KEY, {}).get("cells")
    except (ValueError, nbformat.ValidationError):  # the learner's file: it may be anything
        return None


def chosen(copies: Iterable[Path], name: str) -> list[Path]:
    """The copies that `name` means: a lesson's number (all three), or a file's name."""
    copies = list(copies)
    found = [path for path in copies if path.name == Path(name).name]
    if not found and re.fullmatch(r"\d{1,2}", name):
        found = [path for path in copies if path.name.startswith(f"{int(name):02}_")]
    if not found:
        raise CourseError(
            f"NB={name}: there is no such lesson. Give its number, such as NB=05, or the name of "
            "one notebook, such as NB=05_exercises.ipynb."
        )
    return found


def set_aside(copy: Path) -> Path:
    """Give a copy another name, so that a new one can be made; returns that name."""
    number = 1
    while (old := copy.with_name(f"{copy.stem}_old{number}.ipynb")).exists():
        number += 1
    return copy.rename(old)


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="The learner's own copy of the course, in my/.")
    parser.add_argument("--fresh", metavar="NB", help="copy this lesson anew, keep the old files")
    fresh = parser.parse_args(argv).fresh
    try:
        wanted = texts(root)
        anew = [] if fresh is None else [path for path in chosen(wanted, fresh) if path.exists()]
        differ = [path for path in anew if path.read_text(encoding="utf-8") != wanted[path]]
        kept = [(path, set_aside(path)) for path in differ]
        new, behind = make_missing(wanted)
    except CourseError as error:
        print(error)
        return 1
    for path, old in kept:
        print(f"{path.relative_to(root)} is new; your old one is {old.relative_to(root)}.")
    if anew and not kept:
        print(f"Your copy of {fresh} is as the course has it: nothing to do.")
    if len(new) > len(kept):
        print(f"{len(new) - len(kept)} notebooks are copied to {MY}/: write in these.")
    for path in behind:
        name = path.relative_to(root)
        print(f"{name}: the course has a newer one. Get it with `make fresh NB={path.name}`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
