"""The checks of lesson 08: right, right in another way, wrong, untouched."""

import math
from collections import Counter

import pytest

from utils.checks import lesson08, lesson08_fleets
from utils.clock import VirtualClock, asynchronous, fixed, spare_replicas, stragglers
from utils.clock import lognormal as lognormal_times

# 8.1


def _means(variables, version, arrived, rate):
    for v, *parts in zip(variables, *arrived, strict=True):
        v.assign_sub(rate * sum(parts) / len(arrived))
    version.assign_add(1)


def _by_axis(variables, version, arrived, rate):
    import tensorflow as tf

    for i, v in enumerate(variables):
        v.assign(v - rate * tf.reduce_mean([worker[i] for worker in arrived], axis=0))
    version.assign(version + 1)


def _one_after_another(variables, version, arrived, rate):
    for worker in arrived:
        for v, g in zip(variables, worker, strict=True):
            v.assign_sub(rate * g)
        version.assign_add(1)


def _counts_workers(variables, version, arrived, rate):
    _means(variables, version, arrived, rate)
    version.assign_add(len(arrived) - 1)


def _forgets_the_version(variables, version, arrived, rate):
    for v, *parts in zip(variables, *arrived, strict=True):
        v.assign_sub(rate * sum(parts) / len(arrived))


def _last(variables, version, arrived, rate):
    for v, g in zip(variables, arrived[-1], strict=True):
        v.assign_sub(rate * g)
    version.assign_add(1)


def _new_list(variables, version, arrived, rate):
    variables = [v - rate * sum(p) / len(p) for v, *p in zip(variables, *arrived, strict=True)]
    version.assign_add(1)


def _upwards(variables, version, arrived, rate):
    _means(variables, version, arrived, -rate)


def _first_variable(variables, version, arrived, rate):
    _means(variables[:1], version, [worker[:1] for worker in arrived], rate)


def _always_two(variables, version, arrived, rate):
    for v, *parts in zip(variables, *arrived, strict=True):
        v.assign_sub(rate * sum(parts) / 2)
    version.assign_add(1)


def _mixed_up(variables, version, arrived, rate):
    for v, g in zip(variables, arrived, strict=True):
        v.assign_sub(rate * g[0])


def _average_stub(variables, version, arrived, rate):
    """Make one update of the variables with the average gradients."""
    ...


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (_means, "correct"),
        (_by_axis, "correct"),
        (_one_after_another, "moved 2 times too far: that is the sum"),
        (_counts_workers, "went from 5 to 7"),
        (_forgets_the_version, "went from 5 to 5"),
        (_last, "only the gradients of worker 1"),
        (_new_list, "the variables are unchanged"),
        (_upwards, "up the slope"),
        (_first_variable, "only the first variable"),
        (_always_two, "with 3 workers the weights moved by something else"),
        (_mixed_up, "your code raised"),
        (_average_stub, "not attempted"),
    ],
)
def test_average(machine, said, function, part):
    assert part in said(lesson08.check_08_average, function)


# 8.2

READ = {"A": "asynchronous", "B": "synchronous", "C": "lost update", "D": "asynchronous"}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({}, "correct"),
        ({"A": "synchronous"}, "A: 8 of 9 gradients were written to a version"),
        ({"B": "asynchronous"}, "B: compare read and written in every row"),
        ({"C": "asynchronous"}, "C: each update makes a new version"),
        ({"D": "lost update"}, "D: every version was written to once"),
        ({"D": "both"}, "none of synchronous, asynchronous, lost update"),
        ({"D": ...}, "D has no answer yet"),
        ({"E": "synchronous"}, "keep a dict with the names A, B, C, D"),
        (dict.fromkeys("ABCD", ...), "not attempted"),
    ],
)
def test_traces(said, change, part):
    assert part in said(lesson08.check_08_traces, READ | change)


def test_the_traces_are_what_they_are_called():
    kinds = lesson08._traces()
    for name, (kind, rows) in kinds.items():
        assert all(read <= written for _, read, written in rows), name
        assert {worker for worker, _, _ in rows} == {0, 1, 2}
        versions = Counter(written for _, _, written in rows)
        if kind == "synchronous":
            assert all(read == written for _, read, written in rows)
            assert set(versions.values()) == {3}
        else:
            assert any(read < written for _, read, written in rows)
            assert sorted(versions) == list(range(len(versions)))
            repeated = [version for version, count in versions.items() if count > 1]
            assert len(repeated) == (1 if kind == "lost update" else 0)
    assert {kind for kind, _ in kinds.values()} == set(lesson08.KINDS)


