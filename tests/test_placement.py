"""The placement log, read alike in a script, on a pipe, in a file and in a notebook's kernel."""

import os
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from jupyter_client.manager import KernelManager

from tools import nbenv
from utils.machine import session_config
from utils.placement import Placement, PlacementLog, parse, placement_log

v1 = tf.compat.v1
DEADLINE = 120  # seconds after which a kernel is given up
CPU = "/job:localhost/replica:0/task:0/device:CPU:"

NAMES = ("a", "9", ".hidden", "while/body_1", "a.b-c", "x\\y", "a>b", "_EagerConst", "v/Read/_3")
OPERATIONS = ("_Arg", "VarHandleOp", "Addons>Resample", "__inference_f_7")
DEVICES = (
    "/job:worker/replica:0/task:1/device:GPU:3",
    "/job:localhost/replica:0/task:0/gpu:0",  # as TensorFlow 1 wrote it
    "/device:XLA_CPU:0",
)
STAMPS = (
    "",
    "I0000 00:00:1796043568.343777    9118 placer.cc:162] ",
    "2018-05-01 12:00:00.000000: I tensorflow/core/common_runtime/placer.cc:886] ",
)

# --- parse: text to rows ---------------------------------------------------------------------


def test_rows_in_order_and_everything_else_unchanged():
    text = (
        "2026-01-01 00:00:00.000000: I some.cc:1] hello\n"
        f"matmul: (MatMul): {CPU}1\n"
        "\n"
        "matmul: (MatMul)\n"
        "  matmul: (MatMul): /job:indented\n"
        "usage: (optional): \n"
        f"b: (Const): {CPU}0\r\n"
        "last line without its end"
    )
    rows, other = parse(text)
    assert rows == [Placement("matmul", "MatMul", CPU + "1"), Placement("b", "Const", CPU + "0")]
    assert other == (
        "2026-01-01 00:00:00.000000: I some.cc:1] hello\n"
        "\n"
        "matmul: (MatMul)\n"
        "  matmul: (MatMul): /job:indented\n"
        "usage: (optional): \n"
        "last line without its end"
    )


@pytest.mark.parametrize(
    ("text", "row"),
    [
        *[(f"{name}: (Add): {CPU}0", (name, "Add", CPU + "0")) for name in NAMES],
        *[(f"a: ({op}): {CPU}0", ("a", op, CPU + "0")) for op in OPERATIONS],
        *[(f"a: (Add): {device}", ("a", "Add", device)) for device in DEVICES],
        *[(f"{at}Executing op Mul in device {CPU}0", ("", "Mul", CPU + "0")) for at in STAMPS],
        # The placer says each row again, with a time stamp.
        *[
            (f"a: (Add): {CPU}0\n{at}a: (Add){between}{CPU}0", ("a", "Add", CPU + "0"))
            for at in STAMPS[1:]
            for between in (": ", "")  # as TensorFlow 1 wrote it
        ],
    ],
)
def test_any_row(text, row):
    assert parse(text + "\n") == ([Placement(*row)], "")


@pytest.mark.parametrize("text", ["", f"{STAMPS[1]}Ignoring device specification /device:GPU:9\n"])
def test_no_row(text):
    assert parse(text) == ([], text)


def test_garbage_loses_only_its_own_line():
    good = [f"op_{i}: (Add): {CPU}{i % 3}" for i in range(50)]
    torn = [line for i, row in enumerate(good) for line in (row, f"50% don{'e' * i}" + row[:i])]
    torn.insert(7, f"progress 50%op_x: (Add): {CPU}0")  # no line end before the row
    torn.insert(9, "\x00\udcff\x85 binary")
    rows, other = parse("\n".join(torn))
    assert [row.name for row in rows] == [f"op_{i}" for i in range(50)]
    assert "progress 50%op_x" in other  # not a row, but not lost either
    assert "\x00\udcff\x85 binary\n" in other
    assert len(other.splitlines(keepends=True)) > 50


# --- the log as an object --------------------------------------------------------------------


def test_log_answers_with_the_last_row(machine):
    log = PlacementLog([Placement("a", "Add", CPU + "0"), Placement("", "Mul", CPU + "2")])
    log.rows.append(Placement("a", "Add", CPU + "1"))
    assert log.device_of("a") == CPU + "1"
    with pytest.raises(KeyError, match="no operation 'b' in the log; it has: a"):
        log.device_of("b")
    with pytest.raises(KeyError, match="it has: none"):
        PlacementLog().device_of("a")
    assert str(log) == (
        "name  operation  device\n"
        "a     Add        host\n"
        "      Mul        GPU 1\n"
        "a     Add        GPU 0"
    )


# --- in this process -------------------------------------------------------------------------


