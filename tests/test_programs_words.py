"""The two short cluster programs: what they report about sharing, and about who ran what."""

import tempfile

import pytest
from programs import DEADLINE, PROGRAMS

from utils.cluster import LocalCluster


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Clusters make their folders here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_variable_is_shared_by_name_task_and_container():
    with LocalCluster(PROGRAMS / "vocabulary.py", deadline=DEADLINE) as cluster:
        results = cluster.wait()
        addresses = cluster.addresses
    tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
    for number, (name, result) in enumerate(results.items()):
        assert result["task"] == name == f"worker {number}"
        assert result["master"] == f"grpc://{addresses[name]}"
        assert result["devices"] == [
            f"/job:{job}/replica:0/task:{task}/device:CPU:0" for job, task in tasks
        ]
        own = number + 1.0
        assert result["counters"] == {
            "same name, same task": 1.0 + 2.0,
            "same name, own task": own,
            "own name, same task": own,
            "same name, same task, own container": own,
        }


def test_one_graph_runs_on_every_worker(monkeypatch):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # MatMul keeps its name
    program = PROGRAMS / "in_graph_cluster.py"
    with LocalCluster(program, ps=0, workers=2, deadline=DEADLINE) as cluster:
        result = cluster.wait("worker 0")["worker 0"]
    assert result["value"] == [[9.0], [21.0], [33.0], [45.0]]
    assert list(result["ran"]) == ["worker 0", "worker 1"]
    assert all(kinds["MatMul"] == 1 for kinds in result["ran"].values())
    assert result["ran"]["worker 0"]["VarHandleOp"] == 2
    assert "VarHandleOp" not in result["ran"]["worker 1"]
    sizes = [result["operations"][size] for size in ("1", "2", "4")]
    assert sizes == sorted(set(sizes)), "the graph grows with every worker"
