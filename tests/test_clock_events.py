"""The virtual clock without gradients: who reads and writes when, and how stale."""

import itertools

import numpy as np
import pytest

from utils.clock import (
    Service,
    VirtualClock,
    asynchronous,
    bounded_staleness,
    divide_rate,
    drop_older,
    exponential,
    fixed,
    lognormal,
    one_slow,
    spare_replicas,
    stragglers,
    synchronous,
)

ROWS = ("worker", "read_version", "write_version", "staleness", "start", "end", "written")


def _rows(trace):
    columns = (getattr(trace, name).tolist() for name in ROWS)
    return list(zip(*columns, strict=True))


def _durations(trace, worker):
    mine = trace.worker == worker
    return trace.end[mine] - trace.start[mine]


def _uniform(random, size):
    return random.uniform(0.5, 1.5, size)


FLEETS = {
    "exponential": [exponential(1.0)] * 5,
    "one slow": one_slow(fixed(1.0), workers=4, factor=3.5),
    "mixed": [fixed(2.0), exponential(0.5), lognormal(1.0), stragglers(fixed(1.0), 0.1, 4.0)],
    "alone": [lognormal(3.0, 1.0)],
}
POLICIES = {
    "synchronous": synchronous,
    "asynchronous": asynchronous,
    "dropping": lambda: drop_older(2),
    "bounded": lambda: bounded_staleness(1),
    "divided": divide_rate,
}
fleets = pytest.mark.parametrize("fleet", FLEETS.values(), ids=FLEETS)
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


# Each policy, by hand


def test_synchronous_by_hand():
    trace = VirtualClock([fixed(1.0), fixed(3.0), fixed(2.0)]).run(synchronous(), 2)
    assert _rows(trace) == [
        (0, 0, 0, 0, 0.0, 1.0, True),
        (1, 0, 0, 0, 0.0, 3.0, True),
        (2, 0, 0, 0, 0.0, 2.0, True),
        (0, 1, 1, 0, 3.0, 4.0, True),
        (1, 1, 1, 0, 3.0, 6.0, True),
        (2, 1, 1, 0, 3.0, 5.0, True),
    ]
    assert trace.times.tolist() == [3.0, 6.0]


def test_spare_replicas_by_hand():
    """The step ends with the second of three; the third gives up at that moment."""
    trace = VirtualClock([fixed(1.0), fixed(3.0), fixed(2.0)]).run(spare_replicas(2, 1), 2)
    assert _rows(trace) == [
        (0, 0, 0, 0, 0.0, 1.0, True),
        (2, 0, 0, 0, 0.0, 2.0, True),
        (1, 0, 0, 0, 0.0, 2.0, False),
        (0, 1, 1, 0, 2.0, 3.0, True),
        (2, 1, 1, 0, 2.0, 4.0, True),
        (1, 1, 1, 0, 2.0, 4.0, False),
    ]
    assert trace.times.tolist() == [2.0, 4.0]


def test_asynchronous_by_hand():
    """At 2 s both end; worker 1 started first, so it writes first."""
    trace = VirtualClock([fixed(1.0), fixed(2.0)]).run(asynchronous(), 5)
    assert _rows(trace) == [
        (0, 0, 0, 0, 0.0, 1.0, True),
        (1, 0, 1, 1, 0.0, 2.0, True),
        (0, 1, 2, 1, 1.0, 2.0, True),
        (0, 3, 3, 0, 2.0, 3.0, True),
        (1, 2, 4, 2, 2.0, 4.0, True),
    ]
    assert trace.times.tolist() == [1.0, 2.0, 2.0, 3.0, 4.0]


def test_dropping_by_hand():
    """The slow gradient is three updates old; dropped, it makes no version."""
    fleet = [fixed(1.0), fixed(3.5)]
    trace = VirtualClock(fleet).run(drop_older(2), 5)
    assert _rows(trace)[2:] == [
        (0, 2, 2, 0, 2.0, 3.0, True),
        (1, 0, 3, 3, 0.0, 3.5, False),
        (0, 3, 3, 0, 3.0, 4.0, True),
        (0, 4, 4, 0, 4.0, 5.0, True),
    ]
    kept = VirtualClock(fleet).run(drop_older(3), 5)
    assert kept.written.all()
    assert kept.staleness.tolist() == [0, 0, 0, 3, 1]


def test_bounded_staleness_by_hand():
    """One step ahead at most: the fast one does two steps, then waits for the slow one."""
    trace = VirtualClock([fixed(1.0), fixed(5.0)]).run(bounded_staleness(1), 6)
    assert _rows(trace) == [
        (0, 0, 0, 0, 0.0, 1.0, True),
        (0, 1, 1, 0, 1.0, 2.0, True),
        (1, 0, 2, 2, 0.0, 5.0, True),
        (0, 3, 3, 0, 5.0, 6.0, True),
        (1, 3, 4, 1, 5.0, 10.0, True),
        (0, 5, 5, 0, 10.0, 11.0, True),
    ]


