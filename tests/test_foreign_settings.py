"""What a shell, a user's folder or another file says does not change the course, or is named."""

import nbformat
import pytest
from nbformat import v4

from tools import run
from tools.execute import execute
from tools.notebooks import CourseError

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('a picture')\nplt.show()"
BEGIN = "from utils.start import begin\nmachine = begin(gpus=1)"


@pytest.fixture
def notebook(tmp_path):
    """`notebook(*sources)` writes a notebook of code cells and returns its path."""

    def write(*sources: str):
        path = tmp_path / "00_a.ipynb"
        nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(s) for s in sources]), str(path))
        return path

    return write


# --- pictures


@pytest.mark.parametrize("variable", ["MPLBACKEND", "MATPLOTLIBRC"])
def test_pictures_are_shown_whatever_the_settings_of_matplotlib_say(
    variable, notebook, monkeypatch, tmp_path
):
    (tmp_path / "rc").mkdir()
    (tmp_path / "rc" / "matplotlibrc").write_text("text.usetex: True\nbackend: Agg\n")
    foreign = {"MPLBACKEND": "TkAgg", "MATPLOTLIBRC": str(tmp_path / "rc")}
    monkeypatch.setenv(variable, foreign[variable])
    assert run.pictures(execute(notebook(BEGIN, PLOT))) == 1
    assert run.pictures(execute(notebook(PLOT))) == 0, "without begin the picture is gone"


def test_run_fails_if_a_lesson_shows_fewer_pictures_than_are_stored(notebook, capsys):
    path = notebook("1")
    stored = nbformat.read(path, 4)
    picture = v4.new_output("display_data", {"image/png": ""})
    stored.cells[0].outputs = [picture, picture]
    nbformat.write(stored, path)
    run.compare_pictures(path, stored)
    stored.cells[0].outputs = [picture]
    (result,) = run.run([path], 20, lambda path, on_cell: stored)
    assert isinstance(result.failure, CourseError)
    run.report([result], 20)
    assert "it shows 1 pictures, and 2 are stored" in capsys.readouterr().out


# --- flags for XLA


@pytest.mark.parametrize(
    ("variable", "flag"), [("TF_XLA_FLAGS", "--tf_xla_bogus=1"), ("XLA_FLAGS", "--xla_bogus=1")]
)
def test_begin_says_which_flag_tensorflow_refuses_and_goes_on_without_it(fresh, variable, flag):
    done = fresh(
        f"""
    import os
    from utils.start import begin

    try:
        begin(gpus=1)
    except RuntimeError as error:
        print(error)
    os.environ.pop({variable!r})
    print(begin(gpus=1))
    """,
        **{variable: flag},
    )
    assert done.returncode == 0, done.stderr
    refused, begun = done.stdout.splitlines()
    assert refused.startswith(f"TensorFlow does not start with {variable}={flag!r}: Unknown flag")
    assert f'os.environ.pop("{variable}")' in refused
    assert begun.startswith("host and 1 GPU")
