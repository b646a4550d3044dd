"""Claims of the classic texts that lesson 09 tries.

The processes run once for all of them. C39, whose verdict lesson 08 carries, has its second half
here: that one worker counts twice is held by `tests/test_programs_train.py`, which also holds
the cure equal to two towers.
"""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from clusters import addresses
from tensorflow.core.protobuf import tensorflow_server_pb2

from tests.claims.ledger import claim
from utils.cluster import DeadlineError, LocalCluster
from utils.machine import session_config

PROGRAMS = Path(__file__).resolve().parents[2] / "notebooks" / "programs"
DEADLINE = 180  # seconds


@pytest.fixture(scope="module", autouse=True)
def here(tmp_path_factory):
    """Clusters make their folders here; operations keep their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("clusters")))
        patch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
        yield


@pytest.fixture(scope="module")
def first(here):
    """What the workers of the first cluster said, and its tasks when these had ended."""
    with LocalCluster(PROGRAMS / "first_cluster.py", deadline=DEADLINE) as cluster:
        results = cluster.wait()
        report = cluster.report()
        with pytest.raises(DeadlineError) as waited:
            cluster.wait("ps 0", deadline=1)
        return SimpleNamespace(
            results=results, report=report, addresses=addresses(cluster), waited=str(waited.value)
        )


@pytest.fixture(scope="module")
def classic(here):
    """What the printed script did, as a parameter server and as a worker."""
    with LocalCluster(PROGRAMS / "classic.py", workers=1, deadline=DEADLINE) as cluster:
        return SimpleNamespace(
            result=cluster.wait()["worker 0"],
            commands=[cluster.command(task) for task in ("ps 0", "worker 0")],
            report=cluster.report(),
        )


@claim(
    "C42",
    "In-graph replication can span a cluster, driven by one client.",
    verdict="true",
    lesson="09",
    section="1 · One graph for the whole cluster",
    finding=(
        "One client, one graph, a tower on each of two workers: the trace has a product on both. "
        "The graph grows with every worker: 21, 24 and 30 operations for 1, 2 and 4."
    ),
)
def test_one_graph_runs_on_every_worker(first):
    assert "one graph" not in first.results["worker 1"], "it has no client"
    result = first.results["worker 0"]["one graph"]
    assert result["value"] == [[9.0], [21.0], [33.0], [45.0]]
    assert list(result["ran"]) == ["worker 0", "worker 1"]
    assert all(kinds["MatMul"] == 1 for kinds in result["ran"].values())
    assert result["ran"]["worker 0"]["VarHandleOp"] == 2
    assert "VarHandleOp" not in result["ran"]["worker 1"]
    assert result["operations"] == {"1": 21, "2": 24, "4": 30}


@claim(
    "C43",
    "In between-graph replication every worker builds its own copy of the graph, and no host "
    "needs to hold all of it.",
    verdict="true",
    lesson="09",
    section="2 · One graph for each worker",
    finding=(
        "Each worker opens a session at its own server; its steps run on itself and on the "
        "parameter server, never on the other worker."
    ),
)
def test_a_worker_runs_on_itself_and_the_parameter_server(first):
    tasks = [("ps", 0), ("worker", 0), ("worker", 1)]
    for name, result in first.results.items():
        assert result["task"] == name
        assert result["master"] == f"grpc://{first.addresses[name]}"
        assert result["devices"] == [
            f"/job:{job}/replica:0/task:{task}/device:CPU:0" for job, task in tasks
        ]
        assert {task for ran in result["ran"].values() for task in ran} == {"ps 0", name}


@claim(
    "C44",
    "The same variable name on the same device of the cluster is one variable.",
    verdict="true",
    lesson="09",
    section="2 · One graph for each worker",
    finding=(
        "Two workers add 1 and 2 to `counter` on the parameter server, and both read 3. In "
        "containers of their own they read what they added. A second device of the same task has "
        "a `counter` of its own."
    ),
)
def test_one_name_on_one_task_is_one_variable(first):
    for number, result in enumerate(first.results.values()):
        assert result["counters"]["same name, same task"] == 1.0 + 2.0
        assert result["counters"]["same name, same task, own container"] == number + 1.0


def test_a_second_device_of_a_task_has_variables_of_its_own(machine):
    """One session, one task: what decides is the device, and the container."""
    import tensorflow as tf

    v1 = tf.compat.v1
    places = [(0, ""), (0, ""), (1, ""), (0, "own")]
    with tf.Graph().as_default() as graph:
        handles = []
        for gpu, container in places:
            with tf.device(machine.gpus[gpu]):
                handles.append(
                    tf.raw_ops.VarHandleOp(
                        dtype=tf.float32, shape=[], shared_name="counter", container=container
                    )
                )
        zero = [tf.raw_ops.AssignVariableOp(resource=h, value=0.0) for h in handles]
        add = tf.raw_ops.AssignAddVariableOp(resource=handles[0], value=3.0)
        values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=tf.float32) for h in handles]
    with v1.Session(graph=graph, config=session_config()) as session:
        session.run(zero)
        session.run(add)
        assert session.run(values) == [3.0, 3.0, 0.0, 0.0]


@claim(
    "C45",
    "On different devices of the cluster the same name is different variables.",
    verdict="true",
    lesson="09",
    section="2 · One graph for each worker",
    finding="`counter` on each worker's own task, or another name: each reads what it added.",
)
def test_another_task_or_another_name_is_another_variable(first):
    for number, result in enumerate(first.results.values()):
        assert result["counters"]["same name, own task"] == number + 1.0
        assert result["counters"]["own name, same task"] == number + 1.0


def _homes(worker: int, names) -> dict[str, str]:
    import tensorflow as tf

    v1 = tf.compat.v1
    hosts = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}
    place = v1.train.replica_device_setter(
        worker_device=f"/job:worker/task:{worker}", cluster=hosts
    )
    with tf.Graph().as_default(), v1.device(place):
        variables = [v1.get_variable(name, [2]) for name in names]
        x = v1.placeholder(tf.float32, [2])
        assert x.op.device == f"/job:worker/task:{worker}"
        return {variable.op.name: variable.op.device for variable in variables}


@claim(
    "C46",
    "`replica_device_setter` is deterministic: workers that build in the same order agree.",
    verdict="true",
    lesson="09",
    section="3 · Who keeps the variables",
    finding=(
        "Same order, same parameter server for each variable. If one worker builds two of them "
        "the other way round, those two are not shared any more, without an error while "
        "building; where the chief alone initialises, that worker then waits for ever."
    ),
)
def test_workers_that_build_in_the_same_order_agree(machine):
    one = _homes(0, "abcd")
    assert one == _homes(1, "abcd")
    assert list(one.values()) == ["/job:ps/task:0", "/job:ps/task:1"] * 2
    other = _homes(1, "bacd")
    assert [name for name in "abcd" if one[name] == other[name]] == ["c", "d"]


@claim(
    "C47",
    "The parameter server needs no model code: the workers push the operations to it.",
    verdict="true",
    lesson="09",
    section="5 · Who ran what",
    finding=(
        "Its part of the program is a server and `join()`. The workers' traces show it reading "
        "and updating variables; the products of a training run on the workers alone."
    ),
)
def test_workers_push_operations_to_the_parameter_server(first):
    """That no product runs there is held by `tests/test_programs_train.py`."""
    for name, result in first.results.items():
        shared = result["ran"]["same name, same task"]
        assert shared["ps 0"]["AssignAddVariableOp"] == 1
        assert "AssignAddVariableOp" not in shared.get(name, {})
        own = result["ran"]["same name, own task"]
        assert own[name]["AssignAddVariableOp"] == 1


@claim(
    "C48",
    "The same script runs on every machine of the cluster; only its arguments differ.",
    verdict="true",
    lesson="09",
    section="Going further",
    finding=(
        "True of the principle; the printed script fails in three places: names that moved to "
        "tf.compat.v1 and a function in tf.device, both since TensorFlow 2, and a task index "
        "that is text, which protobuf itself refuses. Mended, it trains."
    ),
)
def test_the_printed_script_fails_in_three_places_then_trains(classic):
    errors = [place["error"] for place in classic.result["mended"]]
    assert [error.split(":")[0] for error in errors] == [
        "AttributeError", "TypeError", "RuntimeError"
    ]  # fmt: skip
    assert errors[0].endswith("no attribute 'Server'")
    with pytest.raises(TypeError) as refused:  # by protobuf, without a server of TensorFlow
        tensorflow_server_pb2.ServerDef(task_index="0")
    assert errors[1] == f"TypeError: {refused.value}"
    assert "task_index=index" in classic.result["mended"][1]["line"]
    assert errors[2] == "RuntimeError: tf.device does not support functions."
    assert classic.result["last"] < classic.result["first"] / 100
    one, other = (command.split() for command in classic.commands)
    apart = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    assert apart == [("--job_name=ps", "--job_name=worker")]


@claim(
    "C49",
    "A parameter server's `join()` waits for ever.",
    verdict="true",
    lesson="09",
    section="1 · One graph for the whole cluster",
    finding="When all workers have ended it still runs; whoever started it must stop it.",
)
def test_join_waits_when_all_workers_have_ended(first, classic):
    assert first.report.splitlines() == [
        "ps 0: running", "worker 0: finished", "worker 1: finished"
    ]  # fmt: skip
    assert first.waited.startswith("Waited 1 s for ps 0 to end. ps 0 said last: ready.")
    assert classic.report.splitlines()[0] == "ps 0: running"
