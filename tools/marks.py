"""Run the exercise notebooks below a folder, and print which exercises are solved in each.

    python -m tools.marks FOLDER

The answers are programs of other people: run them where you would run their programs.
"""

import argparse
import re
import sys
from pathlib import Path

from tools.execute import CellFailed, execute
from tools.notebooks import CourseError
from utils.table import table as columns

OUTCOME = re.compile(r"^Exercise (\d+\.\d+): (correct|not yet|not attempted)", re.MULTILINE)
MARKS = {"correct": "+", "not yet": "-", "not attempted": "."}
LEGEND = "+ correct   - not yet   . not attempted or not run"


def outcomes(path: Path) -> dict[str, str]:
    """What the checks of a notebook say when it is run from the top, by exercise."""
    nb = execute(path, allow_errors=True)
    texts = (out.get("text", "") for cell in nb.cells for out in cell.get("outputs", []))
    return dict(found for text in texts for found in OUTCOME.findall(text))


def table(results: dict[str, dict[str, str]]) -> str:
    """One row a notebook, one column an exercise."""
    exercises = sorted({e for found in results.values() for e in found}, key=_order)
    rows: list[list[str]] = [["", *exercises, "correct"]]
    for name, found in results.items():
        marks = [MARKS[found.get(exercise, "not attempted")] for exercise in exercises]
        rows.append([name, *marks, str(marks.count(MARKS["correct"]))])
    solved = [sum(row[i] == MARKS["correct"] for row in rows) for i in range(1, len(rows[0]) - 1)]
    rows.append(["correct in all", *map(str, solved), ""])
    return f"{columns(rows)}\n{LEGEND}"


def _order(exercise: str) -> tuple[int, ...]:
    return tuple(map(int, exercise.split(".")))


def main(folder: Path) -> int:
    """Print the table; notebooks that do not run at all are named above it."""
    paths = sorted(p for p in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    if not paths:
        print(f"DIR={folder}: there are no notebooks below it. Name the folder of the hand-ins.")
        return 1
    results, failed = {}, 0
    for path in paths:
        try:
            results[path.relative_to(folder).as_posix()] = outcomes(path)
        except (CellFailed, CourseError) as error:
            failed = 1
            print(f"{path.relative_to(folder)}: {error}")
    print(table({name: found for name, found in results.items() if found}))
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    sys.exit(main(parser.parse_args().folder))
