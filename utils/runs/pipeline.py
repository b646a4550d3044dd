"""A pipeline of stages that work on micro-batches: its schedule, planned and as it ran."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from utils.numbers import real, whole
from utils.runs.trace import Trace

FORWARD, BACKWARD = "forward", "backward"
# How a graph names its steps, so that a trace can be read: "stage_0/forward_3/MatMul".
_SCOPE = re.compile(rf"stage_(\d+)/({FORWARD}|{BACKWARD})_(\d+)(?:_\d+)?/")
_NO_SCOPES = (
    "nothing of this run stands in a scope such as stage_0/forward_0: name the steps so when you "
    "build the graph."
)


@dataclass(frozen=True)
class Step:
    """What a stage does with one micro-batch, forward or backward, and when (in seconds)."""

    stage: int
    kind: str
    micro_batch: int
    start: float
    end: float


def fill_and_drain(stages: int, micro_batches: int) -> list[list[tuple[str, int]]]:
    """Return for each stage its steps in order: all micro-batches forward, then all back.

    Args:
        stages: how many, 1 or more.
        micro_batches: how many, 1 or more.

    Returns:
        Per stage a list of (``"forward"`` or ``"backward"``, micro-batch).

    Introduced in lesson 07. Source: Huang et al., "GPipe", 2019, section 2.
    """
    whole("stages", stages, 1, 64)
    numbers = range(whole("micro_batches", micro_batches, 1, 10_000))
    order = [(FORWARD, m) for m in numbers] + [(BACKWARD, m) for m in reversed(numbers)]
    return [list(order) for _ in range(stages)]


def schedule(
    order: Sequence[Sequence[tuple[str, int]]],
    forward: Sequence[float],
    backward: Sequence[float],
) -> tuple[Step, ...]:
    """Start each step as soon as its stage is free and what it needs is there: a model.

    A stage does its steps one at a time, in its order. A micro-batch goes forward through the
    stages and then back; nothing is lost on the way between two stages.

    Args:
        order: per stage its steps, as ``fill_and_drain`` gives them.
        forward: seconds of a forward step, one number per stage.
        backward: seconds of a backward step, one number per stage.

    Returns:
        The steps, by their starts.

    Raises:
        TypeError: a duration is no number.
        ValueError: not one duration per stage, a duration that is not positive and finite, or an
            order in which the stages wait for each other for ever.

    Introduced in lesson 07.
    """
    takes = {FORWARD: list(forward), BACKWARD: list(backward)}
    for kind, seconds in takes.items():
        if len(seconds) != len(order):
            raise ValueError(f"{kind}={seconds}: give {len(order)} durations, one per stage.")
        for stage, value in enumerate(seconds):
            real(f"{kind} of stage {stage}", value, above=0, what="number of seconds")
    last = len(order) - 1
    ends: dict[tuple[int, str, int], float] = {}
    todo = [list(steps) for steps in order]
    free = [0.0] * len(order)
    steps = []
    while any(todo):
        ready = [
            (max([free[s], *(ends[need] for need in needs)]), s)
            for s, (kind, m) in ((s, left[0]) for s, left in enumerate(todo) if left)
            if ends.keys() >= (needs := set(_needs(s, kind, m, last)))
        ]
        if not ready:
            waiting = [f"stage {s}: {left[0]}" for s, left in enumerate(todo) if left]
            raise ValueError(
                f"the stages wait for each other for ever ({'; '.join(waiting)}): a step needs "
                "the same micro-batch from the stage before, and backward from the one after."
            )
        start, stage = min(ready)
        kind, m = todo[stage].pop(0)
        free[stage] = ends[stage, kind, m] = start + takes[kind][stage]
        steps.append(Step(stage, kind, m, start, free[stage]))
    return tuple(steps)


def _needs(stage: int, kind: str, m: int, last: int) -> list[tuple[int, str, int]]:
    """Return the steps that have to end before a step can start."""
    if kind == FORWARD:
        return [(stage - 1, FORWARD, m)] if stage else []
    after = [(stage + 1, BACKWARD, m)] if stage < last else []
    return [(stage, FORWARD, m), *after]


def ran(run: Trace) -> tuple[Step, ...]:
    """Return the steps of a traced pipeline, by their starts.

    A step lasts from the start of its first product to the end of its last operation.

    Args:
        run: the trace of a graph whose operations stand in name scopes
            ``stage_0/forward_0``, ``stage_0/backward_0`` and so on.

    Raises:
        ValueError: no product of the run stands in such a scope.

    Introduced in lesson 07.
    """
    rows = defaultdict(list)
    for row in run.intervals:
        if found := _SCOPE.match(row.name):
            rows[int(found[1]), found[2], int(found[3])].append(row)
    steps = []
    for (stage, kind, m), parts in rows.items():
        starts = [row.start for row in parts if row.op.endswith("MatMul")]
        if starts:
            steps.append(Step(stage, kind, m, min(starts), max(row.end for row in parts)))
    if not steps:
        raise ValueError(_NO_SCOPES)
    return tuple(sorted(steps, key=lambda step: (step.start, step.stage)))


def durations(runs: Sequence[Trace]) -> tuple[list[float], list[float]]:
    """Return what a forward and what a backward step of each stage takes, in seconds.

    The sum of its operations, each as fast as in its fastest run and micro-batch: other programs
    make an operation slower, never faster. All micro-batches must have the same size.

    Args:
        runs: traces of one pipeline, named as for ``ran``.

    Returns:
        Two lists with a number per stage: forward, backward.

    Raises:
        ValueError: no operation stands in such a scope.

    Introduced in lesson 07.
    """
    least: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for row in (row for run in runs for row in run.intervals):
        if not (found := _SCOPE.match(row.name)):
            continue
        # The same operation of another micro-batch has another number.
        name = re.sub(rf"({FORWARD}|{BACKWARD})_\d+", r"\1", row.name)
        known = least[int(found[1]), found[2]]
        known[name] = min(row.end - row.start, known.get(name, row.end - row.start))
    if not least:
        raise ValueError(_NO_SCOPES)
    stages = range(1 + max(stage for stage, _ in least))
    return tuple([sum(least[s, kind].values()) for s in stages] for kind in (FORWARD, BACKWARD))


def idle_share(steps: Sequence[Step]) -> float:
    """Return the share of the stages' time, from the first start to the last end, without work.

    Of a pipeline with equal stages this is the bubble.

    Args:
        steps: of a planned or of a real pipeline.

    Introduced in lesson 07.
    """
    stages = {step.stage for step in steps}
    length = max(step.end for step in steps) - min(step.start for step in steps)
    return 1 - sum(step.end - step.start for step in steps) / (len(stages) * length)


def most_at_once(steps: Sequence[Step]) -> int:
    """Return how many stages are at work at the same time, at most.

    Introduced in lesson 07.
    """
    return max(sum(s.start <= step.start < s.end for s in steps) for step in steps)
