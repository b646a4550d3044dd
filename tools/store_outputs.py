"""Run lessons and solutions in fresh kernels and store their outputs as nbval will see them.

A notebook whose outputs have not changed keeps its file, byte for byte. A notebook with a
failing cell is left alone, and the command ends with exit code 1. Pictures of measured times
(cells tagged `measured`) stay; clear the output of such a cell to get a new one.
"""

import argparse
import sys
import time
from pathlib import Path

from tools import nbenv
from tools.execute import CellFailed
from tools.notebooks import CourseError, label, lessons, solutions, text_of
from tools.outputs import refresh


def store(path: Path, keep: bool = True) -> bool:
    """Refresh the outputs in the file `path`; True if it changed."""
    before = path.read_text(encoding="utf-8")
    text = text_of(refresh(path, keep))
    if text == before:
        return False
    path.write_text(text, encoding="utf-8", newline="\n")
    return True


def check(path: Path) -> None:
    if path.suffix != ".ipynb" or not path.is_file():
        raise CourseError(f"{path}: no such notebook.")
    if path.parent.name == "exercises":
        raise CourseError(
            f"{path}: exercises are generated and store no outputs; "
            "edit and run the notebook of the same name in notebooks/solutions."
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="default: all of them"
    )
    parser.add_argument(
        "--all-new", action="store_true", help="take every new output, even an equivalent one"
    )
    arguments = parser.parse_args(argv)
    paths = arguments.notebooks or [*lessons(), *solutions()]
    nbenv.apply()
    failed = False
    for path in paths:
        start = time.monotonic()
        try:
            check(path)
            verdict = "changed" if store(path, not arguments.all_new) else "unchanged"
        except (CellFailed, CourseError) as error:
            failed = True
            print(f"FAILED {label(path)}: {error}", flush=True)
        else:
            print(f"{label(path)}: {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
