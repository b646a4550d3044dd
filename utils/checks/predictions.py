"""What the learner predicted, beside what happened."""


class Predictions:
    """Keep a learner's guesses and show them beside what happened.

    Write a guess with ``guess["tracings"] = 3`` before the cell that finds
    out; that cell calls ``guess.reveal("tracings", what_happened)``. A guess
    left at ``...`` counts as no guess.

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
        """Print the guess and what happened, and keep both for the table.

        Args:
            question: the same words as in the guess.
            happened: what the run showed; never typed in by hand.

        Raises:
            KeyError: there is no cell with a guess of that name, or it was
                not run.
        """
        if question not in self._guesses:
            known = ", ".join(map(repr, self._guesses)) or "none"
            raise KeyError(
                f"no guess {question!r}; there are: {known}. Run the cell with the guess first."
            )
        self._happened[question] = happened
        print(f"{question}: you said {self._said(question)}, ", end="")
        print(f"it was {happened}")

    def __str__(self) -> str:
        """Return the table of all guesses beside what happened."""
        head = ("question", "you said", "what happened")
        rows = [
            (q, self._said(q), str(self._happened.get(q, "not run yet"))) for q in self._guesses
        ]
        wide = [max(len(row[i]) for row in (head, *rows)) for i in range(3)]
        return "\n".join(
            "  ".join(f"{cell:<{w}}" for cell, w in zip(row, wide, strict=True)).rstrip()
            for row in (head, *rows)
        )

    def _said(self, question: str) -> str:
        guess = self._guesses[question]
        return "nothing" if guess is ... else str(guess)
