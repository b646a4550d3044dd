"""The pipeline's schedule against its formulas, and how it reads a real run."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.runs import BACKWARD, FORWARD, Step, Trace, fill_and_drain, idle_share, schedule
from utils.runs.pipeline import durations, most_at_once, ran
from utils.runs.trace import Interval

seconds = st.floats(0.01, 10)
pipelines = st.integers(1, 5).flatmap(
    lambda stages: st.tuples(
        st.lists(seconds, min_size=stages, max_size=stages),
        st.lists(seconds, min_size=stages, max_size=stages),
        st.integers(1, 9),
    )
)


def length(steps):
    return max(step.end for step in steps)


def test_by_hand():
    steps = schedule(fill_and_drain(2, 2), [1, 3], [2, 1])
    assert steps == (
        Step(0, FORWARD, 0, 0, 1),
        Step(0, FORWARD, 1, 1, 2),
        Step(1, FORWARD, 0, 1, 4),
        Step(1, FORWARD, 1, 4, 7),
        Step(1, BACKWARD, 1, 7, 8),
        Step(0, BACKWARD, 1, 8, 10),
        Step(1, BACKWARD, 0, 8, 9),
        Step(0, BACKWARD, 0, 10, 12),
    )
    assert idle_share(steps) == pytest.approx(1 - 14 / 24)
    assert most_at_once(steps) == 2


@settings(max_examples=60, deadline=None)
@given(stages=st.integers(1, 6), count=st.integers(1, 12), forward=seconds, backward=seconds)
def test_equal_stages_give_the_bubble(stages, count, forward, backward):
    steps = schedule(fill_and_drain(stages, count), [forward] * stages, [backward] * stages)
    assert idle_share(steps) == pytest.approx((stages - 1) / (count + stages - 1), abs=1e-12)
    assert most_at_once(steps) == min(stages, count)


@settings(max_examples=60, deadline=None)
@given(pipelines)
def test_unequal_stages_have_the_pace_of_the_slowest(case):
    forward, backward, count = case
    steps = schedule(fill_and_drain(len(forward), count), forward, backward)
    once = sum(forward) + sum(backward)
    each = max(forward) + max(backward)
    assert length(steps) == pytest.approx(once + (count - 1) * each)


@settings(max_examples=40, deadline=None)
@given(pipelines)
def test_a_schedule_keeps_its_rules(case):
    """Each step once, in its stage's order, after what it needs, and never two at once."""
    forward, backward, count = case
    order = fill_and_drain(len(forward), count)
    steps = schedule(order, forward, backward)
    at = {(s.stage, s.kind, s.micro_batch): s for s in steps}
    assert len(at) == len(steps) == 2 * count * len(forward)
    assert [s.start for s in steps] == sorted(s.start for s in steps)
    for stage, planned in enumerate(order):
        mine = [s for s in steps if s.stage == stage]
        assert [(s.kind, s.micro_batch) for s in mine] == planned
        assert all(b.start >= a.end for a, b in pairwise(mine))
        takes = {FORWARD: forward[stage], BACKWARD: backward[stage]}
        assert all(s.end - s.start == pytest.approx(takes[s.kind]) for s in mine)
    for (stage, kind, m), step in at.items():
        if kind == FORWARD and stage:
            assert step.start >= at[stage - 1, FORWARD, m].end
        if kind == BACKWARD:
            assert step.start >= at[stage, FORWARD, m].end
            if stage < len(forward) - 1:
                assert step.start >= at[stage + 1, BACKWARD, m].end


def test_stages_that_wait_for_ever():
    backward_first = [[(FORWARD, 0), (BACKWARD, 0)], [(BACKWARD, 0), (FORWARD, 0)]]
    with pytest.raises(ValueError, match="for ever .*stage 1: .'backward', 0.") as error:
        schedule(backward_first, [1, 1], [1, 1])
    assert "same micro-batch" in str(error.value)


@pytest.mark.parametrize(
    ("forward", "backward", "message"),
    [
        ([1], [1, 1], r"forward=\[1\]: give 2 durations, one per stage"),
        ([1, 1], [1], r"backward=\[1\]: give 2 durations, one per stage"),
        ([1, 0], [1, 1], "forward of stage 1=0: give a finite number of seconds greater than 0"),
        ([1, 1], [1, -1], "backward of stage 1=-1: give a finite number of seconds"),
        ([1, "1"], [1, 1], "forward of stage 1='1': give a finite number of seconds"),
    ],
)
def test_durations_that_are_not_possible(forward, backward, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        schedule(fill_and_drain(2, 2), forward, backward)


@pytest.mark.parametrize(("stages", "count"), [(0, 1), (1, 0)])
def test_no_stage_or_no_micro_batch(stages, count):
    with pytest.raises(ValueError, match="give a whole number from 1"):
        fill_and_drain(stages, count)


# --- reading a run


def run_of(*rows):
    """A trace with (name, operation, start, end)."""
    empty = Trace(None, (), (), (), (), {})
    return replace(empty, intervals=tuple(Interval(n, op, "d", s, e) for n, op, s, e in rows))


RUN = run_of(
    ("stage_0/forward_0/Read", "ReadVariableOp", 0.0, 0.5),
    ("stage_0/forward_0/matmul", "MatMul", 1.0, 3.0),
    ("stage_0/forward_0/Relu", "Relu", 3.0, 4.0),
    ("stage_0/forward_1/matmul", "MatMul", 4.0, 5.0),
    ("stage_0/forward_1/Relu", "Relu", 5.0, 7.0),
    ("stage_0/backward_0/gradients/stage_0/forward_0/matmul_grad/MatMul", "MatMul", 8.0, 9.0),
    ("stage_0/backward_0_1/gradients/stage_0/forward_0/matmul_grad/MatMul", "MatMul", 9.0, 9.5),
    ("stage_0/backward_1/gradients/stage_0/forward_1/matmul_grad/MatMul", "MatMul", 9.5, 12.0),
    ("update/MatMul", "MatMul", 13.0, 14.0),
)


def test_steps_of_a_run():
    assert ran(RUN) == (
        Step(0, FORWARD, 0, 1.0, 4.0),
        Step(0, FORWARD, 1, 4.0, 7.0),
        Step(0, BACKWARD, 0, 8.0, 9.5),
        Step(0, BACKWARD, 1, 9.5, 12.0),
    )


def test_a_duration_is_the_sum_of_the_fastest():
    forward, backward = durations([RUN])
    assert forward == [0.5 + 1.0 + 1.0], "read, product, activation"
    assert backward == [1.0 + 0.5], "both products of the step"
    faster = run_of(("stage_0/forward_3/Relu", "Relu", 0.0, 0.25))
    assert durations([RUN, faster])[0] == [0.5 + 1.0 + 0.25]


@pytest.mark.parametrize("read", [ran, lambda run: durations([run])])
def test_a_run_without_steps(read):
    with pytest.raises(ValueError, match="name the steps so"):
        read(run_of(("MatMul", "MatMul", 0.0, 1.0)))


def test_idle_share_counts_from_the_first_start():
    steps = [Step(0, FORWARD, 0, 5.0, 6.0), Step(1, FORWARD, 0, 6.0, 7.0)]
    assert idle_share(steps) == pytest.approx(0.5)
    assert most_at_once(steps) == 1, "one ends when the other begins"
    assert np.isclose(idle_share(steps[:1]), 0)
