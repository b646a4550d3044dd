"""TensorFlow's real allocator for GPU memory, run on the CPU.

TensorFlow manages the memory of a GPU with a class called BFCAllocator
(third_party/xla/xla/tsl/framework/bfc_allocator.cc). Two environment
variables, read in tensorflow/core/common_runtime/process_state.cc, make it
manage the host's memory instead: then it shows on any machine what it does.
It always grows there, and one thing differs from a GPU: at its limit it does
not exchange empty regions for a larger one (``TF_ENABLE_GPU_GARBAGE_COLLECTION``).
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence

from utils.numbers import whole

CHILD_SECONDS = 120  # a deadline: importing TensorFlow takes about 3
MOST_MB = 500
_CHILD = """
import sys
import tensorflow as tf

held = []
for need in map(int, sys.argv[1:]):
    del held[need:]
    while len(held) < need:
        held.append(tf.fill([2**18], 1.0))  # 1 MB
    print("child: step", file=sys.stderr, flush=True)
"""
_POOL = re.compile(r"Total allocated bytes: ([\d.]+)MiB")


def real_pool(needs_mb: Sequence[int]) -> tuple[int, ...]:
    """Let a program hold tensors of these sizes, and return its pool's sizes.

    Starts a program with TensorFlow's allocator for GPUs on its CPU. In each
    step it makes tensors of 1 MB until it holds what is asked for, or deletes
    some. Nothing here is modelled.

    Args:
        needs_mb: what the program's tensors hold in each step, in MB
            (2**20 bytes), 0 to 500.

    Returns:
        What the pool had taken from the system by the end of each step, in
        MB.

    Raises:
        TypeError: a size is no whole number.
        ValueError: a size is out of range, or there is none.
        RuntimeError: the program failed, or TensorFlow has no such allocator
            for the CPU here; the message has its last lines.
        subprocess.TimeoutExpired: it did not end within two minutes.

    Introduced in lesson 02.
    """
    needs = [whole("needs_mb", need, 0, MOST_MB) for need in needs_mb]
    if not needs:
        raise ValueError(f"needs_mb=[]: give one or more sizes from 0 to {MOST_MB} MB.")
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *map(str, needs)],
        env=os.environ | _settings(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=CHILD_SECONDS,
    )
    steps = done.stderr.split("child: step\n")[:-1]
    if done.returncode or len(steps) != len(needs) or not _POOL.search(done.stderr):
        raise RuntimeError(
            f"The program with TensorFlow's allocator for GPUs ended with code "
            f"{done.returncode}: {done.stderr[-500:].strip()}"
        )
    return _sizes(steps)


def _settings() -> dict[str, str]:
    return {
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPU_ALLOCATOR_USE_BFC": "1",
        "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(4 * MOST_MB),
        # The allocator says in its log when it takes memory, and how much.
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_CPP_VMODULE": "bfc_allocator=1",
    }


def _sizes(steps: list[str]) -> tuple[int, ...]:
    """Return the pool's size after each step; a step without a line took nothing."""
    sizes, now = [], 0
    for step in steps:
        for megabytes in _POOL.findall(step):
            now = round(float(megabytes))
        sizes.append(now)
    return tuple(sizes)
