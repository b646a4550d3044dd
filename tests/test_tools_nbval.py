"""conftest.py: nbval runs strictly, notices dead kernels, reports readably, leaves nothing."""

import os
import shutil
import subprocess
import sys

import pytest
from small_course import code, notebook, printed, text, write

from tools import nbenv
from tools.notebooks import ROOT

SETTINGS = """\
[pytest]
addopts = --nbval-current-env --nbval-cell-timeout=120 -ra
norecursedirs = exercises
filterwarnings = error
"""


# What a kernel keeps in a temp folder stays there when nbval kills it.
KEEPS = "import os, tempfile\nfolder = tempfile.TemporaryDirectory()\nprint(object())"


def lesson(zone):
    """Two cells; what the second one prints is stored as for this time zone."""
    return notebook(
        text("# A\n\n## 1 · Begin"),
        code(KEEPS, outputs=(printed("<object object at 0x1234567>\n"),)),
        code(
            "print(os.environ['TZ'], os.environ.get('MPLBACKEND', '-')[:6])",
            outputs=(printed(f"{zone} module\n"),),
        ),
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The glue of this repository around notebooks of its own."""
    root = tmp_path_factory.mktemp("project") / "a course"
    shutil.copytree(ROOT / "tools", root / "tools")
    for name in ("conftest.py", "nbval_sanitize.cfg"):
        shutil.copy(ROOT / name, root)
    (root / "pytest.ini").write_text(SETTINGS)
    (root / "tmp").mkdir()
    notebooks = root / "notebooks"
    write(notebooks / "00_good.ipynb", lesson("UTC"))
    write(notebooks / "01_differs.ipynb", lesson("LMT"))
    death = code("import os\nos._exit(1)")
    nb = notebook(text("# B\n\n## 1 · Die"), death, code("x = 1"), code("x = 2"))
    write(notebooks / "02_dies.ipynb", nb)
    write(notebooks / "solutions" / "00_good.ipynb", lesson("UTC"))
    write(notebooks / "exercises" / "00_good.ipynb", notebook(code("1 / 0")))
    return root


@pytest.fixture(scope="module")
def report(project):
    """What `pytest --nbval` says, in a worker of pytest-xdist."""
    command = [sys.executable, "-m", "pytest", "--nbval", "-p", "no:cacheprovider", "-n", "1"]
    command += ["--dist", "loadscope", "notebooks", "notebooks/solutions"]
    # what pytest sets for the run that this test is part of must not reach the inner one
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env["TMPDIR"] = str(project / "tmp")
    return subprocess.run(
        command, cwd=project, env=env, capture_output=True, text=True, timeout=300, check=False
    ).stdout


def test_good_cells_pass_once_each_and_exercises_are_left_out(report):
    assert report.count("00_good") == 0  # only failures are named
    assert "2 failed, 5 passed, 2 xfailed" in report


def test_difference_says_where_it_is_and_what_to_do(report):
    assert (
        "Where: notebooks/01_differs.ipynb, section '1 · Begin', In [2], cell id 'cell-3'" in report
    )
    assert "If the new output is right: make outputs NB=notebooks/01_differs.ipynb" in report


def test_dead_kernel_is_noticed(report):
    assert "the kernel died (crash or out of memory)" in report
    assert "Where: notebooks/02_dies.ipynb, section '1 · Die', In [1], cell id 'cell-2'" in report


@pytest.mark.usefixtures("report")
def test_nothing_is_left_behind(project):
    names = {file.name for folder in (project, project / "notebooks") for file in folder.iterdir()}
    assert not {name for name in names if name.startswith(".") or name.endswith(".sqlite")}
    left = {file.name for file in (project / "tmp").iterdir()}
    assert not {name for name in left if not name.startswith("pytest-of-")}


def test_environment_is_pinned_and_cleaned():
    env = nbenv.apply({"TZ": "Asia/Tokyo", "COURSE_STRICT": "1", "TF_CONFIG": "{}", "HOME": "/h"})
    assert env == {**nbenv.PIN, "HOME": "/h"}
    assert os.environ["TZ"] == "UTC"  # conftest.py applied it to this process


def test_private_ipython_is_removed(monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", "before")
    with nbenv.private_ipython():
        folder = os.environ["IPYTHONDIR"]
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)
    assert os.environ["IPYTHONDIR"] == "before"
    monkeypatch.delenv("IPYTHONDIR")
    with nbenv.private_ipython():
        pass
    assert "IPYTHONDIR" not in os.environ


def test_fresh_process(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_STRICT", "1")
    result = fresh(
        """
        import os, sys
        print(os.getcwd(), os.environ.get("COURSE_STRICT"), os.environ["A"], os.environ.get("TZ"))
        print("tensorflow" in sys.modules, file=sys.stderr)
        sys.exit(3)
        """,
        A="1",
        TZ=None,
    )
    assert result.stdout == f"{tmp_path} None 1 None\n"
    assert result.stderr == "False\n"
    assert result.returncode == 3


def test_machine_of_this_process(machine):
    assert len(machine.gpus) == 4
