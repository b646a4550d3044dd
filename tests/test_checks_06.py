"""The checks of lesson 06: right, right in another way, wrong, untouched."""

import re

import numpy as np
import pytest

from tests.lesson_cells import run_cells
from utils.checks import lesson06
from utils.training import initial_weights, mean_loss, mnist

SOLUTIONS = "solutions/06_in_graph_towers.ipynb"
IMAGES = mnist.inputs(mnist.load().train_images[:64], "float64")
LABELS = mnist.load().train_labels[:64]


@pytest.fixture
def after(machine):
    """What the exercises' `after` does, with the number of towers."""
    import tensorflow as tf

    def run(step, size, towers):
        weights = [tf.Variable(w) for w in initial_weights(dtype="float64")]
        x, y = tf.constant(IMAGES[:size]), tf.constant(LABELS[:size])
        loss = step(weights, x, y, machine.gpus[:towers])
        return [weight.numpy() for weight in weights], float(loss)

    return run


def far(one, other):
    return max(abs(a - b).max() for a, b in zip(one, other, strict=True))


def stub(step):
    """Fail if something is wrong."""
    ...


def always_fails(step):
    raise AssertionError


def never_fails(step):
    """Forgets to assert."""
    step  # noqa: B018


def judges(step):
    return True


COMMON = {
    stub: "not attempted",
    always_fails: "it fails on a",
    never_fails: "pass",
    judges: "your check returns True",
}


def try_all(said, check, answers):
    for answer, part in (COMMON | answers).items():
        line = said(check, answer)
        assert part in line, (answer.__name__, line)


def test_same_batch(said, after):
    def right(step):
        one, four = (after(step, 16, n)[0] for n in (1, 4))
        assert far(one, four) < 1e-12

    def by_hand(step):
        import tensorflow as tf

        weights = [tf.Variable(w) for w in initial_weights(dtype="float64")]
        with tf.GradientTape() as tape:
            loss = mean_loss(weights, IMAGES[:16], LABELS[:16])
        gradients = tape.gradient(loss, weights)
        wanted = [w.numpy() - 0.5 * g.numpy() for w, g in zip(weights, gradients, strict=True)]
        np.testing.assert_allclose(after(step, 16, 2)[0][0], wanted[0], atol=1e-12)

    def exactly(step):
        one, four = (after(step, 16, n)[0] for n in (1, 4))
        assert far(one, four) == 0.0

    def one_tower(step):
        one, again = (after(step, 16, 1)[0] for _ in range(2))
        assert far(one, again) < 1e-12

    def only_the_last_image(step):
        """Passes if the last image matters: not enough if all read the last part."""
        import tensorflow as tf

        results = []
        for scale in (1.0, 0.0):
            x = np.concatenate([IMAGES[:15], scale * IMAGES[15:16]])
            weights = [tf.Variable(w) for w in initial_weights(dtype="float64")]
            step(weights, tf.constant(x), tf.constant(LABELS[:16]), ["/CPU:0"] * 4)
            results.append([weight.numpy() for weight in weights])
        assert far(*results) > 0

    def own_mistake(step):
        return undefined  # noqa: F821

    try_all(
        said,
        lesson06.check_06_same_batch,
        {
            right: "correct",
            by_hand: "correct",
            exactly: "compare numbers exactly",
            one_tower: "all read the first part pass",
            only_the_last_image: "all read the last part pass",
            own_mistake: "your code raised NameError",
        },
    )


def test_last_loss(said, after):
    def right(step):
        loss = after(step, 16, 4)[1]
        wanted = mean_loss(initial_weights(dtype="float64"), IMAGES[:16], LABELS[:16])
        assert abs(loss - float(wanted)) < 1e-12

    def against_one_tower(step):
        assert np.isclose(after(step, 16, 2)[1], after(step, 16, 1)[1], rtol=1e-10)

    def weights_only(step):
        assert far(after(step, 16, 1)[0], after(step, 16, 4)[0]) < 1e-12

    def after_the_update(step):
        weights, loss = after(step, 16, 4)
        assert abs(loss - float(mean_loss(weights, IMAGES[:16], LABELS[:16]))) < 1e-12

    try_all(
        said,
        lesson06.check_06_last_loss,
        {
            right: "correct",
            against_one_tower: "correct",
            weights_only: "Does it look at the loss",
            after_the_update: "that before the update",
        },
    )


def test_mean_of_means(said, after):
    def unequal(size, towers, limit=1e-12):
        def answer(step):
            assert far(after(step, size, 1)[0], after(step, size, towers)[0]) < limit

        return answer

    def by_the_loss(step):
        assert abs(after(step, 10, 1)[1] - after(step, 10, 4)[1]) < 1e-12

    def two_batches(step):
        assert far(after(step, 10, 4)[0], after(step, 12, 4)[0]) < 1e-12

    try_all(
        said,
        lesson06.check_06_mean_of_means,
        {
            unequal(10, 4): "correct",
            unequal(7, 2): "correct",
            by_the_loss: "correct",
            unequal(16, 4): "Are the shards of your batch unequal",
            unequal(10, 4, limit=1.0): "small enough",
            two_batches: "the same batch",
        },
    )


