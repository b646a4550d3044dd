"""What the learner predicted, beside what happened."""

import textwrap
from numbers import Real

from utils.table import table

WIDTH = 79  # characters in a line of output
NEAR = 0.2  # a guess that is off by one, or by at most this share, is near


class Predictions:
    """Keep a learner's guesses and show them beside what happened.

    Write a guess with ``guess["tracings"] = 3`` before the cell that finds
    out; that cell calls ``guess.reveal("tracings", what_happened)``. A guess
    left at ``...`` is no guess: then the result is shown alone.

    Introduced in lesson 00.
    """

    def __init__(self) -> None:
        """Start without guesses."""
        self._guesses: dict[str, object] = {}
        self._happened: dict[str, object] = {}

    def __setitem__(self, question: str, guess: object) -> None:
        """Write down a guess; a later one replaces it."""
        self._guesses[question] = guess

    def reveal(self, question: str, happened: object) -> None:
        """Print what happened, beside the guess if there is one; keep both for the table.

        Args:
            question: the same words as in the guess.
            happened: what the run showed; never typed in by hand.
        """
        self._happened[question] = happened
        guess = self._guesses.get(question, ...)
        if guess is ...:
            text = f"{question}: {happened}"
        else:
            how = closeness(guess, happened)
            text = f"{question}: you predicted {guess}, it was {happened}: {how}."
            if how == "different":
                text += " What in your picture was different?"
        print(textwrap.fill(text, WIDTH))

    def __str__(self) -> str:
        """Return a table of what happened, beside the guesses that were made."""
        made = {q: guess for q, guess in self._guesses.items() if guess is not ...}
        rows = [("question", "you predicted", "what happened")]
        for question, happened in self._happened.items():
            rows.append((question, str(made.get(question, "")), str(happened)))
        if not made:
            rows = [(question, happened) for question, _, happened in rows]
        return table(rows)


def closeness(guess: object, happened: object) -> str:
    """Return ``"equal"``, ``"near"`` or ``"different"``.

    Numbers are near if they are one apart, or a fifth of what happened. Texts are compared
    without capitals and blanks at their ends.

    Introduced in lesson 00, behind ``Predictions``.
    """
    texts = [str(value).strip().casefold() for value in (guess, happened)]
    if texts[0] == texts[1]:
        return "equal"
    numbers = [v for v in (guess, happened) if isinstance(v, Real) and not isinstance(v, bool)]
    if len(numbers) < 2:
        return "different"
    apart = abs(float(guess) - float(happened))
    if not apart:
        return "equal"
    return "near" if apart <= max(1, NEAR * abs(float(happened))) else "different"
