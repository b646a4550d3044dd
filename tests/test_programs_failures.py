"""Killing tasks of a training cluster at random moments: who goes on, who says what, what is lost.

`COURSE_KILLS=20` repeats each kind 20 times, at other moments.
"""

import json
import random
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from programs import BETWEEN_GRAPH, DEADLINE, KILLS, labels, weights_of

from utils.cluster import ClusterError, LocalCluster
from utils.cluster.ports import free_ports


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Clusters make their folders here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(params=range(KILLS))
def chance(request):
    return random.Random(request.param)


def at_random(cluster: LocalCluster, chance: random.Random, watched: str = "worker 0") -> None:
    """Return at some moment of the training, anywhere in a step."""
    cluster.wait_for(watched, f"local step {10 * chance.randint(1, 6)},")
    time.sleep(chance.uniform(0, 0.05))


def sound(folder) -> int:
    """The newest checkpoint's step; its label is right, and its weights are numbers."""
    step = labels(folder)[-1]
    assert all(np.isfinite(value).all() for value in weights_of(folder, step))
    return step


def test_asynchronous_the_other_worker_finishes(chance, tmp_path):
    arguments = ["--checkpoints", tmp_path, "--checkpoint_every=20", "--steps=800"]
    with LocalCluster(BETWEEN_GRAPH, arguments=arguments, deadline=DEADLINE) as cluster:
        at_random(cluster, chance)
        cluster.kill("worker 1")
        (result,) = cluster.wait().values()
        assert cluster.report().splitlines() == [
            "ps 0: running", "worker 0: finished", "worker 1: was killed"
        ]  # fmt: skip
    assert result["task"] == "worker 0" and result["last_step"] >= 800
    assert result["accuracy"] >= 0.9
    assert sound(tmp_path) == result["checkpoint"] >= 800


def test_killed_parameter_server_then_killed_chief(chance, tmp_path):
    arguments = ["--checkpoints", tmp_path, "--checkpoint_every=20", "--steps=1500"]
    with LocalCluster(BETWEEN_GRAPH, arguments=arguments, deadline=DEADLINE) as cluster:
        cluster.wait_for("worker 1", "local step 10,")
        at_random(cluster, chance)
        cluster.kill("ps 0")
        results = cluster.wait(check=False)
        assert {result["error"] for result in results.values()} == {
            "UnavailableError: ps 0 does not answer"
        }
        with pytest.raises(ClusterError, match="worker 0 ended with exit code 1: Unavail.*: ps 0"):
            cluster.wait()
        assert cluster.report().startswith("ps 0: was killed; the variables it kept are lost\n")
        newest = sound(tmp_path)
        assert newest <= max(result["last_step"] for result in results.values()) + 2

        cluster.restart("ps 0", "worker 0", "worker 1")
        assert cluster.wait_for("worker 0", "resumed") == f"resumed at step {newest} of 1500"
        cluster.wait_for("worker 1", "joined")
        at_random(cluster, chance)
        cluster.kill("worker 0")
        last = sound(tmp_path)
        (result,) = cluster.wait().values()
        assert cluster.report().splitlines() == [
            "ps 0: running",
            "worker 0: was killed; it was the chief: nobody writes checkpoints any more",
            "worker 1: finished",
        ]
    assert result["task"] == "worker 1" and result["last_step"] == 1500
    assert result["accuracy"] >= 0.9
    assert newest <= last == sound(tmp_path) < 1500


def test_synchronous_with_a_spare_goes_on(chance):
    arguments = ["--sync", "--spare=1", "--steps=400"]
    with LocalCluster(BETWEEN_GRAPH, arguments=arguments, deadline=DEADLINE) as cluster:
        at_random(cluster, chance)
        cluster.kill("worker 1")
        (result,) = cluster.wait().values()
    assert result["task"] == "worker 0" and result["last_step"] >= 400


def test_a_worker_whose_parameter_server_is_missing_gives_up_in_time():
    """TensorFlow itself would wait for ever."""
    with free_ports(2) as (ps, worker):
        words = [f"--ps_hosts=localhost:{ps}", f"--worker_hosts=localhost:{worker}"]
    done = subprocess.run(
        [sys.executable, str(BETWEEN_GRAPH), *words, "--job_name=worker", "--task_index=0"]
        + ["--patience=2"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert done.returncode == 1
    assert error.startswith(f"DeadlineExceededError: ps 0 at localhost:{ps} does not answer (")
    assert done.stderr.splitlines()[-1] == error
