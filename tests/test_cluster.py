"""Clusters of small programs without TensorFlow: what `LocalCluster` promises, in both modes."""

import json
import os
import signal
import subprocess
import sys
import tempfile

import pytest
from clusters import DEADLINE, HELLO, addresses, alive, nothing_left, refusal, until, write

from utils.cluster import ClusterError, DeadlineError, LocalCluster


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Clusters make their folders here, so that whatever is left of them is found here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture(params=[True, False], ids=["isolated", "open"])
def isolated(request):
    if request.param and refusal():
        pytest.skip(f"no private network here: {refusal()}")
    return request.param


@pytest.fixture
def start(here, isolated):
    """`start(code, **options)` is a cluster whose tasks run this code, after reading their role."""

    def make(code: str, deadline: float = DEADLINE, **options) -> LocalCluster:
        return LocalCluster(write(here, code), isolated=isolated, deadline=deadline, **options)

    return make


def test_every_task_runs_with_its_role_and_its_output_is_kept_in_rank_order(start, here):
    with start(HELLO, ps=2, workers=3) as cluster:
        results = cluster.wait()
        assert list(addresses(cluster)) == ["ps 0", "ps 1", "worker 0", "worker 1", "worker 2"]
        assert len(set(addresses(cluster).values())) == 5
    assert results == {f"worker {i}": {"task": f"worker {i}"} for i in range(3)}
    assert cluster.output().splitlines() == [
        "ps 0: ready",
        "ps 1: ready",
        *(
            f"worker {i}: {line}"
            for i in range(3)
            for line in ("ready", f"hello from worker {i}", json.dumps({"task": f"worker {i}"}))
        ),
    ]
    assert cluster.output("worker 2") == 'ready\nhello from worker 2\n{"task": "worker 2"}\n'
    assert cluster.report().splitlines()[1:3] == ["ps 1: stopped", "worker 0: finished"]
    nothing_left(here)


