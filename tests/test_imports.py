"""Importing a helper leaves TensorFlow alone: each module in a process of its own."""

import json

# A process without TensorFlow may fork, so a child per module costs little.
EACH_MODULE = """
    import importlib, json, os, pkgutil, sys, traceback
    import matplotlib.patches, numpy  # once for all children
    import utils

    def look(name):
        importlib.import_module(name)
        if "tensorflow" not in sys.modules:
            return "no TensorFlow"
        import tensorflow as tf
        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration()] * 3
        try:
            tf.config.set_logical_device_configuration(cpu, parts)
        except RuntimeError:
            return "an operation ran"
        return "TensorFlow, not yet initialised"

    def in_a_child(name):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, look(name).encode())
            except BaseException:
                os.write(writing, traceback.format_exc().encode())
            os._exit(0)
        os.close(writing)
        with open(reading, encoding="utf-8") as answer:
            text = answer.read()
        os.waitpid(child, 0)
        return text

    names = [module.name for module in pkgutil.walk_packages(utils.__path__, "utils.")]
    assert "tensorflow" not in sys.modules
    print(json.dumps({name: in_a_child(name) for name in ["utils", *names]}))
"""
CORE = {
    *("utils.start", "utils.style", "utils.machine", "utils.placement", "utils.runs"),
    *("utils.cluster", "utils.task", "utils.pictures", "utils.checks"),
}


def test_importing_runs_no_operation(fresh):
    done = fresh(EACH_MODULE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: found[name] for name in CORE} == dict.fromkeys(CORE, "no TensorFlow")
    allowed = {"no TensorFlow", "TensorFlow, not yet initialised"}
    assert {name: what for name, what in found.items() if what not in allowed} == {}
    assert done.stderr == ""
