"""What the cluster programs refuse before TensorFlow is loaded, and what they say."""

import argparse
import difflib
import inspect
import json
import re
import subprocess
import sys

import pytest
from programs import BETWEEN_GRAPH, PROGRAMS, module

from utils.task import Role, RoleError, add_arguments, parse_tf_config, role_of

CLUSTER = {"ps": ["a:1"], "worker": ["b:1", "b:2"]}
TYPED = ["--ps_hosts=a:1", "--worker_hosts=b:1,b:2", "--job_name=worker", "--task_index=1"]


def config(cluster=CLUSTER, task=None, **more) -> str:
    task = {"type": "worker", "index": 1} if task is None else task
    return json.dumps({"cluster": cluster, "task": task, **more})


def role(words=(), environment=None, **jobs) -> Role:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return role_of(parser.parse_args(words), environment or {}, **jobs)


@pytest.mark.parametrize(
    ("words", "environment"),
    [(TYPED, {}), ([], {"TF_CONFIG": config()}), ([], {"TF_CONFIG": config(environment="cloud")})],
)
def test_a_role_is_read_from_either_place(words, environment):
    found = role(words, environment)
    assert found == Role(CLUSTER, "worker", 1)
    assert found.name == "worker 1" and not found.is_chief


def test_the_chief_is_worker_0_or_the_task_of_that_name():
    assert role([*TYPED[:3], "--task_index=0"]).is_chief
    assert not role([*TYPED[:2], "--job_name=ps", "--task_index=0"]).is_chief
    named = {**CLUSTER, "chief": ["c:1"]}
    text = {"TF_CONFIG": config(named, {"type": "worker", "index": 0})}
    assert not role((), text, allows=["chief"]).is_chief
    text = {"TF_CONFIG": config(named, {"type": "chief", "index": 0})}
    assert role((), text, allows=["chief"]).is_chief


TASK = {"type": "worker", "index": 1}
WRONG = {
    "not JSON": ("{'cluster': {}}", "TF_CONFIG is not JSON"),
    "empty": ("", "TF_CONFIG is not JSON"),
    "a list": ("[]", 'no object "cluster"'),
    "no cluster": (json.dumps({"task": TASK}), 'no object "cluster"'),
    "cluster is text": (config("a:1"), 'no object "cluster"'),
    "workers": (config({"ps": ["a:1"], "workers": ["b:1"]}), 'TensorFlow calls it "worker"'),
    "no task": (json.dumps({"cluster": CLUSTER}), 'no "task" with "type" and "index"'),
    "no index": (config(task={"type": "worker"}), 'no "task" with "type" and "index"'),
    "index is text": (config(task={"type": "worker", "index": "1"}), "'1': give a number, without"),
    "index is true": (config(task={"type": "worker", "index": True}), "True: give a number"),
    "index too large": (config(task={"type": "worker", "index": 2}), "index is 2.* give 0 to 1"),
    "index negative": (config(task={"type": "worker", "index": -1}), "index is -1"),
    "unknown type": (config(task={"type": "master", "index": 0}), "'master', but .* ps, worker"),
    "type is a list": (config(task={"type": ["worker"], "index": 0}), "job \\['worker'\\], but"),
    "no port": (config({**CLUSTER, "ps": ["a"]}), "address 'a': write host:port"),
    "port 0": (config({**CLUSTER, "ps": ["a:0"]}), "address 'a:0'"),
    "port too large": (config({**CLUSTER, "ps": ["a:65536"]}), "address 'a:65536'"),
    "http": (config({**CLUSTER, "ps": ["http://a:1"]}), "without http://"),
    "space": (config({**CLUSTER, "ps": [" a:1"]}), "without spaces"),
    "a number": (config({**CLUSTER, "ps": [1]}), "address 1: write host:port"),
    "text, no list": (config({**CLUSTER, "ps": "a:1"}), "the job ps has 'a:1': give a list"),
    "no addresses": (config({**CLUSTER, "ps": []}), "the job ps has \\[\\]"),
    "twice in a job": (config({**CLUSTER, "worker": ["b:1", "b:1"]}), "b:1 is in the .* 2 times"),
    "twice in two jobs": (config({**CLUSTER, "ps": ["b:1"]}), "b:1 is in the cluster 2 times"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_tf_config_is_refused(case):
    text, message = WRONG[case]
    with pytest.raises(RoleError, match=f"(?i){message}"):
        parse_tf_config(text)


@pytest.mark.parametrize(
    "task",
    [
        {"type": "worker", "index": "1"},
        {"type": "chief", "index": 0},
        {"type": "worker", "index": 7},
    ],
)
def test_tensorflow_itself_takes_a_wrong_role_without_a_word(monkeypatch, task):
    """That is why the programs look before."""
    import tensorflow as tf

    text = config(task=task)
    with pytest.raises(RoleError):
        parse_tf_config(text)
    monkeypatch.setenv("TF_CONFIG", text)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert resolver.cluster_spec().as_dict() == CLUSTER
    assert (resolver.task_type, resolver.task_id) == (task["type"], int(task["index"]))


def test_a_session_manager_waits_30_seconds_between_two_looks_by_default():
    """`MonitoredTrainingSession` uses one and has no argument for it."""
    import tensorflow as tf

    train = tf.compat.v1.train
    wait = inspect.signature(train.SessionManager).parameters["recovery_wait_secs"]
    assert wait.default == 30
    assert "recovery_wait_secs" not in inspect.signature(train.MonitoredTrainingSession).parameters


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "No role: give --ps_hosts"),
        (TYPED[:3], "--task_index is missing"),
        ([*TYPED[:2], TYPED[3]], "--job_name is missing"),
        ([*TYPED[:3], "--task_index=one"], "--task_index=one is not a whole number"),
        ([*TYPED[:3], "--task_index=-1"], "--task_index=-1 is not a whole number"),
        ([*TYPED[:3], "--task_index=2"], "index is 2"),
        (TYPED[1:], "The cluster has no ps: this program needs at least one"),
        ([TYPED[0], "--job_name=ps", "--task_index=0"], "The cluster has no worker"),
        (["--ps_hosts=a:1,", *TYPED[1:]], "address '': write host:port"),
        (["--ps_hosts=b:1", *TYPED[1:]], "b:1 is in the cluster 2 times"),
    ],
)
def test_wrong_words_are_refused(words, message):
    with pytest.raises(RoleError, match=message):
        role(words)


