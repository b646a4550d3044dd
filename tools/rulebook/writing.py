"""Rules for prose."""

import re

from tools.prose import plain, words
from tools.rulebook import LESSON, SOLUTION, Page, Problems, rule

CORE_WORDS, ALL_WORDS = (900, 1800), 2600
UNWANTED = re.compile(r"(?i)\b(just|easy|easily|obviously|simply)\b")


@rule(LESSON)
def word_count(page: Page) -> Problems:
    end = next((i for i, title in page.sections if title.startswith("In your project")), None)
    core = sum(words(cell.source) for index, cell in page.text if end is None or index < end)
    total = sum(words(cell.source) for _, cell in page.text)
    low, high = CORE_WORDS
    if not low <= core <= high:
        yield None, f"{core} words before the closing sections; {low} to {high} are right"
    if total > ALL_WORDS:
        yield None, f"{total} words; {ALL_WORDS} are the most"


@rule(LESSON, SOLUTION)
def unwanted_words(page: Page) -> Problems:
    for index, cell in page.text:
        for word in UNWANTED.findall(plain(cell.source)):
            yield index, f"the word {word!r} helps nobody who finds it hard; leave it out"
