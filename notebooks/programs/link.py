"""Measure the link between two tasks: how long a step takes that moves so many bytes.

Every task runs this file. The parameter server (ps) keeps tensors of several sizes. The worker
asks for one at a time and keeps the best time of each. Its last line says what it found, as JSON:
`sizes` in bytes, the best `seconds` for each, and the bytes that TensorFlow saw arrive (`moved`).
"""

import argparse
import json
import os
import sys
import time

from utils.task import RoleError, add_arguments, prepare, role_of

BY_HAND = """\
by hand, in two terminals (on two machines: their names instead of localhost):

  python link.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223 \\
    --job_name=ps --task_index=0
  … the same two lists … --job_name=worker --task_index=0

The order does not matter. The worker ends by itself. The parameter server never ends: stop it
with Ctrl-C. The servers ask for no password and listen on every network interface: use a network
that you trust.
"""
START_WARM = True  # nothing here sets what TensorFlow reads at import: a fork can run it
SIZES = (4_000, 16_000, 64_000, 256_000, 1_000_000, 4_000_000, 16_000_000)  # bytes
NUMBER = 4  # bytes of a float32


def arguments(words):
    """Read the command line; a wrong one ends the program before TensorFlow is loaded."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options]",
        description=__doc__,
        epilog=BY_HAND,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.add_argument("--rounds", type=int, default=10, help="each moves every size twice")
    options = parser.parse_args(words)
    try:
        role = role_of(options)
    except RoleError as error:
        parser.error(str(error))
    if options.rounds < 1:
        parser.error(f"--rounds={options.rounds}: give 1 or more.")
    return options, role


def build(role):
    """A graph with one operation for each size, which moves a tensor to this worker."""
    graph = tf.Graph()
    moves = []
    with graph.as_default():
        for size in SIZES:
            with tf.device("/job:ps/task:0/cpu:0"):
                kept = v1.get_variable(
                    f"bytes_{size}", [size // NUMBER], initializer=v1.zeros_initializer()
                ).read_value()
            with tf.device(f"/job:worker/task:{role.index}/cpu:0"):
                moves.append(tf.identity(kept).op)  # fetched as a tensor, it would be copied again
        return graph, v1.global_variables_initializer(), moves


def best_seconds(session, moves, rounds):
    """The shortest step for each move.

    All sizes take turns, so that a busy moment of the machine hits all of them, up and down, so
    that none always follows the largest.
    """
    best = [float("inf")] * len(moves)
    up = range(len(moves))
    for _ in range(rounds):
        for i in (*up, *reversed(up)):
            start = time.perf_counter()
            session.run(moves[i])
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def bytes_received(session, move):
    """The bytes that a traced step received from the other task."""
    record = v1.RunMetadata()
    session.run(move, None, v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE), record)
    return sum(
        output.tensor_description.allocation_description.requested_bytes
        for device in record.step_stats.dev_stats
        for node in device.node_stats
        if node.node_name == "RecvTensor"
        for output in node.output
    )


def main(options, role):
    """Start this task's server; the worker measures and reports."""
    cluster = tf.train.ClusterSpec(role.cluster)
    server = tf.distribute.Server(cluster, job_name=role.job, task_index=role.index)
    print("ready")
    if role.job == "ps":
        server.join()
    graph, initialise, moves = build(role)
    with v1.Session(server.target, graph=graph) as session:
        session.run(initialise)
        seconds = best_seconds(session, moves, options.rounds)
        moved = [bytes_received(session, move) for move in moves]
    print(json.dumps({"sizes": SIZES, "seconds": seconds, "moved": moved}))


if __name__ == "__main__":
    OPTIONS, ROLE = arguments(sys.argv[1:])
    prepare(ROLE)
    import tensorflow as tf

    v1 = tf.compat.v1
    main(OPTIONS, ROLE)
    os._exit(0)  # Python would take most of a second to unload TensorFlow
