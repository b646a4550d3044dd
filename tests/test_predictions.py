"""Guesses beside what happened."""

import pytest

from utils.checks.predictions import Predictions


def test_a_guess_and_what_happened(capsys):
    guess = Predictions()
    guess["transfers"] = 4
    guess["tracings"] = ...
    guess.reveal("transfers", 3)
    assert capsys.readouterr().out == "transfers: you said 4, it was 3\n"
    table = str(guess).splitlines()
    assert [line.split("  ")[0] for line in table] == [
        "question",
        "transfers",
        "tracings",
    ]
    assert table[1].split() == ["transfers", "4", "3"]
    assert table[2].split() == ["tracings", "nothing", "not", "run", "yet"]


def test_a_second_guess_replaces_the_first(capsys):
    guess = Predictions()
    guess["n"] = 1
    guess["n"] = 0
    guess.reveal("n", 0)
    assert "you said 0, it was 0" in capsys.readouterr().out


def test_no_guess_is_an_error_that_lists_the_questions():
    guess = Predictions()
    guess["transfers"] = 4
    with pytest.raises(KeyError, match="no guess 'tracings'.*'transfers'"):
        guess.reveal("tracings", 2)
