"""Claims of the classic texts that lesson 01 tries."""

import dataclasses
import importlib.metadata
import importlib.util
import json
import mmap
from pathlib import Path

import pytest

from tests.claims.ledger import claim
from utils.diagnosis import diagnose, load_machine
from utils.placement import lists_gpu_kernels


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
    data="machines/four_gpus.json",
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
        "Since version 2.1 (its release notes) the package tensorflow has GPU support; today "
        "that for Linux is built with CUDA, and tensorflow[and-cuda] adds the libraries."
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
    finding=(
        "A log line per card is still in the library: 'Created device … with … MB memory', the "
        "size of TensorFlow's pool. The texts' lines of total and free memory are gone: "
        "nvidia-smi gives these, get_device_details name and capability."
    ),
    hardware=True,
)
@pytest.mark.skipif(not lists_gpu_kernels(), reason="this build has no code for GPUs")
def test_the_line_about_a_card_is_still_in_the_library():
    folder = Path(importlib.util.find_spec("tensorflow").origin).parent
    path = folder / "libtensorflow_framework.so.2"
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        for words in (b"Created device ", b" MB memory: "):
            assert library.find(words) >= 0, words
        for words in (b"totalMemory", b"freeMemory"):
            assert library.find(words) < 0, words


def test_a_second_cause_stays_when_the_first_is_corrected():
    old = dataclasses.replace(load_machine("driver_too_old"), visible_devices="-1")
    assert diagnose(old).deciding.layer == "driver"
    corrected = dataclasses.replace(load_machine("one_gpu"), visible_devices="-1", gpus=())
    assert diagnose(corrected).deciding.layer == "visibility"


def test_sessions_of_one_process_can_have_different_devices(fresh):
    done = fresh(
        "import tensorflow as tf\n"
        "v1 = tf.compat.v1\n"
        "for count in (1, 5):\n"
        "    config = v1.ConfigProto(device_count={'CPU': count})\n"
        "    with v1.Session(graph=tf.Graph(), config=config) as session:\n"
        "        print(len(session.list_devices()))\n"
    )
    assert done.stdout.split() == ["1", "5"]


def test_a_number_that_is_not_there_is_replaced_and_a_task_is_not(machine):
    import tensorflow as tf

    with tf.device("/GPU:7"):
        assert tf.constant(1.0).device.endswith("CPU:0")
    for name in ("/job:ps", "/task:9"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="unknown device"), tf.device(name):
            tf.constant(1.0)


@claim(
    "C07",
    "nvidia-smi lists the cards, their memory and the driver.",
    verdict="true",
    lesson="01",
    section="1 · Ask every layer",
    finding="Its list is the layer of the hardware in the diagnosis.",
    data="machines/unlike_gpus.json",
)
def test_nvidia_smi_lists_cards():
    cards = load_machine("unlike_gpus").nvidia_smi.cards
    assert len(cards) == 2
    assert len({card.name for card in cards}) == 2
    assert all(card.memory_mb and card.driver for card in cards)
