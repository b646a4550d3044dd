"""Measure a network cut by layers into two stages on two cores, against the whole on one core."""

from collections.abc import Sequence

from tools.bench_figure import Figure
from tools.bench_networks import NETWORKS
from tools.bench_rounds import (
    TURNS,
    Times,
    command,
    core_numbers,
    free_memory,
    measured,
    obstacle,
)

COLUMNS = ("what", "best ms", "median ms", "middle half", "× by best", "× by median", "bound")
STAGES = 2
CUTS = (1, 2, 4, 8)
UNSPLIT = "unsplit, 1 core"
CUT_ONLY = f"unsplit, 1 core, {CUTS[-1]} micro-batches"


def split(cuts: int) -> str:
    """What a row is called."""
    return f"{STAGES} stages, " + (f"{cuts} micro-batches" if cuts > 1 else "whole batch")


def bound(cuts: int, stages: int = STAGES) -> float:
    """How many times as fast `stages` equal stages can be: no less idle than the bubble.

    The bubble is (s − 1)/(m + s − 1) of the time of each of s stages, for m micro-batches (Huang
    and others, "GPipe", 2019), so the speed-up is at most s times the rest.
    """
    return stages * (1 - (stages - 1) / (cuts + stages - 1))


def pipeline(rounds: int, batch: int | None = None) -> Figure:
    """The figure; without rows where the machine is too small."""
    cores = core_numbers()[:STAGES]
    batch = batch or NETWORKS["chain"].batch
    title = f"Model parallelism: a training step of a chain of dense layers, batch {batch}"
    commands = children(batch, cores)
    if problem := obstacle(len(cores), len(commands), free_memory()):
        return Figure(title, COLUMNS, [], None, (problem,))
    times, others = measured(commands, {}, TURNS * rounds)
    bounds = {split(cuts): bound(cuts) for cuts in CUTS}
    rows = [
        (what, *took.cells(), *took.faster(times[UNSPLIT]), bounds.get(what))
        for what, took in times.items()
    ]
    return Figure(title, COLUMNS, rows, others, notes(times))


def children(batch: int, cores: Sequence[int]) -> dict[str, list[str]]:
    """Their commands: unsplit, the stages for each number of micro-batches, micro-batches alone."""

    def child(way: str, on: Sequence[int], *options: object) -> list[str]:
        held = ",".join(map(str, on))
        return command(way, "chain", "--cores", held, "--batch", batch, *options)

    found = {UNSPLIT: child("towers", cores[:1])}
    for cuts in CUTS:
        found[split(cuts)] = child("stages", cores, "--gpus", STAGES, "--cuts", cuts)
    return found | {CUT_ONLY: child("stages", cores[:1], "--cuts", CUTS[-1])}


def notes(times: dict[str, Times]) -> tuple[str, ...]:
    """How near the pipeline comes to its bound, and what cutting the batch costs by itself."""
    most = CUTS[-1]
    best, _ = times[split(most)].faster(times[UNSPLIT])
    cost = times[CUT_ONLY].best / times[UNSPLIT].best
    return (
        f"The pipeline with {most} micro-batches reaches {best / bound(most):.0%} of its bound; "
        f"cutting the batch alone makes a step {cost:.2f} times as long.",
    )
