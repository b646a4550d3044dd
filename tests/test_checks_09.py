"""The checks of lesson 09: right, right in another way, wrong, untouched."""

import re

import pytest

from utils.checks import lesson09

# 9.1


def _by_spec(one, other):
    import tensorflow as tf

    def place(request):
        spec = tf.DeviceSpec.from_string(request[1])
        return request[0], spec.job, spec.task, spec.device_index or 0, request[2]

    return place(one) == place(other)


def _by_pattern(one, other):
    parts = r"/job:(\w+)|/task:(\d+)|(?i:cpu):([1-9]\d*)"
    places = [re.findall(parts, device) for _, device, _ in (one, other)]
    return one[0] == other[0] and places[0] == places[1] and one[2] == other[2]


def _by_task(one, other):
    tasks = [re.findall(r"/job:(\w+)|/task:(\d+)", device) for _, device, _ in (one, other)]
    return one[0] == other[0] and tasks[0] == tasks[1] and one[2] == other[2]


def _shared_stub(one, other):
    """Return whether two (name, device, container) are one variable."""
    ...


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (_by_spec, "correct"),
        (_by_pattern, "correct"),
        (lambda one, other: one == other, "are not two: two ways to write one device"),
        (lambda one, other: one[0] == other[0], "are not one variable: the tasks differ"),
        (lambda one, other: _by_spec((*one[:2], ""), (*other[:2], "")), "the containers differ"),
        (
            lambda one, other: (
                (one[0], one[1].split("task:")[1][0], one[2])
                == (other[0], other[1].split("task:")[1][0], other[2])
            ),
            "task 0 of two jobs is two tasks",
        ),
        (lambda one, other: _by_spec(("", *one[1:]), ("", *other[1:])), "the names differ"),
        (lambda one, other: "same", "return True or False, not 'same'"),
        (_by_task, "two devices of one task"),
        (_shared_stub, "not attempted"),
    ],
)
def test_shared(said, function, part):
    assert part in said(lesson09.check_09_shared, function)


# 9.2


def _by_updates(run):
    updates = max(worker["last"] for worker in run)
    if sum(worker["local"] for worker in run) == updates:
        return "asynchronous"
    if {worker["local"] for worker in run} == {updates}:
        return "synchronous"
    return "counted twice"


def _by_worker(run):
    updates = max(worker["last"] for worker in run)
    shares = sum(worker["local"] / updates for worker in run)
    if abs(shares - 1) < 1e-9:
        return "asynchronous"
    return "synchronous" if all(w["local"] == updates for w in run) else "counted twice"


def _by_sum(run):
    updates, steps = run[0]["last"], sum(worker["local"] for worker in run)
    if steps == len(run) * updates:
        return "synchronous"
    return "counted twice" if steps > len(run) * updates else "asynchronous"


def _by_equal_steps(run):
    steps = {worker["local"] for worker in run}
    return "synchronous" if len(steps) == 1 else _by_updates(run)


def _first_last(run):
    if sum(worker["local"] for worker in run) == run[1]["last"]:
        return "asynchronous"
    return "synchronous" if len({w["local"] for w in run}) == 1 else "counted twice"


def _kind_stub(run):
    """Return which kind of training left these counts."""
    ...


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (_by_updates, "correct"),
        (_by_worker, "correct"),
        (_by_sum, "steps [40, 0], 20 updates: the sum may fit a synchronous run"),
        (_by_equal_steps, "steps [10, 10], 20 updates: how many gradients are in an update"),
        (_first_last, "steps [153, 248], 401 updates: how many gradients"),
        (lambda run: "asynchronous", "steps [41, 1], 20 updates: this was not asynchronous"),
        (lambda run: "counted twice" if len(run) > 1 else "", "how many gradients are in an"),
        (lambda run: "both", "none of asynchronous, synchronous, counted twice"),
        (_kind_stub, "not attempted"),
    ],
)
def test_kind(said, function, part):
    assert part in said(lesson09.check_09_kind, function)


def test_counts_are_handed_out_as_copies():
    assert lesson09.counts_to_read("B")[0] == {"local": 41, "last": 20}
    lesson09.counts_to_read("B")[0]["local"] = 0
    assert lesson09.counts_to_read("B")[0]["local"] == 41
    with pytest.raises(ValueError, match="no run 'D': there are A, B and C"):
        lesson09.counts_to_read("D")


# 9.3


def _graph(worker, names, shapes, place=None):
    import tensorflow as tf

    v1 = tf.compat.v1
    hosts = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}
    place = place or v1.train.replica_device_setter(
        worker_device=f"/job:worker/task:{worker}", cluster=hosts
    )
    graph = tf.Graph()
    with graph.as_default(), v1.device(place):
        for name in names:
            v1.get_variable(name, shapes[name])
    return graph


def _sorted(worker, shapes):
    return _graph(worker, sorted(shapes), shapes)


def _own_rule(worker, shapes):
    """Another right answer: no setter, a rule from the names."""

    def place(operation):
        letters = sum(map(ord, operation.name.split("/")[0]))
        return f"/job:ps/task:{letters % 2}"

    return _graph(worker, shapes, shapes, place)


def _as_given(worker, shapes):
    return _graph(worker, shapes, shapes)


