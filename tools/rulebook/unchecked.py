"""Why some cells are not compared with their stored output."""

# (notebook, cell id): the reason, as in
# ("05_run_in_parallel.ipynb", "measure-link"): "seconds differ from run to run"
# ("solutions/05_run_in_parallel.ipynb", "…"): …
UNCHECKED: dict[tuple[str, str], str] = {}