@pytest.mark.parametrize("tf_config", [False, True])
def test_the_role_comes_by_command_line_or_by_tf_config(start, monkeypatch, tf_config):
    monkeypatch.setenv("TF_CONFIG", "left over from elsewhere")
    monkeypatch.setenv("https_proxy", "http://localhost:1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    code = """
    names = ("TF_CONFIG", "https_proxy", "CUDA_VISIBLE_DEVICES")
    seen = {name: os.environ.get(name) for name in names}
    print("ready")
    print(json.dumps({"role": vars(role), "python": sys.executable, "cwd": os.getcwd(), **seen}))
    """
    with start(code, workers=2, tf_config=tf_config, arguments=["--steps", 3]) as cluster:
        assert cluster.wait("ps 0")["ps 0"]["CUDA_VISIBLE_DEVICES"] == "-1"
        result = cluster.wait("worker 1")["worker 1"]
        assert result["cwd"] == str(cluster._processes.folder.resolve())
        command = cluster.command("worker 1")
        ps, *workers = addresses(cluster).values()
    assert result["python"] == sys.executable
    assert result["https_proxy"] is None and result["CUDA_VISIBLE_DEVICES"] == "3"
    typed = {
        "ps_hosts": ps, "worker_hosts": ",".join(workers), "job_name": "worker", "task_index": "1"
    }  # fmt: skip
    assert all(f"--{name}={word}" in command for name, word in typed.items())
    assert command.startswith("python ") and command.endswith(" --steps 3")
    if tf_config:
        assert not any(result["role"].values())
        assert json.loads(result["TF_CONFIG"]) == {
            "cluster": {"ps": [ps], "worker": workers}, "task": {"type": "worker", "index": 1}
        }  # fmt: skip
    else:
        assert result["TF_CONFIG"] is None and result["role"] == typed


def test_kill_suspend_resume_and_restart(start, here):
    code = """
    print("ready")
    for count in range(10**9):
        print("count", count)
        time.sleep(0.01)
    """
    with start(code, workers=2) as cluster:
        cluster.wait_for("worker 1", "count 3")
        cluster.suspend("worker 1")
        before = cluster.output("worker 1")
        other = len(cluster.output("worker 0").splitlines())
        cluster.wait_for("worker 0", f"count {other + 20}")
        assert cluster.output("worker 1") == before, "a suspended task must stand still"
        assert "worker 1: suspended" in cluster.report()
        cluster.resume("worker 1")
        cluster.wait_for("worker 1", f"count {len(before.splitlines()) + 5}")
        cluster.kill("worker 0")
        cluster.kill("ps 0")
        assert cluster.report().splitlines() == [
            "ps 0: was killed; the variables it kept are lost",
            "worker 0: was killed; it was the chief: nobody writes checkpoints any more",
            "worker 1: running",
        ]
        with pytest.raises(ClusterError, match="worker 0 is not running: it was killed"):
            cluster.kill("worker 0")
        with pytest.raises(ClusterError, match="worker 0 was killed, before it said 'never'"):
            cluster.wait_for("worker 0", "never")
        cluster.suspend("worker 1")
        before = addresses(cluster)
        cluster.restart("worker 0", "worker 1")
        cluster.wait_for("worker 0", "count 2")
        assert cluster.output("worker 0").startswith("ready\ncount 0\n")
        assert addresses(cluster) == before
        cluster.suspend("worker 0")  # a suspended task must be stopped too
    assert cluster.output("worker 0").startswith("ready\ncount 0\n")
    nothing_left(here)


def test_a_task_that_fails_is_named_with_its_error(start):
    code = """
    print("ready")
    if me == "worker 1":
        raise KeyError("no such shard")
    wait()
    """
    with start(code) as cluster:
        with pytest.raises(ClusterError, match="worker 1 ended with exit code 1: KeyError: 'no"):
            cluster.wait()
        assert cluster.wait("worker 1", check=False) == {"worker 1": None}
        assert "Traceback" in cluster.logs("worker 1")
        assert cluster.report().splitlines()[2] == (
            "worker 1: ended with exit code 1: KeyError: 'no such shard'"
        )
    assert "Traceback" in cluster.logs("worker 1")


def test_a_parameter_server_that_ends_is_an_error(start):
    code = """
    print("ready")
    if role.job_name == "ps":
        os.kill(os.getpid(), signal.SIGSEGV)
    wait()
    """
    with start(code) as cluster, pytest.raises(ClusterError, match="ps 0 was ended by SIGSEGV"):
        cluster.wait()


def test_a_deadline_names_who_is_late_and_who_is_dead(start):
    code = """
    print("ready")
    if me == "worker 0":
        print("I log_device: CreateSession still waiting for response from worker: "
              "/job:ps/replica:0/task:0", file=sys.stderr, flush=True)
        print("waiting")
    wait()
    """
    with start(code, workers=3) as cluster:
        cluster.wait_for("worker 0", "waiting")
        cluster.suspend("ps 0")
        cluster.kill("worker 2")
        with pytest.raises(DeadlineError) as caught:
            cluster.wait(deadline=0.2)
    assert str(caught.value) == (
        "Waited 0.2 s for worker 0, worker 1 to end. worker 0 waits for ps 0. "
        "worker 1 said last: ready. ps 0 is suspended. worker 2 was killed."
    )


STARTS_BADLY = {
    "crashes at import": (
        "import numpi",
        ClusterError,
        "worker 1 ended with exit code 1: ModuleNotFoundError: No module named 'numpi', before",
    ),
    "ends early": ("sys.exit(0)", ClusterError, "worker 1 ended with exit code 0, before it said"),
    "hangs": ("wait()", DeadlineError, "Waited 2 s for .*worker 1 to say 'ready'"),
    "is late": ("time.sleep(30)", DeadlineError, "Waited 2 s for .*worker 1 to say 'ready'"),
    "hangs and ignores SIGTERM": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); wait()",
        DeadlineError,
        "Waited 2 s for .*worker 1 to say 'ready'",
    ),
}


@pytest.mark.parametrize("case", STARTS_BADLY)
def test_a_task_that_starts_badly_is_named_and_nothing_is_left(start, here, case):
    code, kind, message = STARTS_BADLY[case]
    program = f"""
    if me == "worker 1":
        {code}
    print("ready")
    wait()
    """
    deadline = 2 if kind is DeadlineError else DEADLINE
    with pytest.raises(kind, match=message), start(program, deadline=deadline):
        pytest.fail("entered although a task was not ready")
    nothing_left(here)


def test_what_a_task_has_started_ends_with_it(start, here):
    """A child in the same group, which ignores SIGTERM, of a task that is stopped or killed."""
    code = """
    child = '''
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("up", flush=True)
    time.sleep(999)
    '''
    child = "\\n".join(line.strip() for line in child.splitlines())
    other = subprocess.Popen([sys.executable, "-c", child, __file__], stdout=subprocess.PIPE)
    other.stdout.readline()
    print("ready")
    if me == "worker 0":
        sys.exit()
    wait()
    """
    with start(code) as cluster:
        cluster.kill("worker 1")
        cluster.wait("worker 0")
        until(lambda: len([line for line in alive(here) if " -c " in line]) == 1, "one child")
    nothing_left(here)


SCRIPT = """
import os, signal, sys, tempfile
from utils.cluster import LocalCluster
program, folder, isolated = sys.argv[1:]
tempfile.tempdir = folder
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what runs in the background
with LocalCluster(program, isolated=isolated == "True") as cluster:
    try:
        print("up", flush=True)
        cluster.wait()
    except KeyboardInterrupt:
        print(cluster.report(), flush=True)
"""


@pytest.fixture
def parent(here, isolated):
    """A process, like a notebook's kernel, with a cluster that runs; in a group of its own."""
    program = write(here, "print('ready'); wait()")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(program), str(here), str(isolated)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


def test_nothing_survives_a_killed_kernel(parent, here):
    assert sum("program.py" in line for line in alive(here)) == 4  # three tasks and the parent
    os.killpg(parent.pid, signal.SIGKILL)  # the whole group, as Jupyter does
    parent.wait()
    nothing_left(here)


def test_an_interrupt_reaches_the_notebook_and_no_task(parent, here):
    os.killpg(parent.pid, signal.SIGINT)
    assert parent.stdout.read().splitlines() == [
        "ps 0: running", "worker 0: running", "worker 1: running"
    ]  # fmt: skip
    assert parent.wait() == 0
    nothing_left(here)


def test_nothing_survives_a_killed_holder(start, here):
    with start("print('ready'); wait()") as cluster:
        os.kill(cluster._processes._holder._process.pid, signal.SIGKILL)
        with pytest.raises(ClusterError, match="holds the tasks has ended"):
            cluster.wait()
        if sys.platform == "linux":
            until(lambda: not alive(here), "its tasks are gone")
    nothing_left(here)


def test_two_clusters_at_once(start, here):
    code = """
    print("ready")
    import socket
    mine = dict(ps=role.ps_hosts, worker=role.worker_hosts)[role.job_name].split(",")
    address = mine[int(role.task_index)].split(":")
    listener = socket.create_server(("", int(address[1])))
    print("listening")
    wait()
    """
    with start(code) as one, start(code) as two:
        for cluster in (one, two):
            for task in addresses(cluster):
                cluster.wait_for(task, "listening")
        one.kill("ps 0")
        assert two.report() == "ps 0: running\nworker 0: running\nworker 1: running"
    nothing_left(here)


def test_a_cluster_can_be_entered_again_but_not_twice(start):
    cluster = start(HELLO)
    for _ in range(2):
        with cluster:
            cluster.wait()
            with pytest.raises(ClusterError, match="runs already"), cluster:
                pass
            cluster.wait()


def test_outside_its_block_a_cluster_says_so(start):
    cluster = start(HELLO)
    with pytest.raises(ClusterError, match="has not been started"):
        cluster.output()
    with cluster, pytest.raises(ValueError, match="no task 'worker 9': the tasks are ps 0, wor"):
        cluster.kill("worker 9")
    for use in (cluster.wait, lambda: cluster.restart("ps 0"), lambda: cluster.kill("ps 0")):
        with pytest.raises(ClusterError, match="does not run"):
            use()


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"program": "nowhere.py"}, FileNotFoundError, "nowhere.py"),
        ({"ps": -1}, ValueError, "ps=-1"),
        ({"ps": True}, TypeError, "ps=True"),
        ({"workers": 0}, ValueError, "workers=0"),
        ({"workers": 2.0}, TypeError, "workers=2.0"),
        ({"arguments": "--sync"}, TypeError, "arguments='--sync'"),
        ({"deadline": 0}, ValueError, "deadline=0"),
        ({"deadline": "60"}, TypeError, "deadline='60'"),
        ({"deadline": float("inf")}, ValueError, "deadline=inf"),
    ],
)
def test_wrong_arguments_are_refused_at_once(here, options, kind, message):
    with pytest.raises(kind, match=message):
        LocalCluster(**{"program": write(here, HELLO)} | options)
    assert not list(here.glob("cluster-*"))


def test_it_imports_no_tensorflow(fresh):
    done = fresh("import sys, utils.cluster; print('tensorflow' in sys.modules)")
    assert done.stdout == "False\n", done.stderr
