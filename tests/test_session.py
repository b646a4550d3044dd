"""Session configurations that see the machine's devices, on any kind of machine."""

import numpy as np
import pytest
import tensorflow as tf

from utils.machine import Machine, devices, session_config

v1 = tf.compat.v1


def _seen(config) -> list[str]:
    with v1.Session(graph=tf.Graph(), config=config) as session:
        return [device.name.rpartition("device:")[2] for device in session.list_devices()]


def test_sees_all_devices_of_the_notebook(machine):
    assert sorted(_seen(session_config())) == [f"CPU:{i}" for i in range(5)]


def test_sees_the_first_gpus_only(machine):
    assert sorted(_seen(session_config(gpus=2))) == ["CPU:0", "CPU:1", "CPU:2"]


def test_any_other_configuration_sees_one_cpu(machine):
    assert _seen(v1.ConfigProto()) == ["CPU:0"]  # why the helper exists


@pytest.mark.parametrize("gpus", [5, 64])
def test_more_devices_than_exist(machine, gpus):
    with pytest.raises(ValueError, match=rf"gpus={gpus}, but this machine was set up with 4"):
        session_config(gpus=gpus)


@pytest.mark.parametrize("name", ["gpus", "inter_op"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "2", True])
def test_bad_numbers(machine, name, value):
    with pytest.raises((TypeError, ValueError), match=rf"^{name}={value!r}: give a whole number"):
        session_config(**{name: value})


def test_before_begin(monkeypatch):
    monkeypatch.setattr(devices, "_machine", None)
    with pytest.raises(RuntimeError, match="No devices are set up yet"):
        session_config()


def test_placement_is_strict_unless_asked(machine):
    graph = tf.Graph()
    with graph.as_default(), tf.device("/CPU:9"):
        output = v1.placeholder_with_default(np.float32(1), []) + 1
    with (
        v1.Session(graph=graph, config=session_config()) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"),
    ):
        session.run(output)
    with v1.Session(graph=graph, config=session_config(soft_placement=True)) as session:
        assert session.run(output) == 2


def test_virtual_machine(machine):
    config = session_config(gpus=3, log_placement=True)
    assert dict(config.device_count) == {"CPU": 4}
    # The pools are those of the process, whichever of tf.config and a session comes first.
    assert config.intra_op_parallelism_threads == 1
    assert config.inter_op_parallelism_threads == 5
    assert config.log_device_placement
    assert not config.allow_soft_placement
    assert not config.session_inter_op_thread_pool


def test_own_pool(machine):
    config = session_config(inter_op=2)
    assert [pool.num_threads for pool in config.session_inter_op_thread_pool] == [2]
    assert not config.log_device_placement


def test_real_machine(monkeypatch):
    gpus = tuple(f"/GPU:{i}" for i in range(4))
    monkeypatch.setattr(devices, "_machine", Machine("/CPU:0", gpus, "real", (0, 1, 2, 3), 8))
    config = session_config()
    assert config.gpu_options.visible_device_list == "0,1,2,3"
    assert config.gpu_options.allow_growth  # as tf.config was told
    assert not config.gpu_options.experimental.virtual_devices
    assert not config.device_count
    assert session_config(gpus=1).gpu_options.visible_device_list == "0"
    with pytest.raises(ValueError, match="set up with 4"):
        session_config(gpus=5)


@pytest.mark.parametrize(
    ("behind", "visible", "slices"), [((0, 0), "0", [2]), ((0, 0, 1), "0,1", [2, 1])]
)
def test_split_machine(monkeypatch, behind, visible, slices):
    gpus = tuple(f"/GPU:{i}" for i in range(len(behind)))
    monkeypatch.setattr(devices, "_machine", Machine("/CPU:0", gpus, "split", behind, 8))
    for config in (session_config(), session_config(gpus=1)):  # a card is cut in one way only
        options = config.gpu_options
        assert options.visible_device_list == visible
        assert not options.allow_growth  # growth and limits exclude each other
        limits = [list(card.memory_limit_mb) for card in options.experimental.virtual_devices]
        assert limits == [[devices.SLICE_MEMORY_MB] * count for count in slices]
