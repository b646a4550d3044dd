"""One answer in many dresses; one clear error where it is none."""

import collections
import itertools
from fractions import Fraction

import numpy as np
import pytest
import tensorflow as tf

from utils.checks import normalising as to
from utils.checks.outcome import check, not_yet
from utils.checks.trying import Counted, at_most, returned

v1 = tf.compat.v1


@pytest.fixture
def told(capsys, monkeypatch):
    """What a check says that calls the function, without its head."""
    monkeypatch.delenv("COURSE_STRICT", raising=False)

    def run(function, *arguments):
        check("9.1", "")(lambda answer: function(*arguments))(1)
        return capsys.readouterr().out.partition("not yet: ")[2].rstrip("\n")

    return run


def symbolic():
    with tf.Graph().as_default():
        return tf.constant(4)


def variable_of_a_graph():
    with tf.Graph().as_default():
        return v1.get_variable("v", initializer=4)


class Four:
    def __float__(self):
        return 4.0


FOURS = [
    *(4, 4.0, np.int64(4), np.float32(4), np.uint8(4), np.array(4), np.array(4.0)),
    *(tf.constant(4), tf.constant(4.0), tf.Variable(4), tf.constant(4, tf.bfloat16)),
    *(Fraction(8, 2), Four(), np.longdouble(4)),
]
NO_NUMBERS = {
    "the text '4'": "4",
    "the truth value True": np.bool_(True),
    "None": None,
    "the number nan": np.float32("nan"),
    "the number inf": float("inf"),
    "a list with 1 parts": [4],
    "an array of shape (1,)": np.array([4]),
    "a complex": 4j,
    "a function": returned,
}


@pytest.mark.parametrize("value", FOURS, ids=lambda value: type(value).__name__)
def test_four(value):
    for kind, result in ((int, to.whole(value)), (float, to.number(value))):
        assert result == 4
        assert type(result) is kind


@pytest.mark.parametrize("function", [to.whole, to.number])
@pytest.mark.parametrize("found", NO_NUMBERS)
def test_no_number(told, function, found):
    text = told(function, NO_NUMBERS[found], "the rate")
    assert text.startswith(f"the rate is {found}; expected is a ")
    assert text.endswith(" number.")


def test_numbers_that_are_not_whole(told):
    assert told(to.whole, 3.5) == "the answer is the number 3.5; expected is a whole number."
    assert to.number(3.5) == 3.5
    assert told(to.number, 10**400).endswith("expected is a finite number.")


@pytest.mark.parametrize("make", [symbolic, variable_of_a_graph])
def test_a_tensor_without_a_value(told, make):
    assert "which has no value before a run; expected is a" in told(to.whole, make())


@pytest.mark.parametrize("value", [np.bool_(True), True, tf.constant(True), np.array(True)])
def test_true(value):
    assert to.truth(value) is True


@pytest.mark.parametrize("value", [0, 1, "True", None, [True]])
def test_not_true(told, value):
    assert told(to.truth, value).endswith("; expected is True or False.")


@pytest.mark.parametrize(
    "value",
    ["GPU 1", "gpu 1", " Gpu  1\n", "gpu1", np.str_("GPU 1"), b"GPU 1", tf.constant("gpu 1")],
)
def test_a_name(value):
    assert to.choice(value, ("host", "GPU 1")) == "GPU 1"


def test_no_such_name(told):
    assert told(to.choice, "GPU 2", ("host", "GPU 1"), "c") == "c: 'GPU 2' is none of host, GPU 1."
    assert len(told(to.choice, "x" * 10**6, ("host",))) < 100
    assert told(to.choice, 1, ("host",)) == "the answer is the number 1; expected is a text."


@pytest.mark.parametrize(
    "value",
    [
        *([1, 2], (1, 2), {1, 2}, frozenset([1, 2]), np.array([1, 2]), tf.constant([1, 2])),
        *(range(1, 3), (i for i in (1, 2)), collections.deque([1, 2]), {1: 0, 2: 0}.keys()),
    ],
)
def test_items(value):
    assert to.items(value, length=2) == [1, 2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ab", "it is the text 'ab'; expected is a list."),
        ({}, "it is a dict with 0 parts; expected is a list."),
        (3, "it is the number 3; expected is a list."),
        (None, "it is None; expected is a list."),
        ([1], "it has 1 parts; expected are 2."),
        (itertools.count(), "it has more than 10000 parts."),
    ],
)
def test_no_items(told, value, text):
    assert told(to.items, value, "it", 2) == text


def test_a_table():
    given = {" B": 2, "a": 1}
    assert list(to.table(given, ["a", "b"]).items()) == [("a", 1), ("b", 2)]
    assert to.table({(0, 1): "x", np.int64(3): "y"}, [(0, 1), 3]) == {(0, 1): "x", 3: "y"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1], "the answer is a list with 1 parts; expected is a dict with the keys a, b."),
        ({"a": 1}, "the answer has no key b; keep all of its keys: a, b."),
        ({"a": 1, "b": 2, "c": 3}, "the answer has the key c; keep only its own keys: a, b."),
        ({"x": 1}, "the answer has none of the keys a, b. Run the cell above first."),
    ],
)
def test_no_table(told, value, text):
    assert told(to.table, value, ["a", "b"]) == text


@pytest.mark.parametrize(
    "value", [[[1, 2]], np.array([[1.0, 2]]), tf.constant([[1, 2]]), (tf.constant([1, 2]),)]
)
def test_an_array(value):
    assert np.array_equal(to.array(value, shape=(1, 2)), [[1, 2]])


@pytest.mark.parametrize("value", [[[1, 2], [3]], "12", None, ["a"], symbolic(), [True]])
def test_no_array(told, value):
    assert told(to.array, value).endswith("; expected is an array of numbers.")


def test_another_shape(told):
    text = "the loss has shape (2,); expected is (2, 1)."
    assert told(to.array, [1, 2], "the loss", (2, 1)) == text


def test_a_tensor(told):
    for value in (tf.constant(1), symbolic()):
        assert to.tensor(value) is value
    assert told(to.tensor, [1]) == "the result is a list with 1 parts; expected is one tensor."


# --- trying -------------------------------------------------------------------------------------


def test_what_a_function_returned(told):
    def forgets(x):
        x + 1  # noqa: B018

    assert returned(lambda x: x + 1, 2) == 3
    assert told(returned, forgets, 1) == "forgets returned None. Does it end with `return`?"
    assert told(returned, 3) == "the answer is a int; expected is a function."


def test_calls_are_counted(told):
    measure = Counted(lambda x, by: x + by, 2, "more than two measurements.")
    assert [measure(1, by=1), measure(2, 2)] == [2, 4]
    assert told(measure, 1, 1) == "more than two measurements."
    assert measure.calls == 3


def test_sizes_are_bounded(told):
    assert at_most(np.int64(64), 100, "the batch") == 64
    text = "the batch is 1000000: more than 100 is not tried here."
    assert told(at_most, 10**6, 100, "the batch") == text


def test_not_yet_goes_through_an_answer_that_catches(told):
    def catches():
        try:
            not_yet("told.")
        except Exception:
            return 1

    assert told(catches) == "told."
