"""Text in columns."""

import pytest

from utils.table import table


def test_columns_are_as_wide_as_their_longest_cell():
    rows = [("name", "MB", "verdict"), ("A", 13756, "fits"), ("long name", 9, "")]
    assert table(rows, right=[1]).splitlines() == [
        "name          MB  verdict",
        "A          13756  fits",
        "long name      9",
    ]
    assert table([]) == ""


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(ValueError):
        table([("a", "b"), ("c",)])
