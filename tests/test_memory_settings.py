"""utils.memory.settings, and TensorFlow's own memory settings that it stands on.

TensorFlow's real configuration code runs here over stand-in GPUs: only the list of physical
devices, which the driver would give, is invented.
"""

from contextlib import ExitStack

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from utils.memory import set_gpu_memory, stand_in_gpus

v1 = tf.compat.v1
growth_of = tf.config.experimental.get_memory_growth
set_growth = tf.config.experimental.set_memory_growth
limits_of = tf.config.get_logical_device_configuration
set_limits = tf.config.set_logical_device_configuration
Limit = tf.config.LogicalDeviceConfiguration


@pytest.fixture
def stand_ins():
    """`stand_ins(n)` makes TensorFlow's configuration see n GPUs; returns CPU and GPUs."""
    with ExitStack() as stack:

        def make(gpus):
            stand_in = stack.enter_context(stand_in_gpus(gpus))
            return [stand_in.cpu, *stand_in.gpus]

        yield make


def options():
    """What TensorFlow would be started with."""
    return context.context().config.gpu_options


def state(gpus):
    return [(growth_of(gpu), limits_of(gpu)) for gpu in gpus]


UNTOUCHED = (None, None)


# --- growth or a limit


@pytest.mark.parametrize("count", [1, 2, 4])
def test_growth_on_all_gpus_alike(stand_ins, count):
    _, *gpus = stand_ins(count)
    assert set_gpu_memory(growth=True) == tuple(f"GPU:{i}" for i in range(count))
    assert state(gpus) == [(True, None)] * count
    assert options().allow_growth


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_limit_on_all_gpus_alike(stand_ins, count):
    _, *gpus = stand_ins(count)
    assert set_gpu_memory(limit_mb=4096) == tuple(f"GPU:{i}" for i in range(count))
    assert [len(limits_of(gpu)) for gpu in gpus] == [1] * count
    cards = options().experimental.virtual_devices
    assert [list(card.memory_limit_mb) for card in cards] == [[4096]] * count
    assert not options().allow_growth


@pytest.mark.parametrize("setting", [{"growth": True}, {"limit_mb": 4096}])
def test_asking_again_changes_nothing_even_later(stand_ins, setting):
    _, *gpus = stand_ins(2)
    set_gpu_memory(**setting)
    before = state(gpus)
    set_gpu_memory(**setting)
    tf.config.list_logical_devices()
    assert set_gpu_memory(**setting) == ("GPU:0", "GPU:1")
    assert state(gpus) == before


def test_hidden_gpus_are_left_alone(stand_ins):
    _, *gpus = stand_ins(3)
    tf.config.set_visible_devices(gpus[1:], "GPU")
    assert set_gpu_memory(growth=True) == ("GPU:1", "GPU:2")
    assert state(gpus) == [UNTOUCHED, (True, None), (True, None)]
    assert options().visible_device_list == "1,2"
    assert options().allow_growth


def test_a_value_per_gpu_if_they_are_alike(stand_ins):
    _, *gpus = stand_ins(2)
    set_gpu_memory(growth=[True, True])
    assert state(gpus) == [(True, None)] * 2


def test_growth_that_was_set_on_one_gpu_is_completed(stand_ins):
    _, *gpus = stand_ins(2)
    set_growth(gpus[1], True)
    set_gpu_memory(growth=True)
    assert state(gpus) == [(True, None)] * 2


def test_without_gpus_there_is_nothing_to_set(machine):
    assert set_gpu_memory(growth=True) == set_gpu_memory(limit_mb=1024) == ()


# --- what is refused, and leaves everything as it was


@pytest.mark.parametrize(
    ("settings", "error", "why"),
    [
        ({"growth": [True, True], "limit_mb": 4096}, ValueError, "takes one of them"),
        ({}, ValueError, "Give growth=True or limit_mb"),
        ({"growth": False}, ValueError, "Give growth=True or limit_mb"),
        ({"growth": [True, False]}, ValueError, "cannot differ between GPU devices"),
        ({"growth": [True, False], "limit_mb": 1}, ValueError, "cannot differ"),
        ({"growth": [True]}, ValueError, r"1 values for 2 visible GPU\(s\)"),
        ({"growth": []}, ValueError, "cannot differ"),
        ({"growth": 1}, TypeError, "growth=1: give True or False"),
        ({"limit_mb": 0}, ValueError, "limit_mb=0: give a whole number of at least 1"),
        ({"limit_mb": -5}, ValueError, "limit_mb=-5: give a whole number of at least 1"),
        ({"limit_mb": 0.4}, TypeError, "limit_mb=0.4: give a whole number of at least 1"),
        ({"limit_mb": True}, TypeError, "limit_mb=True: give a whole number of at least 1"),
        ({"limit_mb": "4096"}, TypeError, "limit_mb='4096': give a whole number of at least 1"),
    ],
)
def test_one_call_that_makes_no_sense(stand_ins, settings, error, why):
    _, *gpus = stand_ins(2)
    with pytest.raises(error, match=why):
        set_gpu_memory(**settings)
    assert state(gpus) == [UNTOUCHED] * 2


@pytest.mark.parametrize("which", [0, 1])
def test_the_other_setting_on_any_one_gpu_is_found(stand_ins, which):
    _, *gpus = stand_ins(2)
    set_limits(gpus[which], [Limit(memory_limit=100)] * 2)
    before = state(gpus)
    with pytest.raises(ValueError, match=f"but GPU:{which} already has a limit"):
        set_gpu_memory(growth=True)
    assert state(gpus) == before
    _, *gpus = stand_ins(2)
    set_growth(gpus[which], True)
    before = state(gpus)
    with pytest.raises(ValueError, match=f"but GPU:{which} is set to grow"):
        set_gpu_memory(limit_mb=100)
    assert state(gpus) == before


