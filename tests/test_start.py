"""The first line of a lesson, in fresh processes: good, bad, too early, too late, broken."""

import json

from utils.runs import trace

REPORT = """
    import json, os, sys

    def attempt(function, *args, **kwargs):
        try:
            function(*args, **kwargs)
        except Exception as error:
            return [type(error).__name__, str(error)]
        return None

    def set_up():
        from utils.machine import devices
        from utils import start
        return {
            "tensorflow": "tensorflow" in sys.modules,
            "machine": str(devices._machine),
            "begun": start._begun and list(start._begun.values()),
            "log level": os.environ.get("TF_CPP_MIN_LOG_LEVEL"),
            "onednn": os.environ.get("TF_ENABLE_ONEDNN_OPTS"),
            "xla": os.environ.get("TF_XLA_FLAGS"),
        }
"""
NOTHING = {
    "tensorflow": False,
    "machine": "None",
    "begun": None,
    "log level": None,
    "onednn": None,
    "xla": None,
}


def _said(done) -> dict:
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, done.stdout  # the report, and nothing else
    return json.loads(done.stdout)


def test_bad_arguments_then_good_ones(fresh):
    said = _said(
        fresh(
            REPORT
            + """
    import numpy as np
    from utils.machine import devices
    from utils.machine import session_config
    from utils.start import begin

    bad = [
        attempt(begin, **given) for given in (
            {"gpus": 65}, {"seed": -1}, {"seed": 2**32}, {"seed": "1"}, {"names": 1}, {"xla": None},
        )
    ]
    after_bad = set_up()
    figure_before = __import__("matplotlib").rcParams["font.size"]

    machine = begin()
    import tensorflow as tf
    first = (np.random.rand(), tf.random.uniform([]).numpy(), __import__("random").random())
    again = begin(2)
    second = (np.random.rand(), tf.random.uniform([]).numpy(), __import__("random").random())
    begin(gpus=np.int64(2), seed=np.int64(7), names=False)
    other = (np.random.rand(), tf.random.uniform([]).numpy(), __import__("random").random())
    late = [
        attempt(begin, gpus=3), attempt(begin, gpus=2, names=True), attempt(begin, gpus=0),
        attempt(begin, gpus=2, xla=True),
        attempt(devices.virtual_gpus, 3), attempt(session_config, gpus=3),
    ]
    print(json.dumps({
        "bad": bad, "after bad": after_bad, "font": figure_before, "late": late,
        "same machine": again is machine and devices.virtual_gpus(2) is machine,
        "same numbers": first == second, "other numbers": first != other,
        "machine": [machine.host, machine.gpus, machine.kind], "good": set_up(),
        "devices": [d.name for d in tf.config.list_logical_devices()],
        "intra": tf.config.threading.get_intra_op_parallelism_threads(),
        "inter": tf.config.threading.get_inter_op_parallelism_threads(),
        "new font": __import__("matplotlib").rcParams["font.size"],
    }))
    """
        )
    )
    seed = "give a whole number from 0 to 4294967295."
    assert said["bad"] == [
        ["ValueError", "gpus=65: give a whole number from 1 to 64."],
        ["ValueError", f"seed=-1: {seed}"],
        ["ValueError", f"seed=4294967296: {seed}"],
        ["TypeError", f"seed='1': {seed}"],
        ["TypeError", "names=1: give True or False."],
        ["TypeError", "xla=None: give True or False."],
    ]
    assert said["after bad"] == NOTHING
    assert said["font"] == 10  # the look is set by begin, not by importing it
    assert said["new font"] == 13
    assert said["machine"] == ["/CPU:0", ["/CPU:1", "/CPU:2"], "virtual"]
    assert said["devices"] == ["/device:CPU:0", "/device:CPU:1", "/device:CPU:2"]
    assert (said["intra"], said["inter"]) == (1, 3)
    assert said["same machine"]
    assert said["same numbers"]
    assert said["other numbers"]
    kinds = [kind for kind, _ in said["late"]]
    refused = "RuntimeError"
    assert kinds == [refused, refused, "ValueError", refused, refused, "ValueError"]
    others, names, _, xla, virtual, session = (text for _, text in said["late"])
    first = "after begin(gpus=2, names=False, xla=False)"
    assert f"begin(gpus=3, names=False, xla=False) {first}" in others
    assert "Restart the kernel" in others
    assert f"begin(gpus=2, names=True, xla=False) {first}" in names
    assert f"begin(gpus=2, names=False, xla=True) {first}" in xla
    assert "3 GPUs asked for, but this process already runs with 2" in virtual
    assert "gpus=3, but this machine was set up with 2" in session
    assert said["good"] == {  # and the late attempts changed nothing
        "tensorflow": True,
        "machine": "host and 2 GPUs (virtual: parts of the CPU stand for them)",
        "begun": [2, False, False],
        "log level": "3",
        "onednn": None,
        "xla": None,
    }


