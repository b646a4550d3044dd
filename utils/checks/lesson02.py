"""Checks of the exercises of lesson 02."""

from collections.abc import Callable
from types import ModuleType

import numpy as np

from utils.cards import Card, example, read_cards, visible_cards
from utils.checks.findings import own
from utils.checks.normalising import found, items, number, table, whole
from utils.checks.outcome import check, not_yet
from utils.checks.trying import Counted, at_most, returned
from utils.machine import current_machine, plain_name
from utils.memory import Program, StandIns, do_they_fit, stand_in_gpus
from utils.runs import trace

SETTINGS = ("1,3", "3,0,2", "2,7,1", "-1,0", "")
LIMIT_MB = 4096
MOST_IMAGES = 5_000  # traced at once: 30 MB of images; the largest right answer is below

_AFTER_A_GAP = "a number in it is no card of the machine. What happens to those after it?"
_CARDS = {
    ("2,7,1", (2, 1)): _AFTER_A_GAP,
    ("-1,0", (0,)): _AFTER_A_GAP,
    ("", (0, 1, 2, 3)): "set to nothing is something else than not set.",
}


@check(
    "2.1",
    "a program that trains on the wrong card can take it from somebody else, without an error.",
)
def check_02_renumber(answer: dict) -> None:
    """Compare predicted cards with the rules of CUDA_VISIBLE_DEVICES.

    Args:
        answer: setting to the list of cards, the program's GPU 0 first.
    """
    # Conditions: five keys; cards of the machine; their order; the list ends at a number
    # that no card has, which -1 is, too; set to nothing is not "not set".
    cards = read_cards(example("four_cards"))
    for setting, value in table(answer, SETTINGS).items():
        what = f"{setting!r}"
        guess = [whole(card, f"a card of {what}") for card in items(value, what)]
        right = [card.index for card in visible_cards(cards, setting)]
        if guess != right:
            not_yet(f"look at {what} again: {guess}: {_why_not(setting, guess, right)}")


def _why_not(setting: str, guess: list, right: list) -> str:
    if (setting, tuple(guess)) in _CARDS:
        return _CARDS[setting, tuple(guess)]
    if any(card not in range(4) for card in guess):
        return "there are only cards 0 to 3."
    if sorted(guess) == sorted(right):
        return "the cards are right, their order is not. Who is GPU 0?"
    if right and guess == list(range(len(right))):
        return "these are the program's own numbers; wanted are those of the machine."
    return f"expected are {len(right)} of the machine's cards, the program's GPU 0 first."


@check(
    "2.2",
    "the limit of a program is only its pool. Whoever divides the card by the number of "
    "programs forgets the contexts, and the last program gets less.",
)
def check_02_limits(limits: Callable) -> None:
    """Divide several cards among several programs and ask the model.

    Args:
        limits: function of (needs, card_mb, context_mb), all in MB, that
            returns a limit in MB for each program.
    """
    # Conditions: one limit per program, in the order of the needs; at least the need;
    # all fit with their contexts; at most 1 % idle. Needs are in no order of size.
    for needs, card_mb, context_mb in (
        ([4000, 2500, 5500], 15360, 550),
        ([300, 9000], 24576, 400),
        ([1000], 8192, 550),
        ([700] * 5, 8192, 600),
    ):
        where = f"for needs {needs} on a card of {card_mb:,} MB with contexts of {context_mb} MB"
        result = items(returned(limits, list(needs), card_mb, context_mb), where, len(needs))
        given = [number(limit, f"{where}, a limit") for limit in result]
        where = f"{where} the limits are {[round(limit, 2) for limit in given]}"
        if cause := _wrong_division(given, needs, card_mb, context_mb):
            not_yet(f"{where}: {cause}")
        for limit, need in zip(given, needs, strict=True):
            if not need <= limit <= card_mb:
                not_yet(f"{where}: expected is {need:,} to {card_mb:,} MB where {need:,} is needed")
        _ask_the_model(needs, [int(limit) for limit in given], card_mb, context_mb, where)


