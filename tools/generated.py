"""Write generated files, or say which are stale: what the generating tools share."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.notebooks import ROOT, CourseError

Files = dict[Path, str | None]  # path -> the text it must have; None: it must not exist


def row(cells: Iterable[str]) -> str:
    """A row of a markdown table."""
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _current(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def stale(files: Files) -> list[Path]:
    return [path for path, text in files.items() if _current(path) != text]


def write(files: Files) -> list[Path]:
    """Make the files as they must be; returns those that changed."""
    changed = stale(files)
    for path in changed:
        text = files[path]
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    return changed


def main(build: Callable[[Path], Files], description: str, argv: list[str] | None = None) -> int:
    """The command line of every generating tool: write, or `--check`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and name what is stale"
    )
    check = parser.parse_args(argv).check
    try:
        files = build(ROOT)
        changed = stale(files) if check else write(files)
    except CourseError as error:
        print(error)
        return 1
    for path in changed:
        print(f"{path.relative_to(ROOT)}: {'stale, run `make exercises`' if check else 'written'}")
    if not changed:
        print(f"{len(files)} files up to date")
    return int(check and bool(changed))
