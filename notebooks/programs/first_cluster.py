"""Two first experiments on a cluster with one parameter server and some workers.

One graph for all: worker 0 builds a graph with a tower on every worker, and runs it.

One graph each: every worker builds graphs of its own, and adds its number plus one to four
counters that start at zero. They differ in name, device or container. Then all read what they
find, through a new session.
"""

import json
import os

from utils.task import prepare, ran_by_task, read_role

START_WARM = True  # nothing here sets what TensorFlow reads at import: a fork can run it
INPUT = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]
WEIGHTS = [[1.0], [1.0], [2.0]]
SIZES = (1, 2, 4)  # for how many workers the graph's operations are counted
SHARED = "same name, same task"


def towers(workers):
    """The one graph: split the rows, multiply a part on each worker, put them together again."""
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


def traced(session, fetch):
    """Run a step; return the value, and which task ran what."""
    record = v1.RunMetadata()
    trace = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    return session.run(fetch, options=trace, run_metadata=record), ran_by_task(record)


def one_graph(target, workers):
    """Run the one graph, and say what came out, who ran what, and how the graph grows."""
    graph, initialise, output = towers(workers)
    with v1.Session(target, graph=graph) as session:
        session.run(initialise)
        value, ran = traced(session, output)
    operations = {size: len(towers(size)[0].get_operations()) for size in SIZES}
    return {"value": value.tolist(), "ran": ran, "operations": operations}


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
    """Add this worker's number plus one to a counter that somebody sets up; say who ran what."""
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
    _, ran = traced(session, more)
    session.close()
    return ran


def value(target, role, place):
    """What a counter holds, read through a new session."""
    graph, variable = counter(*place)
    with v1.Session(target, graph=graph, config=filtered(role)) as session:
        return session.run(variable).item()


def wait_for_all(target, role, what):
    """Return once every worker has said this: a queue for each, on the parameter server."""
    workers = len(role.cluster["worker"])
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:ps/task:0"):
        arrived = [
            tf.queue.FIFOQueue(workers, tf.int32, [()], shared_name=f"{what}_{worker}")
            for worker in range(workers)
        ]
        tell = [queue.enqueue(role.index) for queue in arrived]
        everybody = arrived[role.index].dequeue_many(workers)
    with v1.Session(target, graph=graph, config=filtered(role)) as session:
        session.run(tell)
        session.run(everybody)


def main(role):
    """Start this task's server; a worker tries both, and reports."""
    cluster = tf.train.ClusterSpec(role.cluster)
    server = tf.distribute.Server(cluster, job_name=role.job, task_index=role.index)
    print("ready")
    if role.job == "ps":
        server.join()
    target, counters = server.target, places(role)
    result = {"task": role.name, "master": target}
    with v1.Session(target, graph=tf.Graph()) as session:  # waits for every task
        result["devices"] = sorted(device.name for device in session.list_devices())
    # A worker that has not reached the others yet may fail when they ask it for a tensor.
    wait_for_all(target, role, "connected")
    if role.is_chief:
        result["one graph"] = one_graph(target, len(role.cluster["worker"]))
    result["ran"] = {
        words: add(target, role, place, set_up=role.is_chief or words != SHARED)
        for words, place in counters.items()
    }
    wait_for_all(target, role, "added")
    result["counters"] = {words: value(target, role, place) for words, place in counters.items()}
    print(json.dumps(result))


if __name__ == "__main__":
    ROLE = read_role(__doc__)
    prepare(ROLE)
    import tensorflow as tf

    v1 = tf.compat.v1
    main(ROLE)
    os._exit(0)  # Python would take most of a second to unload TensorFlow