def test_dividing_the_rate_changes_no_event():
    clock = VirtualClock([exponential(1.0)] * 4)
    assert _rows(clock.run(divide_rate(), 50)) == _rows(clock.run(asynchronous(), 50))


# What holds for every run


@fleets
@policies
def test_every_trace_is_consistent(fleet, policy):
    trace = VirtualClock(fleet).run(policy(), 60)
    assert trace.updates == len(trace.times) == 60
    assert (np.diff(trace.times) >= 0).all()
    assert (trace.end > trace.start).all()
    written = trace.write_version[trace.written]
    assert sorted(set(written.tolist())) == list(range(60))
    # Reading gives the newest version: as many updates as had been made by then.
    before = np.searchsorted(trace.times, trace.start, side="left")
    after = np.searchsorted(trace.times, trace.start, side="right")
    assert ((before <= trace.read_version) & (trace.read_version <= after)).all()
    for worker in range(len(fleet)):
        mine = trace.worker == worker
        assert (trace.start[mine][1:] >= trace.end[mine][:-1]).all()


@fleets
@pytest.mark.parametrize("policy", [asynchronous, lambda: bounded_staleness(2)])
def test_at_most_the_others_are_under_way(fleet, policy):
    """So the mean staleness, which counts the same pairs, is at most n − 1."""
    trace = VirtualClock(fleet).run(policy(), 80)
    pairs = list(zip(trace.read_version, trace.write_version, strict=True))
    flying = [sum(read <= u < write for read, write in pairs) for u in range(80)]
    assert max(flying) == len(fleet) - 1


def test_staleness_is_the_number_of_updates_during_the_computation():
    """Counted from the times, which are all different here."""
    trace = VirtualClock([exponential(1.0)] * 6).run(asynchronous(), 200)
    assert len(set(trace.times.tolist())) == 200
    for start, end, staleness in zip(trace.start, trace.end, trace.staleness, strict=True):
        assert staleness == ((trace.times > start) & (trace.times < end)).sum()


@fleets
@policies
def test_the_same_luck_under_every_policy(fleet, policy):
    """The k-th gradient of a worker takes equally long, unless it gives up."""
    trace = VirtualClock(fleet, seed=3).run(policy(), 40)
    reference = VirtualClock(fleet, seed=3).run(asynchronous(), 300)
    for worker in range(len(fleet)):
        here, there = (_durations(t, worker) for t in (trace, reference))
        both = min(len(here), len(there))
        assert both > 1
        np.testing.assert_allclose(here[:both], there[:both], rtol=0, atol=1e-9)


@pytest.mark.parametrize("ahead", [0, 1, 3])
@pytest.mark.parametrize("workers", [1, 2, 4, 7])
@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_bounded_staleness_keeps_its_bounds(ahead, workers, seed):
    fleet = one_slow(exponential(1.0), workers=workers, factor=5)
    trace = VirtualClock(fleet, seed).run(bounded_staleness(ahead), 120)
    assert trace.staleness.max() <= (workers - 1) * (2 * ahead + 1)
    # At every start: how many gradients had each worker ended?
    for worker, start, read in zip(trace.worker, trace.start, trace.read_version, strict=True):
        done = np.bincount(trace.worker[:read], minlength=workers)
        assert done[worker] - done.min() <= ahead, (worker, start)


def test_who_waited_longest_starts_first():
    """All end at once and wait for the last; worker 0, which came first, goes on first."""
    trace = VirtualClock([fixed(1.0)] * 3).run(bounded_staleness(0), 9)
    assert trace.worker.tolist() == [0, 1, 2] * 3


def test_bounded_staleness_lets_the_fast_go_as_far_as_it_may():
    fleet = one_slow(fixed(1.0), workers=3, factor=100)
    trace = VirtualClock(fleet).run(bounded_staleness(4), 11)
    assert trace.worker.tolist() == [0, 1] * 5 + [2]
    assert trace.times[-1] == 100
    free = VirtualClock(fleet).run(bounded_staleness(10**6), 150)
    assert _rows(free) == _rows(VirtualClock(fleet).run(asynchronous(), 150))


# The same everywhere


GOLDEN = {
    "worker": [1, 2, 0, 2, 2, 0, 1, 1, 1, 2, 1, 2],
    "staleness": [0, 1, 2, 1, 0, 2, 5, 0, 0, 4, 1, 1],
    "ticks": [
        *(219326, 291649, 2291111, 2322024, 3847345, 3934450),
        *(4175118, 4247186, 4257592, 5065961, 5791286, 6015797),
    ],
    "lognormal": [559568, 907128, 1230042, 2017456],
}