def _graph(machine) -> tf.Graph:
    graph = tf.Graph()
    with graph.as_default():
        with tf.device(machine.gpus[0]):
            x = v1.placeholder_with_default(np.float32([1, 2]), [2], name="a.b-c")
        with tf.device(machine.gpus[1]):
            tf.add(x, x, name="scope/sum_1")
    return graph


def _run(graph, **options):
    with v1.Session(graph=graph, config=session_config(**options)) as session:
        return session.run("scope/sum_1:0").tolist()


def test_rows_are_what_the_placer_said(machine):
    with placement_log() as log:
        assert _run(_graph(machine), log_placement=True) == [2, 4]
        assert log.rows == []  # filled when the block ends
    assert {(row.name, row.op): row.device for row in log.rows} == {
        ("a.b-c/input", "Const"): CPU + "1",
        ("a.b-c", "PlaceholderWithDefault"): CPU + "1",
        ("scope/sum_1", "AddV2"): CPU + "2",
    }
    assert log.device_of("scope/sum_1") == CPU + "2"


def test_exception_inside_keeps_the_rows(machine):
    descriptors = set(os.listdir("/proc/self/fd"))
    with pytest.raises(ZeroDivisionError), placement_log() as log:
        _run(_graph(machine), log_placement=True)
        1 / 0  # noqa: B018
    assert len(log.rows) == 3
    assert set(os.listdir("/proc/self/fd")) == descriptors


def test_native_text_is_passed_on(capfd, machine):
    with placement_log() as log:
        os.write(1, b"out \xff\n")
        _run(_graph(machine), log_placement=True)
        os.write(2, b"err\n")
    assert len(log.rows) == 3
    assert capfd.readouterr() == ("out \ufffd\n", "err\n")  # pytest's mark for b"\xff"


MAPPING = (
    "Device mapping: no known devices.\n",
    "Device mapping:\n/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: T4\n",
    "Device mapping:\n/job:localhost/replica:0/task:0/device:XLA_CPU:0 -> device: XLA_CPU\n\n",
    "I0000 00:00:1 2 direct_session.cc:382] Device mapping: no known devices.\n",
)


@pytest.mark.parametrize("mapping", MAPPING)
def test_list_of_devices_is_left_out(capfd, machine, mapping):
    with placement_log() as log:
        print("before", flush=True)
        assert capfd.readouterr().out == "before\n"  # at once, not when the block ends
        sys.stdout.write(mapping)  # as in IPython
        os.write(2, mapping.encode())
        print("Device mapping: my own words")
        stream = sys.stdout
    stream.write("after\n")  # whoever kept it can go on
    assert capfd.readouterr() == ("Device mapping: my own words\nafter\n", "")
    assert log.rows == []


def test_threads_do_not_tear_rows(machine):
    def work(number):
        graph = tf.Graph()
        with graph.as_default(), tf.device(machine.gpus[number]):
            x = v1.placeholder_with_default(np.float32(number), [], name=f"thread_{number}/start")
            for step in range(100):
                x = tf.add(x, x, name=f"thread_{number}/{'long_name_' * 5}{step}")
        with v1.Session(graph=graph, config=session_config(log_placement=True)) as session:
            session.run(x)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    with placement_log() as log:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(log.rows) == 4 * 102
    for row in log.rows:
        number = int(row.name.split("/")[0].removeprefix("thread_"))
        assert row.device == f"{CPU}{number + 1}"


# --- in other processes ----------------------------------------------------------------------

PROGRAM = """
    import ctypes, os, sys
    from utils.start import begin
    machine = begin(gpus=2)
    import tensorflow as tf
    from utils.placement import placement_log
    from utils.machine import session_config

    v1 = tf.compat.v1

    def block(name, fail=False):
        graph = tf.Graph()
        with graph.as_default(), tf.device(machine.gpus[1]):
            x = v1.placeholder_with_default(1.0, [], name="x")
            y = tf.add(x, x, name=name)
        try:
            with placement_log() as log:
                print("printed in", name)
                os.write(1, b"native in " + name.encode() + b"\\n")
                os.write(2, b"alarm in " + name.encode() + b"\\n")
                with v1.Session(graph=graph, config=session_config(log_placement=True)) as session:
                    session.run(y)
                    if fail:
                        raise ValueError("inside the block")
        except ValueError as error:
            print("raised", error)
        sums = [row.name for row in log.rows if row.op == "AddV2"]
        print("logged", len(log.rows), sums, log.device_of(name)[-5:])
"""
ROWS = "logged 3 ['{0}'] CPU:2"