def test_variables(said, machine):
    import tensorflow as tf

    v1 = tf.compat.v1

    def count(build, towers):
        with tf.Graph().as_default() as graph:
            build(machine.gpus[:towers])
            return len(graph.get_collection("trainable_variables"))

    def right(build):
        assert count(build, 1) == count(build, 3)

    def bytes_of_them(build):
        sizes = []
        for towers in (2, 4):
            with tf.Graph().as_default():
                build(machine.gpus[:towers])
                shapes = [v.shape.num_elements() for v in v1.trainable_variables()]
                sizes.append(sum(shapes))
        assert sizes[0] == sizes[1]

    def one_graph(build):
        counts = []
        with tf.Graph().as_default():
            for towers in (1, 1):
                build(machine.gpus[:towers])
                counts.append(len(v1.trainable_variables()))
        assert counts[0] == counts[1]

    def a_number(build):
        assert count(build, 4) == 2

    def one_tower(build):
        assert count(build, 1) == count(build, 1)

    def returns(build):
        return count(build, 1) == count(build, 2)

    try_all(
        said,
        lesson06.check_06_variables,
        {
            right: "correct",
            bytes_of_them: "correct",
            one_graph: "your code raised ValueError",
            a_number: "not with a fixed number",
            one_tower: "different numbers of towers",
            returns: "your check returns",
        },
    )


def test_average(said):
    import tensorflow as tf

    def weighted(keep, shares):
        def answer(gradients, sizes):
            pairs = [(n, g) for n, g in zip(sizes, gradients, strict=True) if keep(n)]
            parts = shares([n for n, _ in pairs])
            return [
                tf.add_n([s * g[i] for s, (_, g) in zip(parts, pairs, strict=True)])
                for i in range(len(gradients[0]))
            ]

        return answer

    def by_size(sizes):
        return [n / sum(sizes) for n in sizes]

    def alike(sizes):
        return [1 / len(sizes)] * len(sizes)

    def with_numpy(gradients, sizes):
        kept = [i for i, n in enumerate(sizes) if n]
        weights = [sizes[i] for i in kept]
        return [
            np.average([parts[i].numpy() for i in kept], axis=0, weights=weights)
            for parts in zip(*gradients, strict=True)
        ]

    def first_only(gradients, sizes):
        return gradients[0][:1]

    def one_number(gradients, sizes):
        return [tf.reduce_mean(g) for g in gradients[0]]

    def empty_stub(gradients, sizes):
        """Return one gradient per weight."""
        ...

    for answer, part in {
        weighted(lambda n: n > 0, by_size): "correct",
        with_numpy: "correct",
        weighted(lambda n: True, by_size): "an empty tower still takes part",
        weighted(lambda n: n > 0, alike): "mean of means",
        weighted(lambda n: n > 0, lambda sizes: sizes): "a sum over images",
        weighted(lambda n: n > 0, lambda sizes: [1.0] * len(sizes)): "not the gradient",
        first_only: "return a list of 2",
        one_number: "another shape",
        empty_stub: "not attempted",
    }.items():
        line = said(lesson06.check_06_average, answer)
        assert part in line, (part, line)


def test_the_programs_in_the_exercises_have_the_bugs_that_the_checks_know(after, machine):
    """The program that a learner reads and the one that the check tries are two."""
    import json

    import tensorflow as tf

    from tests.lesson_cells import NOTEBOOKS

    cells = json.loads((NOTEBOOKS / SOLUTIONS).read_text(encoding="utf-8"))["cells"]
    code = {cell["id"]: "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"}
    ids = [name for name, text in code.items() if re.match(r"def (same|last|mean|var)", text)]
    assert len(ids) == 4
    shown = run_cells(
        SOLUTIONS, *ids, tf=tf, np=np, v1=tf.compat.v1, mean_loss=mean_loss, gpus=machine.gpus
    )
    for name, known, size in (
        ("same_batch", lesson06.SAME_BATCH, 16),
        ("last_loss", lesson06.LAST_LOSS, 16),
    ):
        tried = next(iter(known.values()))
        (weights, loss), (wanted, wanted_loss) = (after(p, size, 4) for p in (shown[name], tried))
        assert far(weights, wanted) < 1e-12, name
        assert loss == pytest.approx(wanted_loss, rel=1e-12), name
    # The shards of 10 images may be dealt 2, 3, 2, 3 or 3, 3, 2, 2: either is the bug.
    one, four = (after(shown["mean_of_means"], 10, n)[0] for n in (1, 4))
    assert far(one, four) > 1e-6
    even = [after(shown["mean_of_means"], 16, n)[0] for n in (1, 4)]
    assert far(*even) < 1e-12
    with tf.Graph().as_default() as graph:
        shown["variables_per_tower"](machine.gpus)
    assert len(graph.get_collection("trainable_variables")) == 8
