"""The checks of lesson 01: right, right in another way, wrong, untouched."""

import re

import pytest

from utils.checks import lesson01

LAYERS = {"a": "driver", "b": "libraries", "c": "visibility", "d": "build"}
VIRTUAL = dict(lesson01.VIRTUAL)


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (LAYERS, "correct"),
        (dict(reversed(LAYERS.items())), "correct"),
        (LAYERS | {"a": "hardware"}, "machine a: the layer hardware is in order"),
        (LAYERS | {"b": "visibility"}, "machine b: visibility comes too late"),
        (LAYERS | {"c": "build"}, "machine c: the layer build is in order"),
        (LAYERS | {"d": ...}, "machine d has no answer"),
        (LAYERS | {"d": "gpu"}, "'gpu' is none of"),
        ({"a": "driver"}, "keep a dict"),
        (dict.fromkeys(LAYERS, ...), "not attempted"),
    ],
)
def test_layers(said, answer, part):
    assert part in said(lesson01.check_01_layers, answer)


def test_short(said):
    import tensorflow as tf

    def right(name):
        spec = tf.DeviceSpec.from_string(name)
        return f"/{spec.device_type}:{spec.device_index}"

    def by_text(name):
        return "/" + name.split("device:")[1]

    def by_pattern(name):
        return re.sub(r".*/device:", "/", name)

    def one_digit(name):
        return "/" + name.split("device:")[1][:5]

    def no_slash(name):
        return name.split("device:")[1]

    def unchanged(name):
        return name

    def spec(name):
        return tf.DeviceSpec.from_string(name)

    def stub(name):
        """Return the short form of a device's full name, such as /GPU:3."""
        ...

    for answer, part in {
        right: "correct",
        by_text: "correct",
        by_pattern: "correct",
        one_digit: "two digits",
        no_slash: "begins with a slash",
        unchanged: "job and task are left",
        spec: "wanted is a text",
        stub: "not attempted",
    }.items():
        line = said(lesson01.check_01_short, answer)
        assert part in line, (answer.__name__, line)


def test_set_up(said):
    def split(tf, parts=3):
        cpu = tf.config.list_physical_devices("CPU")[0]
        part = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [part] * parts)

    def right(tf):
        split(tf)
        return tf.reduce_sum(tf.constant([1, 2, 3])), tf.config.list_logical_devices()

    def other_order(tf):
        split(tf)
        devices = tf.config.list_logical_devices()
        return tf.reduce_sum(tf.constant([1, 2, 3])), devices

    def as_given(tf):
        total = tf.reduce_sum(tf.constant([1, 2, 3]))
        devices = tf.config.list_logical_devices()
        split(tf)
        return total, devices

    def lists_first(tf):
        devices = tf.config.list_logical_devices()
        split(tf)
        return tf.reduce_sum(tf.constant([1, 2, 3])), devices

    def two_parts(tf):
        split(tf, 2)
        return tf.reduce_sum(tf.constant([1, 2, 3])), tf.config.list_logical_devices()

    def no_split(tf):
        return tf.reduce_sum(tf.constant([1, 2, 3])), tf.config.list_logical_devices()

    def only_the_sum(tf):
        split(tf)
        return tf.reduce_sum(tf.constant([1, 2, 3]))

    def stub(tf):
        """Split the CPU in three; return the sum and the logical devices."""
        ...

    for answer, part in {
        right: "correct",
        other_order: "correct",
        as_given: "constant was called before",
        lists_first: "list_logical_devices was called before",
        two_parts: "2 parts, not 3",
        no_split: "never split",
        only_the_sum: "return the sum and the devices",
        stub: "not attempted",
    }.items():
        line = said(lesson01.check_01_set_up, answer)
        assert part in line, (answer.__name__, line)


def test_the_stand_in_follows_the_real_rule(fresh):
    """What fixes TensorFlow's devices, and what does not, in a fresh process."""
    done = fresh(
        "import tensorflow as tf\n"
        "cpu = tf.config.list_physical_devices('CPU')[0]\n"
        "part = tf.config.LogicalDeviceConfiguration()\n"
        "tf.config.set_logical_device_configuration(cpu, [part] * 2)\n"
        "tf.config.set_logical_device_configuration(cpu, [part] * 3)\n"
        "print(len(tf.config.list_logical_devices('CPU')))\n"
        "try:\n"
        "    tf.config.set_logical_device_configuration(cpu, [part] * 4)\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
    )
    assert done.stdout.splitlines() == [
        "3",
        "Virtual devices cannot be modified after being initialized",
    ]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({}, "correct"),
        ({"how long a transfer takes": True}, "think again about: how long"),
        ({"how many bytes cross between two devices": False}, "how many bytes"),
        ({"how long a transfer takes": ...}, "no answer yet for: how long"),
        ({"how long a transfer takes": "no"}, "answer True or False"),
        ({"something else": True}, "keep the dict's keys"),
        (dict.fromkeys(VIRTUAL, ...), "not attempted"),
    ],
)
def test_virtual(said, change, part):
    assert part in said(lesson01.check_01_virtual, VIRTUAL | change)
