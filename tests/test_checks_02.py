"""The checks of lesson 02: right, right in another way, wrong, untouched."""

import contextlib

import pytest

from utils.checks import lesson02

RIGHT = {"1,3": [1, 3], "3,0,2": [3, 0, 2], "2,7,1": [2], "-1,0": [], "": []}


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (RIGHT, "correct"),
        ({key: tuple(cards) for key, cards in RIGHT.items()}, "correct"),
        (RIGHT | {"3,0,2": [0, 2, 3]}, "'3,0,2' again: the cards are right, their order"),
        (RIGHT | {"1,3": [3, 1]}, "'1,3' again: the cards are right, their order"),
        (RIGHT | {"2,7,1": [2, 1]}, "'2,7,1' again: is there a number in it that no card has"),
        (RIGHT | {"2,7,1": [2, 7, 1]}, "'2,7,1' again: there are only cards 0 to 3"),
        (RIGHT | {"-1,0": [0]}, "'-1,0' again: is there a number"),
        (RIGHT | {"": [0, 1, 2, 3]}, "set to nothing is something else"),
        (RIGHT | {"1,3": [0, 2]}, "'1,3' again: each number names a card"),
        (RIGHT | {"1,3": 1}, "give a list of cards"),
        (RIGHT | {"1,3": ...}, "'1,3' has no answer yet"),
        ([[1, 3]], "keep a dict"),
        ({"1,3": [1, 3]}, "keep a dict"),
        (dict.fromkeys(RIGHT, ...), "not attempted"),
    ],
)
def test_renumber(said, answer, part):
    assert part in said(lesson02.check_02_renumber, answer)


