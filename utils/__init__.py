"""What the notebooks of Many Devices import: one package per subject, see `README.md` here."""

from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
