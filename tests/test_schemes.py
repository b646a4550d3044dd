"""The choice of a scheme: cases worked by hand, and bytes held to real partition graphs."""

import pytest

from utils.checks.lesson07 import counted_bytes
from utils.training.schemes import (
    BOTH,
    COLUMN,
    DATA,
    LAYER,
    ONE,
    Fleet,
    Job,
    choose,
    dense,
    plans,
)

# 2 layers of 1000 bytes each, 10 bytes per example between them, 100 operations per example.
JOB = Job(parameter_bytes=2000, layers=2, border_bytes=10, work=100, batch=40)


def fleet(devices=2, memory=1e9, speed=1000, latency=0.0, bandwidth=1e9):
    return Fleet(devices, memory, speed, latency, bandwidth)


def the(scheme, job, machines, **fields):
    """The only plan of this scheme with these fields."""
    found = [
        plan
        for plan in plans(job, machines)
        if plan.scheme == scheme and all(getattr(plan, k) == v for k, v in fields.items())
    ]
    assert len(found) == 1, found
    return found[0]


def test_one_device_by_hand():
    plan = the(ONE, JOB, fleet())
    assert plan.seconds == 40 * 100 / 1000
    assert plan.moved == 0
    assert plan.held == 2 * 2000 + 40 * 10 * 2


def test_data_by_hand():
    """Half the examples each; then 2 messages of half the gradients, 1 s + 1000/500 s each."""
    plan = the(DATA, JOB, fleet(latency=1.0, bandwidth=500))
    assert plan.seconds == pytest.approx(2 + 2 * (1 + 2))
    assert plan.moved == 2 * 2000
    assert plan.held == 2 * 2000 + 20 * 10 * 2


def test_by_layer_by_hand():
    """4 micro-batches of 10: 0.5 s of work, 2 messages of 0.1 + 100/1000 s; 5 such steps."""
    plan = the(LAYER, JOB, fleet(latency=0.1, bandwidth=1000), micro_batches=4)
    assert plan.seconds == pytest.approx(5 * (0.5 + 2 * 0.2))
    assert plan.moved == 2 * 40 * 10
    assert plan.held == 2 * 1000 + 40 * 10


def test_by_column_by_hand():
    """Half the work each; one border: 2 exchanges of 40 · 5 bytes."""
    plan = the(COLUMN, JOB, fleet(latency=0.1, bandwidth=1000))
    assert plan.seconds == pytest.approx(2 + 2 * (0.1 + 0.2))
    assert plan.moved == 2 * 40 * 10
    assert plan.held == 2 * 1000 + 40 * 10 * 2


def test_both_by_hand():
    """Two replicas of 20 examples, 2 micro-batches of 10; each layer averaged over two."""
    plan = the(BOTH, JOB, fleet(4, latency=0.1, bandwidth=1000), micro_batches=2)
    assert (plan.replicas, plan.parts) == (2, 2)
    assert plan.seconds == pytest.approx(3 * (0.5 + 2 * 0.2) + 2 * (0.1 + 0.5))
    assert plan.moved == 2 * 40 * 10 + 2 * 2000
    assert plan.held == 2 * 1000 + 20 * 10


def test_plans_come_fastest_first():
    found = plans(dense(6, 100, 64), fleet(6, latency=1e-3))
    assert [p.seconds for p in found] == sorted(p.seconds for p in found)
    assert {p.scheme for p in found} == {ONE, DATA, LAYER, COLUMN, BOTH}
    assert all(p.replicas * p.parts == 6 for p in found if p.scheme != ONE)


@pytest.mark.parametrize(
    ("job", "machines", "scheme"),
    [
        # Nothing to gain: a message takes longer than all the work.
        (JOB, fleet(latency=10.0), ONE),
        # Tiny model, much work: only the gradients travel.
        (Job(8, 2, 1000, 100, 400), fleet(bandwidth=1000), DATA),
        # Huge model, tiny borders: only activations may travel.
        (Job(1e6, 8, 1, 100, 400), fleet(bandwidth=1000), LAYER),
        # One example cannot be cut into pieces; the link is fast.
        (Job(1e6, 2, 8, 1e6, 1), fleet(bandwidth=1e6), COLUMN),
        # A whole copy does not fit (2800 bytes), half a copy does (1800), with less of a bubble
        # than a quarter; by column keeps all activations (3700).
        (Job(1e3, 8, 1, 1e4, 400), fleet(4, memory=2000), BOTH),
        # Nothing else fits, however slow the link: 3600 bytes, by column 5200, whole 7200.
        (Job(2000, 8, 10, 100, 40), fleet(memory=4000, latency=10.0), LAYER),
    ],
)
def test_choices_worked_by_hand(job, machines, scheme):
    assert choose(job, machines).scheme == scheme


def test_the_choice_is_the_fastest_that_fits():
    machines = fleet(4, memory=3000, latency=0.01)
    best = choose(JOB, machines)
    assert best.held <= 3000
    faster = [p for p in plans(JOB, machines) if p.seconds < best.seconds]
    assert all(p.held > 3000 for p in faster)


def test_nothing_fits():
    with pytest.raises(ValueError, match="no plan fits into 100 bytes.*needs 2,4"):
        choose(JOB, fleet(memory=100))


def test_a_single_device_and_a_single_example():
    assert [p.scheme for p in plans(JOB, fleet(1))] == [ONE]
    alone = Job(100, 4, 10, 100, 1)
    assert DATA not in {p.scheme for p in plans(alone, fleet(4))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bandwidth": 0}, "bandwidth=0: give a finite number greater than 0"),
        ({"speed": -1.0}, "speed=-1.0: give a finite number greater than 0"),
        ({"memory": float("nan")}, "memory=nan: give a finite number greater than 0"),
        ({"latency": -1e-3}, "latency=-0.001: give a finite number of seconds of at least 0"),
    ],
)
def test_sizes_and_speeds_above_zero(changes, message):
    with pytest.raises(ValueError, match=message):
        choose(JOB, fleet(**changes))
    with pytest.raises(ValueError, match="work=0: give a finite number greater than 0"):
        choose(Job(2000, 2, 10, 0, 40), fleet())


def test_bytes_are_those_of_partition_graphs(machine):
    """A dense network of equal layers; the model leaves the scores of the last layer out."""
    width, batch, hidden = 8, 6, 3
    sizes = (width,) * (hidden + 2)
    job = Job(8 * (hidden + 1) * width**2, hidden + 1, 8 * width, 1, batch)
    layered = the(LAYER, job, fleet(hidden + 1), micro_batches=1)
    assert counted_bytes(sizes, batch, None) == layered.moved
    for n in (2, 4):
        scores = 2 * batch * (n - 1) * width // n * 8
        assert counted_bytes(sizes, batch, n) - scores == the(COLUMN, job, fleet(n)).moved
