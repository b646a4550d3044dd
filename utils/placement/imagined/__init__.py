"""Placement on a machine that is not there."""

from utils.placement.imagined.machine import ImaginedMachine
from utils.placement.imagined.words import Failure

__all__ = ["Failure", "ImaginedMachine"]