def _wrong_division(given, needs, card_mb: int, context_mb: int) -> str | None:
    """Name the mistake, if a known wrong formula gives these limits and they do not do."""
    count, total = len(needs), sum(needs)
    left = card_mb - count * context_mb
    wrong = {
        "did you leave room for the contexts?": [card_mb * n / total for n in needs],
        "is there one context, or one for each program?": [
            (card_mb - context_mb) * n / total for n in needs
        ],
        "equal parts are too small for the largest program.": [left / count] * count,
        "equal parts, and no room for the contexts.": [card_mb / count] * count,
        "these are fractions; expected are MB.": [n / total for n in needs],
        "is each limit at the place of its program?": sorted(left * n / total for n in needs),
    }
    enough = all(limit >= need for limit, need in zip(given, needs, strict=True))
    if enough and sum(given) <= left:
        return None
    for cause, limits in wrong.items():
        # Whole MB, rounded down or not.
        if all(abs(a - b) < 1 for a, b in zip(given, limits, strict=True)) and (
            max(limits) > 1 or max(given) <= 1
        ):
            return cause
    return None


def _ask_the_model(needs: list, given: list, card_mb: int, context_mb: int, where: str) -> None:
    names = "ABCDE"
    programs = [
        Program(name, need, limit_mb=limit)
        for name, need, limit in zip(names, needs, given, strict=False)
    ]
    card = Card(0, "a card", card_mb, "00000000:00:04.0", "GPU-0", "7.5")
    fit = do_they_fit([card], programs, context_mb=context_mb, driver_mb=0)
    if not fit.fits:
        failure = fit.failures[0]
        not_yet(
            f"{where}; the model says: program {failure.program} {failure.message}. "
            "Expected is room for each limit and each context."
        )
    idle = card_mb - sum(given) - len(needs) * context_mb
    if idle > card_mb // 100:
        not_yet(f"{where}: {idle:,} MB are left idle; expected are at most {card_mb // 100}.")


@check(
    "2.3",
    "none of these mistakes stops the program: it runs without the limit, and a neighbour can die.",
)
def check_02_configure(configure: Callable) -> None:
    """Run the corrected settings over stand-in GPUs and look what TensorFlow was told.

    Args:
        configure: function without arguments that holds every GPU to 4,096 MB.
    """
    # Conditions: every GPU, whatever their number; one limit each; 4,096 MB; no growth.
    for count in (2, 1, 4):
        with stand_in_gpus(count) as stand_in:
            try:
                configure()
            except RuntimeError as error:
                if "after being initialized" not in str(error) and "already" not in str(error):
                    raise
                not_yet(
                    "TensorFlow's devices were set up before the setting came. Which call "
                    "needs devices that are ready to run?"
                )
            _look_at_settings(stand_in, count)


def _look_at_settings(stand_in: StandIns, count: int) -> None:
    import tensorflow as tf

    growing = [gpu for gpu in stand_in.gpus if tf.config.experimental.get_memory_growth(gpu)]
    limits = [_limits_of(tf, gpu) for gpu in stand_in.gpus]
    if growing and any(limits):
        not_yet(
            "growth and a limit are both set. TensorFlow drops one of them: which "
            "of the two was asked for?"
        )
    if growing:
        not_yet("the GPUs grow, and nothing holds them to a limit.")
    if not any(limits) and stand_in.started:
        not_yet(
            "no GPU has a limit: the setting came too late, and its error was caught. Let "
            "an error stop the program, and look which call came first."
        )
    if not all(limits):
        without = [index for index, limit in enumerate(limits) if not limit]
        not_yet(f"on a machine with {count} GPU(s), GPU {without[0]} has no limit.")
    for index, limit in enumerate(limits):
        if limit != [LIMIT_MB]:
            not_yet(f"GPU {index} has the limits {limit}; wanted is one of {LIMIT_MB:,} MB.")


def _limits_of(tf: ModuleType, gpu: object) -> list:
    parts = tf.config.get_logical_device_configuration(gpu) or []
    return [part.memory_limit for part in parts]


