"""What the lessons train: MNIST, one small network, and schemes to spread it."""

from utils.training.mnist import batches, inputs, load, shards
from utils.training.network import accuracy, initial_weights, logits, mean_loss
from utils.training.schemes import Fleet, Job, Plan, choose, dense, plans

__all__ = [
    "Fleet",
    "Job",
    "Plan",
    "accuracy",
    "batches",
    "choose",
    "dense",
    "initial_weights",
    "inputs",
    "load",
    "logits",
    "mean_loss",
    "plans",
    "shards",
]
