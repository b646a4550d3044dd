"""Device names that say only a part, such as ``/device:GPU:*``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

# The parts of a device's name, and what TensorFlow calls two that differ.
PARTS = {
    "job": "jobs",
    "replica": "replicas",
    "task": "tasks",
    "device_type": "types",
    "device_index": "ids",
}


class Disagree(Exception):
    """Two specifications cannot both hold; the text is TensorFlow's."""


def compatible(one: "tf.DeviceSpec", other: "tf.DeviceSpec") -> bool:
    """Tell whether some device could satisfy both specifications."""
    pairs = ((getattr(one, part), getattr(other, part)) for part in PARTS)
    return all(a is None or b is None or a == b for a, b in pairs)


def satisfies(device: "tf.DeviceSpec", spec: "tf.DeviceSpec") -> bool:
    """Tell whether a full device name is what a specification asks for."""
    return all(getattr(spec, part) in (None, getattr(device, part)) for part in PARTS)


def merged(one: "tf.DeviceSpec", other: "tf.DeviceSpec", soft: bool = False) -> "tf.DeviceSpec":
    """Return a specification that asks for both.

    Where type or index differ, soft placement gives up that part (a type
    takes its index along) and what comes after it.

    Raises:
        Disagree: they differ and ``soft`` does not help.
    """
    for part, plural in PARTS.items():
        mine, theirs = getattr(one, part), getattr(other, part)
        if theirs is None or mine == theirs:
            continue
        if mine is None:
            one = one.replace(**{part: theirs})
        elif soft and part == "device_type":
            return one.replace(device_type=None, device_index=None)
        elif soft and part == "device_index":
            return one.replace(device_index=None)
        else:
            raise Disagree(
                f"Cannot merge devices with incompatible {plural}: "
                f"'{one.to_string()}' and '{other.to_string()}'"
            )
    return one
