"""Pictures of results, one drawing per file; each returns a matplotlib Axes."""

from utils.pictures.bowl import bowl
from utils.pictures.cards import cards_diagram, held_over_time
from utils.pictures.curves import curves, training_curves
from utils.pictures.kernel_matrix import kernel_matrix
from utils.pictures.lanes import lanes
from utils.pictures.machine import machine_diagram
from utils.pictures.pipeline import pipeline_lanes
from utils.pictures.pool import pool_over_steps
from utils.pictures.speedup import speedup
from utils.pictures.tasks import who_ran_what
from utils.pictures.timeline import timeline
from utils.pictures.training import staleness_histogram, worker_timeline

__all__ = [
    "bowl",
    "cards_diagram",
    "curves",
    "held_over_time",
    "kernel_matrix",
    "lanes",
    "machine_diagram",
    "pipeline_lanes",
    "pool_over_steps",
    "speedup",
    "staleness_histogram",
    "timeline",
    "training_curves",
    "who_ran_what",
    "worker_timeline",
]
