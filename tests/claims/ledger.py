"""The mark that ties a test to a claim of the classic texts."""

from collections.abc import Callable
from typing import TypeVar

from tools.claims import Claim

Test = TypeVar("Test", bound=Callable[..., object])


def claim(
    id: str,
    text: str,
    *,
    verdict: str,
    lesson: str,
    section: str,
    finding: str,
    hardware: bool = False,
    data: str = "",
) -> Callable[[Test], Test]:
    """Say which claim the decorated test settles.

    Write every argument out as a plain value: the page is made without importing the test.
    A claim with several tests is carried by the first; the others stand undecorated.

    Args:
        id: as in the ledger, such as "C07".
        text: the claim in our words.
        verdict: "true", "changed" (true in a new form) or "false today".
        lesson: the number of the lesson that shows it, such as "03".
        section: the title of its section, such as "2 · Read the log".
        finding: one sentence: what the test establishes.
        hardware: only hardware could settle it.
        data: the file under data/ that the test reads instead; the page says its origin.
    """
    entry = Claim(id, text, verdict, lesson, section, finding, hardware, data)

    def mark(test: Test) -> Test:
        test.claim = entry  # type: ignore[attr-defined]
        return test

    return mark
