"""Do these programs fit on these cards? A MODEL of TensorFlow's GPU memory.

It gives an answer on a machine without GPUs. What each program takes follows
TensorFlow's source; ``utils/memory/pool.py`` says where, and what is left out.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from utils.cards import Card, visible_cards
from utils.memory.pool import Memory, Pool, default_limit_mb
from utils.numbers import real, whole
from utils.table import table

LABEL = "MODEL of TensorFlow's GPU memory (utils/memory/model.py), nothing measured"
# A Tesla T4: 15,360 MB in nvidia-smi, 15,102 for CUDA (data/nvidia_smi/README.md).
DRIVER_MB = 15360 - 15102
# Fitted, not measured: what is left of these when TensorFlow has its reserve and the pool of
# 13,756 MB that a free T4 logged (https://www.tensorflow.org/guide/tf_numpy_type_promotion).
CONTEXT_MB = 15102 - 1050 - 13756


@dataclass(frozen=True)
class Program:
    """A TensorFlow program and how much GPU memory it may reserve.

    At most one of ``fraction``, ``limit_mb`` and ``growth``; without any,
    TensorFlow's default.

    Attributes:
        name: for tables and pictures.
        needs_mb: what its tensors need on its GPU 0, where TensorFlow puts
            what is not pinned: one number for as long as others run, or one
            per time step; then it ends after the last.
        fraction: part of each card's memory that CUDA shows, above 0, at most 1
            (``per_process_gpu_memory_fraction``).
        limit_mb: memory of each visible card in MB (``memory_limit``).
        growth: take memory as it is needed (``set_memory_growth``).
        visible: its ``CUDA_VISIBLE_DEVICES``; None sees all cards.
        starts: the time step in which it starts.

    Raises:
        TypeError: a setting is no number.
        ValueError: two settings at once, or a number out of range.

    Introduced in lesson 02.
    """

    name: str
    needs_mb: int | tuple[int, ...]
    fraction: float | None = None
    limit_mb: int | None = None
    growth: bool = False
    visible: str | None = None
    starts: int = 0

    def __post_init__(self) -> None:
        """Check the settings."""
        if (self.fraction is not None) + (self.limit_mb is not None) + self.growth > 1:
            raise ValueError(
                f"{self.name}: fraction={self.fraction}, limit_mb={self.limit_mb}, "
                f"growth={self.growth}: give one of them, or none."
            )
        if self.fraction is not None:
            real(f"{self.name}: fraction", self.fraction, above=0, high=1)
        if self.limit_mb is not None:
            whole(f"{self.name}: limit_mb", self.limit_mb, 1)
        needs = self.needs_mb if isinstance(self.needs_mb, tuple) else (self.needs_mb,)
        if not needs:
            raise ValueError(f"{self.name}: needs_mb=(): give one number for each time step.")
        for need in needs:
            whole(f"{self.name}: needs_mb", need, 0)
        whole(f"{self.name}: starts", self.starts, 0)

    @property
    def setting(self) -> str:
        """Return the setting in words: ``default``, ``fraction 0.4`` …"""
        if self.fraction is not None:
            return f"fraction {self.fraction:g}"
        if self.limit_mb is not None:
            return f"limit {self.limit_mb:,} MB"
        return "growth" if self.growth else "default"

    @property
    def lasts(self) -> int:
        """How many time steps its own needs describe."""
        return len(self.needs_mb) if isinstance(self.needs_mb, tuple) else 1

    def needs(self, step: int, steps: int) -> int | None:
        """Return what it needs in a step of ``steps``; None if it does not run."""
        since = step - self.starts
        if not isinstance(self.needs_mb, tuple):
            return self.needs_mb if since >= 0 and step < steps else None
        return self.needs_mb[since] if 0 <= since < len(self.needs_mb) else None


@dataclass(frozen=True)
class Shortage:
    """Why a program does not fit.

    Attributes:
        program: its name.
        card: number of the card where it fails.
        step: the time step.
        may_take_mb: what its setting allows it there; None if not even
            CUDA's context found room.
        gets_mb, needs_mb: what it gets there, and needs.
        ends: False if it goes on, with less than its setting promised.

    Introduced in lesson 02.
    """

    program: str
    card: int
    step: int
    may_take_mb: int | None
    gets_mb: int
    needs_mb: int
    ends: bool

    @property
    def message(self) -> str:
        """Return the reason in one line."""
        if self.may_take_mb is None:
            return f"no room on card {self.card} for its CUDA context: CUDA_ERROR_OUT_OF_MEMORY"
        what = "out of memory" if self.ends else "CUDA_ERROR_OUT_OF_MEMORY in its log, goes on"
        return (
            f"may take {self.may_take_mb:,} MB of card {self.card}, gets {self.gets_mb:,}, "
            f"needs {self.needs_mb:,}: {what}"
        )


@dataclass(frozen=True)
class Fit:
    """What the model says about programs that share cards.

    Attributes:
        cards, programs: as given.
        context_mb: memory per program and card outside TensorFlow's pool.
        driver_mb: memory of each card that CUDA does not show.
        pools: for (program name, card number) what TensorFlow's pool holds
            in each time step, in MB; None when the program does not run.
        failures: one for each program that does not fit.

    Introduced in lesson 02.
    """

    cards: tuple[Card, ...]
    programs: tuple[Program, ...]
    context_mb: int
    driver_mb: int
    pools: dict[tuple[str, int], tuple[int | None, ...]]
    failures: tuple[Shortage, ...]

    @property
    def fits(self) -> bool:
        """Whether every program gets what its setting promises and it needs."""
        return not self.failures

    def __str__(self) -> str:
        """Return a table under the model's label: settings, pools, verdicts."""
        failed = {failure.program: failure for failure in self.failures}
        rows = [("program", "setting", "card", "pool (MB)", "verdict")]
        for program in self.programs:
            failure = failed.get(program.name)
            held = {c: mb for (name, c), mb in self.pools.items() if name == program.name}
            if not held:
                rows.append((program.name, program.setting, "-", "-", "sees no GPU"))
            for card, history in held.items():
                most = max((mb for mb in history if mb is not None), default=None)
                pool = "-" if most is None else f"{most:,}"
                verdict = "fits" if failure is None else ""
                if failure is not None and failure.card == card:
                    verdict = failure.message
                rows.append((program.name, program.setting, str(card), pool, verdict))
        return f"{LABEL}\n{table(rows, right=(2, 3))}"