def test_an_old_tf_config_does_not_go_unnoticed():
    with pytest.raises(RoleError, match="command line and in the variable TF_CONFIG too"):
        role(TYPED, {"TF_CONFIG": config()})


def test_a_job_that_the_program_does_not_know_is_refused():
    """A ps in a cluster without parameter servers: TensorFlow would wait for ever."""
    text = {"TF_CONFIG": config()}
    with pytest.raises(RoleError, match="job ps, which this program does not know.* for ever"):
        role((), text, needs=["worker"])
    assert role((), text, needs=["worker"], allows=["ps"]).name == "worker 1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (TYPED[:3], "--task_index is missing"),
        ([*TYPED, "--steps=0"], "--steps=0: give 1 to"),
        ([*TYPED, "--steps=many"], "invalid int value"),
        ([*TYPED, "--batch=5001"], "--batch=5001: give 1 to 5000"),
        ([*TYPED, "--seed=-1"], "--seed=-1"),
        ([*TYPED, "--patience=0"], "--patience=0"),
        ([*TYPED, "--dtype=int32"], "invalid choice: 'int32'"),
        ([*TYPED, "--sync", "--spare=2"], "--spare=2: give 0 to 1"),
        ([*TYPED, "--spare=1"], "go with --sync"),
        ([*TYPED, "--default_tokens"], "go with --sync"),
        ([*TYPED, "--pause", "2", "0"], r"--pause \[2, 0\]: give a worker \(0 to 1\)"),
        ([*TYPED, "--pause", "1", "0", "--pause", "0", "-1"], r"--pause \[0, -1\]: give"),
        ([*TYPED[:3], "--task_index=0", f"--checkpoints={__file__}"], "File exists"),
        ([*TYPED[:3], "--task_index=0", "--checkpoints=run [1]"], r"run \[1\]: .* another one"),
    ],
)
def test_between_graph_refuses_wrong_arguments(words, message, capsys, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(SystemExit) as caught:
        module("between_graph").arguments(words)
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize("program", sorted(path.name for path in PROGRAMS.glob("*.py")))
def test_programs_refuse_and_help_before_tensorflow_is_loaded(program, tmp_path):
    """A `tensorflow` that cannot be imported stands in the way."""
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('TensorFlow was loaded')")
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.path.insert(0, {str(tmp_path)!r})")

    def run(*words):
        command = [sys.executable, str(PROGRAMS / program), *words]
        path = [str(tmp_path), *sys.path]
        env = {"PYTHONPATH": ":".join(path), "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=tmp_path)

    wrong = run(*TYPED[:3])
    assert wrong.returncode == 2 and "--task_index is missing" in wrong.stderr, wrong.stderr
    helped = run("--help")
    assert helped.returncode == 0 and "--worker_hosts" in helped.stdout
    if program == BETWEEN_GRAPH.name:
        assert "in three terminals" in helped.stdout and "Ctrl-C" in helped.stdout
    assert "TensorFlow was loaded" in run(*TYPED).stderr, "the stand-in must be in the way"


def test_synchronous_is_about_ten_lines_from_asynchronous():
    """What the lesson shows as a difference."""
    program = module("between_graph")
    one, other = (
        inspect.getsource(function).splitlines()
        for function in (program.asynchronous, program.synchronous)
    )
    changed = [line for line in difflib.ndiff(one, other) if line[0] in "+-"]
    assert 8 <= sum(line[0] == "+" for line in changed) <= 15
