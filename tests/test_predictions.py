"""Guesses beside what happened."""

import numpy as np
import pytest

from utils.checks import Predictions
from utils.checks.predictions import closeness


@pytest.mark.parametrize(
    ("guess", "happened", "how"),
    [
        (3, 3, "equal"),
        (3.0, np.int64(3), "equal"),
        (" Host", "host", "equal"),
        (True, np.bool_(True), "equal"),
        (4, 3, "near"),
        (1_000_000, 1_100_000, "near"),
        (5, 3, "different"),
        (True, 0, "different"),
        ("GPU 0", "GPU 1", "different"),
        (0.5, "error", "different"),
    ],
)
def test_how_near_a_guess_is(guess, happened, how):
    assert closeness(guess, happened) == how


def test_a_guess_beside_what_happened(capsys):
    guess = Predictions()
    guess["transfers"] = 9
    guess["transfers"] = 6
    guess["tracings"] = ...
    guess.reveal("transfers", 3)
    guess.reveal("tracings", 2)
    guess.reveal("never asked", 1)
    assert capsys.readouterr().out.splitlines() == [
        "transfers: you predicted 6, it was 3: different. What in your picture was",
        "different?",
        "tracings: 2",
        "never asked: 1",
    ]
    assert str(guess).splitlines() == [
        "question     you predicted  what happened",
        "transfers    6              3",
        "tracings                    2",
        "never asked                 1",
    ]


def test_without_a_guess_nobody_is_told_so(capsys):
    guess = Predictions()
    guess["transfers"] = ...
    guess.reveal("transfers", 3)
    assert capsys.readouterr().out == "transfers: 3\n"
    assert str(guess).splitlines() == ["question   what happened", "transfers  3"]
