"""Clusters whose tasks are forked from a process with TensorFlow: like those started anew."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from clusters import DEADLINE, HELLO, alive, nothing_left, refusal, until, write

from utils.cluster import ClusterError, LocalCluster, forked

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or any(Path("/dev").glob("nvidia[0-9]*")),
    reason="tasks are forked on Linux, where they see no GPU",
)
WARM = "START_WARM = True\n"


@pytest.fixture(scope="module", autouse=True)
def own_process():
    """A process with TensorFlow for these tests, which ends when it is asked to."""
    before, forked._process = forked._process, None
    yield
    forked._process.close()
    forked._process = before


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


def start(here, code: str, warm: bool = True, **options) -> LocalCluster:
    program = write(here, (WARM if warm else "") + textwrap.dedent(code))
    return LocalCluster(program, **{"deadline": DEADLINE} | options)


def is_warm(cluster: LocalCluster) -> bool:
    return cluster._processes._holder.warm is not None


SEEN = """
import threading
import __main__
seen = {
    "file": [__file__, __name__, __main__.__file__, sys.argv[0], os.getcwd()],
    "words": sys.argv[1:],
    "path": sys.path,
    "environment": dict(os.environ),
    "streams": [
        [stream.fileno(), stream.encoding, stream.errors, stream.line_buffering]
        for stream in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "input": sys.stdin.read(),
    "unbuffered": sys.stdout.write_through,
    "handlers": [str(signal.getsignal(number)) for number in range(1, 32)],
    "session": os.getsid(0) == os.getpid() == os.getpgrp(),
    "descriptors": [path for path in os.listdir("/proc/self/fd") if int(path) > 2],
    "threads": threading.active_count(),
    "holder": "holder" in sys.modules,
}
print("ready")
print(json.dumps(seen))
"""


def test_a_forked_task_sees_what_one_started_anew_sees(here, isolated):
    seen = []
    for warm in (True, False):
        with start(here, SEEN, warm, isolated=isolated, ps=0, tf_config=True) as cluster:
            assert is_warm(cluster) is warm and cluster.isolated is isolated
            seen.append(cluster.wait()["worker 1"])
            folder = str(cluster._processes.folder)
        nothing_left(here)
        seen[-1]["file"].remove(folder)
        config = json.loads(seen[-1]["environment"].pop("TF_CONFIG"))  # ports may differ
        assert config["task"] == {"type": "worker", "index": 1}
    forked_one, new = seen
    added = set(forked_one["environment"].items()) - set(new["environment"].items())
    assert {name for name, _ in added} <= {
        *("ENABLE_RUNTIME_UPTIME_TELEMETRY", "TF2_BEHAVIOR", "HDF5_PLUGIN_PATH"),
        *("TPU_ML_PLATFORM", "TPU_ML_PLATFORM_VERSION"),
    }  # what the import itself sets
    forked_one["environment"] = dict(set(forked_one["environment"].items()) - added)
    assert forked_one == new


def test_nothing_of_tensorflow_has_started_and_nothing_else_is_loaded(here):
    """What a task finds is what the process that it was forked from has."""
    code = """
    found = {
        "loaded": "tensorflow" in sys.modules,
        "others": [name for name in ("numpy.random", "utils", "keras") if name in sys.modules],
    }
    from tensorflow.python.eager import context
    found["runtime"] = context.context_safe() is not None
    import numpy
    found["numbers"] = numpy.random.random()
    print("ready")
    print(json.dumps(found))
    """
    with start(here, code) as cluster:
        one, other = cluster.wait().values()
        assert "ps 0: running" not in cluster.report()
        assert "absl::InitializeLog" in cluster.logs("worker 0"), "what the import wrote"
    assert one.pop("numbers") != other.pop("numbers")
    assert one == other == {"loaded": True, "others": [], "runtime": False}


# How an interpreter ends: its exit code, the traceback, and what it still runs.
ENDINGS = (
    "pass",
    "sys.exit(3)",
    "sys.exit('no reason')",
    "{}['no such shard']",
    "raise KeyboardInterrupt",
    "os.kill(os.getpid(), signal.SIGSEGV)",
    "import atexit, threading; atexit.register(print, 'at exit'); "
    "threading.Timer(0.1, print, ['from a thread']).start()",
    "compile('1 +', 'text', 'exec')",
)


def test_a_forked_task_ends_as_an_interpreter_does(here):
    code = f"def run():\n    exec({ENDINGS}[int(role.task_index)])\nprint('ready')\nrun()\n"
    with start(here, code, ps=0, workers=len(ENDINGS)) as cluster:
        cluster.wait(check=False)
        for index, task in enumerate(cluster._processes.tasks.values()):
            alone = subprocess.run(
                [sys.executable, str(here / "program.py"), f"--task_index={index}"],
                capture_output=True,
                text=True,
            )
            output, log = task.text()
            assert (task.code, output) == (alone.returncode, alone.stdout), ENDINGS[index]
            assert log.endswith(alone.stderr) and "warm.py" not in log, ENDINGS[index]
            assert log.count("Traceback") == alone.stderr.count("Traceback")


def test_a_program_with_a_wrong_line_is_named(here):
    with (
        pytest.raises(ClusterError, match="ended with exit code 1: SyntaxError: invalid syntax"),
        start(here, "1 +"),
    ):
        pytest.fail("entered although no task was ready")
    nothing_left(here)


def test_forked_tasks_are_seen_killed_suspended_and_started_again(here, isolated):
    code = """
    print("ready")
    for count in range(10**9):
        print("count", count)
        time.sleep(0.01)
    """
    with start(here, code, isolated=isolated) as cluster:
        listed = [line for line in alive(here) if "program.py" in line]
        assert len(listed) == 3 and sum("--task_index=1" in line for line in listed) == 1
        cluster.suspend("worker 1")
        before = cluster.output("worker 1")
        cluster.kill("ps 0")
        cluster.restart("ps 0")
        cluster.wait_for("ps 0", "count 9")
        assert cluster.output("worker 1") == before, "a suspended task must stand still"
        cluster.resume("worker 1")
        cluster.wait_for("worker 1", f"count {len(before.splitlines()) + 5}")
        os.kill(cluster._processes._holder._process.pid, signal.SIGKILL)
        with pytest.raises(ClusterError, match="holds the tasks has ended"):
            cluster.wait()
    nothing_left(here)


def test_where_it_is_not_safe_tasks_are_started_anew(here, monkeypatch):
    """Another environment at the import; a GPU that can be seen; a variable that changes later."""
    code = 'print("ready"); print(json.dumps({"loaded": "tensorflow" in sys.modules}))'
    with start(here, code) as cluster:
        assert cluster.wait()["worker 1"] == {"loaded": True}
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "other")
        cluster.restart("worker 1")
        assert cluster.wait()["worker 1"] == {"loaded": False}
    with start(here, code) as cluster:
        assert not is_warm(cluster)
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    monkeypatch.setattr(forked, "GPUS", ("null",))
    assert forked.warm_environment({"CUDA_VISIBLE_DEVICES": "-1", "A": "1"}) == {"A": "1"}
    for seen in ({}, {"CUDA_VISIBLE_DEVICES": "0"}):
        assert forked.warm_environment(seen) is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with start(here, code) as cluster:
        assert not is_warm(cluster)


def test_a_process_that_does_not_answer_or_is_gone_is_done_without(here):
    """A late holder leaves the cluster alone that did not wait for it."""
    with start(here, HELLO, deadline=DEADLINE):
        first = forked._process._child.pid
    os.kill(first, signal.SIGSTOP)
    with start(here, "print('ready'); wait()", deadline=2) as cluster:
        assert not is_warm(cluster)
        os.kill(first, signal.SIGCONT)
        with start(here, HELLO) as other:  # its request comes after the one that was given up
            assert is_warm(other)
            other.wait()
            os.kill(first, signal.SIGKILL)
            assert other.report().startswith("ps 0: running"), "it does not depend on it"
        assert cluster._processes.folder.exists()
        assert cluster.report() == "ps 0: running\nworker 0: running\nworker 1: running"
    nothing_left(here)
    with start(here, HELLO) as cluster:
        assert is_warm(cluster) and forked._process._child.pid != first


KERNEL = """
import os, signal, sys, tempfile, threading
from utils.cluster import LocalCluster, forked
program, tempfile.tempdir = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)
cluster = LocalCluster(program)
def interrupt():
    while not (forked._process and len(os.listdir(tempfile.tempdir)) > 1):
        pass
    os.killpg(0, signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    cluster.__enter__()
except KeyboardInterrupt:
    print("interrupted", os.listdir(tempfile.tempdir), flush=True)
with cluster:
    warm = cluster._processes._holder.warm is not None
    print(cluster.isolated, warm, forked._process._child.pid, flush=True)
    cluster.wait()
"""
REFUSE = ["unshare", "--user", "--map-root-user", "sh", "-c"]
REFUSE += ['echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"]


@pytest.mark.skipif(not shutil.which("unshare") or bool(refusal()), reason="needs namespaces")
@pytest.mark.parametrize(
    ("before", "isolated", "number"),
    [([], "True", signal.SIGKILL), (REFUSE, "False", signal.SIGTERM)],
    ids=["isolated", "where namespaces are refused"],
)
def test_nothing_survives_a_kernel(here, before, isolated, number):
    """Interrupted at the first start it can start a cluster; killed, it leaves nothing."""
    program = write(here, WARM + "print('ready'); wait()")
    with subprocess.Popen(
        [*before, sys.executable, "-c", KERNEL, str(program), str(here)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as kernel:
        assert kernel.stdout.readline() == "interrupted ['program.py']\n"
        *told, pid = kernel.stdout.readline().split()
        assert told == [isolated, "True"]
        os.killpg(kernel.pid, number)
    until(lambda: not Path("/proc", pid, "exe").exists(), "the process with TensorFlow is gone")
    nothing_left(here)
