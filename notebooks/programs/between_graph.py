"""Train MNIST on parameter servers and workers: between-graph replication, complete.

Every task runs this file. The parameter servers (ps) keep the variables and run what the
workers ask of them. Each worker builds a graph of its own, computes on its own shard of the
images and updates the shared variables: alone (asynchronous), or all together (--sync).
Worker 0 is the chief: it initialises the variables and writes the checkpoints.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from utils.task import (
    Role,
    RoleError,
    add_arguments,
    explain,
    prepare,
    ran_by_task,
    role_of,
    why_no_session,
)
from utils.training import mnist, network

BY_HAND = """\
by hand, in three terminals (on three machines: their names instead of localhost):

  python between_graph.py --ps_hosts=localhost:2222 \\
    --worker_hosts=localhost:2223,localhost:2224 --job_name=ps --task_index=0
  … the same two lists … --job_name=worker --task_index=0
  … the same two lists … --job_name=worker --task_index=1

The order does not matter. A worker ends by itself; its last line says what happened, as JSON.
A parameter server never ends: stop it with Ctrl-C. The servers ask for no password and listen
on every network interface: use a network that you trust.
"""
START_WARM = True  # nothing here sets what TensorFlow reads at import: a fork can run it
PLENTY = 10**9  # more batches than any worker takes
PRINT_EVERY = 10  # local steps


def arguments(words: list[str]) -> tuple[argparse.Namespace, Role]:
    """Read the command line; a wrong one ends the program before TensorFlow is loaded."""
    parser = argparse.ArgumentParser(
        usage="%(prog)s [options]",
        description=__doc__,
        epilog=BY_HAND,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    add = parser.add_argument
    add("--steps", type=int, default=400, help="updates of the variables, by all workers together")
    add("--batch", type=int, default=64, help="images in a worker's batch")
    add("--rate", type=float, default=0.2, help="learning rate")
    add("--dtype", choices=("float32", "float64"), default="float32")
    add("--seed", type=int, default=42, help="fixes the first weights and the order of the images")
    add("--sync", action="store_true", help="average the workers' gradients, then update once; "
        "started again, it needs fresh parameter servers")  # fmt: skip
    add("--spare", type=int, default=0, help="with --sync: workers that a step does not wait for")
    add("--default_tokens", action="store_true", help="with --sync: as the class does by default")
    add("--checkpoints", type=Path, help="folder; the chief resumes from the newest in it")
    add("--checkpoint_every", type=int, default=100, help="steps")
    add("--trace", action="store_true", help="say which task ran what in the first step")
    add("--pause", type=int, nargs=2, metavar=("WORKER", "STEP"), action="append", default=[],
        help="this worker stands still before this local step until it gets the signal SIGCONT; "
        "may be given more than once")  # fmt: skip
    add("--patience", type=int, default=300, help="seconds without an answer that are an error")
    options = parser.parse_args(words)
    try:
        role = role_of(options)
        check(options, role)
        if not role.is_chief:
            options.checkpoints = None  # nobody else reads or writes them
        elif options.checkpoints:
            check_folder(options.checkpoints)
            options.checkpoints.mkdir(parents=True, exist_ok=True)
    except (RoleError, OSError, ValueError) as error:
        parser.error(str(error))
    return options, role


def check(options, role):
    """Raise ValueError for numbers that make no sense in this cluster."""
    workers = len(role.cluster["worker"])
    largest = mnist.TRAIN // workers  # of the smallest shard
    allowed = {
        "steps": (1, PLENTY), "batch": (1, largest), "seed": (0, 2**32 - 1),
        "checkpoint_every": (1, PLENTY), "patience": (1, 10**6), "spare": (0, workers - 1),
    }  # fmt: skip
    for name, (least, most) in allowed.items():
        if not least <= getattr(options, name) <= most:
            raise ValueError(f"--{name}={getattr(options, name)}: give {least} to {most}")
    for pause in options.pause:
        if not (0 <= pause[0] < workers and pause[1] >= 0):
            raise ValueError(f"--pause {pause}: give a worker (0 to {workers - 1}) and a step")
    if (options.spare or options.default_tokens) and not options.sync:
        raise ValueError("--spare and --default_tokens go with --sync")


def check_folder(folder):
    """Raise ValueError for a folder in which TensorFlow could save, but not find what it saved."""
    path = str(folder.resolve())
    if set(path) & set("[\\"):  # it looks for a checkpoint by a pattern
        raise ValueError(
            f"--checkpoints={path}: TensorFlow does not find checkpoints again below a folder with "
            "[ or \\ in its name. Give another one."
        )


def asynchronous(loss, step, rate, options, role):
    """Each worker updates the variables alone, as soon as its gradient is there."""
    optimizer = v1.train.GradientDescentOptimizer(rate)
    update = optimizer.minimize(loss, global_step=step)
    return update, []


def synchronous(loss, step, rate, options, role):
    """All workers wait for one update, by the average of their gradients."""
    workers = len(role.cluster["worker"])
    optimizer = v1.train.GradientDescentOptimizer(rate)
    optimizer = v1.train.SyncReplicasOptimizer(
        optimizer, workers - options.spare, total_num_replicas=workers
    )
    update = optimizer.minimize(loss, global_step=step)
    tokens = -1 if options.default_tokens else 0
    hook = optimizer.make_session_run_hook(role.is_chief, num_tokens=tokens)
    if not options.default_tokens and not options.spare:
        with tf.control_dependencies([update]):
            update = barrier(role)
    return update, [hook]


def barrier(role):
    """An operation that ends once every worker has started it, by a queue for each worker."""
    workers = len(role.cluster["worker"])
    with tf.device("/job:ps/task:0"):
        arrived = [
            tf.queue.FIFOQueue(2 * workers, tf.int32, [()], shared_name=f"arrived_{worker}")
            for worker in range(workers)
        ]
        with tf.control_dependencies([queue.enqueue(role.index) for queue in arrived]):
            return arrived[role.index].dequeue_many(workers).op


def build(options, role):
    """This worker's graph: variables on the parameter servers, all the rest here."""
    model = argparse.Namespace(graph=tf.Graph())
    place = v1.train.replica_device_setter(
        worker_device=f"/job:worker/task:{role.index}", cluster=tf.train.ClusterSpec(role.cluster)
    )
    with model.graph.as_default(), v1.device(place):
        names = ("kernel_1", "bias_1", "kernel_2", "bias_2")
        first = network.initial_weights(options.seed, options.dtype)
        weights = [v1.get_variable(n, initializer=w) for n, w in zip(names, first, strict=True)]
        step = model.step = v1.train.get_or_create_global_step()
        model.x = v1.placeholder(options.dtype, [None, 784])
        model.y = v1.placeholder(tf.int64, [None])
        model.loss = network.mean_loss(weights, model.x, model.y)
        model.accuracy = network.accuracy(weights, model.x, model.y)
        rate = tf.constant(options.rate, options.dtype)  # a plain number would become float32
        kind = synchronous if options.sync else asynchronous
        update, model.hooks = kind(model.loss, step, rate, options, role)
        with tf.control_dependencies([update]):
            model.step_after = step.read_value()  # after the update, not beside it
        for hook in model.hooks:
            hook.begin()
        model.initialise = v1.global_variables_initializer()
        model.missing = v1.report_uninitialized_variables(v1.global_variables())
        if options.checkpoints:
            model.saver = v1.train.Saver([*weights, step])
            model.label, model.save = labelled_save(options.checkpoints, weights, step)
    return model


