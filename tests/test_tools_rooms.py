"""The rule of rooms, the list of rooms, and hints: what holds `utils` together."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.notebooks import ROOT, code_cells, lessons, read, solutions

UTILS = ROOT / "utils"
LINT_IMPORTS = "from importlinter.cli import lint_imports_command as run; run()"
PROGRAMS = sorted((ROOT / "notebooks" / "programs").glob("*.py"))


def lint_imports(folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", LINT_IMPORTS, "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_rooms_know_only_what_lies_below():
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("utils/memory/model.py", "import utils.pictures", "A room of utils knows only"),
        ("utils/placement/log.py", "import utils.checks", "A room of utils knows only"),
        ("utils/task/role.py", "import utils.cluster", "A room of utils knows only"),
        ("utils/cluster/ports.py", "import utils.task", "A room of utils knows only"),
        ("utils/new_room.py", "", "A room of utils knows only"),
        ("utils/clock/events.py", "import utils.clock.simulation", "No circle"),
        ("utils/cluster/ports.py", "def late():\n    import tensorflow", "imports no TensorFlow"),
        ("utils/cards/visible.py", "import tools.soak", "knows no tools"),
    ],
)
def test_a_forbidden_import_is_found(tmp_path, file, line, contract):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for room in ("utils", "tools"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / file).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1
    broken = re.search(rf"(?m)^.*{contract}.* BROKEN$", done.stdout)
    assert broken or (not line and "new_room" in done.stdout), done.stdout + done.stderr


def test_programs_of_lessons_know_no_tools():
    assert PROGRAMS
    for path in PROGRAMS:
        assert not re.search(r"(?m)^\s*(from|import) tools\b", path.read_text(encoding="utf-8"))


# --- utils/README.md


def rooms() -> set[str]:
    """The packages and modules of `utils`, as lessons import them."""
    packages = {path.parent.name for path in UTILS.glob("*/__init__.py")}
    return packages | {path.stem for path in UTILS.glob("*.py")} - {"__init__"}


def imported(source: str) -> set[str]:
    """The rooms that some code imports."""
    return set(re.findall(r"(?m)^\s*(?:from|import) utils(?:\.| import )(\w+)", source))


def used_by_lessons() -> dict[str, str]:
    """Room: "00, 05", from the cells of lessons and solutions, and the programs they start."""
    users: dict[str, set[str]] = {room: set() for room in rooms()}
    for path in [*lessons(), *solutions()]:
        source = "\n".join(cell.source for _, cell in code_cells(read(path)))
        started = [p.read_text(encoding="utf-8") for p in PROGRAMS if p.name in source]
        for room in imported("\n".join([source, *started])) & users.keys():
            users[room].add(path.name[:2])
    return {room: ", ".join(sorted(numbers)) for room, numbers in users.items()}


def test_the_readme_of_utils_names_every_room_and_its_lessons():
    readme = (UTILS / "README.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| ([\d, –]*?) ?\|$", readme))
    ranges = {room: spelled_out(numbers) for room, numbers in table.items()}
    assert ranges == used_by_lessons()


def spelled_out(numbers: str) -> str:
    """`00–02, 05` as `00, 01, 02, 05`."""
    return re.sub(
        r"(\d\d)–(\d\d)",
        lambda m: ", ".join(f"{n:02}" for n in range(int(m[1]), int(m[2]) + 1)),
        numbers,
    )


# --- hints; ruff holds the return values (ANN2), which leaves the arguments


def without_hints(node: ast.AST, name: str) -> Iterator[str]:
    """`file.function(argument)` for each argument of a public function that has no hint."""
    for child in ast.iter_child_nodes(node):
        private = getattr(child, "name", "").startswith("_")
        if isinstance(child, ast.ClassDef) and not private:
            yield from without_hints(child, f"{name}.{child.name}")
        if isinstance(child, ast.FunctionDef) and not private:
            of = child.args
            every = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
            for argument in filter(None, every):
                if not argument.annotation and argument.arg not in ("self", "cls"):
                    yield f"{name}.{child.name}({argument.arg})"


def test_arguments_of_public_functions_have_hints():
    found = []
    for path in sorted(UTILS.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        found += without_hints(ast.parse(path.read_text(encoding="utf-8")), name)
    assert not found, "\n".join(found)
