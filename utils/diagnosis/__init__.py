"""Which layer is broken: hardware, driver, TensorFlow build, libraries, visibility."""

from utils.diagnosis.layer_table import Diagnosis, diagnose
from utils.diagnosis.record import load_machine

__all__ = ["Diagnosis", "diagnose", "load_machine"]
