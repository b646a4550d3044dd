"""Run a command with its output in a file, and leave nothing of it running."""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    *,
    cwd: Path,
    env: dict[str, str],
    ending: signal.Signals = signal.SIGTERM,
    grace: float = 20,
) -> Iterator[psutil.Popen]:
    """The command's process; what it started gets the signal `ending` on the way out.

    What has not ended `grace` seconds later is killed.
    """
    with log.open("wb") as output:
        process = psutil.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        family = [process]
        with suppress(psutil.NoSuchProcess):
            family += process.children(recursive=True)
        for kind in (ending, signal.SIGKILL):
            for each in family:
                with suppress(psutil.NoSuchProcess):
                    each.send_signal(kind)
            _, family = psutil.wait_procs(family, grace)
