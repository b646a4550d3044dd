"""The checks of lesson 04 on a build that lists no GPU kernels; the text beside the check."""

import json
from pathlib import Path

import pytest

from utils.checks import lesson04


@pytest.mark.parametrize("name", ["imagined", "cpu_only", "portable", "compare"])
def test_a_build_without_gpu_kernels_is_not_the_learners_mistake(said, monkeypatch, name):
    monkeypatch.setattr(lesson04, "lists_gpu_kernels", lambda: False)
    line = said(getattr(lesson04, f"check_04_{name}"), {"label": "host"})
    assert "this build of TensorFlow lists no GPU kernels" in line


def test_the_exercise_describes_the_graphs_that_the_check_builds():
    """Exercise 4.1 tells in words what the check builds in code."""
    root = Path(__file__).resolve().parents[1]
    path = root / "notebooks" / "solutions" / "04_soft_placement.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    table = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    assert table[2:9] == list(lesson04._QUESTIONS)
