"""When a worker may write, and how its gradient counts: the policies."""

from dataclasses import dataclass

from utils.numbers import whole


@dataclass(frozen=True)
class Policy:
    """How workers share one set of weights; made by the functions below.

    Attributes:
        name: what stands in labels.
        rounds: True if all workers start together and one average is written.
        needed: gradients that end a step of rounds; None means all workers.
        spare: workers beyond ``needed`` in a step.
        oldest: largest staleness that is still written; None: any.
        ahead: steps that a worker may be ahead of the slowest; None: any.
        divide: True if the learning rate is divided by the staleness.

    Introduced in lesson 08.
    """

    name: str
    rounds: bool = False
    needed: int | None = None
    spare: int = 0
    oldest: int | None = None
    ahead: int | None = None
    divide: bool = False

    def accepts(self, staleness: int) -> bool:
        """Return whether a gradient of this staleness is written."""
        return self.oldest is None or staleness <= self.oldest

    def rate(self, rate: float, staleness: int) -> float:
        """Return the learning rate for a gradient of this staleness."""
        return rate / max(1, staleness) if self.divide else rate


def synchronous() -> Policy:
    """Return: all read together, the average of all is written once.

    Introduced in lesson 08.
    """
    return Policy("synchronous", rounds=True)


def spare_replicas(needed: int, spare: int) -> Policy:
    """Return: synchronous, but a step ends with the first ``needed``.

    Chen et al., "Revisiting distributed synchronous SGD", 2016. Here the
    late workers give up and start the next step with the others; in that
    paper they finish first, and their gradient is dropped when it arrives.

    Args:
        needed: gradients that end a step, at least 1.
        spare: workers beyond these, at least 0; the clock must have
            ``needed + spare`` workers.

    Raises:
        TypeError, ValueError: not such whole numbers.

    Introduced in lesson 08.
    """
    needed, spare = whole("needed", needed, 1), whole("spare", spare, 0)
    name = f"synchronous, first {needed} of {needed + spare}"
    return Policy(name, rounds=True, needed=needed, spare=spare)


def asynchronous() -> Policy:
    """Return: every worker reads, computes and writes on its own.

    Introduced in lesson 08.
    """
    return Policy("asynchronous")


def drop_older(oldest: int) -> Policy:
    """Return: asynchronous, but gradients that are too old are dropped.

    Args:
        oldest: largest staleness that is still written, at least 0.

    Raises:
        TypeError, ValueError: not such a whole number.

    Introduced in lesson 08.
    """
    oldest = whole("oldest", oldest, 0)
    name = f"asynchronous, staleness over {oldest} dropped"
    return Policy(name, oldest=oldest)


def bounded_staleness(ahead: int) -> Policy:
    """Return: asynchronous, but the fast wait for the slowest.

    No worker starts a gradient while it has finished more than ``ahead``
    gradients more than the slowest (Ho et al., "More effective distributed
    ML via a stale synchronous parallel parameter server", 2013). The bound
    counts a worker's own steps. With n workers the staleness, counted in
    updates, is then at most (n − 1)·(2·ahead + 1): while one worker computes,
    each other can go from ``ahead`` steps behind it to ``ahead`` + 1 before.

    Args:
        ahead: at least 0.

    Raises:
        TypeError, ValueError: not such a whole number.

    Introduced in lesson 08.
    """
    ahead = whole("ahead", ahead, 0)
    steps = "step" if ahead == 1 else "steps"
    return Policy(f"asynchronous, at most {ahead} {steps} ahead", ahead=ahead)


def divide_rate() -> Policy:
    """Return: asynchronous, with the learning rate divided by the staleness.

    The rate is ``rate / max(1, staleness)`` (Zhang et al., "Staleness-aware
    async-SGD for distributed deep learning", 2016).

    Introduced in lesson 08.
    """
    return Policy("asynchronous, rate divided by staleness", divide=True)


def check_policy(policy: Policy, workers: int) -> None:
    """Refuse what is no policy, or does not fit the number of workers.

    Raises:
        TypeError: ``policy`` was not made by a function of this file.
        ValueError: spare replicas that do not add up to ``workers``.

    Introduced in lesson 08, behind ``VirtualClock``.
    """
    if not isinstance(policy, Policy):
        given = getattr(policy, "__name__", repr(policy))
        raise TypeError(
            f"policy={given}: unknown. Give synchronous(), "
            "spare_replicas(needed, spare), asynchronous(), "
            "drop_older(oldest), bounded_staleness(ahead) or divide_rate(), "
            "with the parentheses."
        )
    if policy.needed is None:
        return
    if policy.needed + policy.spare != workers:
        raise ValueError(
            f"spare_replicas(needed={policy.needed}, spare={policy.spare}) "
            f"needs {policy.needed + policy.spare} workers, but the clock has "
            f"{workers}: change one of them."
        )
