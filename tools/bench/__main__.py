"""Measure the figures of the course; print a table for each and write all of them as JSON.

A figure that other programs disturbed (they used more than 5 % of the processors) has no verdict.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import soak
from tools.bench.figure import DISTURBED, Figure, cores, seconds_of, summary, table, watched
from tools.bench.training import pipeline, towers
from tools.execute import execute
from tools.notebooks import exercises, label, lessons, solutions


def lesson_times(rounds: int) -> Figure:
    """Every lesson, executed in a fresh kernel: the time a learner waits for Run All."""
    rows = []
    with watched() as load:
        for path in lessons():
            rows.append((label(path), *summary(seconds_of(lambda p=path: execute(p), rounds))))
    rows.append(("together", *(sum(row[i] for row in rows) for i in (1, 2)), None))
    columns = ("lesson", "best s", "median s", "spread")
    return Figure("Executing the lessons", columns, rows, load.others)


def import_tensorflow() -> None:
    """Import TensorFlow in a new interpreter, as every kernel has to."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run(
        [sys.executable, "-c", "import tensorflow"],
        env=environment,
        check=True,
        capture_output=True,
    )


def suite_against_floor(rounds: int) -> Figure:
    """`make test` once, against what it cannot go below: a TensorFlow import for every kernel."""
    kernels = len([*lessons(), *solutions(), *exercises()])
    with watched() as load:
        best, median, spread = summary(seconds_of(import_tensorflow, rounds))
        with TemporaryDirectory() as folder:
            log = Path(folder) / "suite.log"
            outcome = soak.suite(log)
            last = log.read_text(errors="replace").splitlines()[-1:]
    floor = kernels / cores() * best
    rows = [
        ("importing TensorFlow", best, median, spread),
        (f"{kernels} kernels on {cores()} cores", floor, kernels / cores() * median, None),
        ("make test, once", outcome.seconds, outcome.seconds, None),
    ]
    note = f"make test {outcome.verdict} ({outcome.detail}): {outcome.seconds / floor:.1f} × floor."
    if outcome.verdict == "FAILED":
        note = f"make test FAILED, so its time says nothing. Its last line: {' '.join(last)}"
    columns = ("what", "best s", "median s", "spread")
    return Figure("The suite and what it cannot go below", columns, rows, load.others, (note,))


FIGURES: dict[str, Callable[[int], Figure]] = {
    "lessons": lesson_times,
    "suite": suite_against_floor,
    "dense": partial(towers, "dense"),
    "conv": partial(towers, "conv"),
    "stages": pipeline,
}


def machine() -> dict[str, object]:
    """What the figures were measured on; no name and no path of this machine."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": cores(),
        "python": platform.python_version(),
        "tensorflow": version("tensorflow"),
    }


def as_json(figures: dict[str, Figure], rounds: int) -> str:
    """All figures as one JSON document."""
    content = {
        "machine": machine(),
        "rounds": rounds,
        "figures": {
            name: {
                "title": figure.title,
                "columns": figure.columns,
                "rows": figure.rows,
                "others": figure.others,
                "notes": figure.notes,
                "quiet": None if figure.others is None else figure.others <= DISTURBED,
            }
            for name, figure in figures.items()
        },
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=FIGURES, action="append", help="default: every figure")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="default: bench.json")
    options = parser.parse_args(argv)
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds}: give 1 or more")
    figures = {}
    for name in options.only or FIGURES:
        figures[name] = FIGURES[name](options.rounds)
        print(f"{table(figures[name])}\n", flush=True)
    options.json.write_text(as_json(figures, options.rounds), encoding="utf-8")
    print(f"Written: {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