@pytest.mark.parametrize("which", [0, 1])
def test_another_limit(stand_ins, which):
    _, *gpus = stand_ins(2)
    set_limits(gpus[which], [Limit(memory_limit=100)] * 2)
    before = state(gpus)
    with pytest.raises(ValueError, match=f"but GPU:{which} is already cut into"):
        set_gpu_memory(limit_mb=100)
    assert state(gpus) == before


def test_growth_beside_a_split_cpu(stand_ins):
    cpu, *gpus = stand_ins(2)
    set_limits(cpu, [Limit()] * 3)
    with pytest.raises(ValueError, match="CPU:0 is split into logical devices"):
        set_gpu_memory(growth=True)
    assert state(gpus) == [UNTOUCHED] * 2


@pytest.mark.parametrize("setting", [{"growth": True}, {"limit_mb": 4096}])
def test_too_late(stand_ins, setting):
    _, *gpus = stand_ins(2)
    tf.config.list_logical_devices()
    with pytest.raises(RuntimeError, match="(?s)already initialised.*Restart.*cannot be modified"):
        set_gpu_memory(**setting)
    assert state(gpus) == [UNTOUCHED] * 2


@pytest.mark.parametrize("setting", [{"growth": True}, {"limit_mb": 4096}])
def test_too_late_for_one_of_two(stand_ins, setting):
    _, *gpus = stand_ins(2)
    tf.config.set_visible_devices(gpus[:1], "GPU")
    set_gpu_memory(**setting)
    tf.config.set_visible_devices(gpus, "GPU")
    before = state(gpus)
    tf.config.list_logical_devices()
    with pytest.raises(RuntimeError, match="already initialised"):
        set_gpu_memory(**setting)
    assert state(gpus) == before


# --- TensorFlow itself: why the helper refuses these


def test_tensorflow_refuses_growth_after_a_limit(stand_ins):
    _, gpu = stand_ins(1)
    set_limits(gpu, [Limit(memory_limit=4096)])
    with pytest.raises(ValueError, match="^Cannot set memory growth on device when virtual"):
        set_growth(gpu, True)


def test_tensorflow_drops_growth_silently_before_a_limit(stand_ins):
    _, gpu = stand_ins(1)
    set_growth(gpu, True)
    set_limits(gpu, [Limit(memory_limit=4096)])
    assert growth_of(gpu)
    assert not options().allow_growth


def test_tensorflow_drops_growth_silently_beside_a_split_cpu(stand_ins):
    cpu, gpu = stand_ins(1)
    set_growth(gpu, True)
    set_limits(cpu, [Limit()] * 2)
    assert growth_of(gpu)
    assert not options().allow_growth


@pytest.mark.parametrize("growing", [(True, False), (False, True), (True, None), (None, False)])
def test_tensorflow_refuses_growth_that_differs_only_when_it_starts(stand_ins, growing):
    _, *gpus = stand_ins(2)
    for gpu, grows in zip(gpus, growing, strict=True):
        if grows is not None:
            set_growth(gpu, grows)
    with pytest.raises(ValueError, match="^Memory growth cannot differ between GPU devices$"):
        options()


# --- the real errors of a machine without GPUs, which lesson 02 shows


def test_growth_on_the_split_cpu(machine):
    (cpu,) = tf.config.list_physical_devices("CPU")
    with pytest.raises(ValueError) as caught:
        set_growth(cpu, True)
    assert str(caught.value) == "Cannot set memory growth on device when virtual devices configured"


def test_growth_on_a_whole_cpu(stand_ins):
    cpu, _ = stand_ins(1)
    with pytest.raises(ValueError) as caught:
        set_growth(cpu, True)
    assert str(caught.value) == "Cannot set memory growth on non-GPU and non-Pluggable devices"


def test_a_limit_on_a_cpu(machine):
    (cpu,) = tf.config.list_physical_devices("CPU")
    before = limits_of(cpu)
    with pytest.raises(ValueError) as caught:
        set_limits(cpu, [Limit(memory_limit=1024)])
    assert str(caught.value) == (
        "Setting memory limit on CPU virtual devices is currently not supported"
    )
    assert limits_of(cpu) == before


# --- session options beside today's calls: both end in the same message to TensorFlow


def test_visible_devices_keep_tensorflows_order(stand_ins):
    _, *gpus = stand_ins(4)
    tf.config.set_visible_devices([gpus[3], gpus[2]], "GPU")
    assert options().visible_device_list == "2,3"  # the session option reorders, too


def test_limits_then_and_now(stand_ins):
    _, gpu = stand_ins(1)
    set_limits(gpu, [Limit(memory_limit=1024), Limit(memory_limit=2048)])
    slices = v1.GPUOptions.Experimental.VirtualDevices(memory_limit_mb=[1024, 2048])
    then = v1.GPUOptions(experimental=v1.GPUOptions.Experimental(virtual_devices=[slices]))
    assert then.experimental.virtual_devices == options().experimental.virtual_devices


def test_a_fraction_has_no_call_today_and_is_said_in_mb(stand_ins):
    stand_ins(1)
    set_gpu_memory(limit_mb=int(0.4 * 15360))
    assert options().per_process_gpu_memory_fraction == 0
    assert list(options().experimental.virtual_devices[0].memory_limit_mb) == [6144]
