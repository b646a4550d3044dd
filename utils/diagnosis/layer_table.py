"""Why TensorFlow sees the GPUs it sees, or none: one row for each layer.

A GPU has to pass every layer, from the operating system to TensorFlow's own
list. Each is asked on its own, because each can fail while all others are well.
"""

import textwrap
from dataclasses import dataclass

from utils.diagnosis import layers
from utils.diagnosis.probe import observe
from utils.diagnosis.record import Observation

WIDTH = 79
# In the order in which a GPU passes them: name, what is asked, who judges the answer.
LAYERS = (
    ("system", "operating system and processor", layers.system),
    ("hardware", "nvidia-smi and the PCI bus: which cards", layers.hardware),
    ("driver", "nvidia-smi and libcuda.so.1: does a driver answer", layers.driver),
    ("interpreter", "sys.executable: which Python runs this", layers.interpreter),
    ("build", "tf.test.is_built_with_cuda()", layers.build),
    ("libraries", "which CUDA libraries load from where TensorFlow looks", layers.libraries),
    ("visibility", "CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER", layers.visibility),
    ("TensorFlow", 'tf.config.list_physical_devices("GPU")', layers.tensorflow),
)
_MARKS = {True: "[ok]", False: "[no]", None: "[? ]"}
# Where one of these fails, no command on this system helps, so none is proposed further down.
_FINAL = ("system", "hardware")


@dataclass(frozen=True)
class Row:
    """What one layer answered.

    Attributes:
        layer: its name.
        asked: what was asked.
        found: what was found, as one sentence without its full stop.
        next_step: what to do next; empty if there is nothing to do.
        ok: whether a GPU can pass this layer; None if that cannot be said.

    Introduced in lesson 01.
    """

    layer: str
    asked: str
    found: str
    next_step: str
    ok: bool | None

    def __str__(self) -> str:
        """Return the row as lines of at most 79 columns."""
        lines = _wrap(f"{_MARKS[self.ok]} {self.layer:<11} ", self.asked, 17)
        lines += _wrap("     found ", self.found, 11)
        for number, part in enumerate(self.next_step.splitlines()):
            lines += _wrap(" " * 11 if number else "     next  ", part, 11)
        return "\n".join(lines)


@dataclass(frozen=True)
class Diagnosis:
    """The rows of all layers, in the order in which a GPU passes them.

    Introduced in lesson 01.
    """

    rows: tuple[Row, ...]

    def row(self, layer: str) -> Row:
        """Return the row of a layer.

        Raises:
            KeyError: there is no such layer; the message lists those there are.
        """
        for row in self.rows:
            if row.layer == layer:
                return row
        raise KeyError(f"no layer {layer!r}; there are: {', '.join(r.layer for r in self.rows)}")

    @property
    def deciding(self) -> Row:
        """Return the row that decides: TensorFlow's if it sees a GPU, else the first that fails."""
        last = self.rows[-1]
        return last if last.ok else next(row for row in self.rows if row.ok is False)

    @property
    def verdict(self) -> str:
        """Return the outcome in one sentence."""
        row = self.deciding
        if row.ok:
            return f"{row.found}."
        if row is self.rows[-1]:
            return f"{row.found}, and no other layer says why."
        return f"TensorFlow sees no GPU; the first layer that fails is {row.layer}: {row.found}."

    def __str__(self) -> str:
        """Return all rows and the verdict as text of at most 79 columns."""
        rows = "\n".join(str(row) for row in self.rows)
        return f"{rows}\n\n" + "\n".join(_wrap("", self.verdict, 0))


def diagnose(observation: Observation | None = None) -> Diagnosis:
    """Say for each layer what was asked, what was found and what to do next.

    Args:
        observation: a machine from ``load_machine``; None asks this one.

    Returns:
        The rows; print it for a table with the verdict below.

    Introduced in lesson 01.
    """
    seen = observe() if observation is None else observation
    rows: list[Row] = []
    for name, asked, judge in LAYERS:
        found, ok, step = judge(seen)
        first = next((row.layer for row in rows if row.ok is False), "")
        if step and first in _FINAL:
            step = f"Nothing, as long as {first} says no."
        elif step and first and name == LAYERS[-1][0]:
            step = f"Do what {first} says, restart the kernel and ask again."
        rows.append(Row(name, asked, found, step, ok))
    return Diagnosis(tuple(rows))


def _wrap(head: str, text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=head, subsequent_indent=" " * indent, break_on_hyphens=False
    )
