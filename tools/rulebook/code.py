"""Rules for code cells: what stands in them."""

import re
import statistics
from itertools import groupby

from tools.notebooks import CELL_METADATA, tags
from tools.rulebook import LESSON, SOLUTION, Page, Problems, rule
from tools.rulebook.unchecked import UNCHECKED

MOST_LINES, MOST_COLUMNS, MEDIAN_LINES, MOST_IN_A_ROW = 20, 79, 8, 2
TAGS = {
    "setup",
    "raises-exception",  # the cell's error is the lesson
    "nbval-ignore-output",  # not compared; the reason stands in unchecked.py
    "measured",  # its picture differs from run to run; the stored one is kept
    "exercise",
    "check",
    "generated",  # a tool writes the text
}
SOLUTION_TAGS = TAGS | {"solution-only"}
FORBIDDEN = {  # regular expression: what is wrong with it
    r"\bsys\.path\b": "`utils` is installed; no paths",
    r"(?m)^\s*(?:from|import) tools\b": "tools are for authors; lessons use `utils`",
    r"\bpip3? install\b": "no installs",
    r"(?m)^\s*[!%]": "no magics and no shell",
    r"\bclear_output\b|\bupdate_display\b|\bdisplay_id\b": "redrawn outputs fail under nbval",
    r"\binteract\b|\bOutput\(\)": "widgets fail under nbval",
    r"\binput\(": "nobody is there to answer",
    r"[\"'](?:/(?:home|root|tmp|usr|opt|work|mnt|content|Users)\b|[A-Za-z]:\\)": "no absolute path",
    r"\bNBVAL_|\bPYTEST_VALIDATE": "tags, no comment markers",
    r"\bv1\.layers\b": "not available with Keras 3",
    r"\bestimator\b": "gone from TensorFlow",
    r"\bcontrib\b": "gone from TensorFlow",
    r"\bdevice_lib\b": "initialises all devices; use tf.config",
    r"\bdisable_(?:eager_execution|v2_behavior)\b": "cannot be undone; use `with tf.Graph()`",
    r"\bmultiprocessing\b": "hangs or respawns in a notebook; start programs as files",
    r"\bServer\(": "a server cannot be closed again; start it in a process of its own",
    r"\b(?:MultiWorkerMirrored|ParameterServer)Strategy(?:V\d)?\(": "can block the kernel for good",
}


def _lines(source: str) -> int:
    return sum(bool(line.strip()) for line in source.splitlines())


@rule(LESSON)
def cell_length(page: Page) -> Problems:
    for index, cell in page.code:
        if (lines := _lines(cell.source)) > MOST_LINES:
            yield index, f"{lines} lines; {MOST_LINES} are the most"


@rule(LESSON)
def median_length(page: Page) -> Problems:
    lengths = [_lines(cell.source) for _, cell in page.code]
    if lengths and (median := statistics.median(lengths)) > MEDIAN_LINES:
        yield None, f"the median code cell has {median:g} lines; {MEDIAN_LINES} are the most"


@rule(LESSON, SOLUTION)
def columns(page: Page) -> Problems:
    for index, cell in page.code:
        for number, line in enumerate(cell.source.splitlines(), 1):
            if len(line) > MOST_COLUMNS:
                yield index, f"line {number} has {len(line)} columns; {MOST_COLUMNS} are the most"


@rule(LESSON)
def prose_between(page: Page) -> Problems:
    index = 0
    for kind, run in groupby(page.nb.cells, key=lambda cell: cell.cell_type):
        length = len(list(run))
        if kind == "code" and length > MOST_IN_A_ROW:
            yield index, f"{length} code cells in a row; say something after {MOST_IN_A_ROW}"
        index += length


@rule(LESSON, SOLUTION)
def forbidden_code(page: Page) -> Problems:
    for index, cell in page.code:
        for pattern, reason in FORBIDDEN.items():
            if found := re.search(pattern, cell.source):
                yield index, f"`{found[0].strip()}`: {reason}"


@rule(LESSON, SOLUTION)
def semicolon(page: Page) -> Problems:
    for index, cell in page.code:
        if cell.source.rstrip().endswith(";"):
            yield index, "a trailing `;` hides nothing under nbval; end plots with plt.show()"


@rule(LESSON, SOLUTION)
def allowed_tags(page: Page) -> Problems:
    allowed = SOLUTION_TAGS if page.kind == SOLUTION else TAGS
    for index, cell in enumerate(page.nb.cells):
        if unknown := tags(cell) - allowed:
            yield index, f"unknown tag {', '.join(sorted(unknown))}"


@rule(LESSON, SOLUTION)
def unchecked_cells(page: Page) -> Problems:
    ignored = {
        (page.label, cell.id): index
        for index, cell in page.code
        if "nbval-ignore-output" in tags(cell)
    }
    for key, index in ignored.items():
        if key not in UNCHECKED:
            yield index, f"nothing compares its output: give a reason for {key} in UNCHECKED"
    for name, cell_id in UNCHECKED.keys() - ignored.keys():
        if name == page.label:
            yield None, f"UNCHECKED excuses cell {cell_id!r}, which needs no excuse; remove it"


@rule(LESSON, SOLUTION)
def metadata(page: Page) -> Problems:
    if stray := set(page.nb.metadata) - {"kernelspec", "language_info"}:
        yield None, f"stray notebook metadata {', '.join(sorted(stray))}; run `make outputs`"
    for index, cell in enumerate(page.nb.cells):
        if stray := set(cell.metadata) - CELL_METADATA:
            yield index, f"stray metadata {', '.join(sorted(stray))}; run `make outputs`"


@rule(LESSON, SOLUTION)
def unique_ids(page: Page) -> Problems:
    ids = [cell.id for cell in page.nb.cells]
    for index, cell in enumerate(page.nb.cells):
        if cell.id in ids[:index]:
            yield index, f"the id {cell.id!r} is taken by an earlier cell"
