"""Rules for what is stored with a notebook: outputs, counts, pictures, size."""

import json
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from tools.notebooks import tags
from tools.rulebook import LESSON, SOLUTION, Page, Problems, rule

PICTURE_BYTES, NOTEBOOK_BYTES = 100_000, 700_000
MACHINE_PATH = re.compile(r"(?<![\w.])(?:/(?:home|root|tmp|work|Users)/|~/)[\w./-]*")


def output_text(cell: NotebookNode) -> str:
    """What a cell shows as text: prints, values, errors with their traceback."""
    parts: list[str] = []
    for output in cell.outputs:
        parts += [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
        parts += [output.get("evalue", ""), *output.get("traceback", [])]
    return "\n".join(parts)


def pictures(page: Page) -> Iterator[tuple[int, str]]:
    """(cell index, base64) of every stored picture."""
    for index, cell in page.code:
        for output in cell.outputs:
            if png := output.get("data", {}).get("image/png"):
                yield index, png


NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NAMED = re.compile(r"\b(?:GPU|worker|ps|card|section|lesson) \d+")


@rule(LESSON, SOLUTION)
def execution_counts(page: Page) -> Problems:
    counts = [cell.execution_count for _, cell in page.code]
    if counts != list(range(1, len(counts) + 1)):
        # nbval silently skips the comparison for a cell whose count is null
        yield None, f"execution counts are {counts}, not 1 to {len(counts)}; run `make outputs`"


@rule(LESSON, SOLUTION)
def stderr(page: Page) -> Problems:
    for index, cell in page.code:
        for output in cell.outputs:
            if output.get("name") == "stderr":
                yield index, f"stored warnings or stderr: {output.text[:60]!r}"


@rule(LESSON, SOLUTION)
def errors_announced(page: Page) -> Problems:
    for index, cell in page.code:
        raised = any(output.output_type == "error" for output in cell.outputs)
        if raised != ("raises-exception" in tags(cell)):
            yield index, "a stored error and the tag raises-exception must go together"


@rule(LESSON, SOLUTION)
def machine_paths(page: Page) -> Problems:
    for index, cell in page.code:
        if found := MACHINE_PATH.search(output_text(cell)):
            yield index, f"its output names a folder of this machine: {found[0]}"


@rule(LESSON)
def some_picture(page: Page) -> Problems:
    if not any(pictures(page)):
        yield None, "has no picture; a lesson draws at least one from its run"


@rule(LESSON)
def captions(page: Page) -> Problems:
    written = {index: cell for index, cell in page.text}
    for index in sorted({index for index, _ in pictures(page)}):
        below = written.get(index + 1)
        if below is None or below.source.lstrip().startswith(("#", ">", "|", "!")):
            yield index, "the cell under a picture must begin with a sentence about it"


@rule(LESSON)
def measured_captions(page: Page) -> Problems:
    """A measured picture differs from machine to machine, so its caption names no number of it."""
    known = {n for _, cell in page.code for n in NUMBER.findall(cell.source + output_text(cell))}
    written = {index: cell for index, cell in page.text}
    for index, cell in page.code:
        if "measured" in tags(cell) and index + 1 in written:
            caption = written[index + 1].source.partition("\n\n")[0]
            for number in NUMBER.findall(NAMED.sub("", caption)):
                if number not in known:
                    yield (
                        index + 1,
                        f"{number} is in no code and printed by no cell that is compared",
                    )


@rule(LESSON, SOLUTION)
def sizes(page: Page) -> Problems:
    for index, png in pictures(page):
        if (size := len(png) * 3 // 4) > PICTURE_BYTES:
            yield index, f"picture of {size // 1000} kB; {PICTURE_BYTES // 1000} kB are the most"
    if (size := len(json.dumps(page.nb, ensure_ascii=False).encode())) > NOTEBOOK_BYTES:
        yield None, f"{size // 1000} kB; {NOTEBOOK_BYTES // 1000} kB are the most"
