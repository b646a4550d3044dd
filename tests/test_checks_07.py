"""The checks of lesson 07: right, right in another way, wrong, untouched."""

import json
import math

import numpy as np
import pytest

from tests.lesson_cells import NOTEBOOKS, run_cells
from utils.checks import lesson07
from utils.runs import BACKWARD, FORWARD, fill_and_drain

SOLUTIONS = "solutions/07_model_parallelism.ipynb"


@pytest.fixture(scope="module")
def solution(machine):
    """What the solution notebook defines, by name."""
    import tensorflow as tf

    cells = json.loads((NOTEBOOKS / SOLUTIONS).read_text(encoding="utf-8"))["cells"]
    ids = [
        cell["id"]
        for cell in cells
        if cell["cell_type"] == "code" and "".join(cell["source"]).startswith("def ")
    ]
    return run_cells(SOLUTIONS, *ids, tf=tf, v1=tf.compat.v1, np=np)


def stub(*arguments):
    """Return something."""
    ...


def try_all(said, check, answers):
    """Each answer is a function, or a tuple of them; its line must have the words."""
    for answer, words in (answers | {stub: "not attempted"}).items():
        given = answer if isinstance(answer, tuple) else (answer,)
        line = said(check, *given)
        assert words in line, (words, line)


def test_micro_batches(said, solution):
    def solved(stages, share):
        return max(1, math.ceil((stages - 1) * (1 / share - 1)))

    def counted(bubble):
        return lambda stages, share: next(m for m in range(1, 10**4) if bubble(stages, m) <= share)

    try_all(
        said,
        lesson07.check_07_micro_batches,
        {
            solution["enough"]: "correct",
            solved: "correct",
            counted(lambda s, m: (s - 1) / m): "with the work, not with the whole time",
            counted(lambda s, m: s / (m + s)): "before its last stage has ended a step",
            lambda stages, share: solved(stages, share) + 1: "so is a smaller number",
            lambda stages, share: 1: "idle for longer",
        },
    )


