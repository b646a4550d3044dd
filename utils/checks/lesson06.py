"""Checks of the exercises of lesson 06.

In the first four the learner writes a check. It is tried on programs that are
right and on programs with the bug, each written in more than one way.
"""

from collections.abc import Callable

import numpy as np

from utils.checks.outcome import check, not_yet
from utils.training import mean_loss

RATE = 0.5


def _step(deal: Callable, count: Callable, report: Callable) -> Callable:
    """Return a program: a step with towers, as the exercises describe it.

    Args:
        deal: function of (number of images, of towers): each tower's rows.
        count: function of the shards' sizes: how much each tower counts.
        report: function of (losses, how much each counts): the loss.
    """

    def step(weights, x, y, gpus):
        import tensorflow as tf

        losses, gradients, sizes = [], [], []
        for gpu, rows in zip(gpus, deal(len(x), len(gpus)), strict=True):
            with tf.device(gpu), tf.GradientTape() as tape:
                loss = mean_loss(weights, tf.gather(x, rows), tf.gather(y, rows))
            losses.append(loss)
            gradients.append(tape.gradient(loss, weights))
            sizes.append(len(rows))
        shares = count(sizes)
        for weight, *parts in zip(weights, *gradients, strict=True):
            mean = tf.add_n([s * g for s, g in zip(shares, parts, strict=True)])
            weight.assign_sub(RATE * mean)
        return report(losses, shares)

    return step


def _in_order(images: int, towers: int) -> list:
    return np.array_split(np.arange(images), towers)


def _in_turn(images: int, towers: int) -> list:
    return [np.arange(images)[tower::towers] for tower in range(towers)]


def _all_the(which: int) -> Callable:
    """Deal the same part of the batch to every tower."""
    return lambda images, towers: [_in_order(images, towers)[which]] * towers


def _by_size(sizes: list) -> list:
    return [size / sum(sizes) for size in sizes]


def _alike(sizes: list) -> list:
    return [1 / len(sizes)] * len(sizes)


def _mean(losses: list, shares: list):
    return sum(s * loss for s, loss in zip(shares, losses, strict=True))


# What the message about a learner's check calls a program: the program.
RIGHT = {
    "a right program": _step(_in_order, _by_size, _mean),
    "a right program that deals the images in turn": _step(_in_turn, _by_size, _mean),
}
SAME_BATCH = {
    "a program whose towers all read the first part": _step(_all_the(0), _by_size, _mean),
    "a program whose towers all read the last part": _step(_all_the(-1), _by_size, _mean),
}
LAST_LOSS = {
    "a program that reports the last tower's loss": _step(
        _in_order, _by_size, lambda losses, shares: losses[-1]
    ),
    "a program that reports the first tower's loss": _step(
        _in_order, _by_size, lambda losses, shares: losses[0]
    ),
}
MEAN_OF_MEANS = {
    "a program whose towers all count alike": _step(_in_order, _alike, _mean),
}


def _fails(answer: Callable, program: Callable) -> bool:
    """Tell whether the learner's check fails on a program.

    Any other exception is a mistake in the learner's check, and is reported.
    """
    try:
        result = answer(program)
    except AssertionError:
        return True
    if result is not None:
        not_yet(
            f"your check returns {result!r}. Let an assert fail where the "
            "program is wrong, and return nothing."
        )
    return False


def _try(answer: Callable, right: dict, wrong: dict, passed: str, failed: str) -> None:
    """Try a learner's check on right programs and on wrong ones.

    Args:
        answer: the learner's check.
        right: words for a program to the program; the check must pass it.
        wrong: the same, where it must fail.
        passed: the likely cause if a wrong program passes.
        failed: the likely cause if a right program fails.
    """
    for words, program in wrong.items():
        if not _fails(answer, program):
            not_yet(f"it lets {words} pass. {passed}")
    for words, program in right.items():
        if _fails(answer, program):
            not_yet(f"it fails on {words}. {failed}")


@check(
    "6.1",
    "an input pipeline that is built inside the loop, with the same seed, "
    "makes this bug. The program learns, from a part of its data.",
)
def check_06_same_batch(answer: Callable) -> None:
    """Try the learner's check on towers that read the same images.

    Args:
        answer: function of a step; an assert in it fails on the bug.
    """
    _try(
        answer,
        RIGHT,
        SAME_BATCH,
        "What do four towers change that one does not, whatever part is read?",
        "Does it compare numbers exactly? Sums in another order differ by "
        "rounding, and right programs may deal images in any order.",
    )


@check(
    "6.2",
    "the loss is what you look at while training, and what decides when to "
    "stop. One tower's loss is noisier than the batch's.",
)
def check_06_last_loss(answer: Callable) -> None:
    """Try the learner's check on steps that report one tower's loss.

    Args:
        answer: function of a step; an assert in it fails on the bug.
    """
    _try(
        answer,
        RIGHT,
        LAST_LOSS,
        "Does it look at the loss, with more than one tower?",
        "The loss of a step is that before the update, up to rounding.",
    )


