"""Why some cells are not compared with their stored output."""

# (notebook, cell id): the reason; solutions are named "solutions/05_run_in_parallel.ipynb"
UNCHECKED: dict[tuple[str, str], str] = {
    ("01_detect_gpus.ipynb", "diagnose-live"): "tells what this machine has",
    ("01_detect_gpus.ipynb", "limits-live"): "tells how many cores this machine has",
    ("01_detect_gpus.ipynb", "affinity-live"): "tells which cores this process may use",
    ("05_run_in_parallel.ipynb", "link-fit"): "seconds differ from run to run",
    ("05_run_in_parallel.ipynb", "table-measured"): "comes from the measured link",
    ("08_sync_and_async_sgd.ipynb", "async-trace"): (
        "which of the real threads reads and writes when is up to the operating system"
    ),
    ("09_between_graph_replication.ipynb", "watched"): (
        "how far the workers were, and with which loss, differs from run to run"
    ),
}
