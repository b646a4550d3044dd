"""Checks of the exercises of lesson 01."""

from collections.abc import Callable
from types import SimpleNamespace

from utils.checks.findings import own
from utils.checks.normalising import choice, items, number, table, text, truth, whole
from utils.checks.outcome import check, not_yet
from utils.checks.trying import returned
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
    for letter, said in table(answer, MACHINES).items():
        layer = choice(said, LAYERS, f"machine {letter}")
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
def check_01_short(short: Callable) -> None:
    """Call the learner's function with names of several forms.

    Args:
        short: takes a device's full name, returns its short one.
    """
    # Conditions: a text; the slash; the type, as it is; the whole index; job,
    # replica, task and the word device gone.
    cases = {
        "/job:localhost/replica:0/task:0/device:GPU:3": "/GPU:3",
        "/job:worker/replica:0/task:12/device:CPU:0": "/CPU:0",
        "/job:localhost/replica:0/task:0/device:GPU:10": "/GPU:10",
        "/device:CPU:1": "/CPU:1",
    }
    given = [text(returned(short, full), f"what it returns for {full}") for full in cases]
    if len(set(given)) == 1:
        not_yet(f"it returns {given[0]!r} for every name.")
    for (full, right), said in zip(cases.items(), given, strict=True):
        if said != right:
            not_yet(_why_not_short(full, right, said))


def _why_not_short(full: str, right: str, said: str) -> str:
    if said == right[: len("/GPU:1")] or (full.endswith("10") and said == "/GPU:0"):
        return "the number of a device may have two digits."
    if said == right[1:]:
        return "the short name begins with a slash."
    if said.casefold() == right.casefold():
        return f"for {full} it returns {said!r}: keep the type's capitals."
    if "task" in said or "job" in said:
        return f"for {full} it returns {said}: job and task are left."
    if said == f"/device:{right[1:]}":
        return f"for {full} it returns {said}: the word device is left."
    if "".join(said.split()) == right:
        return f"for {full} it returns {said!r}: there are blanks in it."
    return f"for {full} it returns {said!r}. Which two parts count?"


class _TooSoon(Exception):
    """Carries what initialised the stand-in before it was configured."""


