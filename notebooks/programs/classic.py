"""The program of the classic texts, run statement by statement and mended where it fails today.

SCRIPT is what every task of such a cluster ran: job and index come from the command line, the
parameter server joins, the workers build under `replica_device_setter` and train in a session.
The last line says what failed and how it was mended, as JSON. A parameter server never ends.
"""

import ast
import json
import os
import re
import sys

from utils.task import prepare, read_role

START_WARM = True  # nothing here sets what TensorFlow reads at import: a fork can run it
SCRIPT = """\
ps_hosts, worker_hosts, job, index = sys.argv[1:]
cluster = tf.train.ClusterSpec(
    {"ps": ps_hosts.split(","), "worker": worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()

setter = tf.train.replica_device_setter(
    worker_device="/job:worker/task:" + index, cluster=cluster)
with tf.Graph().as_default(), tf.device(setter):
    x = tf.placeholder(tf.float32, [4, 3])
    b = tf.get_variable("b", initializer=[[0.0], [0.0], [0.0]])
    loss = tf.reduce_mean((tf.matmul(x, b) - TARGET) ** 2)
    train = tf.train.GradientDescentOptimizer(0.005).minimize(loss)
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train], {x: INPUT})[0] for _ in range(20)]
"""
INPUT = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]
TARGET = [[9.0], [21.0], [33.0], [45.0]]  # what b = [1, 1, 2] gives
MENDS = (
    # Names of the session era that today's `tf` does not have, or has in another meaning.
    (r"\btf\.(train\.(?!ClusterSpec)|placeholder|get_variable|Session|global)", r"tf.compat.v1.\1"),
    (r"task_index=index", "task_index=int(index)"),
    (r"tf\.device\(setter\)", "tf.compat.v1.device(setter)"),
)


def run_and_mend(names):
    """Run the script statement by statement, and mend those that fail.

    Returns what was mended: the line that failed, its error, and the line that took its place.
    An error that none of the mends cures ends the program.
    """
    rest = [ast.get_source_segment(SCRIPT, statement) for statement in ast.parse(SCRIPT).body]
    mends, mended = list(MENDS), []
    while rest:
        try:
            exec(compile(rest[0], "classic", "exec"), names)
        except (AttributeError, TypeError, RuntimeError) as error:
            if not mends:
                raise
            old, (pattern, new) = rest[0], mends.pop(0)
            rest = [re.sub(pattern, new, source) for source in rest]
            if rest[0] == old:
                raise
            lines = {"line": old.splitlines()[0], "mended": rest[0].splitlines()[0]}
            mended.append(lines | {"error": f"{type(error).__name__}: {error}"})
            continue
        if rest.pop(0).startswith("server ="):
            print("ready")
    return mended


def main(role):
    """Run the script as this task, and report."""
    hosts = [",".join(role.cluster[job]) for job in ("ps", "worker")]
    sys.argv[1:] = [*hosts, role.job, str(role.index)]
    names = {"sys": sys, "tf": tf, "INPUT": INPUT, "TARGET": TARGET}
    mended = run_and_mend(names)
    first, *_, last = (float(loss) for loss in names["losses"])
    print(json.dumps({"task": role.name, "mended": mended, "first": first, "last": last}))


if __name__ == "__main__":
    ROLE = read_role(__doc__)
    prepare(ROLE)
    import tensorflow as tf

    main(ROLE)
    os._exit(0)  # Python would take most of a second to unload TensorFlow