def test_a_worker_reads_nothing_newer_than_it_can_know():
    """Between two gradients a worker holds the version it made, or a newer one."""
    for kind, rows in lesson08._traces().values():
        last = {}
        for worker, read, written in rows:
            assert read >= last.get(worker, 0), kind
            last[worker] = written + 1


def test_a_trace_that_is_not_there():
    with pytest.raises(ValueError, match="no trace 'E': there are A, B, C, D"):
        lesson08.trace_to_read("E")
    table = lesson08.trace_to_read("B").splitlines()
    assert table[0].split() == ["B:", "worker", "read", "written"]
    assert table[1].split() == ["0", "0", "0"]


# 8.3


def _right(shared, lock, compute, batches):
    log = []
    for x, y in batches:
        with lock:
            read, weights = shared.version, shared.read()
        gradients = compute(weights, x, y)
        with lock:
            written = shared.version
            shared.write(gradients)
        log.append((read, written))
    return log


def _by_hand(shared, lock, compute, batches):
    rows = []
    for batch in batches:
        lock.acquire()
        weights = shared.read()
        rows.append([shared.version])
        lock.release()
        gradients = compute(weights, *batch)
        lock.acquire()
        rows[-1].append(shared.version)
        shared.write(gradients)
        lock.release()
    return rows


def _printed(shared, lock, compute, batches):
    log = []
    for x, y in batches:
        read = shared.version
        with lock:
            weights = shared.read()
            gradients = compute(weights, x, y)
            shared.write(gradients)
        log.append((read, shared.version))
    return log


def _one_lock_for_all(shared, lock, compute, batches):
    log = []
    for x, y in batches:
        with lock:
            read = shared.version
            gradients = compute(shared.read(), x, y)
            written = shared.version
            shared.write(gradients)
        log.append((read, written))
    return log


def _lets_go_in_between(shared, lock, compute, batches):
    log = []
    for x, y in batches:
        with lock:
            read = shared.version
        with lock:
            weights = shared.read()
        gradients = compute(weights, x, y)
        with lock:
            written = shared.version
            shared.write(gradients)
        log.append((read, written))
    return log


def _counts_itself(shared, lock, compute, batches):
    log = []
    for x, y in batches:
        with lock:
            read, weights = shared.version, shared.read()
        gradients = compute(weights, x, y)
        with lock:
            shared.write(gradients)
            log.append((read, shared.version))
    return log


def _writes_without(shared, lock, compute, batches):
    for x, y in batches:
        with lock:
            weights = shared.read()
        shared.write(compute(weights, x, y))
    return []


def _waits_for_itself(shared, lock, compute, batches):
    with lock:
        return _right(shared, lock, compute, batches)


def _never_lets_go(shared, lock, compute, batches):
    log = _right(shared, lock, compute, batches)
    lock.acquire()
    return log


def _only_the_first(shared, lock, compute, batches):
    return _right(shared, lock, compute, batches[:1])


def _no_log(shared, lock, compute, batches):
    _right(shared, lock, compute, batches)


def _only_versions_read(shared, lock, compute, batches):
    return [read for read, _ in _right(shared, lock, compute, batches)]


def _old_written(shared, lock, compute, batches):
    return [(read, read) for read, _ in _right(shared, lock, compute, batches)]


def _writes_weights(shared, lock, compute, batches):
    with lock:
        shared.write(shared.read())
    return []


def _stub(shared, lock, compute, batches):
    """Train asynchronously; return (version read, version written)s."""
    ...


@pytest.mark.parametrize(
    ("worker", "part"),
    [
        (_right, "correct"),
        (_by_hand, "correct"),
        (_printed, "the version is taken without the lock"),
        (_one_lock_for_all, "held during the computation"),
        (_lets_go_in_between, "or did you let go of it"),
        (_counts_itself, "counts the worker's own update"),
        (_writes_without, "the update is written without the lock"),
        (_waits_for_itself, "waits forever"),
        (_never_lets_go, "still held"),
        (_only_the_first, "3 batches, but 1 updates"),
        (_no_log, "return a list with one pair per batch"),
        (_only_versions_read, "return a list with one pair per batch"),
        (_old_written, "not the one that the update found"),
        (_writes_weights, "not what compute returned"),
        (_stub, "not attempted"),
    ],
)
def test_lock(said, worker, part):
    assert part in said(lesson08.check_08_lock, worker)


