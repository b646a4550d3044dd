"""Checks of the exercises of lesson 02."""

from collections.abc import Callable

import numpy as np

from utils.cards import Card, example, read_cards, visible_cards
from utils.checks.outcome import check, not_yet
from utils.machine import current_machine, plain_name
from utils.memory import Program, StandIns, do_they_fit, stand_in_gpus
from utils.runs import trace

SETTINGS = ("1,3", "3,0,2", "2,7,1", "-1,0", "")
LIMIT_MB = 4096


@check(
    "2.1",
    "a program that trains on the wrong card can take it from somebody else, without an error.",
)
def check_02_renumber(answer: dict) -> None:
    """Compare predicted cards with the rules of CUDA_VISIBLE_DEVICES.

    Args:
        answer: setting to the list of cards, the program's GPU 0 first.
    """
    if not isinstance(answer, dict) or set(answer) != set(SETTINGS):
        not_yet(f"keep a dict with the settings {', '.join(map(repr, SETTINGS))}.")
    cards = read_cards(example("four_cards"))
    for setting, guess in answer.items():
        right = [card.index for card in visible_cards(cards, setting)]
        if guess is ...:
            not_yet(f"{setting!r} has no answer yet.")
        if not isinstance(guess, list | tuple):
            not_yet(f"{setting!r}: give a list of cards, such as [0, 1], or [] for none.")
        if list(guess) != right:
            not_yet(f"look at {setting!r} again: {_why_not(setting, list(guess), right)}")


def _why_not(setting: str, guess: list, right: list) -> str:
    if guess == right[::-1] or (right and sorted(guess) == sorted(right)):
        return "the cards are right, their order is not. Who is GPU 0?"
    if not setting:
        return "set to nothing is something else than not set."
    if any(card not in range(4) for card in guess):
        return "there are only cards 0 to 3."
    if len(guess) > len(right):
        return "is there a number in it that no card has? What happens to those after it?"
    return "each number names a card of the machine, the first one is the program's GPU 0."


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
    for needs, card_mb, context_mb in (
        ([2500, 4000, 5500], 15360, 550),
        ([300, 9000], 24576, 400),
        ([1000], 8192, 550),
        ([700] * 5, 8192, 600),
    ):
        given = limits(list(needs), card_mb, context_mb)
        where = f"for needs {needs} on a card of {card_mb:,} MB with contexts of {context_mb} MB"
        if not isinstance(given, list | tuple) or len(given) != len(needs):
            not_yet(f"{where} it returns {given!r}: return one limit per program, in a list.")
        if not all(isinstance(limit, int | np.integer) for limit in given):
            not_yet(f"{where} the limits are {given}: give whole MB.")
        for limit, need in zip(given, needs, strict=True):
            if limit < need:
                not_yet(f"{where} a program that needs {need:,} MB has a limit of {limit:,}.")
        _ask_the_model(needs, [int(limit) for limit in given], card_mb, context_mb, where)


def _ask_the_model(needs, given, card_mb: int, context_mb: int, where: str) -> None:
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
            f"{where} the model says: program {failure.program} {failure.message}. What "
            "does a program hold on the card beside its pool?"
        )
    idle = card_mb - sum(given) - len(needs) * context_mb
    if idle > card_mb // 100:
        not_yet(f"{where} {idle:,} MB belong to nobody. Divide the whole card.")


@check(
    "2.3",
    "none of these mistakes stops the program: it runs without the limit, and a neighbour can die.",
)
def check_02_configure(configure: Callable) -> None:
    """Run the mended settings over stand-in GPUs and look what TensorFlow was told.

    Args:
        configure: function without arguments that holds every GPU to 4,096 MB.
    """
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
        without = [number for number, limit in enumerate(limits) if not limit]
        not_yet(f"on a machine with {count} GPU(s), GPU {without[0]} has no limit.")
    for number, limit in enumerate(limits):
        if limit != [LIMIT_MB]:
            not_yet(f"GPU {number} has the limits {limit}, wanted is one of {LIMIT_MB:,} MB.")


def _limits_of(tf, gpu) -> list:
    parts = tf.config.get_logical_device_configuration(gpu) or []
    return [part.memory_limit for part in parts]


@check(
    "2.4",
    "two measured steps replace a search by trial and error, in which every error costs a "
    "crashed program.",
)
def check_02_largest_batch(largest_batch: Callable) -> None:
    """Let the answer measure steps of several networks, then try its batch.

    Args:
        largest_batch: function of (measure, limit) that returns the largest
            batch with ``measure(batch) <= limit``.
    """
    for hidden, limit in ((64, 2 * 2**20), (16, 5 * 10**6)):
        measure, asked = measured_step(hidden), []

        def counted(batch, measure=measure, asked=asked):
            asked.append(batch)
            return measure(batch)

        found = largest_batch(counted, limit)
        where = f"for a hidden layer of {hidden} and {limit:,} bytes it returns {found!r}"
        if isinstance(found, bool) or not isinstance(found, int | np.integer):
            not_yet(f"{where}: return a whole number.")
        if len(asked) > 3:
            not_yet(f"it measures {len(asked)} steps. A line needs two.")
        fits = found > 0 and measure(found) <= limit
        if fits and measure(found + 1) > limit:
            continue
        if 1 in asked:
            not_yet(
                f"{where}, which is close. Measure larger batches: with a single image "
                "there is nothing to add up, so that step is not on the line."
            )
        if fits:
            not_yet(f"{where}, but a larger batch fits as well.")
        not_yet(f"{where}, which does not fit. What does a step take whatever the batch is?")


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
