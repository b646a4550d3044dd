"""What `pytest --nbval` needs to run the notebooks strictly, and to report readably."""

import os
import shutil
import tempfile
from pathlib import Path
from queue import Empty

import pytest

from tools import nbenv
from tools.notebooks import code_cells, heading_above

ROOT = Path(__file__).resolve().parent
OUTPUT_SECONDS = 30  # nbval's own 5 s are short on a busy machine

nbenv.apply()  # before any test file is imported, and for every process that comes after


def pytest_configure(config: pytest.Config) -> None:
    # Own, empty profile: no user's start-up files, no shared history. Each xdist worker has one
    # inside its controller's, which outlives the workers and takes them all away.
    worker = hasattr(config, "workerinput")
    folder = os.environ["IPYTHONDIR"] if worker else None
    ipython = os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="nbval-ipython-", dir=folder)
    if not worker:
        config.add_cleanup(lambda: shutil.rmtree(ipython, ignore_errors=True))
        # nbval kills its kernels, so what they keep in temp files stays: put it there, too. What
        # pytest keeps of failed tests does not go with it.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="tmp-", dir=ipython)
    if not config.option.nbval:
        return
    if not config.option.nbval_sanitize_with:
        # absolute, so that it is found from every folder
        config.option.nbval_sanitize_with = str(ROOT / "nbval_sanitize.cfg")
    if not worker:
        # On a new machine matplotlib says on stderr that it collects the fonts: once, here.
        import matplotlib.font_manager  # noqa: F401
    _notice_dead_kernels()


def _notice_dead_kernels() -> None:
    """Let nbval look after the kernel every second: it would wait out the whole cell timeout."""
    from nbval.kernel import RunningKernel

    wait = RunningKernel.get_message
    if wait.__module__ == __name__:
        return

    def get_message(self, stream, timeout=None):
        left = float("inf") if timeout is None else timeout
        while True:
            step = min(1.0, left)
            try:
                return wait(self, stream, timeout=step)
            except Empty:
                if not self.is_alive():
                    self.km.cleanup_resources()  # nbval cleans up only after live kernels
                    raise RuntimeError("the kernel died (crash or out of memory)") from None
                left -= step
                if left <= 0:
                    raise

    RunningKernel.get_message = get_message


def _is_cell(item: pytest.Item) -> bool:
    return type(item).__name__ == "IPyNbCell"


def pytest_itemcollected(item: pytest.Item) -> None:
    if _is_cell(item):
        item.output_timeout = OUTPUT_SECONDS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if _is_cell(item) and report.failed and call.when == "call":
        message = str(call.excinfo.value)
        if "kernel died" in message:
            item.parent.timed_out = True  # the rest of this notebook is expected to fail
        report.longrepr = f"{report.longrepr}\n{_advice(item, message)}"
    return report


def _advice(item: pytest.Item, message: str) -> str:
    """Where the cell stands, how to read nbval's message, and what to do."""
    notebook = item.path.relative_to(item.config.rootpath).as_posix()
    nb = item.parent.nb
    index = next(i for i, cell in enumerate(nb.cells) if cell is item.cell)
    count = next((n for n, (i, _) in enumerate(code_cells(nb), 1) if i == index), "empty")
    lines = [
        f"Where: {notebook}, section {heading_above(nb, index)!r}, In [{count}], "
        f"cell id {item.cell.id!r}"
    ]
    if "outputs differ" in message:
        lines += [
            "Read the difference: '-' is what the code printed now, '+' is what is stored.",
            f"If the new output is right: make outputs NB={notebook}",
        ]
    return "\n".join(lines)
