"""Run answers to exercises as a learner runs them, without a kernel, in a process of its own.

    python tests/answering.py RESULTS 00_start_here.ipynb=answers/00.toml …

appends to RESULTS one line of JSON per answer: its id, what the check printed, and what escaped
from the check or from a cell after it. All notebooks given need the same `begin(...)`.
`tests/answers/README.md` describes the files of answers.
"""

import contextlib
import io
import json
import linecache
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

EXERCISES = Path(__file__).resolve().parents[1] / "notebooks" / "exercises"
KINDS = ("wrong", "right", "hostile")
HOSTILE_SECONDS = 3.0  # an answer that never ends is given up after this


@dataclass
class Exercise:
    """The code cells of one exercise."""

    number: str
    given: list[str] = field(default_factory=list)
    stubs: list[str] = field(default_factory=list)
    check: str = ""
    after: list[str] = field(default_factory=list)


def read_exercises(notebook: str) -> tuple[str, list[Exercise]]:
    """The cells before the first exercise of a notebook as one text, and its exercises."""
    cells = json.loads((EXERCISES / notebook).read_text(encoding="utf-8"))["cells"]
    setup, exercises = "", []
    for cell in cells:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        if heading := re.search(r"^### Exercise (\d+\.\d+)", source, re.MULTILINE):
            exercises.append(Exercise(heading[1]))
        elif cell["cell_type"] != "code":
            continue
        elif not exercises:
            setup += f"{source}\n"
        elif "exercise" in tags:
            exercises[-1].stubs.append(source)
        elif "check" in tags:
            exercises[-1].check = source
        else:
            part = exercises[-1].after if exercises[-1].check else exercises[-1].given
            part.append(source)
    return setup, exercises


def read_answers(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """(id, exercise, code, what the report must contain) of each answer in a file."""
    for number, held in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for kind in KINDS:
            for place, answer in enumerate(held.get(kind, []), start=1):
                code, says = (answer, "") if isinstance(answer, str) else answer
                yield f"{number} {kind} {place}", number, f"{held.get('before', '')}\n{code}", says


def execute(source: str, name: str, space: dict) -> None:
    """Run a cell; like a kernel, keep its text where TensorFlow looks for a function's source."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), space)


def attempt(exercise: Exercise, sources: list[str], id: str, space: dict) -> dict:
    """Run the answer, its check and the cells after it."""
    said, escaped = io.StringIO(), None
    space = dict(space)
    try:
        with contextlib.redirect_stdout(said):
            for place, source in enumerate([*sources, exercise.check, *exercise.after]):
                execute(source, f"cell {place} of {id}", space)
    except BaseException as error:  # whatever it is, it would have stopped Run All
        escaped = f"{type(error).__name__}: {error}"
    lines = said.getvalue().splitlines()
    start = f"Exercise {exercise.number}: "
    report = next((x.removeprefix(start) for x in reversed(lines) if x.startswith(start)), "")
    return {"id": id, "report": report, "escaped": escaped}


def attempts(notebook: str, file: Path | None) -> Iterator[dict]:
    """What happened to every stub of a notebook and to every answer in a file."""
    setup, exercises = read_exercises(notebook)
    space: dict = {"__name__": "__main__"}
    execute(setup, f"setup of {notebook}", space)
    from utils.checks import outcome

    answers = list(read_answers(file)) if file else []
    for exercise in exercises:
        for place, source in enumerate(exercise.given):
            with contextlib.redirect_stdout(io.StringIO()):
                execute(source, f"given {place} of {exercise.number}", space)
        yield attempt(exercise, exercise.stubs, f"{exercise.number} stub", space)
        for id, number, code, _ in answers:
            if number == exercise.number:
                usual, hostile = outcome.SECONDS, "hostile" in id
                outcome.SECONDS = HOSTILE_SECONDS if hostile else usual
                yield attempt(exercise, [code], id, space)
                outcome.SECONDS = usual


def main() -> None:
    results, *pairs = sys.argv[1:]
    with open(results, "a", encoding="utf-8") as out:
        for pair in pairs:
            notebook, _, file = pair.partition("=")
            for result in attempts(notebook, Path(file) if file else None):
                print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
