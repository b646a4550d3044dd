"""Virtual GPUs on machines with any number of real ones, and the names of devices."""

import os

import numpy as np
import pytest
import tensorflow as tf

from utils.machine import Machine, devices, plain_name, virtual_gpus

FULL = "/job:localhost/replica:0/task:0/device:"


class StandIn:
    """What `tf.config` does to devices, with its rules, for a machine that is not there."""

    def __init__(self, cards: int):
        self.physical = {
            "CPU": [tf.config.PhysicalDevice("/physical_device:CPU:0", "CPU")],
            "GPU": [
                tf.config.PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(cards)
            ],
        }
        self.visible = dict(self.physical)
        self.parts = {}  # physical device: its logical devices
        self.growth = {}
        self.threads = {}
        self.initialised = False

    def _change(self, what):
        if self.initialised:
            raise RuntimeError(f"{what} cannot be modified after being initialized")

    def list_physical_devices(self, kind):
        return list(self.physical[kind])

    def set_logical_device_configuration(self, device, parts):
        self._change("Virtual devices")
        limits = [part.memory_limit for part in parts]
        assert all(limit is None for limit in limits) == (device.device_type == "CPU")
        if device in self.growth:
            raise ValueError("Cannot configure virtual devices when memory growth is set")
        self.parts[device] = parts

    def set_visible_devices(self, chosen, kind):
        self._change("Visible devices")
        self.visible[kind] = list(chosen)

    def set_memory_growth(self, device, enable):
        self._change("Physical devices")
        if device in self.parts:
            raise ValueError("Cannot set memory growth on device when virtual devices configured")
        self.growth[device] = enable

    def set_threads(self, pool, count):
        self._change(pool)
        self.threads[pool] = count

    def list_logical_devices(self):
        self.initialised = True
        there = []
        for kind, visible in self.visible.items():
            count = sum(len(self.parts.get(device, [None])) for device in visible)
            there += [tf.config.LogicalDevice(f"/device:{kind}:{i}", kind) for i in range(count)]
        return there

    def install(self, monkeypatch):
        config = tf.config
        for name in (
            "list_physical_devices",
            "set_logical_device_configuration",
            "set_visible_devices",
            "list_logical_devices",
        ):
            monkeypatch.setattr(config, name, getattr(self, name))
        monkeypatch.setattr(config.experimental, "set_memory_growth", self.set_memory_growth)
        for pool in ("inter", "intra"):
            monkeypatch.setattr(
                config.threading,
                f"set_{pool}_op_parallelism_threads",
                lambda count, pool=pool: self.set_threads(pool, count),
            )
        return self


@pytest.fixture
def machine_with(monkeypatch):
    """`machine_with(cards)`: nothing is set up yet, and there are so many real GPUs."""
    monkeypatch.setattr(devices, "_machine", None)
    return lambda cards: StandIn(cards).install(monkeypatch)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_without_gpu_the_cpu_is_split(machine_with, n):
    config = machine_with(0)
    machine = virtual_gpus(n)
    assert machine.kind == "virtual"
    assert machine.host == "/CPU:0"
    assert machine.gpus == tuple(f"/CPU:{i}" for i in range(1, n + 1))
    assert machine.cards == ()
    assert [len(parts) for parts in config.parts.values()] == [n + 1]
    assert config.growth == {}
    assert config.threads == {"intra": 1, "inter": n + 1}


@pytest.mark.parametrize(("n", "cards"), [(1, 1), (1, 2), (2, 2), (2, 4), (3, 4), (4, 4)])
def test_enough_gpus_are_used_as_they_are(machine_with, n, cards):
    config = machine_with(cards)
    machine = virtual_gpus(n)
    assert machine.kind == "real"
    assert machine.gpus == tuple(f"/GPU:{i}" for i in range(n))
    assert machine.cards == tuple(range(n))
    used = config.physical["GPU"][:n]
    assert config.visible["GPU"] == used
    assert config.growth == dict.fromkeys(used, True)  # all alike
    assert config.parts == {}


@pytest.mark.parametrize(
    ("n", "cards", "behind"),
    [
        (2, 1, (0, 0)),
        (3, 1, (0, 0, 0)),
        (3, 2, (0, 0, 1)),
        (4, 2, (0, 0, 1, 1)),
        (5, 2, (0, 0, 0, 1, 1)),
        (5, 4, (0, 0, 1, 2, 3)),
        (8, 4, (0, 0, 1, 1, 2, 2, 3, 3)),
    ],
)
def test_too_few_gpus_are_split_by_memory_limit(machine_with, n, cards, behind):
    config = machine_with(cards)
    machine = virtual_gpus(n)
    assert machine.kind == "split"
    assert machine.gpus == tuple(f"/GPU:{i}" for i in range(n))
    assert machine.cards == behind
    assert config.growth == {}
    for number, card in enumerate(config.physical["GPU"]):
        parts = config.parts[card]
        assert len(parts) == behind.count(number)
        assert {part.memory_limit for part in parts} == {devices.SLICE_MEMORY_MB}


@pytest.mark.parametrize("n", [1, 7, 64])
@pytest.mark.parametrize("cards", [1, 2, 3, 4])
def test_slices_are_spread_evenly_and_in_order(machine_with, n, cards):
    machine_with(cards)
    behind = virtual_gpus(n).cards
    counts = [behind.count(card) for card in set(behind)]
    assert max(counts) - min(counts) <= 1
    assert behind == tuple(sorted(behind))  # GPU:i of TensorFlow is the i-th slice
    assert set(behind) == set(range(min(n, cards)))


def test_again_is_no_change(machine_with):
    machine_with(2)
    machine = virtual_gpus(2)  # a second change would raise in the stand-in
    assert virtual_gpus(2) is machine
    assert virtual_gpus(np.int64(2)) is machine
    assert devices.current_machine() is machine


def test_another_number_is_one_clear_error(machine_with):
    machine_with(0)
    machine = virtual_gpus(2)
    with pytest.raises(RuntimeError, match=r"3 GPUs asked for.*already runs with 2.*restart"):
        virtual_gpus(3)
    assert virtual_gpus(2) is machine


@pytest.mark.parametrize("cards", [0, 1, 2])
def test_too_late_is_one_clear_error(machine_with, cards):
    config = machine_with(cards)
    config.initialised = True
    with pytest.raises(RuntimeError, match=r"2 GPUs asked for.*already initialised.*Restart"):
        virtual_gpus(2)
    assert (config.parts, config.growth, config.threads) == ({}, {}, {})
    assert config.visible == config.physical
    with pytest.raises(RuntimeError, match="No devices are set up yet"):
        devices.current_machine()


def test_verifies_what_it_set(machine_with, monkeypatch):
    config = machine_with(0)
    fewer = config.list_logical_devices()[:1]
    config.initialised = False
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
    "value", [2.5, 2.0, "2", True, False, None, [2], np.bool_(True), np.ones(2)]
)
def test_not_a_whole_number(machine_with, value):
    config = machine_with(0)
    with pytest.raises(TypeError) as caught:
        virtual_gpus(value)
    assert f"gpus={value!r}: give a whole number from 1 to 64" in str(caught.value)
    assert (config.parts, config.initialised, devices._machine) == ({}, False, None)


@pytest.mark.parametrize("value", [0, -1, 65, np.int64(0)])
def test_out_of_range(machine_with, value):
    config = machine_with(0)
    with pytest.raises(ValueError, match=rf"gpus={value}: give a whole number from 1 to 64"):
        virtual_gpus(value)
    assert (config.parts, config.initialised, devices._machine) == ({}, False, None)


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
