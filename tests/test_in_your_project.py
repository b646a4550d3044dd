"""What a lesson gives for a program of one's own runs there: plain TensorFlow, no helper."""

import re

import pytest

from tools.notebooks import lessons, read

TITLE = "In your project"


def script(path) -> str:
    """The Python of that section, all its listings in order; empty where there is none."""
    inside, found = False, []
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            if heading := re.search(r"^## (.*)$", cell.source, re.MULTILINE):
                inside = heading[1].strip() == TITLE
            if inside:
                found += re.findall(r"^```python\n(.*?)^```", cell.source, re.DOTALL | re.MULTILINE)
    return "\n".join(found)


SCRIPTS = {path.stem: code for path in lessons() if (code := script(path))}


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_runs_as_a_script_of_its_own(name, fresh):
    assert "utils" not in SCRIPTS[name], "it must not need the course"
    done = fresh(SCRIPTS[name])
    assert done.returncode == 0, done.stderr
