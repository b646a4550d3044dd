"""tools.execute, tools.run and tools.browser_smoke: notebooks in fresh kernels."""

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from tools import browser_smoke, run
from tools.execute import CellFailed, execute

ROOT = Path(__file__).resolve().parent.parent
DEADLINE = 120  # seconds until a test gives up waiting


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook of the given code cells; the last one stands under its own heading."""

    def write(name: str, *sources: str, tags: tuple[str, ...] = ()) -> Path:
        cells = [v4.new_markdown_cell("# A lesson"), *map(v4.new_code_cell, sources)]
        cells.insert(-1, v4.new_markdown_cell("## 2 · The last part"))
        cells[-1].metadata["tags"] = list(tags)
        path = tmp_path / name
        nbformat.write(v4.new_notebook(cells=cells), str(path))
        return path

    return write


def test_execute_returns_outputs_and_leaves_the_file(notebook):
    path = notebook("00_a.ipynb", "x = 6", "print(x * 7)\n1 / 0", tags=("raises-exception",))
    before = path.read_bytes()
    seen = []
    result = execute(path, on_cell=lambda *numbers: seen.append(numbers))
    assert seen == [(1, 2), (2, 2)]
    assert result.cells[-1].outputs[0].text == "42\n"
    assert result.cells[-1].outputs[1].ename == "ZeroDivisionError"
    assert path.read_bytes() == before


def test_execute_says_where_a_kernel_died(notebook):
    path = notebook("00_a.ipynb", "import os", "os.write(2, b'out of luck\\n'); os.abort()")
    with pytest.raises(CellFailed) as raised:
        execute(path)
    failure = raised.value
    assert (failure.notebook, failure.heading, failure.cell) == (path, "2 · The last part", 2)
    assert failure.ename == "DeadKernel"


def start_run(*paths: Path, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tools.run", *map(str, paths)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def test_run_reports_a_failing_lesson_and_goes_on(notebook):
    bad = notebook("00_bad.ipynb", "x = 1", "raise ValueError('first line\\nlast line')")
    good = notebook("01_good.ipynb", "1")
    with start_run(bad, good) as process:
        output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert f"{bad} failed" in output
    assert "section '2 · The last part', code cell In [2]" in output
    assert "ValueError: last line" in output and "make lab" in output
    assert re.search(r"(?m)00_bad.ipynb +\d+\.\d  FAILED$", output)
    assert re.search(r"(?m)01_good.ipynb +\d+\.\d  ok$", output)
    assert output.endswith("1 of 2 failed\n")


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_leaves_no_kernel(notebook, tmp_path, kind):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    code = f"import os, time\nopen({str(pipe)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"

    def heed() -> None:  # what a shell starts in the background ignores SIGINT
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with start_run(notebook("00_a.ipynb", code), preexec_fn=heed) as process:
        assert select.select([reader], [], [], DEADLINE)[0], "the kernel did not start"
        kernel = int(os.read(reader, 20))
        os.close(reader)
        process.send_signal(kind)
        output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130 and "no kernel is left running" in output
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)


def test_run_counts_every_lesson(capsys):
    failure = CellFailed(Path("notebooks/01_b.ipynb"), "2 · Part", 3, "KeyError", "'x'")
    results = [run.Result(Path("notebooks/00_a.ipynb"), 1.25, None)]
    run.report(results)
    assert capsys.readouterr().out.endswith("all 1 ok\n")
    run.report([*results, run.Result(failure.notebook, 2.0, failure)])
    output = capsys.readouterr().out
    assert "notebooks/01_b.ipynb failed" in output and "1 of 2 failed" in output


# --- browser


def cell(**changes) -> dict:
    return {"empty": False, "count": 1, "running": False, "errors": [], "pictures": 0} | changes


def test_the_browser_check_finds_what_a_learner_would_stumble_over(notebook):
    path = notebook("00_a.ipynb", "1", "2", "3", tags=("raises-exception",))
    nb = nbformat.read(path, as_version=4)
    picture = v4.new_output("display_data", {"image/png": "AAAA"})
    nb.cells[1].outputs = [picture]
    nbformat.write(nb, str(path))
    good = [cell(pictures=1), cell(), cell(errors=["E: wanted"])]
    assert browser_smoke.problems_of({"cells": good}, path) == []
    bad = [cell(), cell(errors=["E: x"]), cell(count=None)]
    assert browser_smoke.problems_of({"cells": bad}, path) == [
        "code cell 1: 0 of 1 pictures",
        "code cell 2: E: x",
        "code cell 3 did not run",
    ]
    assert "2 code cells in the browser" in browser_smoke.problems_of({"cells": good[:2]}, path)[0]


def test_the_browser_check_says_how_to_get_chromium(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROMIUM", raising=False)
    assert browser_smoke.find_chromium() is None
    with pytest.raises(SystemExit, match="apt-get install chromium"):
        browser_smoke.main(["README.md"])
