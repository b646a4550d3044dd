"""Training on a parameter server and two workers: by hand, synchronous to 1e-12, and tokens."""

import itertools
import json
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from programs import BETWEEN_GRAPH, DEADLINE, KILLS, labels, module, weights_of

from utils.cluster import DeadlineError, LocalCluster
from utils.cluster.ports import free_ports
from utils.training import mnist, network

STEPS, BATCH, RATE = 400, 64, 0.2  # the program's own


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Clusters make their folders here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def accuracy(weights) -> float:
    data = mnist.load()
    x = mnist.inputs(data.test_images, weights[0].dtype)
    return network.accuracy(weights, x, data.test_labels).numpy()


@pytest.fixture
def terminals(monkeypatch):
    """`terminals(line, …)` runs each line as if typed in a terminal, in the programs' folder."""
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # operations keep their names
    running = []

    def run(*lines: str) -> list[subprocess.Popen]:
        for line in lines:
            python, *words = shlex.split(line)
            assert python == "python"
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=BETWEEN_GRAPH.parent,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            running.append(process)
        return running

    yield run
    for process in running:
        process.kill()
        process.communicate()


def test_asynchronous_by_hand_in_three_terminals(terminals, tmp_path):
    """As `--help` says, in an unkind order; Ctrl-C ends the parameter server."""
    with free_ports(3) as ports:
        hosts = [f"localhost:{port}" for port in ports]
    lists = f"python between_graph.py --ps_hosts={hosts[0]} --worker_hosts={','.join(hosts[1:])}"
    more = f"--trace --checkpoints={shlex.quote(str(tmp_path))} --checkpoint_every=50"
    *workers, ps = terminals(
        f"{lists} --job_name=worker --task_index=1 {more}",
        f"{lists} --job_name=worker --task_index=0 {more}",
        f"{lists} --job_name=ps --task_index=0",
    )
    results = []
    for worker in reversed(workers):
        output, log = worker.communicate(timeout=DEADLINE)
        assert worker.returncode == 0, log
        results.append(json.loads(output.splitlines()[-1]))
    ps.send_signal(signal.SIGINT)
    assert ps.wait(DEADLINE) == -signal.SIGINT

    assert [result["task"] for result in results] == ["worker 0", "worker 1"]
    assert [result["start"] for result in results] == ["fresh", "joined"]
    assert all(result["accuracy"] >= 0.9 for result in results)
    last = max(result["last_step"] for result in results)
    assert last in (STEPS, STEPS + 1)  # one worker may be under way at the end
    assert sum(result["local_steps"] for result in results) == last
    for result in results:
        assert set(result["ran"]) == {"ps 0", result["task"]}
        assert result["ran"][result["task"]]["MatMul"] == 5
        assert "MatMul" not in result["ran"]["ps 0"], "the parameter server has no model"
        assert result["ran"]["ps 0"]["ResourceApplyGradientDescent"] == 4

    found = labels(tmp_path)
    assert len(found) >= STEPS // 50 and found[-1] >= STEPS
    assert results[0]["checkpoint"] == found[-1]
    for step in found:
        weights = weights_of(tmp_path, step)
    assert accuracy(weights) >= 0.9


def test_a_checkpoints_label_and_content_are_one_reading_of_the_step(tmp_path):
    """With two readings an update of another worker can fall in between."""
    import tensorflow as tf

    program = module("between_graph")
    program.tf = tf
    with tf.Graph().as_default():
        step = tf.compat.v1.train.get_or_create_global_step()
        label, save = program.labelled_save(tmp_path, [], step)
    assert save.get_attr("dtypes") == [tf.int64]
    assert save.inputs[-1] is label
    text = next(part.op for part in save.inputs[0].op.inputs if part.op.type == "AsString")
    assert text.inputs[0] is label


