"""tools.twice: a cell that shows something else when it is run again is found."""

import nbformat
from nbformat import v4

from tools import twice

CELLS = {
    "same": ("print('same')", []),
    "counts": ("n = globals().get('n', 0) + 1\nprint('call', n)", []),
    "late": ("assert 'seen' not in globals()\nseen = True", []),
    "ignored": ("m = globals().get('m', 0) + 1\nprint(m)", ["nbval-ignore-output"]),
    "meant": ("1 / 0", ["raises-exception"]),
}


def test_a_second_output_that_differs_is_found(tmp_path, capsys):
    cells = [v4.new_markdown_cell("# A lesson")]
    for name, (source, tags) in CELLS.items():
        cells.append(v4.new_code_cell(source, id=name, metadata={"tags": tags}))
    path = tmp_path / "00_a.ipynb"
    nbformat.write(v4.new_notebook(cells=cells), str(path))
    before = path.read_bytes()
    assert twice.main([str(path)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("00_a.ipynb: 2 cells differ\n")
    assert "'counts'" in shown and "-call 1" in shown and "+call 2" in shown
    assert "'late'" in shown and "AssertionError" in shown
    assert path.read_bytes() == before
