"""Which task of a cluster ran which operations, from the trace of a session's run."""

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


def ran_by_task(record: "tf.compat.v1.RunMetadata") -> dict[str, dict[str, int]]:
    """Return the operations of a traced run by task.

    Transfers between tasks and what TensorFlow adds around each part of the graph are left out.

    Args:
        record: a ``tf.compat.v1.RunMetadata`` that a run with ``FULL_TRACE`` has filled.

    Returns:
        For each task, such as ``"ps 0"``, how often it ran each kind of operation; tasks and
        operations in alphabetical order.

    Introduced in lesson 09.
    """
    ran: dict[str, Counter] = {}
    for device in record.step_stats.dev_stats:
        job, task = re.search(r"/job:(\w+)/.*task:(\d+)", device.device).groups()
        kinds = ran.setdefault(f"{job} {task}", Counter())
        for node in device.node_stats:
            # A label is "name = Operation(inputs)"; that of a transfer is not of this form.
            found = re.search(r" = (\w+)\(", node.timeline_label)
            if found and node.node_name != "_SOURCE":
                kinds[found[1]] += 1
    return {task: dict(sorted(ran[task].items())) for task in sorted(ran)}
