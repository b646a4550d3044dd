"""The cards of a machine as nvidia-smi lists them, and which of them a program sees."""

from utils.cards.nvidia_smi import Card, Process, example, read_cards, read_listing, read_processes
from utils.cards.visible import children_report, identifiers, visible_cards

__all__ = [
    "Card",
    "Process",
    "children_report",
    "example",
    "identifiers",
    "read_cards",
    "read_listing",
    "read_processes",
    "visible_cards",
]
