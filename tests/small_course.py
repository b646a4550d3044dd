"""Small notebooks, and a small course of them, that keep every rule until a test breaks one."""

from pathlib import Path

from nbformat import NotebookNode, v4

from tools.notebooks import text_of, tidy

SETUP = "from utils.start import begin\n\nmachine = begin(gpus=2)\n\nimport tensorflow as tf"
# one white pixel
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII="
CLOSING = """## In your project

Do it there.

## Key points

- You can compute.

## Then and now

| then | now |
|---|---|
| `Session` | call it |

## Going further (optional)

More of it.

## In practice

Do it often.

## Further reading

- A book, which tells the rest."""


def text(source: str, *tags: str, id: str | None = None) -> NotebookNode:
    cell = v4.new_markdown_cell(source, metadata={"tags": list(tags)} if tags else {})
    cell.id = id or ""
    return cell


def code(source: str, *tags: str, outputs: tuple = (), id: str | None = None) -> NotebookNode:
    metadata = {"tags": list(tags)} if tags else {}
    cell = v4.new_code_cell(source, metadata=metadata, outputs=list(outputs))
    cell.id = id or ""
    return cell


def printed(words: str, name: str = "stdout") -> NotebookNode:
    return v4.new_output("stream", name=name, text=words)


def picture(png: str = PNG) -> NotebookNode:
    return v4.new_output("display_data", {"image/png": png, "text/plain": "<Figure>"})


def error(name: str, value: str) -> NotebookNode:
    return v4.new_output("error", ename=name, evalue=value, traceback=[f"{name}: {value}"])


def notebook(*cells: NotebookNode) -> NotebookNode:
    """Cells without an id get one; code cells are counted as after a run of all."""
    count = 0
    for number, cell in enumerate(cells, 1):
        cell.id = cell.id or f"cell-{number}"
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
    return tidy(v4.new_notebook(cells=list(cells)))


def lesson(title: str = "Draw a line", line: str = "45 min · needs 00 · part I") -> NotebookNode:
    return notebook(
        text(f"# {title}\n\nYou draw the {title.lower()} here. More words.\n\n{line}"),
        text("Somebody has a problem.\n\n![One sees it.](pictures/03.svg)", id="problem"),
        text("By the end you can\n\n- **draw** it;\n- predict it;\n- explain it."),
        code(SETUP, "setup"),
        text("## 1 · Look first\n\n" + "Every word counts here. " * 250),
        code("draw()", outputs=(picture(),)),
        text("*The line goes up.*"),
        text(CLOSING),
    )


def solution(number: int = 3) -> NotebookNode:
    cells = [
        text("# Solutions: draw a line\n\nTo [the lesson](../03_draw_a_line.ipynb)."),
        code(SETUP, "setup"),
    ]
    for k in (1, 2, 3):
        details = "<details><summary>Hint</summary>Look.</details>"
        cells += [
            text(f"### Exercise {number}.{k} — Draw (10 min, ★★)\n\nDraw it.\n\n{details}"),
            code(
                f"def draw_{k}(x):\n"
                '    """Return it."""\n'
                "    ### BEGIN SOLUTION\n"
                "    return x\n"
                "    ### END SOLUTION",
                "exercise",
            ),
            code(f"check_{k}(draw_{k})", "check", outputs=(printed(f"{number}.{k}: correct"),)),
        ]
    return notebook(*cells)


def write(path: Path, nb: NotebookNode) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(nb), encoding="utf-8")
    return path


def with_picture(root: Path, number: str = "03") -> None:
    """The picture that a lesson opens with; it is generated in a real course."""
    pictures = root / "notebooks" / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / f"{number}.svg").write_text("<svg/>")


def course(root: Path) -> Path:
    """Lessons 00 and 03 under `root`, with all that belongs to them but is not generated."""
    first = lesson("Start here", "30 min · needs nothing · part -")
    first.cells[1].source = first.cells[1].source.replace("03", "00")
    first.cells.insert(-1, text("", "generated", id="course-map"))
    first.cells[-1].id = "closing"
    notebooks = root / "notebooks"
    write(notebooks / "00_start_here.ipynb", first)
    write(notebooks / "03_draw_a_line.ipynb", lesson())
    write(notebooks / "solutions" / "00_start_here.ipynb", solution(0))
    write(notebooks / "solutions" / "03_draw_a_line.ipynb", solution(3))
    (root / "README.md").write_text(
        "# Course\n\n<!-- course map: begin -->\nold\n<!-- course map: end -->\n\nMore.\n"
    )
    (root / "TEACHING.md").write_text("# For teachers\n\n## 00 Start here\n\n## 03 Draw a line\n")
    (root / "tools").mkdir()
    (root / "tools" / "glossary_terms.toml").write_text("")
    (root / "tests" / "claims").mkdir(parents=True)
    return root