# 8.4


def _search(workers, curvature, steps=12):
    low, high = 0.0, 2.5 / curvature
    for _ in range(steps):
        middle = (low + high) / 2
        if lesson08_fleets._grows(workers, middle, curvature):
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _downwards(workers, curvature):
    """Another right answer: from above in small steps."""
    rate = 2.02 / curvature
    while lesson08_fleets._grows(workers, rate, curvature):
        rate *= 0.975
    return rate


def _formula(workers, curvature):
    return 2 * math.sin(math.pi / (4 * len(workers) - 2)) / curvature


def _one_too_many(workers, curvature):
    return 2 * math.sin(math.pi / (4 * len(workers) + 2)) / curvature


def _rate_stub(workers, curvature):
    """Return the largest stable rate of a list of service times."""
    ...


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (_search, "correct"),
        (_downwards, "correct"),
        (_formula, "The formula holds where every gradient is equally late"),
        (_one_too_many, "n − 1 updates late"),
        (lambda workers, curvature: 2 / curvature, "limit of a single worker"),
        (lambda workers, curvature: 2 / curvature / len(workers), "comes close"),
        (lambda workers, curvature: _search(workers, 1.0), "the curvature it is given"),
        (lambda workers, curvature: 0.5 / curvature, "a larger rate is stable too"),
        (lambda workers, curvature: 3 / curvature, "swings ever wider"),
        (lambda workers, curvature: str(curvature), "return one positive number"),
        (lambda workers, curvature: math.inf, "return one positive number"),
        (_rate_stub, "not attempted"),
    ],
)
def test_rate(said, answer, part):
    assert part in said(lesson08_fleets.check_08_rate, answer)


def test_rate_check_is_measured_on_stale_gradients():
    run = VirtualClock([fixed(1.0)] * 3).run(asynchronous(), 20)
    assert set(run.staleness[3:].tolist()) == {2}


# 8.5


def _measured(spares, steps=150, seed=7):
    fleet = [stragglers(lognormal_times(1.0, 0.1), 0.08, 3.0)] * 24
    run = VirtualClock(fleet, seed).run(spare_replicas(24 - spares, spares), steps)
    return steps * (24 - spares) / run.times[-1]


def _counts_all(spares):
    return lesson08_fleets._used_per_second(spares) * 24 / (24 - spares)


def _seconds(spares):
    return (24 - spares) / lesson08_fleets._used_per_second(spares)


def _steps(spares):
    return lesson08_fleets._used_per_second(spares) / (24 - spares)


def _spares_stub(spares):
    """Return how many gradients per simulated second are used."""
    ...


@pytest.mark.parametrize(
    ("function", "best", "part"),
    [
        (lesson08_fleets._used_per_second, 3, "correct"),
        (_measured, 4, "correct"),
        (_measured, 0, "most steps still wait for a straggler"),
        (_measured, 1, "most steps still wait for a straggler"),
        (_measured, 10, "many machines work for nothing"),
        (_measured, 3.0, "give a whole number"),
        (_measured, True, "give a whole number"),
        (_measured, 24, "from 0 to 23"),
        (_measured, ..., "not attempted"),
        (_counts_all, 3, "counts all machines"),
        (_seconds, 3, "is seconds per step"),
        (_steps, 3, "is steps per second"),
        (lambda spares: 100.0, 3, "used_per_second(0) is 100"),
        (lambda spares: str(spares), 3, "returned '0'"),
        (_spares_stub, 3, "not attempted"),
    ],
)
def test_spares(said, function, best, part):
    assert part in said(lesson08_fleets.check_08_spares, function, best)


@pytest.mark.parametrize("steps", [200, 600])
def test_the_best_numbers_of_spares_stand_clear_of_the_others(steps):
    """So that a wrong choice is seen, and the number of steps measured decides nothing."""
    speeds = [lesson08_fleets._used_per_second(spares, steps) for spares in range(12)]
    most = max(speeds)
    good = [spares for spares, speed in enumerate(speeds) if speed >= 0.97 * most]
    assert good == [3, 4, 5]
    assert max(speeds[:3] + speeds[6:]) < 0.96 * most