@check(
    "6.3",
    "the last batch of a data set is rarely divisible. The bug is small and "
    "stops no program; an exact comparison finds it.",
)
def check_06_mean_of_means(answer: Callable) -> None:
    """Try the learner's check on towers that count alike.

    Args:
        answer: function of a step; an assert in it fails on the bug.
    """
    _try(
        answer,
        RIGHT,
        MEAN_OF_MEANS,
        "Are the shards of your batch unequal? And is the difference that you allow small enough?",
        "The programs weight by size. Does it compare with one tower and "
        "the same batch, up to rounding?",
    )


def _network(names: Callable, reuse: bool) -> Callable:
    """Return a function that builds a small network per tower."""

    def build(gpus):
        import tensorflow as tf

        v1 = tf.compat.v1
        for number, gpu in enumerate(gpus):
            scope = v1.variable_scope(names(number), reuse=v1.AUTO_REUSE if reuse else None)
            with tf.device(gpu), scope:
                x = v1.placeholder("float32", [None, 784])
                tf.matmul(x, v1.get_variable("kernel", [784, 10])) + v1.get_variable("bias", [10])

    return build


def _made_once(gpus) -> None:
    """Build towers whose variables are made before the loop."""
    import tensorflow as tf

    v1 = tf.compat.v1
    kernel = v1.get_variable("kernel", [784, 10])
    for gpu in gpus:
        with tf.device(gpu):
            tf.matmul(v1.placeholder("float32", [None, 784]), kernel)


def _without_names(gpus) -> None:
    """Build towers with variables that nobody can ask for by name."""
    import tensorflow as tf

    v1 = tf.compat.v1
    for gpu in gpus:
        with tf.device(gpu):
            kernel = v1.Variable(np.zeros((784, 10), np.float32))
            tf.matmul(v1.placeholder("float32", [None, 784]), kernel)


SHARED = {
    "a program that shares its variables": _network(lambda number: "net", reuse=True),
    "a program with one variable, made before the loop": _made_once,
}
PER_TOWER = {
    "a program with a name scope per tower": _network("tower_{}".format, reuse=False),
    "a program that makes a new variable in each tower": _without_names,
}


@check(
    "6.4",
    "each tower then trains alone on a part of the data. The number of "
    "trainable variables must not grow with the towers.",
)
def check_06_variables(answer: Callable) -> None:
    """Try the learner's check on towers with variables of their own.

    Args:
        answer: function of a build function; an assert in it fails on the bug.
    """
    import tensorflow as tf

    def tried(build):
        """Keep what the learner's check builds out of later graphs."""
        with tf.Graph().as_default():
            return answer(build)

    _try(
        tried,
        SHARED,
        PER_TOWER,
        "Does it compare the number of variables for different numbers of towers?",
        "The networks differ in size: compare two numbers of towers, each in "
        "a graph of its own, not with a fixed number.",
    )


def _average(gradients: list, sizes: list) -> list:
    """Return the right average, computed with NumPy."""
    total = sum(sizes)
    kept = [(n / total, g) for n, g in zip(sizes, gradients, strict=True) if n]
    return [sum(s * g[i] for s, g in kept) for i in range(len(gradients[0]))]


@check(
    "6.5",
    "with this average, towers and one device stay equal to the last image of a data set.",
)
def check_06_average(average: Callable) -> None:
    """Compare the learner's average with the right one, for many sizes.

    Args:
        average: function of (gradients, sizes) that returns one gradient
            per weight.
    """
    import tensorflow as tf

    random = np.random.RandomState(6)
    for sizes in ([4, 4], [5], [4, 4, 2], [1, 2, 3, 4], [1, 1, 1, 0], [0, 3]):
        towers = [[random.rand(3, 2), random.rand(2)] for _ in sizes]
        for n, parts in zip(sizes, towers, strict=True):
            if n == 0:  # what a mean over the gradients of no images gives
                parts[:] = [np.full_like(part, np.nan) for part in parts]
        given = [[tf.constant(part) for part in parts] for parts in towers]
        found = average(given, list(sizes))
        _compare(found, towers, sizes)


def _compare(found, towers: list, sizes: list) -> None:
    right = _average(towers, sizes)
    if not isinstance(found, (list, tuple)) or len(found) != len(right):
        not_yet(f"for {len(right)} weights return a list of {len(right)} gradients.")
    found = [np.asarray(gradient) for gradient in found]
    where = f"for shards of {sizes} images"
    if any(g.shape != r.shape for g, r in zip(found, right, strict=True)):
        not_yet(f"{where} a gradient has another shape than its weight.")
    if any(np.isnan(gradient).any() for gradient in found):
        not_yet(f"{where} the average is NaN: an empty tower still takes part.")
    if all(np.allclose(g, r, rtol=1e-12) for g, r in zip(found, right, strict=True)):
        return
    full = [g for n, g in zip(sizes, towers, strict=True) if n]
    alike = _average(full, [1] * len(full))
    if all(np.allclose(g, a) for g, a in zip(found, alike, strict=True)):
        not_yet(f"{where} all towers count alike: that is the mean of means.")
    if all(np.allclose(g, sum(sizes) * r) for g, r in zip(found, right, strict=True)):
        not_yet(f"{where} it is a sum over images. Divide by the whole batch.")
    not_yet(f"{where} the average is not the gradient of the whole batch's mean.")
