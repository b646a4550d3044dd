"""The cards of a machine as nvidia-smi lists them, and which of them a program sees."""

from utils.cards.nvidia_smi import Card, Process, example, read_cards, read_processes
from utils.cards.visible import children_report, visible_cards

__all__ = [
    "Card",
    "Process",
    "children_report",
    "example",
    "read_cards",
    "read_processes",
    "visible_cards",
]
