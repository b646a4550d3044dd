"""How TensorFlow takes memory from a card, as a MODEL: its pool.

It follows TensorFlow's source (https://github.com/tensorflow/tensorflow; read
in copies close to version 2.21, whose package holds the same reserves):

- [limit] ``SingleVirtualDeviceMemoryLimit`` and ``MinSystemMemory`` in
  tensorflow/core/common_runtime/gpu/gpu_device.cc: by default a program may
  have all *free* memory of each visible card but a reserve; with a fraction,
  that part of the card's *total* memory.
- [pool] ``BFCAllocator::Extend`` in third_party/xla/xla/tsl/framework/
  bfc_allocator.cc: it asks CUDA for all of that at once, or with growth for 2
  MB first and twice as much each time; refused, it tries 10 % less, again and
  again. It returns nothing before the process ends.

Left out: tensors that do not fit into the gaps between others; what libraries
take outside the pool later on; the empty regions that a pool gives back for a
larger one just before it would fail. MB here is 2**20 bytes, as in
TensorFlow's ``memory_limit`` and nvidia-smi's MiB.
"""

from utils.cards import Card

FIRST_REGION_MB = 2


def reserve_mb(free_mb: int, capability: str) -> int:
    """Return what TensorFlow leaves of a card's free memory by default, in MB.

    Source: [limit] in the module's text.

    Args:
        free_mb: free memory of the card when the program starts.
        capability: the card's compute capability, such as "7.5".

    Introduced in lesson 02.
    """
    if free_mb < 2048:
        return 225
    for newest, mb in ((6, 500), (7, 1050), (8, 1536)):
        if int(capability.partition(".")[0]) <= newest:
            return mb
    return 1800


def default_limit_mb(free_mb: int, capability: str) -> int:
    """Return what TensorFlow may take of a card by default, in MB.

    Source: [limit] in the module's text; arguments as in ``reserve_mb``.

    Introduced in lesson 02.
    """
    reserve = reserve_mb(free_mb, capability)
    return free_mb - reserve if reserve < free_mb else free_mb


class Pool:
    """A program's memory on a card: at most ``limit_mb``, ``held_mb`` so far.

    Introduced in lesson 02, behind ``do_they_fit``.
    """

    def __init__(self, limit_mb: int, *, growth: bool) -> None:
        """Set the limit; without growth the first region is all of it."""
        self.limit_mb = limit_mb
        self.held_mb = 0
        self._region = FIRST_REGION_MB if growth else limit_mb

    def extend(self, need_mb: int, free_mb: int) -> bool:
        """Take regions until the pool holds ``need_mb``.

        Args:
            need_mb: what the program's tensors need, as many small ones.
            free_mb: what is free on the card.

        Returns:
            Whether it holds that much now; it keeps what it took if not.
        """
        free = self.held_mb + free_mb
        while self.held_mb < need_mb:
            take = min(self._region, self.limit_mb - self.held_mb)
            while take > free - self.held_mb:
                take = int(take * 0.9)
            if take < 1:
                return False
            self.held_mb += take
            self._region *= 2
        return True


class Memory:
    """The memory of all cards, and the pools that programs have on them.

    Introduced in lesson 02, behind ``do_they_fit``.
    """

    def __init__(self, cards: tuple[Card, ...], context_mb: int, driver_mb: int) -> None:
        """Start with empty cards; a context takes ``context_mb`` per program."""
        self.total_mb = {card.index: card.memory_mb - driver_mb for card in cards}
        self.context_mb = context_mb
        self.pools: dict[tuple[str, int], Pool] = {}

    def free_mb(self, card: int) -> int:
        """Return what is free on a card."""
        held = [pool.held_mb for (_, on), pool in self.pools.items() if on == card]
        return self.total_mb[card] - sum(held) - len(held) * self.context_mb

    def extend(self, name: str, card: int, need_mb: int) -> bool:
        """Let a program's pool on a card take what is needed, if it can."""
        return self.pools[name, card].extend(need_mb, self.free_mb(card))

    def release(self, name: str) -> None:
        """Give back all that a program holds: its process has ended."""
        for key in [key for key in self.pools if key[0] == name]:
            del self.pools[key]
