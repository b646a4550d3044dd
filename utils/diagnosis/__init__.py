"""Which layer is broken: hardware, driver, TensorFlow build, libraries, visibility."""

from utils.diagnosis.layer_table import Diagnosis, Row, diagnose
from utils.diagnosis.probe import observe
from utils.diagnosis.record import (
    Card,
    Gpu,
    Library,
    NvidiaSmi,
    Observation,
    load_machine,
    recorded_machines,
)

__all__ = [
    "Card",
    "Diagnosis",
    "Gpu",
    "Library",
    "NvidiaSmi",
    "Observation",
    "Row",
    "diagnose",
    "load_machine",
    "observe",
    "recorded_machines",
]
