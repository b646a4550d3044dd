"""Virtual GPUs on machines with any number of real ones, and the names of devices."""

import os
from contextlib import ExitStack

import numpy as np
import pytest
import tensorflow as tf

from utils.machine import Machine, devices, plain_name, virtual_gpus
from utils.memory import stand_in_gpus

FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.fixture
def machine_with(monkeypatch):
    """`machine_with(cards)`: nothing is set up yet, and there are so many real GPUs."""
    with ExitStack() as stack:

        def begin(cards):
            monkeypatch.setattr(devices, "_machine", None)
            return stack.enter_context(stand_in_gpus(cards))

        yield begin


def parts(device):
    return tf.config.get_logical_device_configuration(device)


def growth(gpus):
    return [tf.config.experimental.get_memory_growth(gpu) for gpu in gpus]


def threads():
    pools = tf.config.threading
    return pools.get_intra_op_parallelism_threads(), pools.get_inter_op_parallelism_threads()


def assert_untouched(there):
    assert [parts(device) for device in (there.cpu, *there.gpus)] == [None] * (1 + len(there.gpus))
    assert growth(there.gpus) == [None] * len(there.gpus)
    assert tf.config.get_visible_devices("GPU") == list(there.gpus)
    assert (threads(), devices._machine) == ((0, 0), None)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_without_gpu_the_cpu_is_split(machine_with, n):
    there = machine_with(0)
    machine = virtual_gpus(n)
    gpus = tuple(f"/CPU:{i}" for i in range(1, n + 1))
    assert (machine.kind, machine.host) == ("virtual", "/CPU:0")
    assert (machine.gpus, machine.cards) == (gpus, ())
    assert len(parts(there.cpu)) == n + 1
    assert threads() == (1, n + 1)


@pytest.mark.parametrize(("n", "cards"), [(1, 1), (1, 2), (2, 2), (3, 4), (4, 4)])
def test_enough_gpus_are_used_as_they_are(machine_with, n, cards):
    there = machine_with(cards)
    machine = virtual_gpus(n)
    assert (machine.kind, machine.cards) == ("real", tuple(range(n)))
    assert machine.gpus == tuple(f"/GPU:{i}" for i in range(n))
    assert tf.config.get_visible_devices("GPU") == list(there.gpus[:n])
    assert growth(there.gpus) == [True] * n + [None] * (cards - n)  # all that are used, alike
    assert {parts(gpu) for gpu in there.gpus} == {None}


@pytest.mark.parametrize(
    ("n", "cards", "behind"),
    [
        (2, 1, (0, 0)),
        (3, 2, (0, 0, 1)),
        (4, 2, (0, 0, 1, 1)),
        (5, 4, (0, 0, 1, 2, 3)),
        (8, 4, (0, 0, 1, 1, 2, 2, 3, 3)),
    ],
)
def test_too_few_gpus_are_split_by_memory_limit(machine_with, n, cards, behind):
    there = machine_with(cards)
    machine = virtual_gpus(n)
    assert (machine.kind, machine.cards) == ("split", behind)
    assert machine.gpus == tuple(f"/GPU:{i}" for i in range(n))
    assert growth(there.gpus) == [None] * cards
    for number, card in enumerate(there.gpus):
        limits = [part.memory_limit for part in parts(card)]
        assert limits == [devices.SLICE_MEMORY_MB] * behind.count(number)


@pytest.mark.parametrize("n", [7, 64])
@pytest.mark.parametrize("cards", [1, 3, 4])
def test_slices_are_spread_evenly_and_in_order(machine_with, n, cards):
    machine_with(cards)
    behind = virtual_gpus(n).cards
    counts = [behind.count(card) for card in range(cards)]
    assert max(counts) - min(counts) <= 1
    assert behind == tuple(sorted(behind))  # GPU:i of TensorFlow is the i-th slice


def test_again_is_no_change(machine_with):
    machine_with(2)
    machine = virtual_gpus(2)  # TensorFlow refuses a second change
    assert virtual_gpus(np.int64(2)) is devices.current_machine() is machine


def test_another_number_is_one_clear_error(machine_with):
    machine_with(0)
    machine = virtual_gpus(2)
    with pytest.raises(RuntimeError, match=r"3 GPUs asked for.*already runs with 2.*restart"):
        virtual_gpus(3)
    assert virtual_gpus(2) is machine


@pytest.mark.parametrize("cards", [0, 1, 2])
def test_too_late_is_one_clear_error(machine_with, cards):
    there = machine_with(cards)
    tf.config.list_logical_devices()
    with pytest.raises(RuntimeError, match=r"2 GPUs asked for.*already initialised.*Restart"):
        virtual_gpus(2)
    assert_untouched(there)
    with pytest.raises(RuntimeError, match="No devices are set up yet"):
        devices.current_machine()


def test_verifies_what_it_set(machine_with, monkeypatch):
    machine_with(0)
    fewer = [tf.config.LogicalDevice("/device:CPU:0", "CPU")]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: fewer)
    with pytest.raises(RuntimeError, match=r"did not set up.*\('CPU', 2\)"):
        virtual_gpus(2)
    assert devices._machine is None


