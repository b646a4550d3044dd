"""The graph of exercise 3.1, as learners read it and as its check builds it."""

import inspect
import json
from pathlib import Path

from utils.checks import lesson03


def test_the_exercise_prints_the_graph_that_the_check_builds():
    """The graph in the exercise's text and the one in the check are two."""
    root = Path(__file__).resolve().parents[1]
    path = root / "notebooks" / "solutions" / "03_log_placement.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    code = inspect.getsource(lesson03.placed_graph)
    for line in (
        "tf.raw_ops.Size(input=x",
        "tf.multiply(c, v.read_value()",
        "resource=v.handle, value=[1.0, 1.0]",
    ):
        assert line in text
        assert line in code
