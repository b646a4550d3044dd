"""Measure k towers on k cores against one on one core, and MirroredStrategy against the towers.

The baseline is honest: one tower with the whole batch, in a process that has a single core.
"""

import math
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

COLUMNS = ("what", "best ms", "median ms", "middle half", "× by best", "× by median")
MOST = 4  # towers
WANTED_TOWERS = 1.8  # times as fast with two towers, the conv net
WANTED_MIRRORED = 0.95  # speed of MirroredStrategy, our towers being 1
ONE = "1 tower on 1 core"


def several(towers: int) -> str:
    return f"{towers} towers on {towers} cores"


def without_host(towers: int) -> str:
    """Weights, average and update on GPU 0 instead of the host."""
    return f"{several(towers)}, weights on GPU 0"


def mirrored(towers: int, to_one: bool = False) -> str:
    """By its default way to add up gradients, or by ReductionToOneDevice."""
    reduction = "ReductionToOneDevice" if to_one else "default"
    return f"MirroredStrategy on {towers} cores, {reduction}"


def part(towers: int, core: int = 0) -> str:
    """One of the processes that train a part of the batch alone, on a core each."""
    return f"1/{towers} of the batch on 1 core" + (f", {core}" if core else "")


def parts(towers: int) -> str:
    return f"{towers} such processes at once"


def towers(network: str, rounds: int, batch: int | None = None) -> Figure:
    """The figure for a network; without rows where the machine is too small."""
    cores = core_numbers()[:MOST]
    most = len(cores)
    batch = batch or NETWORKS[network].batch
    batch -= batch % math.lcm(*range(1, most + 1))  # so that any number of towers divides it
    title = f"Towers: a training step of the {network} network, batch {batch}"
    commands = children(network, batch, cores)
    if problem := obstacle(most, len(commands), free_memory()):
        return Figure(title, COLUMNS, [], None, (problem,))
    groups = {parts(most): [part(most, i) for i in range(most)]}
    times, others = measured(commands, groups, TURNS * rounds)
    rows = [(what, *took.cells(), *took.faster(times[ONE])) for what, took in times.items()]
    return Figure(title, COLUMNS, rows, others, notes(network, times, most))


def children(network: str, batch: int, cores: Sequence[int]) -> dict[str, list[str]]:
    """Their commands: 1 to k towers, MirroredStrategy, and a k-th of the batch on every core."""

    def child(way: str, on: Sequence[int], size: int = batch) -> list[str]:
        held = ",".join(map(str, on))
        return command(way, network, "--gpus", len(on), "--cores", held, "--batch", size)

    most = len(cores)
    found = {ONE: child("towers", cores[:1])}
    found |= {several(n): child("towers", cores[:n]) for n in range(2, most + 1)}
    found[without_host(most)] = child("towers-without-host", cores)
    found[mirrored(most)] = child("mirrored", cores)
    found[mirrored(most, to_one=True)] = child("mirrored-to-one", cores)
    for i, core in enumerate(cores):
        found[part(most, i)] = child("towers", [core], batch // most)
    return found


def notes(network: str, times: dict[str, Times], most: int) -> tuple[str, ...]:
    """What was wanted, and where the time of a step with `most` towers goes."""
    sentences = []
    best, median = times[several(2)].faster(times[ONE])
    wanted = f"; wanted: {WANTED_TOWERS:.2f}" if network == "conv" else ""
    sentences.append(f"2 towers: {best:.2f} times as fast as 1 (median {median:.2f}{wanted}).")
    best, median = times[without_host(most)].faster(times[ONE])
    sentences.append(f"With the weights on GPU 0: {best:.2f} (median {median:.2f}).")
    step = times[several(most)]
    for to_one in (False, True):
        name = mirrored(most, to_one)
        best, median = times[name].faster(step)
        sentences.append(
            f"{name}: {best:.2f} times as fast as {most} towers on the same devices "
            f"(median {median:.2f}; wanted: {WANTED_MIRRORED:.2f})."
        )
    one, all_of_them = times[part(most)].best, times[parts(most)].best
    sentences.append(
        f"Where the best step of {most} towers ({step.best * 1e3:.1f} ms) goes: "
        f"{one * 1e3:.1f} ms are 1/{most} of the batch on a core of its own; "
        f"{(all_of_them - one) * 1e3:+.1f} ms because {most} cores work at once; "
        f"{(step.best - all_of_them) * 1e3:+.1f} ms because one program waits for all towers, "
        "averages and updates."
    )
    return tuple(sentences)
