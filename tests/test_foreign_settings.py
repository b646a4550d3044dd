"""What a shell, a user's folder or another file says does not change the course, or is named."""

import os
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from tools import run
from tools.execute import CellFailed, execute
from tools.notebooks import CourseError

ROOT = Path(__file__).resolve().parent.parent
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
    run.report([result])
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


# --- the environment of make


@pytest.fixture
def made(tmp_path):
    """`made(NAME="value")` is the environment that a recipe gets, in a folder with a space."""
    folder = tmp_path / "my course"
    folder.mkdir()
    (folder / "Makefile").write_text((ROOT / "Makefile").read_text() + "\nshow:\n\t@env -0\n")

    def show(**variables: str | None) -> dict[str, str]:
        given = {**os.environ, "VENV": None, **variables}  # as in a shell of the user's own
        given = {name: value for name, value in given.items() if value is not None}
        done = subprocess.run(
            ["make", "-s", "show"],
            cwd=folder,
            env=given,
            capture_output=True,
            text=True,
            check=True,
        )
        return dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair)

    return show


@pytest.mark.parametrize(
    "name",
    ["PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "MPLBACKEND", "MATPLOTLIBRC", "JUPYTER_PATH"]
    + ["TF_XLA_FLAGS", "TF_CONFIG", "PYTHONWARNINGS", "PYTHONINSPECT"],
)
def test_make_clears_what_would_mislead_its_programs(made, name):
    assert name not in made(**{name: "/elsewhere"})


def test_make_keeps_what_real_gpus_need_and_the_users_home(made, tmp_path):
    given = {"XLA_FLAGS": "--xla_x=1", "CUDA_VISIBLE_DEVICES": "1", "HOME": str(tmp_path)}
    assert given.items() <= made(**given).items()


@pytest.mark.parametrize("home", [None, "/nonexistent", __file__])
def test_make_gives_a_home_to_a_user_without_one(made, tmp_path, home):
    environment = made(HOME=home)
    assert environment["HOME"] == str(tmp_path / "my course" / ".venv" / "home")
    assert environment["IPYTHONDIR"] == str(tmp_path / "my course" / ".venv" / "ipython")


# --- a file that loads TensorFlow before begin


def test_begin_names_the_start_up_file_that_loads_tensorflow(notebook, monkeypatch, tmp_path):
    (tmp_path / "early.py").write_text("import tensorflow as tf\n")
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "early.py"))
    execute(notebook(BEGIN))  # kernels as set-up leaves them do not run that file
    with pytest.raises(CellFailed) as failed:  # others do
        execute(notebook(BEGIN), extra_arguments=["--InteractiveShellApp.code_to_run="])
    assert f"The file {tmp_path / 'early.py'} runs before every notebook" in failed.value.evalue


def test_begin_finds_a_start_up_file_of_ipython(notebook, monkeypatch):
    plant = (
        "from pathlib import Path\nfolder = Path(get_ipython().profile_dir.startup_dir)\n"
        "(folder / '00-mine.py').write_text('import tensorflow')\n"
        "from utils.machine.startup import startup_file\nprint(startup_file().name)"
    )
    (cell,) = execute(notebook(plant)).cells
    assert cell.outputs[0].text == "00-mine.py\n"


def test_a_cell_that_loads_tensorflow_first_asks_for_a_restart_only(notebook):
    with pytest.raises(CellFailed) as failed:
        execute(notebook("import tensorflow", BEGIN))
    assert "Restart the kernel and run the setup cell first" in failed.value.evalue


# --- another utils


@pytest.mark.parametrize(
    ("file", "source", "explained"),
    [
        ("utils.py", "from utils.start import begin", True),
        ("utils/__init__.py", "from utils import PROGRAMS", True),
        ("utils.py", "from utils import PROGRAMS", True),
        ("utils.py", "import utils\nmachine.gpus", True),
        ("utils.py", "import utils, nothing_of_this_name", False),
        ("other.py", "import nothing_of_this_name", False),
    ],
)
def test_another_utils_is_named_with_its_path(notebook, tmp_path, file, source, explained):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine = 1\n")
    config = ROOT / "jupyter_config" / "ipython_kernel_config.py"
    nb = execute(notebook(source), allow_errors=True, extra_arguments=[f"--config={config}"])
    said = "".join(out.get("text", "") for out in nb.cells[0].outputs)
    assert nb.cells[0].outputs[0].output_type == "error"
    sentence = f"Python found {path} instead of the course's package `utils`. Rename"
    assert said.startswith(sentence) if explained else not said
