"""Claims of the classic texts that lesson 01 tries."""

import importlib.metadata
import json

from tests.claims.ledger import claim
from utils.diagnosis import diagnose, load_machine


@claim(
    "C02",
    "All cores of the CPU together are one device, /cpu:0.",
    verdict="changed",
    lesson="01",
    section="2 · Devices have names",
    finding=(
        "One physical and, by default, one logical device; today it can be "
        "split into several logical ones."
    ),
)
def test_all_cores_are_one_device_until_split(fresh, machine):
    import tensorflow as tf

    done = fresh(
        "import json, os, tensorflow as tf\n"
        "names = [d.name for d in tf.config.list_logical_devices('CPU')]\n"
        "print(json.dumps([os.cpu_count(), names]))\n"
    )
    _, names = json.loads(done.stdout)
    assert names == ["/device:CPU:0"]
    # this process split its CPU
    assert len(tf.config.list_physical_devices("CPU")) == 1
    assert len(tf.config.list_logical_devices("CPU")) == len(machine.gpus) + 1


@claim(
    "C03",
    "A program cannot be pinned to particular cores or to some of them.",
    verdict="false today",
    lesson="01",
    section="6 · A program on some of the cores",
    finding=(
        "The operating system gives a process and its threads a set of "
        "cores, and TensorFlow's threads keep to it."
    ),
)
def test_a_process_keeps_to_its_cores(fresh):
    done = fresh(
        "import os, json\n"
        "core = min(os.sched_getaffinity(0))\n"
        "os.sched_setaffinity(0, {core})\n"
        "import tensorflow as tf\n"
        "x = tf.random.normal([300, 300])\n"
        "for _ in range(5): x = x @ x / 300.0\n"
        "tasks = os.listdir('/proc/self/task')\n"
        "sets = {tuple(os.sched_getaffinity(int(t))) for t in tasks}\n"
        "print(json.dumps([core, len(tasks), sorted(sets)]))\n"
    )
    core, threads, sets = json.loads(done.stdout)
    assert threads > 1, "TensorFlow has threads of its own"
    assert sets == [[core]], "and each of them keeps to the one core"


@claim(
    "C04",
    "The n-th GPU is /gpu:n, counted from 0.",
    verdict="true",
    lesson="01",
    section="2 · Devices have names",
    finding="Four cards are GPU:0 to GPU:3; small letters are allowed.",
    hardware=True,
)
def test_gpus_are_counted_from_zero(machine):
    import tensorflow as tf

    found = diagnose(load_machine("four_gpus")).row("TensorFlow").found
    assert all(f"GPU:{n}" in found for n in range(4))
    assert "GPU:4" not in found
    for name in ("/gpu:3", "/GPU:3", "gpu:3"):
        spec = tf.DeviceSpec.from_string(name)
        assert (spec.device_type, spec.device_index) == ("GPU", 3)


@claim(
    "C05",
    "GPU support comes in a package of its own, tensorflow-gpu.",
    verdict="false today",
    lesson="01",
    section="1 · Ask every layer",
    finding=(
        "The package tensorflow for Linux is built with CUDA; "
        "tensorflow[and-cuda] adds the libraries."
    ),
)
def test_one_package_for_both():
    extra = importlib.metadata.metadata("tensorflow").get_all("Provides-Extra")
    assert "and-cuda" in extra
    wanted = importlib.metadata.requires("tensorflow")
    with_cuda = [line for line in wanted if "and-cuda" in line]
    assert any(line.startswith("nvidia-cudnn") for line in with_cuda)
    step = diagnose(load_machine("cpu_build")).deciding.next_step
    assert "tensorflow[and-cuda]" in step


@claim(
    "C06",
    "Creating a session prints the cards with their names and memory.",
    verdict="changed",
    lesson="01",
    section="1 · Ask every layer",
    finding=("Ask instead: get_device_details gives name and capability, nvidia-smi the memory."),
    hardware=True,
)
def test_the_cards_are_asked_for():
    machine = load_machine("two_gpus")
    rows = diagnose(machine)
    assert "compute capability" in " ".join(rows.row("TensorFlow").found.split())
    assert "MiB" in rows.row("hardware").found


def test_a_session_prints_no_cards_by_default(machine, capfd):
    import tensorflow as tf

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.constant(1.0))
    shown = capfd.readouterr()
    assert "memory" not in (shown.out + shown.err).lower()


@claim(
    "C07",
    "nvidia-smi lists the cards, their memory and the driver.",
    verdict="true",
    lesson="01",
    section="1 · Ask every layer",
    finding="Its list is the layer of the hardware in the diagnosis.",
    hardware=True,
)
def test_nvidia_smi_lists_cards():
    cards = load_machine("unlike_gpus").nvidia_smi.cards
    assert len(cards) == 2
    assert len({card.name for card in cards}) == 2
    assert all(card.memory_mb and card.driver for card in cards)
