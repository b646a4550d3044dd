"""Execute the lessons in order, each in a fresh kernel; end with a table of times.

Only the number of pictures is compared, and no notebook is written. GPUs are used where there are
any.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from tools.execute import CellFailed, execute
from tools.notebooks import CourseError, label, lessons, read
from utils.table import table


class Result(NamedTuple):
    """How one notebook ran: its time in seconds, and what stopped it, if anything did."""

    path: Path
    seconds: float
    failure: CellFailed | CourseError | None


def advice(failure: CellFailed) -> str:
    """What went wrong where, and what to do."""
    lines = failure.evalue.strip().splitlines() or [""]
    return "\n".join(
        [
            f"{failure.notebook} failed",
            f"  where: section {failure.heading!r}, code cell In [{failure.cell}]",
            f"  error: {failure.ename}: {lines[-1]}",
            "  next:  run `make lab`, open this notebook, choose Run > Run All Cells, and read the",
            "         whole message under that cell. If it speaks of a missing package or file,",
            "         run `make setup` and `git status`.",
        ]
    )


def pictures(nb: NotebookNode) -> int:
    """How many pictures a notebook shows."""
    outputs = (out for cell in nb.cells for out in cell.get("outputs", []))
    return sum("image/png" in out.get("data", {}) for out in outputs)


def compare_pictures(path: Path, executed: NotebookNode) -> None:
    """Raise CourseError if a notebook now shows fewer pictures than are stored in it."""
    stored, shown = pictures(read(path)), pictures(executed)
    if shown < stored:
        raise CourseError(
            f"{label(path)} failed\n"
            f"  error: it shows {shown} pictures, and {stored} are stored.\n"
            "  next:  open it with `make lab`, choose Run > Run All Cells, and look for the first\n"
            "         cell without its picture. Look for settings of matplotlib: matplotlibrc,\n"
            "         and files in ~/.ipython/profile_default."
        )


def progress(text: str, stay: bool) -> None:
    """On a terminal, a line that the next one replaces unless it should `stay`."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="\n" if stay else "", flush=True)
    elif stay:
        print(text, flush=True)


def run(paths: Sequence[Path], width: int, run_one: Callable = execute) -> list[Result]:
    """Execute every notebook of `paths`, also after one has failed."""
    results = []
    for path in paths:
        name = label(path).ljust(width)
        progress(f"{name}  starting", stay=False)

        def on_cell(number: int, total: int, name: str = name) -> None:
            progress(f"{name}  cell {number} of {total}", stay=False)

        failure = None
        start = time.perf_counter()
        try:
            compare_pictures(path, run_one(path, on_cell=on_cell))
        except (CellFailed, CourseError) as error:
            failure = error
        seconds = time.perf_counter() - start
        progress(f"{name}  {'FAILED' if failure else 'done'} after {seconds:.1f} s", stay=True)
        results.append(Result(path, seconds, failure))
    return results


def report(results: Sequence[Result]) -> None:
    """Print the failures, then the table of times."""
    for result in results:
        if isinstance(result.failure, CellFailed):
            print(f"\n{advice(result.failure)}")
        elif result.failure:
            print(f"\n{result.failure}")
    rows = [("notebook", "seconds", "result")]
    for result in results:
        verdict = "FAILED" if result.failure else "ok"
        rows.append((label(result.path), f"{result.seconds:.1f}", verdict))
    failed = sum(bool(result.failure) for result in results)
    total = sum(result.seconds for result in results)
    verdict = f"{failed} of {len(results)} failed" if failed else f"all {len(results)} ok"
    print(f"\n{table([*rows, ('together', f'{total:.1f}', verdict)], right=[1])}")


def stop(*_) -> None:
    """Leave by an exception, so that every kernel is shut down on the way."""
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="default: every lesson"
    )
    paths = parser.parse_args(argv).notebooks or lessons()
    for path in paths:
        if not path.is_file():
            parser.error(f"{path}: no such notebook")
    signal.signal(signal.SIGTERM, stop)
    width = max(len(label(path)) for path in [*paths, Path("together")]) + 2
    try:
        results = run(paths, width)
    except KeyboardInterrupt:
        print("\nStopped; no kernel is left running.")
        return 130
    report(results)
    return int(any(result.failure for result in results))


if __name__ == "__main__":
    sys.exit(main())