def labelled_save(folder, weights, step):
    """Save so that a checkpoint's name and content come from one reading of the step."""
    now = tf.identity(step.read_value())
    save = tf.raw_ops.SaveV2(
        prefix=tf.strings.join([f"{folder.resolve()}/step-", tf.strings.as_string(now)]),
        tensor_names=[variable.op.name for variable in [*weights, step]],
        shape_and_slices=[""] * (len(weights) + 1),
        tensors=[variable.read_value() for variable in weights] + [now],
    )
    return now, save


def newest(folder: Path | None) -> str | None:
    """The checkpoint with the highest step in its name; one that is incomplete has no index."""
    found = [path.with_suffix("") for path in folder.glob("step-*.index")] if folder else []
    return str(max(found, key=lambda path: int(path.name.split("-")[1]))) if found else None


def open_session(model, target, options, role):
    """A session on initialised variables, and how they came to be so."""
    config = v1.ConfigProto(
        device_filters=["/job:ps", f"/job:worker/task:{role.index}"],  # wait for no other worker
        operation_timeout_in_ms=1000 * options.patience,
    )
    if not role.is_chief:
        manager = v1.train.SessionManager(
            ready_op=model.missing, graph=model.graph, recovery_wait_secs=0.1
        )
        return manager.wait_for_session(target, config), "joined"
    session = v1.Session(target, graph=model.graph, config=config)
    if not session.run(model.missing).size:
        return session, "joined"
    if checkpoint := newest(options.checkpoints):
        with model.graph.as_default():
            model.saver.restore(session, checkpoint)
        return session, "resumed"
    session.run(model.initialise)
    return session, "fresh"