@check(
    "2.4",
    "two measured steps replace a search by trial and error, in which every error costs a "
    "crashed program.",
)
def check_02_largest_batch(largest_batch: Callable) -> None:
    """Let the answer measure steps of several networks, then compare its batch.

    Args:
        largest_batch: function of (measure, limit) that returns the largest
            batch with ``measure(batch) <= limit``.
    """
    # Conditions: the step stays within the limit, one image more does not; at most
    # three calls of measure. Network and limit vary.
    for hidden, limit in ((64, 2 * 2**20), (16, 5 * 10**6), (64, 419_000)):
        asked: dict[int, int] = {}
        step = measured_step(hidden)

        def measure(batch, step=step, asked=asked):
            size = at_most(batch, MOST_IMAGES, "the batch given to measure")
            if size < 1:
                not_yet(f"measure was called with a batch of {size}; expected is 1 or more.")
            return asked.setdefault(size, step(size))

        counted = Counted(measure, 3, "it calls measure more than three times. A line needs two.")
        where = f"for a hidden layer of {hidden} and {limit:,} bytes"
        batch = whole(returned(largest_batch, counted, limit), f"{where} the result")
        each, fixed = _line(step)
        right = (limit - fixed) // each
        if batch != right:
            not_yet(
                f"{where} the result is {found(batch)}: {_wrong_batch(batch, asked, limit, right)}"
            )


def _line(step: Callable) -> tuple[int, int]:
    """Return the bytes per image and the fixed ones, of batches that are on the line."""
    each = step(3) - step(2)
    return each, step(2) - 2 * each


def _wrong_batch(batch: int, asked: dict, limit: int, right: int) -> str:
    """Name the mistake, if a known wrong formula over what was measured gives this batch."""
    if len(asked) > 1:
        (a, low), (b, high) = sorted(asked.items())[:2]
        each = (high - low) / (b - a)
        if a == 1 and batch == (limit - low) // each + 1:
            return "a step with one image is not on the line. Measure larger batches."
        if batch == limit // each:
            return "what does a step take whatever the batch is?"
        if batch in ((limit - low) // each, (limit - high) // each):
            return "so many images more fit beside the batch that was measured."
    if any(batch in (limit // size, limit * at // size) for at, size in asked.items()):
        return "a step has a fixed part, so bytes do not grow in proportion to the batch."
    if batch == limit:
        return "these are bytes; expected is a number of images."
    if batch == right + 1:
        return "one image too many. Does it round up?"
    more = "a larger batch fits as well." if batch < right else "that does not fit."
    return f"{more} Expected is the largest batch whose step stays within the limit."


def measured_step(hidden: int) -> Callable[[int], int]:
    """Return a function that traces a step and returns the bytes it takes.

    The step is a forward and backward pass of a dense network 784-hidden-10 on
    GPU 0, on the host where the GPUs are real; the bytes are those that its
    operations allocated and those that the device received.

    Args:
        hidden: width of the hidden layer.

    Introduced in lesson 02's exercises.
    """
    return lambda batch: _bytes_of_step(hidden, batch)


def _bytes_of_step(hidden: int, batch: int) -> int:
    import tensorflow as tf

    from utils.training import mean_loss

    v1, machine = tf.compat.v1, current_machine()
    # A real GPU rounds sizes up and adds workspace: its steps lie only near a line.
    device = machine.gpus[0] if machine.kind == "virtual" else machine.host
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.host):
            shapes = ([784, hidden], [hidden], [hidden, 10], [10])
            weights = [v1.get_variable(f"w{i}", shape) for i, shape in enumerate(shapes)]
        with tf.device(device):
            x = v1.placeholder(tf.float32, [None, 784])
            y = v1.placeholder(tf.int64, [None])
            loss = mean_loss(weights, x, y)
            fetches = [loss, v1.gradients(loss, weights)]
    run = trace(graph, fetches, {x: np.ones([batch, 784]), y: np.zeros([batch])})
    taken = [size for name, size in run.allocated.items() if plain_name(name) == plain_name(device)]
    received = [
        moved.bytes for moved in run.transfers if plain_name(moved.receiver) == plain_name(device)
    ]
    return sum(taken) + sum(received)


check_02_own = own(
    "2.5",
    "what a program reserves and what it uses are two numbers; now you know them for yours.",
)
