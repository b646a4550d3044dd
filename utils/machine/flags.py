"""Flags for XLA from outside: a wrong one lets TensorFlow end the process without an exception."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping

VARIABLES = ("TF_XLA_FLAGS", "XLA_FLAGS")
# The first is read with the devices, the second with the first compilation.
READ_BOTH = "import tensorflow as tf; tf.function(lambda: tf.constant(1.0), jit_compile=True)()"


def check_flags(environment: Mapping[str, str] = os.environ) -> None:
    """Let a process of its own read the flags for XLA, if there are any (about six seconds).

    Args:
        environment: where TF_XLA_FLAGS and XLA_FLAGS are looked up.

    Raises:
        RuntimeError: TensorFlow ends with these flags; the message has its reason.

    Introduced in lesson 00, behind ``begin``.
    """
    found = {name: environment[name] for name in VARIABLES if environment.get(name)}
    if not found:
        return
    without_gpus = {**environment, "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, "-c", READ_BOTH]
    done = subprocess.run(
        command, env=without_gpus, capture_output=True, text=True, errors="replace", check=False
    )
    if not done.returncode:
        return
    fatal = re.findall(r"^F\d+ .*?\] (.*)", done.stderr, re.MULTILINE)
    said = (fatal or done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1]
    names = " and ".join(found)
    removal = "; ".join(f'os.environ.pop("{name}")' for name in found)
    raise RuntimeError(
        f"TensorFlow does not start with {' '.join(f'{k}={v!r}' for k, v in found.items())}: "
        f"{said.rstrip('.')}. Whoever started this process has set {names}. Run "
        f"`import os; {removal}` before begin(), or correct the value there and start again."
    )
