"""The words for what decides a placement, and for what makes it fail."""

from enum import StrEnum


class Rule(StrEnum):
    """What decided where an operation goes.

    A "variable" is anything that hands out a reference or a resource: a
    variable of either kind, a queue, a table.

    Introduced in lesson 04.
    """

    PINNED = "pinned"
    PARTLY_PINNED = "pinned in part: best device of that kind"
    VARIABLE = "follows its variable"
    USERS = "follows its users"
    GROUP = "follows its colocation group"
    INPUT = "follows its input"
    CONSUMER = "follows its consumer"
    DEFAULT = "default device"
    KERNEL = "best device with a kernel"
    NO_DEVICE = "moved: no such device"
    NO_KERNEL = "moved: no kernel"
    DISAGREE = "moved: pins disagree"


class Failure(StrEnum):
    """Why a graph cannot be placed.

    Introduced in lesson 04.
    """

    NO_DEVICE = "no such device"
    NO_KERNEL = "no kernel"
    DISAGREE = "pins disagree"


class PlacementError(Exception):
    """The error that TensorFlow would raise for a graph.

    Attributes:
        operation: name of the operation that it complains about.
        kind: which of the failures it is.
        message: the sentence of TensorFlow's text that says it, as
            ``utils.machine.errors.reason`` cuts it out.

    Introduced in lesson 04.
    """

    def __init__(self, operation: str, kind: Failure, message: str) -> None:
        """Hold what the attributes say."""
        super().__init__(message)
        self.operation = operation
        self.kind = kind
        self.message = message
