"""Every error that a cluster can raise is one true line; only a silent partner does not answer."""

import json
import resource
import subprocess
import sys

import pytest
import tensorflow as tf
from programs import BETWEEN_GRAPH, DEADLINE

from utils.cluster.ports import free_ports
from utils.task import explain, why_no_session
from utils.task.role import Role

CLASSES = sorted(
    (kind for kind in vars(tf.errors).values() if isinstance(kind, type)),
    key=lambda kind: kind.__name__,
)
CLASSES = [k for k in CLASSES if issubclass(k, tf.errors.OpError) and k is not tf.errors.OpError]
REMOTE = """Graph execution error:

Detected at node 'x' defined at (most recent call last):
    File "a.py", line 1, in <module>
Node: 'x'
From /job:ps/replica:0/task:3:
the sentence that says it
\t [[{{node x}}]]
Additional GRPC error information from remote target /job:ps/replica:0/task:3 while calling \
/tensorflow.WorkerService/RunGraph:
:UNKNOWN:Error received from peer"""


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_only_a_silent_partner_does_not_answer(kind):
    name, error = kind.__name__, kind(None, None, REMOTE)
    if kind in (tf.errors.UnavailableError, tf.errors.DeadlineExceededError):
        assert explain(error) == f"{name}: ps 3 does not answer"
    else:
        assert explain(error) == f"{name}: the sentence that says it"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_without_a_partner_the_reason_is_given(kind):
    said = explain(kind(None, None, "From /job:worker/replica:0/task:0:\nthe sentence"))
    if kind is tf.errors.DeadlineExceededError:
        assert said.startswith("DeadlineExceededError: no answer in time")
    else:
        assert said == f"{kind.__name__}: the sentence"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "DATA_LOSS: ",
        "  (0) DATA_LOSS: ",
        "2 root error(s) found.\n  (0) DATA_LOSS: DATA_LOSS: ",
    ],
)
def test_the_code_and_the_task_before_the_sentence_are_left_out(before):
    text = f"Graph execution error:\n\n{before}From /job:worker/replica:0/task:0:\nthe sentence"
    assert explain(tf.errors.DataLossError(None, None, text)) == "DataLossError: the sentence"


def test_an_address_that_no_machine_can_have_is_a_partner_that_does_not_answer():
    role = Role({"ps": ["a..b:2222"], "worker": ["localhost:2223"]}, "worker", 0)
    assert "ps 0 at a..b:2222 does not answer" in why_no_session(role)


@pytest.fixture(scope="module")
def worker():
    """`worker(index, *words)` runs a worker of the training beside a living parameter server.

    Returns what it says went wrong, or None. No file may be larger than `most` bytes.
    """
    with free_ports(3) as ports:
        ps, *workers = (f"localhost:{port}" for port in ports)
    lists = [f"--ps_hosts={ps}", f"--worker_hosts={','.join(workers)}"]
    program = [sys.executable, str(BETWEEN_GRAPH), *lists]
    server = subprocess.Popen(
        [*program, "--job_name=ps", "--task_index=0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def run(index: int, *words: object, most: int = resource.RLIM_INFINITY) -> str | None:
        done = subprocess.run(
            [*program, "--job_name=worker", f"--task_index={index}", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        )
        return json.loads(done.stdout.splitlines()[-1]).get("error")

    yield run
    server.kill()
    server.wait()


def test_a_damaged_checkpoint_then_a_full_disk_then_another_type(worker, tmp_path):
    """In this order: the second initialises the variables, which the third wants in float64."""
    (tmp_path / "step-40.index").write_bytes(b"nonsense" * 100)
    damaged = worker(0, f"--checkpoints={tmp_path}")
    assert damaged == "DataLossError: not an sstable (bad magic number)"
    folder = tmp_path / "new"
    full = worker(0, f"--checkpoints={folder}", "--checkpoint_every=5", "--steps=20", most=4096)
    assert full.startswith(f"OutOfRangeError: {folder}/step-") and "File too large" in full
    other = worker(1, "--dtype=float64", "--steps=20")
    assert other.startswith("InvalidArgumentError: Trying to ") and "float" in other
    assert worker(1, "--steps=20") is None, "the parameter server has answered all the time"
