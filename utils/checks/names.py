"""Why a name is not there: the setup cell was not run, or a guess has no quotation marks."""

import ast
import json
import re
from functools import cache

from utils import COURSE


def why_missing(name: str, cell: str) -> str:
    """Return the likely reason for a NameError in a notebook of the course, or "".

    Args:
        name: what Python did not find.
        cell: the source of the cell that was run.

    Introduced in lesson 00, behind every notebook: kernels call it after a NameError.
    """
    if re.search(rf"^guess\[.*\] *= *{re.escape(name)}\b", cell, re.MULTILINE):
        return f'A word needs quotation marks: write "{name}" instead of {name}.'
    if name in _setup_names():
        return (
            f"`{name}` comes from the setup cell, the first code cell of the notebook. Run that "
            "cell, then this one again. After a restart of the kernel it must run again, too."
        )
    return ""


@cache
def _setup_names() -> frozenset[str]:
    """Every name that the setup cell of a lesson or of an exercise notebook gives."""
    names: set[str] = set()
    for path in (COURSE / "notebooks").glob("**/[0-9][0-9]_*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        source = next("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.alias):
                names.add((node.asname or node.name).partition(".")[0])
    return frozenset(names)
