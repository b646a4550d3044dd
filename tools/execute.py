"""Execute a notebook in a fresh kernel of this interpreter, and leave no kernel behind."""

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

from tools.nbenv import private_ipython
from tools.notebooks import code_cells, heading_above, label, read


class CellFailed(Exception):
    """A cell raised, took too long, or its kernel died.

    `notebook` is the path, `heading` the title above the cell, `cell` its number among the code
    cells (1, 2, … as in JupyterLab's `In [1]`); `ename` and `evalue` are the error's type and
    text.
    """

    def __init__(self, notebook: Path, heading: str, cell: int, ename: str, evalue: str) -> None:
        super().__init__(f"{label(notebook)}, {heading!r}, In [{cell}]: {ename}: {evalue}")
        self.notebook = notebook
        self.heading = heading
        self.cell = cell
        self.ename = ename
        self.evalue = evalue


def execute(
    path: str | Path,
    *,
    on_cell: Callable[[int, int], None] | None = None,
    timeout: float = 120,
    extra_arguments: Sequence[str] = (),
    notebook: NotebookNode | None = None,
    allow_errors: bool = False,
) -> NotebookNode:
    """Execute the notebook at `path` in its own `folder`, or another, and return its outputs.

    The file is not written; a `notebook` is executed in place of what it holds. `timeout` is in
    seconds, for one cell. `on_cell(number, total)` is called before each code cell.
    `extra_arguments` go to the kernel's command line; the kernel's environment is this process's.
    Raises CellFailed at the first cell that fails, unless it is tagged `raises-exception` or
    `allow_errors` is true. The kernel is shut down on every way out, Ctrl-C included.
    """
    path = Path(path)
    notebook = notebook or read(path)
    indices = [index for index, _ in code_cells(notebook)]
    current = [0]  # where the kernel is, for the report

    def before_cell(cell: NotebookNode, cell_index: int) -> None:
        current[0] = indices.index(cell_index)
        if on_cell:
            on_cell(current[0] + 1, len(indices))

    def failed(ename: str, evalue: str) -> CellFailed:
        index = indices[current[0]] if indices else 0
        return CellFailed(path, heading_above(notebook, index), current[0] + 1, ename, evalue)

    # An empty list of folders leaves one kernel: that of this interpreter, whatever is installed.
    manager = AsyncKernelManager(
        kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[])
    )
    client = NotebookClient(
        notebook,
        km=manager,
        timeout=timeout,
        allow_errors=allow_errors,
        startup_timeout=120,
        record_timing=False,
        coalesce_streams=True,
        on_cell_execute=before_cell,
    )
    with private_ipython(), tempfile.TemporaryFile() as log, _event_loop() as run:
        try:
            run(
                manager.start_kernel(
                    cwd=str(path.parent),
                    extra_arguments=list(extra_arguments),
                    stdout=log,
                    stderr=log,
                )
            )
            run(client.async_execute())
        except CellExecutionError as error:
            raise failed(error.ename, error.evalue) from None
        except CellTimeoutError:
            raise failed("Timeout", f"the cell ran longer than {timeout:g} s") from None
        except RuntimeError as error:  # DeadKernelError, or the kernel did not start
            raise failed("DeadKernel", f"{error}; it last wrote: {_last_words(log)}") from error
        finally:
            run(_shut_down(manager, client))
    return notebook


async def _shut_down(manager: AsyncKernelManager, client: NotebookClient) -> None:
    if client.kc:
        client.kc.stop_channels()
    if manager.has_kernel:
        await manager.shutdown_kernel()


def _last_words(log: IO[bytes]) -> str:
    """The last line that a dead kernel wrote itself, past its cells (TensorFlow's, mostly)."""
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    own = [line.strip() for line in lines if line.strip() and "[IPKernelApp]" not in line]
    return own[-1] if own else "nothing (out of memory?)"


@contextmanager
def _event_loop() -> Iterator[Callable[[Coroutine], Any]]:
    """Give a function that runs a coroutine in another thread and returns its result.

    In the main thread nbclient would take over SIGINT and SIGTERM; in another it cannot, and so
    they reach the caller, who then shuts the kernel down in good order.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def cancellable(coroutine: Coroutine) -> Any:
        try:
            return await coroutine
        except Exception:
            if asyncio.current_task().cancelling():  # nbclient takes this for a dead kernel
                raise asyncio.CancelledError from None
            raise

    def run(coroutine: Coroutine) -> Any:
        future = asyncio.run_coroutine_threadsafe(cancellable(coroutine), loop)
        try:
            return future.result()
        finally:
            future.cancel()

    async def cancel_rest() -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    try:
        yield run
    finally:
        run(cancel_rest())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
