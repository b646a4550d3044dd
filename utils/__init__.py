"""What the notebooks of Many Devices import: one package per subject, see `README.md` here."""

from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent
DATA = COURSE / "data"
PROGRAMS = COURSE / "notebooks" / "programs"
