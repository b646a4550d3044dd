"""Numbers that a caller gives: one behaviour, whoever asks."""

import numpy as np
import pytest

from utils.numbers import real, whole


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2), np.array(2)])
def test_whole_numbers(value):
    assert whole("n", value, 1, 3) == 2 and type(whole("n", value, 1)) is int


@pytest.mark.parametrize("value", [True, np.bool_(True), 2.0, "2", None, [2], np.ones(2)])
def test_what_is_no_whole_number(value):
    with pytest.raises(TypeError, match=r"^n=.*: give a whole number of at least 1\.$"):
        whole("n", value, 1)


@pytest.mark.parametrize("value", [0, 4, np.int64(4)])
def test_whole_numbers_out_of_range(value):
    with pytest.raises(ValueError, match=rf"^n={value}: give a whole number from 1 to 3\.$"):
        whole("n", value, 1, 3)


@pytest.mark.parametrize("value", [2, 2.5, np.float32(2.5), np.int64(2)])
def test_numbers(value):
    assert real("x", value, above=0) == value and type(real("x", value)) is float


@pytest.mark.parametrize("value", [True, np.bool_(False), "2.5", None, [1.0]])
def test_what_is_no_number(value):
    with pytest.raises(TypeError, match=r"^x=.*: give a finite number greater than 0\.$"):
        real("x", value, above=0)


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_numbers_out_of_range(value):
    with pytest.raises(ValueError, match=r"^x=.*: give a finite number greater than 0\.$"):
        real("x", value, above=0)