def test_bytes(said, solution):
    layer, column = solution["bytes_by_layer"], solution["bytes_by_column"]

    def in_a_loop(sizes, batch):
        total = 0
        for hidden in sizes[1:-1]:
            total += hidden * batch * 16
        return total

    def parts(sizes, batch, devices):
        each = batch * 8 / devices
        meetings = [devices * (devices - 1)] * (len(sizes) - 2) + [devices - 1]
        return round(sum(2 * m * each * s for m, s in zip(meetings, sizes[1:], strict=True)))

    def hidden_only(sizes, batch, devices):
        return 2 * batch * 8 * (devices - 1) * sum(sizes[1:-1])

    def own_too(sizes, batch, devices):
        return column(sizes, batch, devices) + 2 * batch * 8 * sum(sizes[1:-1])

    try_all(
        said,
        lesson07.check_07_bytes,
        {
            (layer, column): "correct",
            (in_a_loop, parts): "correct",
            (lambda *a: layer(*a) // 2, column): "has a gradient that comes back",
            (lambda *a: layer(*a) // 8, column): "How many bytes has each",
            (lambda *a: layer(*a) * 2, column): "counted twice",
            (lambda s, b: layer(s, b) + 2 * b * s[0] * 8, column): "come from the host",
            (layer, hidden_only): "the scores are missing",
            (layer, own_too): "its own hidden units to itself",
            (layer, lambda *a: 1): "moved another number of bytes than 1",
            (layer, stub): "not attempted",
        },
    )


def test_tapes(said, solution, machine):
    import tensorflow as tf

    def loss_of(first, last, x, y, gpus):
        with tf.device(gpus[0]):
            hidden = tf.nn.relu(x @ first[0] + first[1])
        with tf.device(gpus[1]):
            scores = hidden @ last[0] + last[1]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores)
            return hidden, tf.reduce_mean(losses)

    def graph_gradients(first, last, x, y, gpus):
        """In a graph `tf.gradients` finds the place by itself."""
        return tf.gradients(loss_of(first, last, x, y, gpus)[1], first + last)

    def all_on_gpu_1(first, last, x, y, gpus):
        with tf.GradientTape() as tape:
            loss = loss_of(first, last, x, y, gpus)[1]
        with tf.device(gpus[1]):
            return tape.gradient(loss, first + last)

    def not_handed_on(first, last, x, y, gpus):
        with tf.GradientTape(persistent=True) as tape:
            hidden, loss = loss_of(first, last, x, y, gpus)
        with tf.device(gpus[1]):
            slopes = tape.gradient(loss, last)
        with tf.device(gpus[0]):
            return tape.gradient(hidden, first) + slopes

    def other_order(first, last, x, y, gpus):
        slopes = solution["two_tapes"](first, last, x, y, gpus)
        return slopes[2:] + slopes[:2]

    try_all(
        said,
        lesson07.check_07_tapes,
        {
            solution["two_tapes"]: "correct",
            graph_gradients: "correct",
            solution["one_tape"]: "3 products have no device",
            all_on_gpu_1: "1 on GPU 0, 4 on GPU 1",
            not_handed_on: "handed on",
            other_order: "in another place",
            lambda first, last, x, y, gpus: x: "a list of four gradients",
        },
    )


def test_rows(said, solution, machine):
    import tensorflow as tf

    v1 = tf.compat.v1
    right = solution["column_then_row"]

    def split(devices, x, y, start, *, biases=1, gather=False, whole=False):
        n = len(devices)
        weights, sums, hidden = [], [], []
        kernels = np.split(start[0], n, axis=1), np.split(start[1], n), np.split(start[2], n)
        for device, arrays in zip(devices, zip(*kernels, strict=True), strict=True):
            with tf.device(device):
                own = [v1.Variable(a) for a in arrays[:2]]
                hidden.append(tf.nn.relu(tf.matmul(x, own[0]) + own[1]))
                weights.append(own)
        for i, (device, rows) in enumerate(zip(devices, kernels[2], strict=True)):
            with tf.device(devices[0] if whole else device):
                weights[i].append(v1.Variable(rows))
                part = hidden[i]
                if gather:  # fetches all hidden units, and uses its own
                    width = part.shape[1]
                    part = tf.concat(hidden, 1)[:, i * width : (i + 1) * width]
                sums.append(tf.matmul(part, weights[i][2]))
        with tf.device(devices[-1]):
            bias = v1.Variable(start[3])
            scores = sum(sums) + biases * bias
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, scores)
            loss = tf.reduce_mean(losses)
        weights = [w for own in weights for w in own] + [bias]
        return loss, weights, tf.gradients(loss, weights)

    def with_options(**options):
        return lambda *arguments: split(*arguments, **options)

    def half_gradients(*arguments):
        loss, weights, gradients = right(*arguments)
        return loss, weights, [g / 2 for g in gradients]

    def a_weight_too_many(*arguments):
        loss, weights, gradients = right(*arguments)
        return loss, [*weights, weights[0]], [*gradients, gradients[0]]

    try_all(
        said,
        lesson07.check_07_rows,
        {
            right: "correct",
            with_options(): "correct",
            with_options(biases=4): "How often is the second bias added",
            with_options(gather=True): "Do hidden units still travel",
            with_options(whole=True): "not spread evenly",
            half_gradients: "not those of the whole network",
            a_weight_too_many: "more weights, or fewer",
            lambda *arguments: right(*arguments)[0]: "return three things",
        },
    )


def test_one_by_one(said, solution):
    right = solution["one_by_one"]

    def with_a_queue(stage, stages, count):
        steps, forward, backward = [], 0, 0
        while backward < count:
            if forward < count and forward - backward < stages - stage:
                steps.append((FORWARD, forward))
                forward += 1
            else:
                steps.append((BACKWARD, backward))
                backward += 1
        return steps

    def filled(stage, stages, count):
        return fill_and_drain(stages, count)[stage]

    def forward_then_backward(stage, stages, count):
        return [(FORWARD, m) for m in range(count)] + [(BACKWARD, m) for m in range(count)]

    def no_filling(stage, stages, count):
        return [(kind, m) for m in range(count) for kind in (FORWARD, BACKWARD)]

    def back_before(stage, stages, count):
        return [(kind, m) for m in range(count) for kind in (BACKWARD, FORWARD)]

    try_all(
        said,
        lesson07.check_07_one_by_one,
        {
            right: "correct",
            with_a_queue: "correct",
            filled: "goes backward in another order",
            forward_then_backward: "keeps 3 micro-batches at once",
            no_filling: "takes longer than filling and draining",
            back_before: "wait for each other for ever",
            lambda *a: right(*a)[:-1]: "once with each micro-batch",
        },
    )
