"""What a cluster's program does before TensorFlow: on its own, without starting one."""

import pytest

PREPARE = """
import os, signal, sys
from utils.task import prepare
from utils.task import Role
prepare(Role({"ps": ["a:1"], "worker": ["b:1"]}, JOB, 0))
print(os.environ["CUDA_VISIBLE_DEVICES"], os.environ["TF_USE_LEGACY_KERAS"])
print(signal.getsignal(signal.SIGINT) == signal.SIG_DFL, sys.stdout.line_buffering)
print([name for name in sys.modules if name.startswith("tensorflow")])
"""


@pytest.mark.parametrize(("job", "gpus"), [("ps", "-1"), ("worker", "0,1")])
def test_a_parameter_server_sees_no_gpu(fresh, job, gpus):
    code = PREPARE.replace("JOB", repr(job))
    done = fresh(code, CUDA_VISIBLE_DEVICES="0,1", TF_USE_LEGACY_KERAS=None)
    assert done.stdout.splitlines() == [f"{gpus} 1", "True True", "[]"], done.stderr


def test_who_wants_keras_3_can_have_it(fresh):
    done = fresh(PREPARE.replace("JOB", "'ps'"), TF_USE_LEGACY_KERAS="0")
    assert done.stdout.splitlines()[0] == "-1 0", done.stderr
