"""Multiply on every worker from a single graph: in-graph replication over a cluster.

Every worker is a server; worker 0 is the client too. It builds the one graph, with a tower for
each worker, and runs it. The other workers only wait for work: stop them with Ctrl-C.
"""

import argparse
import json
import os
import signal
import sys

from utils.cluster_trace import ran_by_task
from utils.tfconfig import RoleError, add_arguments, role_of

INPUT = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]
WEIGHTS = [[1.0], [1.0], [2.0]]
SIZES = (1, 2, 4)  # for how many workers the graph's operations are counted


def towers(workers):
    """The graph: split the rows, multiply a part on each worker, put them together again."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:worker/task:0"):
            x = v1.get_variable("input_data", initializer=INPUT)
            weights = v1.get_variable("b", initializer=WEIGHTS)
            rows = [len(INPUT[worker::workers]) for worker in range(workers)]
            parts = tf.split(x.read_value(), rows)
        products = []
        for worker, part in enumerate(parts):
            with tf.device(f"/job:worker/task:{worker}"):
                products.append(part @ weights.read_value())
        with tf.device("/job:worker/task:0"):
            output = tf.concat(products, axis=0)
            initialise = v1.global_variables_initializer()
    return graph, initialise, output


def main(role):
    """Start this task's server; worker 0 runs the graph and reports."""
    server = tf.distribute.Server(
        tf.train.ClusterSpec(role.cluster), job_name=role.job, task_index=role.index
    )
    print("ready")
    if role.index != 0:
        server.join()
    graph, initialise, output = towers(len(role.cluster["worker"]))
    record = v1.RunMetadata()
    trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with v1.Session(server.target, graph=graph) as session:
        session.run(initialise)
        value = session.run(output, options=trace, run_metadata=record)
    operations = {size: len(towers(size)[0].get_operations()) for size in SIZES}
    print(
        json.dumps(
            {
                "task": role.name,
                "value": value.tolist(),
                "ran": ran_by_task(record),
                "operations": operations,
            }
        )
    )


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # TensorFlow's calls do not notice Ctrl-C
    parser = argparse.ArgumentParser(usage="%(prog)s [options]", description=__doc__)
    add_arguments(parser)
    try:
        ROLE = role_of(parser.parse_args(), needs=["worker"])
    except RoleError as error:
        parser.error(str(error))
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # without Keras 3 it starts a second sooner
    import tensorflow as tf

    v1 = tf.compat.v1
    main(ROLE)