def _all_on_one(worker, shapes):
    return _graph(worker, shapes, shapes, "/job:ps/task:0")


def _on_the_worker(worker, shapes):
    return _graph(worker, sorted(shapes), shapes, f"/job:worker/task:{worker}")


def _renamed(worker, shapes):
    new = {f"v{i}": shapes[name] for i, name in enumerate(sorted(shapes))}
    return _graph(worker, new, new)


def _by_shape(worker, shapes):
    names = sorted(shapes, key=lambda name: len(shapes[name]))
    return _graph(worker, names, shapes)


def _transposed(worker, shapes):
    turned = {name: shape[::-1] for name, shape in shapes.items()}
    return _graph(worker, sorted(shapes), turned)


def _build_stub(worker, shapes):
    """Return a worker's graph with a variable for each name and shape."""
    ...


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (_sorted, "correct"),
        (_own_rule, "correct"),
        (_as_given, "kernel_1 is on ps 0 for one worker and on ps 1 for another"),
        (_by_shape, "the order in which they build still differs"),
        (_all_on_one, "all variables are on one parameter server"),
        (_on_the_worker, "is not on a parameter server"),
        (_renamed, "the graph has the variables v0, v1, v2, v3; wanted are bias_1"),
        (_transposed, "kernel_1 has the shape (3, 4)"),
        (lambda worker, shapes: worker + 3, "return the graph, not int"),
        (_build_stub, "not attempted"),
    ],
)
def test_build(machine, said, function, part):
    assert part in said(lesson09.check_09_build, function)


# 9.4


def _queue(name, workers, many=4):
    import tensorflow as tf

    return tf.queue.FIFOQueue(many * workers, tf.int32, [()], shared_name=name)


def _after(before, then):
    import tensorflow as tf

    with tf.control_dependencies(before):
        return then()


def _queue_each(worker, workers):
    queues = [_queue(f"q{k}", workers) for k in range(workers)]
    told = [queue.enqueue(worker) for queue in queues]
    return _after(told, lambda: queues[worker].dequeue_many(workers)).op


def _pair_queues(worker, workers):
    """Another right answer: a queue for each pair, and a tensor to end with."""
    import tensorflow as tf

    told = [_queue(f"{worker}to{k}", workers).enqueue(1) for k in range(workers)]
    heard = [_queue(f"{k}to{worker}", workers) for k in range(workers)]
    return _after(told, lambda: tf.add_n([queue.dequeue() for queue in heard]))


def _own_queue_only(worker, workers):
    queue = _queue(f"q{worker}", workers)
    return _after([queue.enqueue_many([[1] * workers])], lambda: queue.dequeue_many(workers)).op


def _not_shared(worker, workers):
    queues = [_queue(None, workers) for k in range(workers)]
    told = [queue.enqueue(worker) for queue in queues]
    return _after(told, lambda: queues[worker].dequeue_many(workers)).op


def _one_for_all(worker, workers):
    queue = _queue("q", workers)
    return _after([queue.enqueue(worker)], lambda: queue.dequeue_many(workers)).op


def _waits_for_one(worker, workers):
    queues = [_queue(f"q{k}", workers) for k in range(workers)]
    told = [queue.enqueue(worker) for queue in queues]
    return _after(told, lambda: queues[worker].dequeue()).op


def _tells_twice(worker, workers):
    """For three workers a number is needed from each, but each puts in two."""
    queues = [_queue(f"q{k}", workers) for k in range(workers)]
    told = [queue.enqueue_many([[worker] * 2]) for k, queue in enumerate(queues) if k != worker]
    return _after(told, lambda: queues[worker].dequeue_many(workers - 1)).op


def _barrier_stub(worker, workers):
    """Return an operation that ends once every worker has started it."""
    ...


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (_queue_each, "correct"),
        (_pair_queues, "correct"),
        (_own_queue_only, "of 2 workers, worker 0 came through alone"),
        (_waits_for_one, "of 2 workers, worker 0 came through alone"),
        (_not_shared, "all 2 workers came, but worker 0 still waits"),
        (_one_for_all, "all 2 workers came, but worker"),
        (_tells_twice, "all met once; then worker 1 came through a second time"),
        (lambda worker, workers: 3 * worker, "return an operation, not int"),
        (_barrier_stub, "not attempted"),
    ],
)
def test_barrier(machine, said, function, part):
    assert part in said(lesson09.check_09_barrier, function)


# 9.5

HAPPENED = {"start": "joined", "first_step": 50, "local_steps": 10, "last_step": 60}
RIGHT = {"start": "joined", "first_step": 50, "local_steps": 10}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({}, "correct"),
        ({"start": "fresh"}, "start was not 'fresh': the variables had a value"),
        ({"first_step": 0}, "first_step was not 0: global_step is a variable"),
        ({"local_steps": 60}, "local_steps was not 60: 60 updates were wanted in all"),
        ({"local_steps": ...}, "local_steps has no answer yet"),
        ({"end": 1}, "keep a dict with start, first_step, local_steps"),
        (dict.fromkeys(RIGHT, ...), "not attempted"),
    ],
)
def test_chief(said, change, part):
    assert part in said(lesson09.check_09_chief, RIGHT | change, HAPPENED)
