"""What a markdown cell says: headings, paragraphs, sentences, bold terms, links, words.

markdown-it reads the markdown, so code, tables and headings are told apart as Jupyter does.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

MARKDOWN = MarkdownIt("commonmark").enable("table")
OUTSIDE = ("heading_open", "th_open", "td_open")  # their text is no running prose
# A sentence ends at . ! or ? (with what closes it) before a blank and no lower-case letter.
SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?][*_\"”’')\]]*\s+(?=[^a-z\s])")


def headings(source: str) -> list[tuple[int, str]]:
    """(level, title) of each heading in a markdown cell."""
    tokens = MARKDOWN.parse(source)
    return [
        (int(token.tag[1]), text.content)
        for token, text in zip(tokens, tokens[1:], strict=False)
        if token.type == "heading_open"
    ]


def _inlines(source: str) -> Iterator[tuple[Token, Token]]:
    """(what opens it, the text) of each paragraph, heading and table cell."""
    tokens = MARKDOWN.parse(source)
    for opening, text in zip(tokens, tokens[1:], strict=False):
        if text.type == "inline":
            yield opening, text


def paragraphs(source: str) -> list[str]:
    """The markdown of each paragraph, list item and quotation; no headings, tables, code."""
    return [
        " ".join(text.content.split())
        for opening, text in _inlines(source)
        if opening.type not in OUTSIDE
    ]


def bullets(source: str) -> int:
    """How many list items there are."""
    return sum(token.type == "list_item_open" for token in MARKDOWN.parse(source))


def sentences(paragraph: str) -> list[str]:
    ends = [0, *(m.end() for m in SENTENCE_END.finditer(paragraph)), len(paragraph)]
    pieces = (paragraph[a:b].strip() for a, b in zip(ends, ends[1:], strict=False))
    return [piece for piece in pieces if piece]


def _children(source: str) -> Iterator[Token]:
    for _, text in _inlines(source):
        yield from text.children or []


def bold(source: str) -> list[str]:
    """What stands in **bold**, in order."""
    found: list[str] = []
    inside = False
    for token in _children(source):
        if token.type == "strong_open":
            inside = True
            found.append("")
        elif token.type == "strong_close":
            inside = False
        elif inside:
            found[-1] += token.content or (" " if token.type == "softbreak" else "")
    return found


def links(source: str) -> list[str]:
    """Targets of links and pictures, in markdown or HTML."""
    found = []
    for token in [*_children(source), *MARKDOWN.parse(source)]:
        target = token.attrGet("href") or token.attrGet("src")
        if target:
            found.append(str(target))
        if token.type in ("html_inline", "html_block"):
            found += re.findall(r"""\b(?:href|src)=["']([^"']+)""", token.content)
    return found


def plain(source: str) -> str:
    """All text a reader reads, headings and tables too, without code and markup."""
    tokens = [*_children(source), *MARKDOWN.parse(source)]
    texts = [
        re.sub(r"<[^>]*>", " ", token.content)
        for token in tokens
        if token.type in ("text", "html_block")
    ]
    return " ".join(texts)


def words(source: str) -> int:
    """Words in paragraphs, lists and quotations; code in a sentence counts."""
    return sum(len(re.findall(r"\w[\w'’./-]*", text)) for text in paragraphs(source))
