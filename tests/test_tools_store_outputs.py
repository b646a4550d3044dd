"""Outputs are stored as nbval will see them, and stay where they are the same."""

import base64
import io

import pytest
from nbformat import v4
from PIL import Image
from small_course import code, error, notebook, picture, printed, text, write

from tools import outputs, store_outputs
from tools.notebooks import read

RULES = outputs.rules()


def png(*colour, size=(20, 10)):
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def value(words, mime="text/plain"):
    return v4.new_output("execute_result", {mime: words}, execution_count=1)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ([], [], True),
        ([printed("4\n")], [printed("4\n")], True),
        ([printed("4\n")], [printed("5\n")], False),
        ([printed("4\n")], [printed("4\n", "stderr")], False),
        ([printed("4\n")], [value("4\n")], False),
        ([printed("4\n")], [printed("4\n"), value("5")], False),
        ([value("<A at 0x7f0123456789>")], [value("<A at 0x7f9876543210>")], True),
        ([value("<b>4</b>")], [value("<b>4</b>", "text/html")], False),
        ([error("KeyError", "'a'")], [error("KeyError", "'a'")], True),
        ([error("KeyError", "'a'")], [error("KeyError", "'b'")], False),
        ([error("KeyError", "'a'")], [error("LookupError", "'a'")], False),
        ([picture(png(9, 9, 9))], [picture(png(10, 9, 9))], True),
        ([picture(png(9, 9, 9))], [picture(png(99, 9, 9))], False),
        ([picture(png(9, 9, 9))], [picture(png(9, 9, 9, size=(20, 11)))], False),
    ],
)
def test_same_outputs(old, new, same):
    assert outputs.same_outputs(old, new, RULES) is same


def test_clean_merges_streams_and_hides_folders():
    noisy = error("ValueError", "no")
    noisy.traceback = [
        f"\x1b[36mFile \x1b[39m\x1b[32m{outputs.ROOT}/utils/runs/trace.py:3\x1b[39m",
        "File ~/a/lib/python3.11/site-packages/numpy/core.py:4",
        "File /usr/lib/python3.11/json/decoder.py:5, in x(/y)",
    ]
    stream = [printed("1\r2\n"), printed("w", "stderr"), printed("ab\x08c\n")]
    cell = code("x", outputs=(*stream, noisy))
    cell.metadata["scrolled"] = True
    nb = outputs.clean(notebook(cell))
    assert [o.get("text") for o in nb.cells[0].outputs] == ["2\nac\n", "w", None]
    assert nb.cells[0].outputs[2].traceback == [
        "\x1b[36mFile \x1b[39m\x1b[32mutils/runs/trace.py:3\x1b[39m",
        "File numpy/core.py:4",
        "File json/decoder.py:5, in x(/y)",
    ]
    assert nb.cells[0].metadata == {}


PICTURE = """\
import io, time
from IPython.display import Image, display
from PIL import Image as Pillow
file = io.BytesIO()
Pillow.new("RGB", (8, 8), ({red}, 0, 0)).save(file, "PNG")
display(Image(file.getvalue()))"""


def lesson():
    return notebook(
        text("# Run me"),
        code("import os\nfrom pathlib import Path\nPath('here.txt').read_text()"),
        code("print(object())\nos.write(1, b'raw') and print('printed')"),
        code("1 / 0", "raises-exception"),
        code(PICTURE.format(red=200), "measured"),
        code("print('run', os.getpid(), 'of', 2.5e-3)", "nbval-ignore-output"),
    )


def test_unchanged_outputs_leave_the_file_as_it_is(tmp_path, capsys):
    path = write(tmp_path / "03_a.ipynb", lesson())
    (tmp_path / "here.txt").write_text("found")
    assert store_outputs.main([str(path)]) == 0
    first = path.read_bytes()
    assert store_outputs.main([str(path)]) == 0
    assert path.read_bytes() == first
    report = capsys.readouterr().out.splitlines()
    assert report[0].startswith("03_a.ipynb: changed (")
    assert report[1].startswith("03_a.ipynb: unchanged (")

    nb = read(path)
    assert [c.id for c in nb.cells] == [c.id for c in lesson().cells]
    assert [c.execution_count for c in nb.cells[1:]] == [1, 2, 3, 4, 5]
    assert nb.cells[1].outputs[0].data["text/plain"] == "'found'"
    assert nb.cells[2].outputs[0].text.endswith(">\nprinted\n")  # and nothing of the raw write
    assert nb.cells[3].outputs[0].ename == "ZeroDivisionError"
    assert [o.output_type for o in nb.cells[4].outputs] == ["display_data"]


def test_changed_outputs_are_stored_and_measured_pictures_stay(tmp_path):
    nb = notebook(
        code("print(2)", outputs=(printed("1\n"),)),
        code(PICTURE.format(red=200), "measured", outputs=(picture(png(0, 0, 0)),)),
        code(PICTURE.format(red=200), outputs=(picture(png(0, 0, 0)),)),
        code("print('time', 3.5)", "nbval-ignore-output", outputs=(printed("time   12\n"),)),
        code("print('now', 3.5)", "nbval-ignore-output", outputs=(printed("time   12\n"),)),
    )
    for cell in nb.cells[1:3]:  # as Image shows itself
        cell.outputs[0].data["text/plain"] = "<IPython.core.display.Image object>"
    stored = outputs.refresh(write(tmp_path / "03_a.ipynb", nb)).cells
    assert stored[0].outputs[0].text == "2\n"
    assert stored[1].outputs == nb.cells[1].outputs
    assert stored[2].outputs != nb.cells[2].outputs
    assert stored[3].outputs == nb.cells[3].outputs
    assert stored[4].outputs[0].text == "now 3.5\n"
    fresh = outputs.refresh(tmp_path / "03_a.ipynb", keep=False).cells
    assert fresh[1].outputs == stored[2].outputs
    assert fresh[3].outputs[0].text == "time 3.5\n"


def test_failing_cell_is_named_and_the_file_stays(tmp_path, capsys):
    nb = notebook(text("# A\n\n## 2 · Divide"), code("x = 0"), code("1 / x"), code("x = 1"))
    path = write(tmp_path / "03_a.ipynb", nb)
    before = path.read_bytes()
    assert store_outputs.main([str(path)]) == 1
    report = capsys.readouterr().out
    assert "FAILED 03_a.ipynb" in report
    assert "2 · Divide" in report
    assert "[2]" in report
    assert "ZeroDivisionError: division by zero" in report
    assert path.read_bytes() == before


def test_wrong_paths_are_named_and_the_others_go_on(tmp_path, capsys):
    exercise = write(tmp_path / "exercises" / "03_a.ipynb", notebook(code("x = 1")))
    good = write(tmp_path / "04_b.ipynb", notebook(code("x = 1")))
    assert store_outputs.main([str(tmp_path / "no.ipynb"), str(exercise), str(good)]) == 1
    missing, generated, done = capsys.readouterr().out.splitlines()
    assert "no.ipynb: no such notebook" in missing
    assert "exercises are generated" in generated
    assert done.startswith("04_b.ipynb: ")
