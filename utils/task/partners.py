"""Which task of a cluster does not answer: from TensorFlow's errors, and by knocking."""

import re
import socket

from utils.machine import reason
from utils.task.role import Role

SILENT = ("UnavailableError", "DeadlineExceededError")  # in all others a partner has answered
REMOTE = re.compile(r"remote target /job:(\w+)/replica:0/task:(\d+)")


def explain(error: Exception) -> str:
    """Return a TensorFlow error of a cluster as one line: its name, and who does not answer or why.

    Introduced in lesson 09.
    """
    name = type(error).__name__
    if name in SILENT and (silent := REMOTE.search(str(error))):
        return f"{name}: {silent[1]} {silent[2]} does not answer"
    if name == "DeadlineExceededError":
        return f"{name}: no answer in time; a task that this one waits for is gone or stands still"
    return f"{name}: {reason(error)}"


def why_no_session(role: Role) -> str:
    """Say why a worker does not get a session on initialised variables, as far as can be seen.

    Introduced in lesson 09.
    """
    for index, address in enumerate(role.cluster["ps"]):
        host, port = address.rsplit(":", 1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
        except (OSError, UnicodeError) as error:  # the second: what is no name of a machine
            return f"DeadlineExceededError: ps {index} at {address} does not answer ({error})"
    if role.is_chief:
        return "DeadlineExceededError: every ps takes connections, but one does not work"
    return "DeadlineExceededError: the chief has not initialised the variables"
