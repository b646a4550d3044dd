"""The sentence that matters in an error of TensorFlow."""

import re

# Which task an error comes from, and the error's code: each may stand before the sentence.
FROM_TASK = re.compile(r"From /job:\w+/replica:\d+/task:\d+:\s*")
CODE = re.compile(r"(?:[A-Z]+(?:_[A-Z]+)+|INTERNAL|UNAVAILABLE|ABORTED|CANCELLED|UNKNOWN): ")


def reason(error: Exception) -> str:
    """Return the sentence in a TensorFlow error that says what went wrong.

    A session's errors begin with "Graph execution error:", repeat where the
    operation was written, and may list the same cause once per device. The
    reason stands further down, behind the code of the error. This returns
    the first one, without node markers and debugging details.

    Args:
        error: what TensorFlow raised.

    Returns:
        One line; for errors of another form their first line.

    Introduced in lesson 00.
    """
    text = FROM_TASK.sub("", str(error))
    root = re.search(r"\(0\) [A-Z_]+: (.*)", text)
    # A server joins the errors of several tasks with a line of equals signs.
    lines = [line.strip() for line in text.splitlines() if line.strip().strip("=")]
    if root:
        line = root.group(1)
    elif lines and lines[0] == "Graph execution error:":
        line = next((x for x in lines[1:] if not _where(x)), lines[0])
    else:
        line = lines[0] if lines else type(error).__name__
    while code := CODE.match(line):
        line = line[code.end() :]
    line = re.sub(r" ?\[\[\{\{node .*?\}\}\]\]", "", line)
    line = re.sub(r"\{\{colocation_node (\S+?)\}\}", r"\1", line)
    line = re.sub(r"\{\{(?:function_)?node [^}]*\}\}", "", line)
    line = re.sub(r" Debug info:.*", "", line)
    return " ".join(line.split())


def _where(line: str) -> bool:
    """Tell whether a line only says where an operation was written."""
    return line.startswith(("Detected at node", "File ", "Node: ", "[["))
