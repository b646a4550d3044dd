"""What the programs of the cluster lessons do before TensorFlow is loaded."""

import argparse
import os
import signal
import sys

from utils.task.role import Role, RoleError, add_arguments, role_of


def read_role(description: str) -> Role:
    """Return this task's role, from the command line or TF_CONFIG; a wrong one ends the program.

    For programs without options of their own; ``--help`` is answered, too.

    Args:
        description: what ``--help`` says first.

    Introduced in lesson 09, behind its programs.
    """
    parser = argparse.ArgumentParser(usage="%(prog)s [options]", description=description)
    add_arguments(parser)
    try:
        return role_of(parser.parse_args())
    except RoleError as error:
        parser.error(str(error))


def prepare(role: Role) -> None:
    """Set up this process for its task. Call it before TensorFlow is imported.

    Lines are written as they come, Ctrl-C ends the process, a parameter server sees no GPU, and
    Keras 3 is not loaded.

    Introduced in lesson 05, behind its program.
    """
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # TensorFlow's calls do not notice Ctrl-C
    if role.job == "ps":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # it would take the memory of every GPU
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # without Keras 3 it starts a second sooner