def test_a_gpu_that_cannot_be_split_is_not_answered_by_a_restart_alone(machine_with, monkeypatch):
    machine_with(1)

    def no_memory():
        raise tf.errors.InternalError(None, None, "out of memory")

    monkeypatch.setattr(tf.config, "list_logical_devices", no_memory)
    with pytest.raises(RuntimeError) as caught:
        virtual_gpus(2)
    for part in ("A restart alone repeats this", "CUDA_VISIBLE_DEVICES", "says: out of memory"):
        assert part in str(caught.value)
    assert devices._machine is None


@pytest.mark.parametrize(
    ("value", "error"), [("2", TypeError), (True, TypeError), (0, ValueError), (65, ValueError)]
)
def test_no_number_of_gpus(machine_with, value, error):
    there = machine_with(0)
    with pytest.raises(error, match=rf"^gpus={value!r}: give a whole number from 1 to 64"):
        virtual_gpus(value)
    assert not there.started
    assert_untouched(there)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("/CPU:0", "host"),
        ("/cpu:0", "host"),
        ("CPU:0", "host"),
        ("/device:CPU:0", "host"),
        (FULL + "CPU:0", "host"),
        ("/job:localhost/replica:0/task:0/cpu:0", "host"),
        ("/CPU:1", "GPU 0"),
        (FULL + "CPU:4", "GPU 3"),
        ("/CPU:5", "CPU 5"),  # not one of the machine's four
        ("/GPU:0", "GPU 0"),
        (FULL + "XLA_CPU:0", "XLA_CPU 0"),
        ("", "unplaced"),
    ],
)
def test_roles_on_four_virtual_gpus(monkeypatch, device, expected):
    gpus = tuple(f"/CPU:{i}" for i in range(1, 5))
    monkeypatch.setattr(devices, "_machine", Machine("/CPU:0", gpus, "virtual", (), 2))
    assert plain_name(device) == expected


def test_roles_on_real_gpus(monkeypatch):
    monkeypatch.setattr(
        devices, "_machine", Machine("/CPU:0", ("/GPU:0", "/GPU:1"), "real", (0, 1), 2)
    )
    assert [plain_name(FULL + name) for name in ("CPU:0", "GPU:1", "CPU:1")] == [
        "host",
        "GPU 1",
        "CPU 1",
    ]


def test_roles_before_anything_is_set_up(monkeypatch):
    monkeypatch.setattr(devices, "_machine", None)
    assert [plain_name(name) for name in ("/CPU:0", "/GPU:1")] == ["host", "GPU 1"]


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "/GPU:*",
        "/GPU",
        "/job:localhost",
        "/job:worker/task:1",
        "/job:ps/replica:0",
        "/CPU:0 ",
    ],
)
def test_no_device_has_no_role(text):
    with pytest.raises(
        ValueError, match=f"^{text!r} is not the name of one device".replace("*", ".")
    ):
        plain_name(text)


@pytest.mark.parametrize(
    ("machine", "text", "limits"),
    [
        (
            Machine("/CPU:0", ("/CPU:1",), "virtual", (), 2),
            "host and 1 GPU (virtual: parts of the CPU stand for them)",
            "at most 1 to compute",
        ),
        (
            Machine("/CPU:0", ("/CPU:1", "/CPU:2", "/CPU:3"), "virtual", (), 2),
            "host and 3 GPUs (virtual: parts of the CPU stand for them)",
            "2 CPU core(s) do the work of 3 virtual GPUs: expect at most 2 to compute",
        ),
        (
            Machine("/CPU:0", ("/GPU:0", "/GPU:1"), "split", (0, 0), 8),
            "host and 2 GPUs (virtual: parts of 1 real one)",
            "1 real GPU(s)",
        ),
        (
            Machine("/CPU:0", ("/GPU:0", "/GPU:1", "/GPU:2"), "split", (0, 0, 1), 8),
            "host and 3 GPUs (virtual: parts of 2 real ones)",
            "2 real GPU(s)",
        ),
        (
            Machine("/CPU:0", ("/GPU:0", "/GPU:1"), "real", (0, 1), 8),
            "host and 2 GPUs (real)",
            "2 real GPU(s)",
        ),
    ],
)
def test_says_what_it_is_and_what_it_can(machine, text, limits):
    assert str(machine) == text
    assert limits in machine.limits


def test_cores_are_those_of_this_process(machine):
    assert machine.cores == len(os.sched_getaffinity(0))


def test_the_real_machine(machine):
    assert machine.kind == "virtual"  # tests hide real GPUs
    names = {device.name for device in tf.config.list_logical_devices()}
    assert names == {f"/device:CPU:{i}" for i in range(5)}
    for number, gpu in enumerate(machine.gpus):
        with tf.device(gpu):
            assert plain_name(tf.ones([]).device) == f"GPU {number}"
