"""Clean the outputs of a run, and decide which stored outputs still stand."""

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks import ROOT, read, tags, tidy

SANITIZE = ROOT / "nbval_sanitize.cfg"
PNG_TOLERANCE = 2.0  # root mean square of 0…255: anti-aliasing and font hinting stay below
LIBRARIES = r"[~/][^\s\"'(\x1b]*[/\\](?:site-packages|dist-packages|python3\.\d+)[/\\]"
COURSE = rf"(?:{re.escape(str(ROOT))}|~[^\s\"'(\x1b]*[/\\]{re.escape(ROOT.name)})[/\\]"
FOLDERS = re.compile(f"{LIBRARIES}|{COURSE}")
TEMPORARY_CELL = re.compile(r"[^\s\"'(\x1b]*ipykernel_\d+[/\\]\d+\.py")
ANY_NUMBER = (r"\s*-?\d[\d.,]*(?:e[+-]?\d+)?", " N")

Rules = list[tuple[str, str]]


def rules() -> Rules:
    """The (regex, replacement) pairs nbval applies to both sides before it compares."""
    from nbval.plugin import get_sanitize_patterns

    return get_sanitize_patterns(SANITIZE.read_text(encoding="utf-8"))


def sanitize(value: object, patterns: Rules) -> object:
    if isinstance(value, str):
        for regex, replacement in patterns:
            value = re.sub(regex, replacement, value)
    return value


def same_png(one: str, other: str) -> bool:
    """Equal up to what another machine's fonts and anti-aliasing change."""
    import numpy as np
    from PIL import Image

    a, b = (
        np.asarray(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"), dtype=float)
        for png in (one, other)
    )
    return a.shape == b.shape and float(np.sqrt(((a - b) ** 2).mean())) < PNG_TOLERANCE


def same_outputs(
    one: list[NotebookNode],
    other: list[NotebookNode],
    patterns: Rules,
    same_picture: Callable[[str, str], bool] = same_png,
) -> bool:
    """True where nbval, and a reader, would see no difference."""

    def same_text(a: object, b: object) -> bool:
        return sanitize(a, patterns) == sanitize(b, patterns)

    def same(a: NotebookNode, b: NotebookNode) -> bool:
        if a.output_type != b.output_type:
            return False
        if a.output_type == "stream":
            return a.name == b.name and same_text(a.text, b.text)
        if a.output_type == "error":
            return a.ename == b.ename and same_text(a.evalue, b.evalue)
        return set(a.data) == set(b.data) and all(
            (same_picture if mime == "image/png" else same_text)(a.data[mime], b.data[mime])
            for mime in a.data
        )

    return len(one) == len(other) and all(map(same, one, other))


def clean(nb: NotebookNode) -> NotebookNode:
    """Strip, in place, what differs from run to run or names this machine's folders."""
    from nbval.plugin import coalesce_streams

    tidy(nb)
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs = coalesce_streams(cell.outputs)  # however the kernel chunked them
        for output in cell.outputs:
            output.pop("transient", None)
            if output.output_type == "stream":
                output.text = TEMPORARY_CELL.sub("<cell>", _as_shown(output.text))
            if output.output_type == "error":
                output.traceback = [FOLDERS.sub("", line) for line in output.traceback]
    return nb


def _as_shown(text: str) -> str:
    """What a terminal would show: carriage returns and backspaces applied."""
    text = re.sub(r"(?m)^.*\r(?=[^\n])", "", text).replace("\r\n", "\n")
    while re.search(r"[^\n\x08]\x08", text):
        text = re.sub(r"[^\n\x08]\x08", "", text)
    return text.replace("\x08", "")


def run(path: Path, notebook: NotebookNode | None = None) -> NotebookNode:
    """Execute as nbval will: its kernels do not show raw writes to descriptors 1 and 2."""
    from tools.execute import execute

    arguments = ["--IPKernelApp.capture_fd_output=False"]
    return clean(execute(path, notebook=notebook, extra_arguments=arguments))


def refresh(path: Path, keep: bool = True) -> NotebookNode:
    """Execute the notebook at `path`; where an output is the same, the old one stays.

    The picture of a cell tagged `measured` differs from run to run; it stays as long as the
    rest of the cell's output is the same. Where nbval ignores the output, so do the numbers.
    With `keep` false every new output is taken. The file is not written.
    """
    new, old = run(path), clean(read(path))
    for before, after in zip(old.cells, new.cells, strict=True):
        if keep and after.cell_type == "code":
            ignored = "nbval-ignore-output" in tags(after)
            patterns = [*rules(), ANY_NUMBER] if ignored else rules()
            any_picture = ignored or "measured" in tags(after)
            same_picture = (lambda one, other: True) if any_picture else same_png
            if same_outputs(before.outputs, after.outputs, patterns, same_picture):
                after.outputs = before.outputs
    return new
