"""Text in columns: the one table of all helpers that print."""

from collections.abc import Collection, Sequence


def table(rows: Sequence[Sequence[object]], right: Collection[int] = ()) -> str:
    """Return rows as lines of aligned columns, two blanks apart.

    Args:
        rows: the head first, if there is one; equally many cells in each.
        right: the columns, counted from 0, whose cells stand at the right.

    Raises:
        ValueError: the rows differ in length.

    Introduced in lesson 00, behind the table of guesses.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    wide = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        cells = (
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, wide, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
