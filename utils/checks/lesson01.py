"""Checks of the exercises of lesson 01."""

from types import SimpleNamespace

from utils.checks.outcome import check, not_yet
from utils.diagnosis import diagnose, load_machine

LAYERS = ("hardware", "driver", "build", "libraries", "visibility")
# What exercise 1.1 tells of each machine, by the name of its record.
MACHINES = {
    "a": "driver_replaced",
    "b": "libraries_missing",
    "c": "hidden_by_number",
    "d": "arm_server",
}


@check(
    "1.1",
    "the layer says what to do: restart, install, change a variable, or stop "
    "searching. Installing TensorFlow anew corrects two of the five.",
)
def check_01_layers(answer: dict) -> None:
    """Compare the layers that the learner named with the diagnosis.

    Args:
        answer: machine (a letter) to the first layer that says no.
    """
    if not isinstance(answer, dict) or set(answer) != set(MACHINES):
        not_yet(f"keep a dict with the keys {', '.join(MACHINES)}.")
    for letter, layer in answer.items():
        if layer is ...:
            not_yet(f"machine {letter} has no answer yet.")
        if layer not in LAYERS:
            not_yet(f"{letter}: {layer!r} is none of {', '.join(LAYERS)}.")
        row = diagnose(load_machine(MACHINES[letter])).deciding
        if layer == row.layer:
            continue
        if LAYERS.index(layer) < LAYERS.index(row.layer):
            not_yet(
                f"machine {letter}: the layer {layer} is in order there. Go "
                "on to the layers behind it."
            )
        not_yet(
            f"machine {letter}: {layer} comes too late. An earlier layer "
            "already says no; the first one decides."
        )


@check(
    "1.2",
    "logs and traces print full names, programs use short ones. Whoever "
    "compares them as text finds no match.",
)
def check_01_short(short) -> None:
    """Call the learner's function with names of several forms.

    Args:
        short: takes a device's full name, returns its short one.
    """
    cases = {
        "/job:localhost/replica:0/task:0/device:GPU:3": "/GPU:3",
        "/job:worker/replica:0/task:12/device:CPU:0": "/CPU:0",
        "/job:localhost/replica:0/task:0/device:GPU:10": "/GPU:10",
        "/device:CPU:1": "/CPU:1",
    }
    for full, right in cases.items():
        found = short(full)
        if found == right:
            continue
        if not isinstance(found, str):
            not_yet(f"it returns a {type(found).__name__}; wanted is a text.")
        if full.endswith("10") and found in ("/GPU:1", "/GPU:0"):
            not_yet("the number of a device may have two digits.")
        if found == right[1:]:
            not_yet("the short name begins with a slash.")
        if "task" in found or "job" in found:
            not_yet(f"for {full} it returns {found}: job and task are left.")
        not_yet(f"for {full} it returns {found!r}. Which two parts count?")


class _TooSoon(Exception):
    """Carries what initialised the stand-in before it was configured."""


def _stand_in(record: dict) -> SimpleNamespace:
    """Behave like TensorFlow's configuration: fixed at first use.

    It keeps in ``record`` what was configured and what initialised it.
    """

    def used(name: str, result):
        def call(*args, **kwargs):
            record.setdefault("first use", name)
            return result(*args, **kwargs)

        return call

    def configure(device, parts):
        if "first use" in record:
            raise _TooSoon(record["first use"])
        record["parts"] = len(parts)

    config = SimpleNamespace(
        list_physical_devices=lambda kind=None: ["CPU:0"],
        list_logical_devices=used("list_logical_devices", lambda *_: ["CPU:0"]),
        LogicalDeviceConfiguration=lambda **_: object(),
        set_logical_device_configuration=configure,
    )
    return SimpleNamespace(
        config=config,
        constant=used("constant", lambda value, *_, **__: value),
        Variable=used("Variable", lambda value, *_, **__: value),
        reduce_sum=used("reduce_sum", lambda values, *_, **__: sum(values)),
    )


@check(
    "1.3",
    "devices are fixed at first use. A tensor, a list of the logical devices or "
    "an import above the configuration can be enough to be too late.",
)
def check_01_set_up(set_up) -> None:
    """Run the learner's order of calls on a stand-in for TensorFlow.

    Args:
        set_up: takes ``tf``, splits the CPU in three, returns the sum of
            the numbers 1, 2, 3 and the logical devices.
    """
    record: dict = {}
    try:
        result = set_up(_stand_in(record))
    except _TooSoon as first:
        not_yet(
            f"Virtual devices cannot be modified after being initialized: "
            f"{first} was called before. What may stand above the split?"
        )
    if "parts" not in record:
        not_yet("the CPU was never split.")
    if record["parts"] != 3:
        not_yet(f"the CPU was split into {record['parts']} parts, not 3.")
    if result != (6, ["CPU:0"]):
        not_yet(f"it returns {result!r}: return the sum and the devices.")


VIRTUAL = {
    "which operation ran on which device": True,
    "how many bytes cross between two devices": True,
    "that a batch is too large for a card's memory": False,
    "how long a transfer takes": False,
    "that two towers give the weights of one": True,
    "where an operation goes that nobody pinned": False,
}


@check(
    "1.4",
    "whoever measures transfers on virtual GPUs concludes that they are "
    "free, and plans a cluster on it.",
)
def check_01_virtual(answer: dict) -> None:
    """Compare judgements about virtual GPUs with the lesson's table.

    Args:
        answer: statement to True if a virtual GPU shows it truly.
    """
    if not isinstance(answer, dict) or set(answer) != set(VIRTUAL):
        not_yet("keep the dict's keys as they are; change the values.")
    for statement, said in answer.items():
        if said is ...:
            not_yet(f"no answer yet for: {statement}.")
        if not isinstance(said, bool):
            not_yet(f"answer True or False for: {statement}.")
        if said != VIRTUAL[statement]:
            not_yet(
                f"think again about: {statement}. What is a virtual GPU made "
                "of, and does that part of a real GPU exist in it?"
            )