def test_events_are_the_same_on_every_machine():
    """The numbers of this seed, as first computed: any other machine must get them too."""
    trace = VirtualClock([exponential(1.0)] * 3, seed=42).run(asynchronous(), 12)
    assert trace.worker.tolist() == GOLDEN["worker"]
    assert trace.staleness.tolist() == GOLDEN["staleness"]
    assert (trace.times * 2**20).tolist() == GOLDEN["ticks"]
    trace = VirtualClock([lognormal(1.0, 0.5)] * 2, seed=7).run(asynchronous(), 4)
    assert (trace.times * 2**20).tolist() == GOLDEN["lognormal"]


@pytest.mark.parametrize("toward", [0.0, np.inf])
def test_the_last_bit_of_a_logarithm_changes_nothing(toward):
    def draw(random, size):
        return np.nextafter(random.standard_exponential(size), toward)

    other_machine = [Service("exponential", 1.0, draw)] * 4
    here = VirtualClock([exponential(1.0)] * 4).run(asynchronous(), 2000)
    there = VirtualClock(other_machine).run(asynchronous(), 2000)
    assert _rows(here) == _rows(there)


def test_seeds_and_workers_differ_and_runs_repeat():
    clock = VirtualClock([exponential(1.0)] * 2, seed=1)
    first, again = (clock.run(asynchronous(), 300) for _ in range(2))
    assert _rows(first) == _rows(again)
    other = VirtualClock([exponential(1.0)] * 2, seed=2).run(asynchronous(), 300)
    assert _rows(first) != _rows(other)
    durations = first.end - first.start
    assert len(set(durations.tolist())) == 300  # no worker, and no block, repeats another's luck


def test_numpys_own_random_numbers_are_left_alone():
    np.random.seed(5)
    expected = np.random.random_sample()
    np.random.seed(5)
    VirtualClock([exponential(1.0)]).run(asynchronous(), 3)
    assert np.random.random_sample() == expected


# Service times


@pytest.mark.parametrize(
    ("service", "mean", "spread"),
    [
        (fixed(2.0), 2.0, 0.0),
        (exponential(2.0), 2.0, 2.0),
        # variance of a lognormal of mean m: m²·(exp(σ²) − 1)
        (lognormal(2.0, 0.5), 2.0, 2.0 * np.sqrt(np.exp(0.25) - 1)),
        # a delay of mean d with chance p: mean p·d, variance p·2d² − (p·d)²
        (stragglers(fixed(2.0), 0.1, 4.0), 2.4, np.sqrt(0.1 * 32 - 0.16)),
        (one_slow(exponential(2.0), 3, 2.5)[-1], 5.0, 5.0),
        (Service("uniform", 2.0, _uniform), 2.0, 2.0 / np.sqrt(12)),
    ],
)
def test_means_and_spreads(service, mean, spread):
    times = service.times(np.random.RandomState(0), 42, 0)
    drawn = np.array(list(itertools.islice(times, 40_000)))
    assert drawn.mean() == pytest.approx(mean, rel=0.02)
    assert drawn.std() == pytest.approx(spread, rel=0.03, abs=1e-12)
    assert (drawn > 0).all()


def test_stragglers_are_rare_and_the_rest_as_usual():
    times = stragglers(fixed(1.0), 0.05, 3.0).times(np.random.RandomState(0), 1, 0)
    drawn = np.array(list(itertools.islice(times, 20_000)))
    assert (drawn > 1).mean() == pytest.approx(0.05, abs=0.006)
    assert (drawn[drawn <= 1] == 1).all()


def test_only_the_last_worker_is_slow():
    fleet = one_slow(fixed(1.0), workers=3, factor=4)
    trace = VirtualClock(fleet).run(synchronous(), 1)
    assert trace.end.tolist() == [1.0, 1.0, 4.0]


def test_a_time_of_zero_takes_a_moment():
    """Otherwise one worker would make all updates at time 0."""
    trace = VirtualClock([Service("none", 1.0, lambda r, n: np.zeros(n))] * 2).run(
        asynchronous(), 10
    )
    assert trace.worker.tolist() == [0, 1] * 5
    assert trace.times[-1] > 0


# What a reader sees


def test_it_says_that_it_is_a_simulation():
    clock = VirtualClock([fixed(1.0)] * 2 + [exponential(2.0)])
    assert repr(clock) == (
        "Virtual clock (a simulation): 2 × (fixed 1 s), 1 × (exponential, mean 2 s)"
    )
    trace = VirtualClock([fixed(1.0)] * 2).run(asynchronous(), 4)
    assert repr(trace) == (
        "Simulated: 2 workers, asynchronous; 4 updates in 2 simulated seconds, mean staleness 0.75"
    )


def test_no_tensorflow_is_imported(fresh):
    done = fresh(
        """
        import sys
        import utils.clock, utils.pictures.curves, utils.pictures.training
        assert "tensorflow" not in sys.modules
        """
    )
    assert done.returncode == 0, done.stderr
