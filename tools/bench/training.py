"""Measure towers, MirroredStrategy and the stages of a pipeline against one tower on one core.

The baseline is honest: the whole batch, in a process that has a single core.
"""

import math
from collections.abc import Callable, Mapping

from tools.bench.figure import Figure
from tools.bench.networks import NETWORKS
from tools.bench.rounds import TURNS, Times, Way, core_numbers, measured, obstacle

COLUMNS = ("what", "best ms", "median ms", "middle half", "× by best", "× by median")
ONE = "1 tower on 1 core"
MOST = 4  # towers
WANTED_TOWERS = 1.8  # times as fast with two towers, the conv net
WANTED_MIRRORED = 0.95  # speed of MirroredStrategy, our towers being 1
STAGES = 2
CUTS = (1, 2, 4, 8)
CUT_ONLY = f"{CUTS[-1]} micro-batches on 1 core"


def several(towers: int) -> str:
    return f"{towers} towers on {towers} cores"


def mirrored(towers: int) -> str:
    return f"MirroredStrategy on {towers} cores"


def split(cuts: int) -> str:
    return f"{STAGES} stages, " + (f"{cuts} micro-batches" if cuts > 1 else "whole batch")


def bound(cuts: int, stages: int = STAGES) -> float:
    """How many times as fast `stages` equal stages can be: no less idle than the bubble.

    The bubble is (s − 1)/(m + s − 1) of the time of each of s stages, for m micro-batches (Huang
    and others, "GPipe", 2019), so the speed-up is at most s times the rest.
    """
    return stages * (1 - (stages - 1) / (cuts + stages - 1))


def towers(network: str, rounds: int, batch: int | None = None) -> Figure:
    """1 to 4 towers on as many cores, and MirroredStrategy on all of them."""
    cores = core_numbers()[:MOST]
    batch = batch or NETWORKS[network].batch
    batch -= batch % math.lcm(*range(1, len(cores) + 1))  # so that any number of towers divides it
    ways = {ONE: Way("towers", network, batch, cores[:1])}
    for n in range(2, len(cores) + 1):
        ways[several(n)] = Way("towers", network, batch, cores[:n], gpus=n)
    ways[mirrored(len(cores))] = Way("mirrored", network, batch, cores, gpus=len(cores))

    def notes(times: Mapping[str, Times]) -> tuple[str, ...]:
        return tower_notes(network, times, len(cores))

    return figure(f"Towers: the {network} network, batch {batch}", ways, rounds, notes, {})


def tower_notes(network: str, times: Mapping[str, Times], most: int) -> tuple[str, ...]:
    """What was found beside what was wanted."""
    best, median = times[several(2)].faster(times[ONE])
    wanted = f"; wanted: {WANTED_TOWERS:.2f}" if network == "conv" else ""
    by_best, by_median = times[mirrored(most)].faster(times[several(most)])
    return (
        f"2 towers: {best:.2f} times as fast as 1 (median {median:.2f}{wanted}).",
        f"MirroredStrategy: {by_best:.2f} times as fast as {most} towers on the same devices "
        f"(median {by_median:.2f}; wanted: {WANTED_MIRRORED:.2f}).",
    )


def pipeline(rounds: int, batch: int | None = None) -> Figure:
    """Two stages of a chain on two cores, for growing numbers of micro-batches."""
    cores = core_numbers()[:STAGES]
    batch = batch or NETWORKS["chain"].batch
    ways = {ONE: Way("towers", "chain", batch, cores[:1])}
    for cuts in CUTS:
        ways[split(cuts)] = Way("stages", "chain", batch, cores, gpus=STAGES, cuts=cuts)
    ways[CUT_ONLY] = Way("stages", "chain", batch, cores[:1], cuts=CUTS[-1])
    bounds = {split(cuts): bound(cuts) for cuts in CUTS}
    title = f"Model parallelism: a chain of dense layers, batch {batch}"
    return figure(title, ways, rounds, pipeline_notes, bounds)


def pipeline_notes(times: Mapping[str, Times]) -> tuple[str, ...]:
    """How near the pipeline comes to its bound, and what cutting the batch costs by itself."""
    most = CUTS[-1]
    best, _ = times[split(most)].faster(times[ONE])
    cost = times[CUT_ONLY].best / times[ONE].best
    return (
        f"The pipeline with {most} micro-batches reaches {best / bound(most):.0%} of its bound; "
        f"cutting the batch alone makes a step {cost:.2f} times as long.",
    )


def figure(
    title: str,
    ways: Mapping[str, Way],
    rounds: int,
    notes: Callable[[Mapping[str, Times]], tuple[str, ...]],
    bounds: Mapping[str, float],
) -> Figure:
    """Measure a step in each of the ways; without rows where the machine is too small."""
    title = f"{title}, a training step"
    columns = (*COLUMNS, "bound") if bounds else COLUMNS
    if problem := obstacle(len(core_numbers()), len(ways)):
        return Figure(title, columns, [], None, (problem,))
    times, others = measured(ways, TURNS * rounds)
    rows = [
        (what, *took.cells(), *took.faster(times[ONE]), bounds.get(what))[: len(columns)]
        for what, took in times.items()
    ]
    return Figure(title, columns, rows, others, notes(times))