def train(session, model, options, role, result):
    """Take steps until the variables have been updated often enough; keep `result` up to date."""
    images, labels = mnist.shards(len(role.cluster["worker"]))[role.index]
    inputs = mnist.inputs(images, options.dtype)
    batches = mnist.batches(inputs, labels, options.batch, seed=options.seed, steps=PLENTY)
    step = saved = int(session.run(model.step))
    result |= {"first_step": step, "last_step": step, "local_steps": 0}
    while step < options.steps:
        local = result["local_steps"]
        if [role.index, local] in options.pause:
            stand_still(local)
        x, y = next(batches)
        record = v1.RunMetadata() if options.trace and local == 0 else None
        how = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE) if record else None
        fetches, feed = (model.step_after, model.loss), {model.x: x, model.y: y}
        step, loss = (value.item() for value in session.run(fetches, feed, how, record))
        result |= {"last_step": step, "local_steps": local + 1, "loss": loss}
        if record:
            result["ran"] = ran_by_task(record)
        if (local + 1) % PRINT_EVERY == 0:
            print(f"local step {local + 1}, global step {step}, loss {loss:.3f}")
        due = step // options.checkpoint_every > saved // options.checkpoint_every
        if options.checkpoints and (due or step >= options.steps):
            saved, _ = session.run([model.label, model.save])
            result["checkpoint"] = int(saved)


def stand_still(local):
    """Take no step until somebody sends SIGCONT, as `LocalCluster.resume` does.

    Not by SIGSTOP: whoever reads the line could send SIGCONT before the process stands.
    """
    go_on = threading.Event()
    signal.signal(signal.SIGCONT, lambda *_: go_on.set())
    print(f"paused before local step {local}")
    while not go_on.wait(0.05):  # a signal that reaches another thread ends no wait
        pass
    print("going on")


def work(server, options, role, result):
    """Do a worker's job, and keep in `result` what happened."""
    model = build(options, role)
    # Opening a session has no deadline of its own: without a parameter server it never ends.
    alarm = threading.Timer(options.patience, lambda: fail(result, why_no_session(role)))
    alarm.daemon = True
    alarm.start()
    session, result["start"] = open_session(model, server.target, options, role)
    alarm.cancel()
    for hook in model.hooks:
        hook.after_create_session(session, v1.train.Coordinator())
    print(f"{result['start']} at step {session.run(model.step)} of {options.steps}")
    start = time.monotonic()
    train(session, model, options, role, result)
    result["seconds"] = round(time.monotonic() - start, 3)
    data = mnist.load()
    feed = {model.x: mnist.inputs(data.test_images, options.dtype), model.y: data.test_labels}
    result["accuracy"] = session.run(model.accuracy, feed).item()
    session.close()
    print(json.dumps(result))


def fail(result, error):
    """End at once, and say why: to close a session takes for ever if a partner is silent."""
    print(json.dumps(result | {"error": error}))
    print(error, file=sys.stderr, flush=True)
    os._exit(1)


def main(options, role):
    """Start this task's server, and be a parameter server or a worker."""
    cluster = tf.train.ClusterSpec(role.cluster)
    server = tf.distribute.Server(cluster, job_name=role.job, task_index=role.index)
    print("ready")
    if role.job == "ps":
        server.join()
    result = {"task": role.name, "mode": "synchronous" if options.sync else "asynchronous"}
    try:
        work(server, options, role, result)
    except tf.errors.OpError as error:
        fail(result, explain(error))


if __name__ == "__main__":
    OPTIONS, ROLE = arguments(sys.argv[1:])
    prepare(ROLE)
    import tensorflow as tf

    v1 = tf.compat.v1
    main(OPTIONS, ROLE)
    os._exit(0)  # Python would take most of a second to unload TensorFlow
