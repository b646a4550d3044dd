"""Every exercise's check: what it says to answers from `answers/` and to the untouched stub."""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from answering import EXERCISES, KINDS, read_answers, read_exercises

from tools import nbenv

HERE = Path(__file__).resolve().parent
DEADLINE = 600  # seconds for all answers of one setup
NOTEBOOKS = sorted(path.name for path in EXERCISES.glob("[0-9][0-9]_*.ipynb"))
FILES = {n: HERE / "answers" / f"{n[:2]}.toml" for n in NOTEBOOKS}
FILES = {notebook: file for notebook, file in FILES.items() if file.exists()}
ANSWERS = {id: (n, says) for n, file in FILES.items() for id, _, _, says in read_answers(file)}
STUBS = {e.number: n for n in NOTEBOOKS for e in read_exercises(n)[1]}
LEAST = {"wrong": 8, "right": 4, "hostile": 2}


def _setup(notebook: str) -> str:
    return re.search(r"begin\(.*?\)", read_exercises(notebook)[0])[0]


@functools.cache
def _results(setup: str) -> dict[str, dict]:
    """Run all notebooks that begin alike in one process."""
    pairs = [f"{n}={FILES.get(n, '')}" for n in NOTEBOOKS if _setup(n) == setup]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results"
        out.touch()
        done = subprocess.run(
            [sys.executable, str(HERE / "answering.py"), str(out), *pairs],
            env={**nbenv.apply(dict(os.environ)), "MPLBACKEND": "Agg"},
            cwd=EXERCISES, capture_output=True, text=True, timeout=DEADLINE, check=False,
        )  # fmt: skip
        results = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    last = results[-1]["id"] if results else "the setup"
    assert done.returncode == 0, f"the process died after {last}: {done.stderr[-2000:]}"
    return {result["id"]: result for result in results}


def _result(id: str, notebook: str) -> str:
    result = _results(_setup(notebook))[id]
    assert result["escaped"] is None, result
    return result["report"]


@pytest.mark.parametrize("exercise", STUBS)
def test_untouched(exercise):
    assert _result(f"{exercise} stub", STUBS[exercise]).startswith("not attempted: ")


@pytest.mark.parametrize("id", ANSWERS)
def test_answer(id):
    notebook, says = ANSWERS[id]
    report = _result(id, notebook)
    if " right " in id:
        assert report == "correct"
    else:
        assert report.startswith("not yet: ")
        assert says in report
        assert says or " hostile " in id, "say which cause must come"


@pytest.mark.parametrize("notebook", FILES)
def test_enough_answers(notebook):
    found = Counter(tuple(id.split()[:2]) for id in ANSWERS if ANSWERS[id][0] == notebook)
    numbers = [exercise.number for exercise in read_exercises(notebook)[1]]
    assert {(n, k): found[n, k] for n in numbers for k in KINDS if found[n, k] < LEAST[k]} == {}
