"""What the lessons train: MNIST, one small network, and schemes to spread it."""

from utils.training.mnist import batches, inputs, load, shards
from utils.training.network import accuracy, initial_weights, mean_loss

__all__ = [
    "accuracy",
    "batches",
    "initial_weights",
    "inputs",
    "load",
    "mean_loss",
    "shards",
]