def test_script_to_a_pipe_then_to_a_file(fresh, tmp_path):
    done = fresh(
        PROGRAM
        + """
    before = sorted(os.listdir("/proc/self/fd"))
    block("piped")
    block("piped_too", fail=True)
    assert sorted(os.listdir("/proc/self/fd")) == before
    with open("out.txt", "w") as out, open("err.txt", "w") as err:
        sys.stdout.flush()
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
    block("filed")
    """,
        PYTHONUNBUFFERED=None,  # Python's and C's streams have buffers, as usual
    )
    assert done.returncode == 0, done.stderr + (tmp_path / "err.txt").read_text()
    assert done.stdout.splitlines() == [
        "printed in piped",
        "native in piped",
        ROWS.format("piped"),
        "printed in piped_too",
        "native in piped_too",
        "raised inside the block",
        ROWS.format("piped_too"),
    ]
    assert done.stderr.splitlines() == ["alarm in piped", "alarm in piped_too"]
    filed = (tmp_path / "out.txt").read_text().splitlines()
    assert filed == ["printed in filed", "native in filed", ROWS.format("filed")]
    assert (tmp_path / "err.txt").read_text() == "alarm in filed\n"


def test_script_at_log_level_0(fresh):
    done = fresh(
        """
        import tensorflow as tf
        from utils.placement import placement_log
        tf.debugging.set_log_device_placement(True)

        @tf.function
        def double(x):
            return tf.add(x, x, name="sum")

        tf.config.list_logical_devices()
        with placement_log() as log:
            double(tf.constant(1.0))
        for row in log.rows:
            print(row.name or "(eager)", row.op, row.device[-5:])
        """,
        TF_CPP_MIN_LOG_LEVEL="0",
    )
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    # The placer writes its rows to both descriptors at this level: each is there once.
    assert rows.count("sum AddV2 CPU:0") == 1
    assert rows.count("x _Arg CPU:0") == 1
    assert [row for row in rows if row.startswith("(eager) __inference_double")]
    assert "placer.cc" not in done.stderr
    assert "execute.cc" not in done.stderr


class Kernel:
    """A notebook's kernel: runs cells, collects what the front end would show."""

    def __init__(self, manager, client):
        self.manager, self.client = manager, client
        self.shown = {"stdout": "", "stderr": "", "error": ""}

    def _collect(self, message):
        content = message["content"]
        if message["msg_type"] == "stream":
            self.shown[content["name"]] += content["text"]
        elif message["msg_type"] == "error":
            self.shown["error"] += "\n".join(content["traceback"])

    def run(self, code):
        self.client.execute_interactive(code, timeout=DEADLINE, output_hook=self._collect)
        assert self.shown["error"] == ""

    def wait_for(self, text, stream):
        while text not in self.shown[stream]:  # raises queue.Empty at the deadline
            self._collect(self.client.get_iopub_msg(timeout=DEADLINE))


@pytest.fixture(params=[True, False], ids=["JupyterLab", "nbval"])
def kernel(request, tmp_path):
    """A kernel that does, or does not, show what native code writes to its descriptors."""
    manager = KernelManager(kernel_name="python3")
    env = nbenv.apply(dict(os.environ))
    env["IPYTHONDIR"] = str(tmp_path / "ipython")
    env.pop("PYTEST_CURRENT_TEST", None)  # ipykernel looks for it and shows nothing
    env.pop("PYTHONUNBUFFERED", None)
    with open(tmp_path / "out.txt", "w") as out, open(tmp_path / "err.txt", "w") as err:
        manager.start_kernel(
            extra_arguments=[f"--IPKernelApp.capture_fd_output={request.param}"],
            env=env,
            cwd=str(tmp_path),
            stdout=out,
            stderr=err,
        )
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=DEADLINE)
        yield request.param, Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        client.context.destroy(linger=0)


def test_notebook_kernel(kernel, tmp_path):
    shows_native, kernel = kernel
    kernel.run("\n".join(line[4:] for line in PROGRAM.splitlines()))
    assert kernel.shown == {"stdout": "", "stderr": "", "error": ""}  # begin is silent here, too
    kernel.run("block('cell')\nblock('cell_too', fail=True)")
    printed = ["printed in cell", ROWS.format("cell")]
    printed += ["printed in cell_too", "raised inside the block", ROWS.format("cell_too")]
    native = ["native in cell", "native in cell_too"]
    if shows_native:
        kernel.wait_for("native in cell_too\n", "stdout")
        kernel.wait_for("alarm in cell_too\n", "stderr")
        lines = kernel.shown["stdout"].splitlines()
        assert [line for line in lines if line not in native] == printed
        assert [line for line in lines if line in native] == native
        assert kernel.shown["stderr"] == "alarm in cell\nalarm in cell_too\n"
    else:
        assert kernel.shown["stdout"].splitlines() == printed
        assert kernel.shown["stderr"] == ""
        assert (tmp_path / "out.txt").read_text().splitlines() == native
        assert "alarm in cell\nalarm in cell_too\n" in (tmp_path / "err.txt").read_text()