class _StandIn(SimpleNamespace):
    """A part of the stand-in; what it lacks is told as such."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        not_yet(f"the stand-in for TensorFlow has no {name!r}: use the calls of the exercise.")


def _stand_in(record: dict) -> SimpleNamespace:
    """Behave like TensorFlow's configuration: fixed at first use.

    It keeps in ``record`` what was configured, summed and listed, and what
    initialised it.
    """

    def used(name: str, result):
        def call(*args, **kwargs):
            record.setdefault("first use", name)
            record[name] = result(*args, **kwargs)
            return record[name]

        return call

    def configure(device, logical_devices):
        if "first use" in record:
            raise _TooSoon(record["first use"])
        if device != "CPU:0":
            not_yet("the first argument of the split is not the CPU.")
        record["parts"] = len(items(logical_devices, "the list of parts"))

    def physical(device_type=None):
        return ["CPU:0"] if device_type in (None, "CPU") else []

    def logical(device_type=None):
        return [f"CPU:{i}" for _ in physical(device_type) for i in range(record.get("parts", 1))]

    config = _StandIn(
        list_physical_devices=physical,
        list_logical_devices=used("list_logical_devices", logical),
        LogicalDeviceConfiguration=lambda **_: object(),
        set_logical_device_configuration=configure,
    )
    total = used("reduce_sum", lambda input_tensor, *_, **__: sum(input_tensor))
    return _StandIn(
        config=config,
        constant=used("constant", lambda value, *_, **__: value),
        Variable=used("Variable", lambda value, *_, **__: value),
        reduce_sum=total,
        math=_StandIn(reduce_sum=total),
    )


@check(
    "1.3",
    "devices are fixed at first use. A tensor, a list of the logical devices or "
    "an import above the configuration can be enough to be too late.",
)
def check_01_set_up(set_up: Callable) -> None:
    """Run the learner's order of calls on a stand-in for TensorFlow.

    Args:
        set_up: takes ``tf``, splits the CPU in three, returns the sum of
            the numbers 1, 2, 3 and the logical devices.
    """
    # Conditions: the CPU split, in three, before first use; the sum taken by
    # TensorFlow; the logical devices there are afterwards; both returned.
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
    for call in ("reduce_sum", "list_logical_devices"):
        if call not in record:
            not_yet(f"{call} was never called: keep all lines of the exercise.")
    if result is None:
        not_yet("set_up returned None. Return the sum and the devices.")
    total, devices = items(result, "what set_up returned", 2)
    if number(total, "the sum") != 6:
        not_yet(f"the first part returned is {total!r}; expected is the sum of 1, 2 and 3.")
    if items(devices, "the second part returned") != ["CPU:0", "CPU:1", "CPU:2"]:
        not_yet(f"the second part returned is {devices!r}; expected are the logical devices.")


VIRTUAL = {
    "which operation ran on which device": True,
    "how many bytes cross between two devices": True,
    "that a batch is too large for a card's memory": False,
    "how long a transfer takes": False,
    "that two towers give the weights of one": True,
    "where an operation goes that nobody pinned": False,
}


# What decides about each of the statements above.
_ASK = (
    "Does the placer care whether a device is virtual?",
    "Is a tensor that goes from one virtual GPU to another copied and counted?",
    "Whose memory does a virtual GPU use?",
    "What cable is there between two parts of one CPU?",
    "Does the result of a sum depend on the device that computes it?",
    "Which device does TensorFlow prefer on a machine with real GPUs?",
)


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
    for (statement, said), ask in zip(table(answer, VIRTUAL).items(), _ASK, strict=True):
        if truth(said, f"the answer for: {statement}") != VIRTUAL[statement]:
            not_yet(f"think again about: {statement}. {ask}")


# Exercise 1.5: what is changed -> the bytes that go from GPU 1 to GPU 0.
BYTES = {
    "200 rows": 200 * 200 * 4,
    "600 columns": 100 * 100 * 4,
    "float64": 100 * 100 * 8,
    "sum on GPU 1": 0,
}


@check(
    "1.5",
    "what crosses is the tensor that the other device reads: its shape and its type "
    "say how many bytes. Where the reader runs decides whether it crosses at all.",
)
def check_01_bytes(answer: dict) -> None:
    """Compare bytes with those that TensorFlow moved.

    Args:
        answer: what is changed in the program, to the bytes from GPU 1 to GPU 0.
    """
    # Conditions: four keys, whole bytes for each, as `crossing` counts them.
    said = {key: whole(value, key) for key, value in table(answer, BYTES).items()}
    # What each known wrong formula gives.
    causes = {
        ("200 rows", 80_000): "the product has as many columns as rows: both double.",
        ("200 rows", 200 * 300 * 4): "that is x. Which tensor does the sum read?",
        ("200 rows", 40_000): "that many bytes crossed before the change.",
        ("600 columns", 80_000): "has the product more numbers when x has more columns?",
        ("600 columns", 100 * 600 * 4): "that is x. Which tensor does the sum read?",
        ("float64", 40_000): "how many bytes has one number of this type?",
        ("float64", 100 * 300 * 8): "that is x. Which tensor does the sum read?",
        ("sum on GPU 1", 40_000): "who reads the product now, and where?",
        ("sum on GPU 1", 4): "the sum goes to the host, not to GPU 0.",
    }
    for key, right in BYTES.items():
        if said[key] != right:
            wrong = f"run `crossing` with this change; it does not give {said[key]:,}."
            not_yet(f"{key}: {said[key]:,} bytes: {causes.get((key, said[key]), wrong)}")


check_01_own = own(
    "1.6",
    "you know what your machine can do, and which layer to correct first if it says no.",
)
