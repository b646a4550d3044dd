"""Placement on a machine that is not there."""

from utils.placement.imagined.machine import ImaginedMachine, ImaginedPlacement, ImaginedRow
from utils.placement.imagined.words import Failure, PlacementError, Rule

__all__ = [
    "Failure",
    "ImaginedMachine",
    "ImaginedPlacement",
    "ImaginedRow",
    "PlacementError",
    "Rule",
]
