"""Try out when two workers share a variable. Needs one parameter server and some workers.

Every worker adds its number plus one to four counters that start at zero. They differ in name,
task or container. Then all read what they find, through a new session.
"""

import argparse
import json
import os
import signal
import sys

from utils.tfconfig import RoleError, add_arguments, role_of

SHARED = "same name, same task"


def places(role):
    """Name, device and container of each counter, by what they are called in the result."""
    ps, here = "/job:ps/task:0", f"/job:worker/task:{role.index}"
    return {
        SHARED: ("counter", ps, ""),
        "same name, own task": ("counter", here, ""),
        "own name, same task": (f"counter_{role.index}", ps, ""),
        "same name, same task, own container": ("counter", ps, f"worker_{role.index}"),
    }


def counter(name, device, container):
    """A graph with one variable; graphs share it where all three arguments are equal."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(device), v1.container(container):
        return graph, v1.get_variable(name, initializer=0.0)


def filtered(role):
    """The configuration of a session that needs no other worker: one may have ended already."""
    return v1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{role.index}"])


def add(target, role, place, set_up):
    """Add this worker's number plus one to a counter, once somebody has set it up."""
    graph, variable = counter(*place)
    with graph.as_default():
        more = variable.assign_add(role.index + 1.0)
        missing = None if set_up else v1.report_uninitialized_variables([variable])
    if set_up:
        session = v1.Session(target, graph=graph, config=filtered(role))
        session.run(variable.initializer)
    else:
        waiting = v1.train.SessionManager(ready_op=missing, graph=graph, recovery_wait_secs=0.1)
        session = waiting.wait_for_session(target, filtered(role))
    session.run(more)
    session.close()


def value(target, role, place):
    """What a counter holds, read through a new session."""
    graph, variable = counter(*place)
    with v1.Session(target, graph=graph, config=filtered(role)) as session:
        return session.run(variable).item()


def wait_for_all(target, role):
    """Return once every worker has called this: a queue for each, on the parameter server."""
    workers = len(role.cluster["worker"])
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:ps/task:0"):
        arrived = [
            tf.queue.FIFOQueue(workers, tf.int32, [()], shared_name=f"arrived_{worker}")
            for worker in range(workers)
        ]
        tell = [queue.enqueue(role.index) for queue in arrived]
        everybody = arrived[role.index].dequeue_many(workers)
    with v1.Session(target, graph=graph, config=filtered(role)) as session:
        session.run(tell)
        session.run(everybody)


def main(role):
    """Start this task's server; a worker counts and reports."""
    cluster = tf.train.ClusterSpec(role.cluster)
    server = tf.distribute.Server(cluster, job_name=role.job, task_index=role.index)
    print("ready")
    if role.job == "ps":
        server.join()
    target, counters = server.target, places(role)
    with v1.Session(target, graph=tf.Graph()) as session:  # waits for every task
        devices = sorted(device.name for device in session.list_devices())
    for words, place in counters.items():
        add(target, role, place, set_up=role.is_chief or words != SHARED)
    wait_for_all(target, role)
    found = {words: value(target, role, place) for words, place in counters.items()}
    print(json.dumps({"task": role.name, "master": target, "devices": devices, "counters": found}))


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # TensorFlow's calls do not notice Ctrl-C
    parser = argparse.ArgumentParser(usage="%(prog)s [options]", description=__doc__)
    add_arguments(parser)
    try:
        ROLE = role_of(parser.parse_args())
    except RoleError as error:
        parser.error(str(error))
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # without Keras 3 it starts a second sooner
    import tensorflow as tf

    v1 = tf.compat.v1
    main(ROLE)