def _limits():
    def right(needs, card_mb, context_mb):
        pools = card_mb - len(needs) * context_mb
        return [need * pools // sum(needs) for need in needs]

    def rest_in_equal_parts(needs, card_mb, context_mb):
        rest = card_mb - len(needs) * context_mb - sum(needs)
        return tuple(need + rest // len(needs) for need in needs)

    def equal_parts(needs, card_mb, context_mb):
        return [(card_mb - len(needs) * context_mb) // len(needs)] * len(needs)

    def without_contexts(needs, card_mb, context_mb):
        return [need * card_mb // sum(needs) for need in needs]

    def only_needs(needs, card_mb, context_mb):
        return needs

    def with_a_fraction(needs, card_mb, context_mb):
        pools = card_mb - len(needs) * context_mb
        return [need * pools / sum(needs) for need in needs]

    def one_number(needs, card_mb, context_mb):
        return card_mb // len(needs)

    def crashes(needs, card_mb, context_mb):
        return [needs["A"]]

    def stub(needs, card_mb, context_mb):
        """Return a memory limit in MB for each program."""
        ...

    return {
        right: "correct",
        rest_in_equal_parts: "correct",
        equal_parts: "a program that needs 5,500 MB has a limit of 4,570",
        without_contexts: "What does a program hold on the card beside its pool?",
        only_needs: "belong to nobody",
        with_a_fraction: "give whole MB",
        one_number: "return one limit per program",
        crashes: "raised TypeError",
        stub: "not attempted",
    }


def test_limits(said):
    for answer, part in _limits().items():
        assert part in said(lesson02.check_02_limits, answer), answer.__name__


def _configurations():
    import tensorflow as tf

    from utils.memory import set_gpu_memory

    config = tf.config
    limit = config.LogicalDeviceConfiguration(memory_limit=4096)

    def gpus():
        return config.list_physical_devices("GPU")

    def right():
        for gpu in gpus():
            config.set_logical_device_configuration(gpu, [limit])

    def with_the_helper():
        set_gpu_memory(limit_mb=4096)

    def right_and_looks_afterwards():
        right()
        config.list_logical_devices("GPU")

    def as_given():
        for gpu in gpus():
            config.experimental.set_memory_growth(gpu, True)
        config.list_logical_devices("GPU")
        with contextlib.suppress(RuntimeError):
            config.set_logical_device_configuration(gpus()[0], [limit])

    def too_late():
        config.list_logical_devices("GPU")
        right()

    def too_late_with_the_helper():
        config.list_logical_devices()
        with_the_helper()

    def too_late_and_silent():
        with contextlib.suppress(RuntimeError):
            too_late()

    def both():
        for gpu in gpus():
            config.experimental.set_memory_growth(gpu, True)
        right()

    def limit_first():
        right()
        config.experimental.set_memory_growth(gpus()[0], True)

    def only_the_first():
        config.set_logical_device_configuration(gpus()[0], [limit])

    def another_limit():
        set_gpu_memory(limit_mb=1024)

    def two_parts():
        for gpu in gpus():
            config.set_logical_device_configuration(gpu, [limit] * 2)

    def a_tensor_first():
        tf.zeros([2])
        right()

    def nothing():
        return gpus()

    def stub():
        """Hold every GPU to 4,096 MB."""
        ...

    return {
        right: "correct",
        with_the_helper: "correct",
        right_and_looks_afterwards: "correct",
        as_given: "the GPUs grow, and nothing holds them",
        too_late: "set up before the setting came",
        too_late_with_the_helper: "set up before the setting came",
        too_late_and_silent: "came too late, and its error was caught",
        both: "growth and a limit are both set",
        limit_first: "raised ValueError: Cannot set memory growth on device when virtual",
        only_the_first: "on a machine with 2 GPU(s), GPU 1 has no limit",
        another_limit: "GPU 0 has the limits [1024]",
        two_parts: "GPU 0 has the limits [4096, 4096]",
        a_tensor_first: "Nothing runs on GPUs that are stand-ins",
        nothing: "on a machine with 2 GPU(s), GPU 0 has no limit",
        stub: "not attempted",
    }


def test_configure(said, machine):
    import tensorflow as tf

    before = tf.config.list_logical_devices()
    for answer, part in _configurations().items():
        assert part in said(lesson02.check_02_configure, answer), answer.__name__
    assert tf.config.list_logical_devices() == before


def _largest_batches():
    def right(measure, limit):
        small, large = measure(32), measure(64)
        each = (large - small) // 32
        return (limit - small + 32 * each) // each

    def by_other_points(measure, limit):
        first, second = measure(2), measure(3)
        return 2 + (limit - first) // (second - first)

    def from_one_image(measure, limit):
        first, second = measure(1), measure(2)
        return 1 + (limit - first) // (second - first)

    def in_proportion(measure, limit):
        return limit * 32 // measure(32)

    def without_what_is_fixed(measure, limit):
        return limit // (measure(33) - measure(32))

    def one_more(measure, limit):
        return right(measure, limit) + 1

    def halves(measure, limit):
        batch = 2
        while measure(2 * batch) <= limit:
            batch *= 2
        return batch

    def not_whole(measure, limit):
        small, large = measure(32), measure(64)
        return (limit - small) / (large - small) * 32 + 32

    def negative(measure, limit):
        return -5

    def stub(measure, limit):
        """Return the largest batch with measure(batch) <= limit."""
        ...

    return {
        right: "correct",
        by_other_points: "correct",
        from_one_image: "Measure larger batches",
        in_proportion: "but a larger batch fits as well",
        without_what_is_fixed: "What does a step take whatever the batch is?",
        one_more: "which does not fit",
        halves: "A line needs two",
        not_whole: "return a whole number",
        negative: "which does not fit",
        stub: "not attempted",
    }


def test_largest_batch(said):
    for answer, part in _largest_batches().items():
        assert part in said(lesson02.check_02_largest_batch, answer), answer.__name__


def test_a_measured_step_is_the_sum_of_what_it_took_and_received(machine):
    # 784-16-10: gradients and weights, 4 single numbers; per image the values on the way
    # (16 and 16, 10, 3 around the loss), the pixels, and a digit of 8 bytes.
    weights = 784 * 16 + 16 + 160 + 10
    fixed, each = 4 * (2 * weights + 4), 4 * (16 + 16 + 10 + 3 + 784) + 8
    measure = lesson02.measured_step(16)
    assert [measure(batch) for batch in (2, 50)] == [fixed + 2 * each, fixed + 50 * each]
