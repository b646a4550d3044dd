"""A file that runs before every notebook and loads TensorFlow: a restart would repeat that."""

import os
import sys
from pathlib import Path


def restart(then: str) -> str:
    """Return what to do if TensorFlow was loaded too early: restart, or first mend what loads it.

    Args:
        then: what to do after the restart, as the end of a sentence.

    Introduced in lesson 00, behind ``begin``.
    """
    if path := startup_file():
        return (
            f"The file {path} runs before every notebook and loads TensorFlow, so a restart alone "
            f"repeats this. Take that out of the file, restart the kernel and {then}"
        )
    return f"Restart the kernel and {then}"


def startup_file() -> Path | None:
    """Return the start-up file of IPython or Python that names TensorFlow, if there is one.

    Introduced in lesson 00, behind ``begin``.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return None  # a program runs no such file
    found = sorted(Path(shell.profile_dir.startup_dir).glob("*.*py"))
    if named := os.environ.get("PYTHONSTARTUP"):
        found.append(Path(named))
    for path in found:
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        if "tensorflow" in text or "keras" in text:
            return path
    return None
