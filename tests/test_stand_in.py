"""utils.memory.stand_in: TensorFlow's own configuration over GPUs that are not there."""

import pytest
import tensorflow as tf
from tensorflow.python import pywrap_tfe

from utils.memory import stand_in_gpus

Limit = tf.config.LogicalDeviceConfiguration


@pytest.mark.parametrize("count", [1, 2, 4])
def test_tensorflow_lists_them(machine, count):
    with stand_in_gpus(count) as stand_in:
        assert tf.config.list_physical_devices() == [stand_in.cpu, *stand_in.gpus]
        assert [gpu.name for gpu in stand_in.gpus] == [
            f"/physical_device:GPU:{i}" for i in range(count)
        ]
        assert tf.config.get_visible_devices("GPU") == list(stand_in.gpus)


def test_settings_reach_the_options(machine):
    with stand_in_gpus(2) as stand_in:
        assert not stand_in.options.allow_growth
        for gpu in stand_in.gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
        assert stand_in.options.allow_growth
    with stand_in_gpus(2) as stand_in:
        assert not stand_in.options.allow_growth, "each begins afresh"


def test_what_needs_devices_makes_it_too_late(machine):
    with stand_in_gpus(2) as stand_in:
        gpu = stand_in.gpus[0]
        assert not stand_in.started
        assert len(tf.config.list_logical_devices("GPU")) == 2
        assert stand_in.started
        with pytest.raises(RuntimeError, match="cannot be modified after being initialized"):
            tf.config.experimental.set_memory_growth(gpu, True)
        with pytest.raises(RuntimeError, match="cannot be modified after being initialized"):
            tf.config.set_logical_device_configuration(gpu, [Limit(memory_limit=1)])


@pytest.mark.parametrize("run", [lambda: tf.zeros([2]), lambda: tf.Variable(1.0)])
def test_nothing_runs_on_them(machine, run):
    with stand_in_gpus(1), pytest.raises(RuntimeError, match="Nothing runs on GPUs that are"):
        run()


def test_the_devices_of_the_notebook_come_back(machine):
    before = tf.config.list_physical_devices(), tf.config.list_logical_devices()
    asks = pywrap_tfe.TF_ListPhysicalDevices  # the driver's list; TensorFlow keeps the answer
    limits = tf.config.get_logical_device_configuration(before[0][0])
    with pytest.raises(KeyError), stand_in_gpus(3) as stand_in:
        tf.config.set_logical_device_configuration(stand_in.cpu, [Limit()] * 7)
        tf.config.list_logical_devices()
        raise KeyError("from inside")
    assert (tf.config.list_physical_devices(), tf.config.list_logical_devices()) == before
    assert tf.config.get_logical_device_configuration(before[0][0]) == limits
    assert pywrap_tfe.TF_ListPhysicalDevices is asks
    with tf.device(machine.gpus[1]):
        assert float(tf.constant([1.0, 2.0])[1] + 1.0) == 3.0


@pytest.mark.parametrize(("count", "error"), [(-1, ValueError), (65, ValueError), ("2", TypeError)])
def test_impossible_counts(machine, count, error):
    with pytest.raises(error, match="count="), stand_in_gpus(count):
        pass
