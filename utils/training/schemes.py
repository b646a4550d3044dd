"""Which way to spread a training step over devices: a model of time, memory and bytes.

Nothing here is measured. The bytes that it counts are held to those of real partition graphs in
the tests; the seconds are as good as the figures that it is given.
"""

from dataclasses import dataclass

from utils.numbers import real, whole

ONE, DATA, LAYER, COLUMN, BOTH = "one device", "data", "by layer", "by column", "both"


@dataclass(frozen=True)
class Job:
    """A network of equal layers, and a batch to train it on.

    Attributes:
        parameter_bytes: of all weights.
        layers: how many, all alike.
        border_bytes: what one example leaves at the border between two layers.
        work: operations for one example in a step, forward and backward.
        batch: examples in a step.

    Introduced in lesson 07.
    """

    parameter_bytes: float
    layers: int
    border_bytes: float
    work: float
    batch: int


@dataclass(frozen=True)
class Fleet:
    """Devices that are all alike, each with a link of its own.

    Attributes:
        devices: how many.
        memory: bytes of each.
        speed: operations per second of each.
        latency: seconds that even the smallest message takes.
        bandwidth: bytes per second of each device's link.

    Introduced in lesson 07.
    """

    devices: int
    memory: float
    speed: float
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Plan:
    """A way to spread the step, and what it costs.

    Attributes:
        scheme: ``"one device"``, ``"data"``, ``"by layer"``, ``"by column"`` or ``"both"``.
        replicas: copies of the model.
        parts: devices that share one copy.
        micro_batches: pieces of a replica's batch in its pipeline.
        seconds: of a step.
        held: bytes on each device: weights, gradients, and what the backward pass needs.
        moved: bytes between devices in a step, summed over the devices.

    Introduced in lesson 07.
    """

    scheme: str
    replicas: int
    parts: int
    micro_batches: int
    seconds: float
    held: float
    moved: float


def dense(layers: int, width: int, batch: int) -> Job:
    """Return the job of a dense float32 network with equal layers, width × width.

    Per example and weight there are 2 operations forward and 4 backward.

    Introduced in lesson 07.
    """
    weights = layers * width**2
    return Job(4 * weights, layers, 4 * width, 6 * weights, batch)


def plans(job: Job, fleet: Fleet) -> list[Plan]:
    """Return every plan of the model, the fastest first; some may not fit.

    All devices work, or one. Replicas and stages together are as many as the devices.

    Raises:
        TypeError, ValueError: a count is not a whole number from 1 on, or a size or a speed is
            not above 0 (a latency may be 0).

    Introduced in lesson 07.
    """
    whole("layers", job.layers, 1, 10**6)
    whole("batch", job.batch, 1, 10**9)
    n = whole("devices", fleet.devices, 1, 10**6)
    for name in ("parameter_bytes", "border_bytes", "work"):
        real(name, getattr(job, name), above=0)
    for name in ("memory", "speed", "bandwidth"):
        real(name, getattr(fleet, name), above=0)
    real("latency", fleet.latency, low=0, what="number of seconds")
    found = [_replicated(job, fleet, 1, 1, 1)]
    for parts in range(1, min(n, job.layers) + 1):
        replicas, left = divmod(n, parts)
        if n == 1 or left or replicas > job.batch:
            continue
        pieces = 1
        while pieces <= (job.batch // replicas if parts > 1 else 1):
            found.append(_replicated(job, fleet, replicas, parts, pieces))
            pieces *= 2
    if n > 1:
        found.append(_by_column(job, fleet))
    return sorted(found, key=lambda plan: (plan.seconds, plan.moved, plan.micro_batches))


def choose(job: Job, fleet: Fleet) -> Plan:
    """Return the fastest plan that fits into the devices' memory.

    Raises:
        ValueError: none fits; says what the smallest one needs.

    Introduced in lesson 07.
    """
    found = plans(job, fleet)
    for plan in found:
        if plan.held <= fleet.memory:
            return plan
    least = min(found, key=lambda plan: plan.held)
    raise ValueError(
        f"no plan fits into {fleet.memory:,.0f} bytes per device: the smallest, {least.scheme}, "
        f"needs {least.held:,.0f}. Take more devices, or a smaller batch."
    )


def _replicated(job: Job, fleet: Fleet, replicas: int, parts: int, pieces: int) -> Plan:
    """Model ``replicas`` pipelines of ``parts`` stages each.

    A pipeline is full after parts - 1 steps (Huang et al., "GPipe", 2019); sending is part of a
    step. Replicas average by ring all-reduce, 2 (r - 1) messages of 1/r each (Patarasuk and
    Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009).
    """
    examples = job.batch / replicas
    step = examples / pieces * job.work / parts / fleet.speed
    if parts > 1:  # one message on, one back
        step += 2 * (fleet.latency + examples / pieces * job.border_bytes / fleet.bandwidth)
    seconds = (pieces + parts - 1) * step
    own = job.parameter_bytes / parts
    if replicas > 1:
        message = own / replicas / fleet.bandwidth
        seconds += 2 * (replicas - 1) * (fleet.latency + message)
    scheme = {(False, False): ONE, (True, False): DATA, (False, True): LAYER}.get(
        (replicas > 1, parts > 1), BOTH
    )
    held = 2 * own + examples * job.border_bytes * job.layers / parts
    between = 2 * (parts - 1) * job.batch * job.border_bytes
    moved = between + 2 * (replicas - 1) * job.parameter_bytes
    return Plan(scheme, replicas, parts, pieces, seconds, held, moved)


def _by_column(job: Job, fleet: Fleet) -> Plan:
    """Model every layer cut by column over all devices.

    At each border between layers every device needs the parts of all others, forward and back.
    """
    n = fleet.devices
    exchanges = 2 * (job.layers - 1)
    message = job.batch * job.border_bytes / n / fleet.bandwidth
    seconds = job.batch * job.work / n / fleet.speed
    seconds += exchanges * (n - 1) * (fleet.latency + message)
    held = 2 * job.parameter_bytes / n + job.batch * job.border_bytes * job.layers
    moved = exchanges * (n - 1) * job.batch * job.border_bytes
    return Plan(COLUMN, 1, n, 1, seconds, held, moved)