def test_after_tensorflow(fresh):
    said = _said(
        fresh(
            REPORT
            + """
    import tensorflow as tf
    from utils.machine import devices
    from utils import style
    from utils.machine import session_config
    from utils.start import begin

    early = [attempt(begin), attempt(begin, gpus=1, names=True, xla=True), attempt(session_config)]
    between = set_up()
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = tf.config.get_logical_device_configuration(cpu)
    untouched = attempt(tf.config.threading.set_inter_op_parallelism_threads, 0)
    tf.constant(1)  # initialises the devices
    late = attempt(devices.virtual_gpus, 2)
    print(json.dumps({
        "early": early, "between": between, "parts": parts, "untouched": untouched,
        "late": late, "then": set_up(), "devices": len(tf.config.list_logical_devices()),
    }))
    """
        )
    )
    for kind, text in said["early"][:2]:
        assert kind == "RuntimeError"
        assert text.startswith("TensorFlow was imported before begin()")
        assert "Restart the kernel" in text
    assert said["early"][2][0] == "RuntimeError"
    assert said["between"] == said["then"] == {**NOTHING, "tensorflow": True}
    assert said["parts"] is None
    assert said["untouched"] is None  # the devices were not initialised either
    kind, text = said["late"]
    assert kind == "RuntimeError"
    assert "2 GPUs asked for, but TensorFlow has already initialised its devices" in text
    assert "Virtual devices cannot be modified" in text
    assert said["devices"] == 1


def test_without_tensorflow_then_with_it(fresh, tmp_path):
    broken = tmp_path / "broken" / "tensorflow"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(
        "import os\nos.write(2, b'libtensorflow: cannot open shared object file\\n')\n"
        "raise ImportError('half an installation')\n"
    )
    done = fresh(
        REPORT
        + """
    from utils.start import begin

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name == "tensorflow":
                raise ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow")

    streams = [sys.stdout, sys.stderr]
    descriptors = sorted(os.listdir("/proc/self/fd"))
    failures = []
    sys.meta_path.insert(0, Missing())
    failures.append([attempt(begin, names=True), set_up()])
    del sys.meta_path[0]
    sys.path.insert(0, "broken")
    failures.append([attempt(begin, names=True, xla=True), set_up()])
    sys.path.remove("broken")
    sys.path_importer_cache.clear()
    same = [sys.stdout, sys.stderr] == streams
    same = same and sorted(os.listdir("/proc/self/fd")) == descriptors
    begin(gpus=1, names=False)
    print(json.dumps({"failures": failures, "same": same, "then": set_up()}))
    import tensorflow as tf
    tf.get_logger().warning("not shown")
    tf.get_logger().error("logged after begin")
    """
    )
    said = _said(done)
    missing, half = said["failures"]
    assert missing == [["ModuleNotFoundError", "No module named 'tensorflow'"], NOTHING]
    assert half == [["ImportError", "half an installation"], NOTHING]
    # What the broken one printed is the explanation: it comes back. What the good one printed
    # does not, but its logger, made while descriptor 2 was taken, goes on.
    assert done.stderr.splitlines() == [
        "libtensorflow: cannot open shared object file",
        "ERROR:tensorflow:logged after begin",
    ]
    assert said["same"]
    assert said["then"]["begun"] == [1, False, False]
    assert said["then"]["onednn"] is None


def test_names_keeps_the_names_of_operations(machine):
    """With oneDNN on, a product runs as _MklMatMul; the machine began with names=True."""
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        x = tf.random.normal([64, 64])
        product = tf.matmul(x, x)
    assert "MatMul" in {row.op for row in trace(graph, product).intervals}


def test_xla_adds_a_second_type_of_device_and_changes_nothing_else(fresh):
    said = _said(
        fresh(
            """
    import json, os
    from utils.start import begin

    machine = begin(gpus=1, names=True, xla=True)
    import tensorflow as tf
    from utils.machine import plain_name

    again = begin(gpus=1, names=True, xla=True)
    unpinned = tf.constant(1.0) + 1.0
    with tf.device("/device:XLA_CPU:0"):
        there = tf.constant(1.0) + 1.0
    print(json.dumps({
        "flags": os.environ["TF_XLA_FLAGS"], "same": again is machine,
        "devices": [d.name for d in tf.config.list_logical_devices()],
        "machine": [machine.host, machine.gpus, machine.kind],
        "roles": [plain_name(unpinned.device), plain_name(there.device)],
    }))
    """,
            TF_XLA_FLAGS="--tf_xla_clustering_debug=false",
        )
    )
    # What the learner had set stays.
    assert said["flags"] == "--tf_xla_clustering_debug=false --tf_xla_enable_xla_devices"
    assert said["devices"] == ["/device:CPU:0", "/device:CPU:1", "/device:XLA_CPU:0"]
    assert said["machine"] == ["/CPU:0", ["/CPU:1"], "virtual"]
    assert said["roles"] == ["host", "XLA_CPU 0"]
    assert said["same"]