def do_they_fit(
    cards: Sequence[Card],
    programs: Sequence[Program],
    *,
    context_mb: int = CONTEXT_MB,
    driver_mb: int = DRIVER_MB,
) -> Fit:
    """Say what each program reserves on the cards it sees, and who fails.

    A MODEL; ``utils/memory/pool.py`` says what it follows and leaves out. Programs
    that start in the same time step start in the order given. A program that
    fails ends and returns its memory.

    Args:
        cards: the cards of the machine.
        programs: with different names. Their numbers in ``visible`` count
            as with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``.
        context_mb: memory that a program holds on each card outside
            TensorFlow's pool, above all CUDA's context. The default is
            fitted to one log of a Tesla T4; other cards and drivers differ
            by some hundred MB.
        driver_mb: what nvidia-smi counts of each card and CUDA does not
            show. The default is that of a Tesla T4.

    Returns:
        A ``Fit``; printed, a table under the word MODEL.

    Raises:
        TypeError: the memory of a card is not known.
        ValueError: two programs have one name, or what a program sees is not
            defined.

    Introduced in lesson 02.
    """
    cards, programs = tuple(cards), tuple(programs)
    names = [program.name for program in programs]
    if len(set(names)) < len(names):
        raise ValueError(f"programs are called {names}: give each another name.")
    for card in cards:
        whole(f"memory_mb of card {card.index}", card.memory_mb, 1)
    seen = {p.name: visible_cards(cards, p.visible, "PCI_BUS_ID") for p in programs}
    steps = max((program.starts + program.lasts for program in programs), default=0)
    run, held = _Run(cards, context_mb, driver_mb), defaultdict(dict)
    for step in range(steps):
        needs = {program.name: program.needs(step, steps) for program in programs}
        for name in names:
            if needs[name] is None:
                run.memory.release(name)
        for program in programs:
            if needs[program.name] is not None and seen[program.name]:
                run.advance(program, seen[program.name], needs[program.name], step)
        for key, pool in run.memory.pools.items():
            held[key][step] = pool.held_mb
    pools = {
        (name, card.index): tuple(held[name, card.index].get(step) for step in range(steps))
        for name in names
        for card in seen[name]
    }
    return Fit(cards, programs, context_mb, driver_mb, pools, tuple(run.failures.values()))


class _Run:
    """Programs come to the cards, take memory, fail or end."""

    def __init__(self, cards: tuple[Card, ...], context_mb: int, driver_mb: int) -> None:
        self.memory = Memory(cards, context_mb, driver_mb)
        self.failures: dict[str, Shortage] = {}

    def advance(self, program: Program, seen, need: int, step: int) -> None:
        """Let a program start, if it has not, and take what it needs now."""
        name = program.name
        if name in self.failures and self.failures[name].ends:
            return
        first = seen[0].index
        if (name, first) not in self.memory.pools:
            for card in seen:
                if not self._start(program, card, need, step):
                    return
        if not self.memory.extend(name, first, need):
            self._fail(name, first, need, step, ends=True)

    def _start(self, program: Program, card: Card, need: int, step: int) -> bool:
        name, on = program.name, card.index
        free = self.memory.free_mb(on) - self.memory.context_mb
        if free < 0:
            self._fail(name, on, need, step, ends=True)
            return False
        limit = default_limit_mb(free, card.capability)
        if program.fraction is not None:
            limit = int(self.memory.total_mb[on] * program.fraction)
        if program.limit_mb is not None:
            limit = program.limit_mb
        pool = self.memory.pools[name, on] = Pool(limit, growth=program.growth)
        if not program.growth:
            self.memory.extend(name, on, 1)
            if pool.held_mb < limit:
                self._fail(name, on, need, step, ends=False)
        return True

    def _fail(self, name: str, card: int, need: int, step: int, *, ends: bool) -> None:
        pool = self.memory.pools.get((name, card))
        may = None if pool is None else pool.limit_mb
        gets = 0 if pool is None else pool.held_mb
        self.failures[name] = Shortage(name, card, step, may, gets, need, ends)
        if ends:
            self.memory.release(name)
