"""Checks of the exercises: how they report, the learner's guesses, then one file per lesson."""

from utils.checks.predictions import Predictions

__all__ = [
    "Predictions",
]