def two_towers(steps: int) -> list[np.ndarray]:
    """The same network, batches and steps in this process: two gradients, averaged, one update."""
    import tensorflow as tf

    weights = [tf.Variable(value) for value in network.initial_weights(dtype="float64")]
    shards = [
        mnist.batches(mnist.inputs(images, "float64"), digits, BATCH, steps=steps)
        for images, digits in mnist.shards(2)
    ]
    for batches in itertools.islice(zip(*shards, strict=True), steps):
        gradients = []
        for x, y in batches:
            with tf.GradientTape() as tape:
                loss = network.mean_loss(weights, x, y)
            gradients.append(tape.gradient(loss, weights))
        for variable, one, other in zip(weights, *gradients, strict=True):
            variable.assign_sub(RATE * (one + other) / 2)
    return [variable.numpy() for variable in weights]


@pytest.mark.parametrize("seed", range(KILLS))
def test_synchronous_equals_two_towers_whoever_is_slow(tmp_path, seed):
    """Either worker is suspended at random; weights after 20 and 60 steps agree to 1e-12."""
    chance = random.Random(seed)
    arguments = ["--sync", "--dtype=float64", "--checkpoints", tmp_path, "--checkpoint_every=20"]
    with LocalCluster(
        BETWEEN_GRAPH, arguments=arguments, tf_config=True, deadline=DEADLINE
    ) as cluster:
        for step in (10, 20, 30, 40, 50):
            slow = f"worker {chance.randrange(2)}"
            cluster.wait_for(slow, f"local step {step},")
            cluster.suspend(slow)
            time.sleep(chance.uniform(0, 0.2))  # how long does not matter: that is the claim
            cluster.resume(slow)
        results = cluster.wait()
    for result in results.values():
        assert result["mode"] == "synchronous"
        assert result["local_steps"] == result["last_step"] == STEPS
        assert result["accuracy"] >= 0.9
    assert labels(tmp_path) == list(range(20, STEPS + 1, 20))
    for step in (20, 60):
        for found, expected in zip(weights_of(tmp_path, step), two_towers(step), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("forked", [True, False], ids=["forked", "started anew"])
def test_with_default_tokens_one_worker_counts_twice(forked, monkeypatch):
    """Worker 1 stands still from the start: all 20 updates are made of worker 0's gradients."""
    if not forked:
        monkeypatch.setattr("utils.cluster.launch.can_fork", lambda program: False)
    arguments = ["--sync", "--default_tokens", "--steps=20"]
    arguments += ["--pause", "0", "0", "--pause", "1", "0"]
    with LocalCluster(BETWEEN_GRAPH, arguments=arguments, deadline=DEADLINE) as cluster:
        for task in ("worker 0", "worker 1"):
            cluster.wait_for(task, "paused")
        cluster.resume("worker 0")
        fast = cluster.wait("worker 0")["worker 0"]
        assert fast["last_step"] >= 20
        assert fast["local_steps"] >= 2 * 20, "two gradients of the same worker in every update"
        assert cluster.output("worker 1").endswith("paused before local step 0\n")
        cluster.resume("worker 1")
        slow = cluster.wait("worker 1")["worker 1"]
    assert slow["local_steps"] == 1  # its only gradient was too old


@pytest.mark.parametrize("seed", range(KILLS))
def test_without_initial_tokens_a_step_waits_for_every_worker(seed):
    """The same worker 1, paused: no step is taken. Killed: no step, and the dead task is named."""
    arguments = ["--sync", "--pause", "1", "0", "--steps=100000"]
    with LocalCluster(BETWEEN_GRAPH, arguments=arguments, deadline=DEADLINE) as cluster:
        cluster.wait_for("worker 1", "paused")
        cluster.wait_for("worker 0", "fresh")
        with pytest.raises(DeadlineError, match="worker 0 said last: fresh at step 0"):
            cluster.wait_for("worker 0", "local step", deadline=1)
        cluster.suspend("worker 1")  # what it waits for must reach it also after a real stop
        cluster.resume("worker 1")
        chance = random.Random(seed)
        cluster.wait_for("worker 0", f"local step {10 * chance.randint(1, 6)},")
        time.sleep(chance.uniform(0, 0.05))  # anywhere in a step
        cluster.kill("worker 1")
        with pytest.raises(DeadlineError, match="worker 0 said last: local .* worker 1 was killed"):
            cluster.wait(deadline=1)
        stalled = cluster.output("worker 0")
        with pytest.raises(DeadlineError):
            cluster.wait(deadline=1)
        assert cluster.output("worker 0") == stalled
