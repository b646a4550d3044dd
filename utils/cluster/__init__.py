"""Clusters of real processes on this machine, on the side of the notebook. No TensorFlow here."""

from utils.cluster.local import LocalCluster
from utils.cluster.processes import ClusterError, DeadlineError

__all__ = [
    "ClusterError",
    "DeadlineError",
    "LocalCluster",
]
