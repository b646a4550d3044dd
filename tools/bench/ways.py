"""Two ways to train that `make bench` compares: towers and MirroredStrategy.

Each function makes the variables and returns a `Trainer`. TensorFlow's devices must be set up.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tools.bench.networks import Network

HOST = "/CPU:0"
RATE = 0.05


class Trainer(NamedTuple):
    """`step()` trains one step on the batch and returns the loss before it; `weights` are read."""

    step: Callable
    weights: list


def on_host(network: Network, dtype: str) -> tuple[list, tf.keras.optimizers.Optimizer]:
    """The network's variables and plain SGD."""
    with tf.device(HOST):
        weights = [tf.Variable(w) for w in network.first_weights(dtype)]
        optimizer = tf.keras.optimizers.SGD(RATE)
        optimizer.build(weights)
    return weights, optimizer


def towers(network: Network, gpus: Sequence[str], x: np.ndarray, y: np.ndarray) -> Trainer:
    """The towers of lesson 06: a shard each, gradients averaged and applied on the host."""
    weights, optimizer = on_host(network, x.dtype.name)
    share = 1 / len(gpus)

    @tf.function
    def step(parts):
        losses, gradients = [], []
        for gpu, (shard, digits) in zip(gpus, parts, strict=True):
            with tf.device(gpu), tf.GradientTape() as tape:
                losses.append(share * network.mean_loss(weights, shard, digits))
            with tf.device(gpu):
                gradients.append(tape.gradient(losses[-1], weights))
        with tf.device(HOST):
            mean = [tf.add_n(parts) for parts in zip(*gradients, strict=True)]
            optimizer.apply_gradients(zip(mean, weights, strict=True))
            return tf.add_n(losses)

    parts = split(gpus, x, y)
    return Trainer(lambda: step(parts), weights)


def split(gpus: Sequence[str], x: np.ndarray, y: np.ndarray) -> list[tuple]:
    """One equal shard per GPU, already there."""
    parts = zip(np.split(x, len(gpus)), np.split(y, len(gpus)), strict=True)
    placed = []
    for gpu, part in zip(gpus, parts, strict=True):
        with tf.device(gpu):
            placed.append(tuple(map(tf.constant, part)))
    return placed


def mirrored(network: Network, gpus: Sequence[str], x: np.ndarray, y: np.ndarray) -> Trainer:
    """The same by `MirroredStrategy`: a copy of the variables and the update on every GPU."""
    strategy = tf.distribute.MirroredStrategy(list(gpus))
    with strategy.scope():
        weights = [tf.Variable(w) for w in network.first_weights(x.dtype.name)]
        optimizer = tf.keras.optimizers.SGD(RATE)
        optimizer.build(weights)

    def replica(shard, digits):
        with tf.GradientTape() as tape:
            loss = network.mean_loss(weights, shard, digits) / len(gpus)
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    @tf.function
    def step(shards, digits):
        losses = strategy.run(replica, args=(shards, digits))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    parts = split(gpus, x, y)
    shards, digits = (
        strategy.experimental_distribute_values_from_function(
            lambda context, i=i: parts[context.replica_id_in_sync_group][i]
        )
        for i in range(2)
    )
    return Trainer(lambda: step(shards, digits), weights)
