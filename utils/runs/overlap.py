"""What ran at the same time in a traced run, and what could not: overlap and critical path."""

from dataclasses import dataclass

from utils.runs.trace import Trace


@dataclass(frozen=True)
class CriticalPath:
    """Operations that had to run one after the other, and the seconds that they took.

    Introduced in lesson 05.
    """

    names: tuple[str, ...]
    seconds: float


def overlap(run: Trace, first: str, second: str) -> float:
    """Return for how many seconds two operations were at work at the same time.

    Args:
        run: a traced run.
        first, second: names of operations.

    Raises:
        ValueError: one of them did not run; the message lists those that did.

    Introduced in lesson 05.
    """
    return sum(
        max(0.0, min(end, other_end) - max(start, other_start))
        for start, end in _at_work(run, first)
        for other_start, other_end in _at_work(run, second)
    )


def critical_path(run: Trace) -> CriticalPath:
    """Return the longest chain of operations that waited for each other.

    Its length is the sum of their durations: no number of threads or devices makes the run
    shorter, unless an operation on the path gets faster. Time in transfers or in the ready queue
    does not count.

    Args:
        run: a traced run of a graph without loops.

    Raises:
        ValueError: nothing ran, or the graph has a loop.

    Introduced in lesson 05. Source: Kelley and Walker, "Critical-path planning and scheduling",
    1959.
    """
    if not run.nodes:
        raise ValueError("no operation ran, so there is no path.")
    takes = dict.fromkeys((node.name for node in run.nodes), 0.0)
    for row in run.intervals:
        takes[row.name] += row.end - row.start
    finish: dict[str, float] = {}
    previous: dict[str, str | None] = {}
    for name, waits_for in _in_order(run):
        latest = max(waits_for, key=finish.__getitem__, default=None)
        previous[name] = latest
        finish[name] = takes[name] + (finish[latest] if latest else 0.0)
    name = max(finish, key=finish.__getitem__)
    seconds, names = finish[name], []
    while name:
        names.append(name)
        name = previous[name]
    return CriticalPath(tuple(reversed(names)), seconds)


def _at_work(run: Trace, name: str) -> list[tuple[float, float]]:
    """Return when an operation was at work; pieces that touch or overlap become one."""
    pieces: list[tuple[float, float]] = []
    for row in run.intervals:  # in order of their starts
        if row.name != name:
            continue
        if pieces and row.start <= pieces[-1][1]:
            pieces[-1] = pieces[-1][0], max(pieces[-1][1], row.end)
        else:
            pieces.append((row.start, row.end))
    if not pieces:
        ran = ", ".join(sorted({row.name for row in run.intervals})) or "none"
        raise ValueError(f"no operation {name!r} ran; these did: {ran}")
    return pieces


def _in_order(run: Trace) -> list[tuple[str, tuple[str, ...]]]:
    """Return (operation, what it waits for), each after all that it waits for."""
    waiting = {node.name: tuple(dict.fromkeys(node.inputs + node.controls)) for node in run.nodes}
    done: dict[str, tuple[str, ...]] = {}
    while waiting:
        ready = [name for name, before in waiting.items() if done.keys() >= set(before)]
        if not ready:
            loop = ", ".join(sorted(waiting)[:4])
            raise ValueError(
                f"the graph has a loop ({loop} …), so no chain in it is the longest: trace a "
                "graph without."
            )
        done |= {name: waiting.pop(name) for name in ready}
    return list(done.items())
