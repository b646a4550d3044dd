"""utils.diagnosis: its table, its layers, the machines in data/machines, this machine, logs."""

import dataclasses
import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from utils.diagnosis import Diagnosis, diagnose, load_machine
from utils.diagnosis import probe as machine_probe
from utils.diagnosis.layer_table import LAYERS, Row
from utils.diagnosis.probe import CUDA_12_LIBRARIES, DRIVER_LIBRARY, check_libraries
from utils.diagnosis.record import MACHINES, Gpu, Library, NvidiaSmi, Observation
from utils.placement import parse

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "data" / "logs"
NAMES = tuple(name for name, _, _ in LAYERS)
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's loader")
DEADLINE = 120  # seconds for a process that imports TensorFlow, which usually needs under ten


# The machines: yes, no or unknown for each layer, which one decides, and parts of what is found
# there and of what to do.
EXPECTED = {
    "arm_server": ("+++?-?+-", "build", "CPU build", "Linux on aarch64 are CPU builds"),
    "card_too_old": ("+++?+++-", "TensorFlow", "TensorFlow sees no GPU", "too old for this build"),
    "container_without_compute": (
        "++-?+++-",
        "driver",
        "but libcuda.so.1 does not load",
        "--gpus all",
    ),
    "cpu_build": ("+++?-?+-", "build", "built without CUDA", "pip install 'tensorflow[and-cuda]'"),
    "driver_hangs": ("++-?+++-", "driver", "no answer within 20 s", "restart the computer"),
    "driver_not_running": ("++-?+++-", "driver", "(exit code 9)", "install the driver anew"),
    "driver_replaced": (
        "++-?+++-",
        "driver",
        "Driver/library version mismatch",
        "Restart the computer.",
    ),
    "driver_too_old": (
        "++-?+++-",
        "driver",
        "470.256.02 is too old: CUDA 12.5.1 needs 525",
        "nvidia.com",
    ),
    "driver_without_devices": (
        "++-?+++-",
        "driver",
        "No devices were found",
        "ask the scheduler for a GPU",
    ),
    "four_gpus": ("++++++++", "TensorFlow", "4 GPUs: GPU:0 Tesla T4", ""),
    "hidden": (
        "+++?++--",
        "visibility",
        "CUDA_VISIBLE_DEVICES=-1 hides",
        "unset CUDA_VISIBLE_DEVICES",
    ),
    "hidden_by_number": ("+++?++--", "visibility", "no card has that number", "once per process"),
    "libraries_missing": ("+++?+-+-", "libraries", "7 of 7 cannot be loaded", "make setup GPU=1"),
    "library_broken": (
        "+++?+-+-",
        "libraries",
        "libcudnn.so.9: file too short",
        "--force-reinstall",
    ),
    "library_out_of_reach": ("+++?+-+-", "libraries", "1 of 7", "cusolver/lib"),
    "macos": ("-???-?+-", "system", "no official GPU support", "tensorflow-plugin"),
    "no_card": ("+--?+-+-", "hardware", "no NVIDIA card", "virtual GPUs"),
    "no_driver": (
        "++-?+++-",
        "driver",
        "not installed here, and libcuda.so.1 does not load",
        "nvidia.com",
    ),
    "no_tensorflow": ("+++?-?+-", "build", "No module named 'tensorflow'", "make setup GPU=1"),
    "one_gpu": ("++++++++", "TensorFlow", "1 GPU: GPU:0 Tesla T4 (compute capability 7.5)", ""),
    "other_interpreter": ("+++-+-+-", "interpreter", "/usr/bin/python3 runs this, but", "make lab"),
    "two_gpus": ("++++++++", "TensorFlow", "2 GPUs: GPU:0 NVIDIA GeForce RTX 3090", ""),
    "unlike_gpus": ("++++++++", "TensorFlow", "GPU:0 NVIDIA GeForce RTX 4090", ""),
    "windows": ("-++?-?+-", "system", "native Windows since 2.11", "wsl --install"),
    "wsl_without_driver": (
        "+?-?+-+-",
        "driver",
        "is not installed here",
        "in Windows, none inside WSL",
    ),
}
HEAD = "index, name, memory.total [MiB], pci.bus_id, uuid, driver_version"
CARD = "1, Tesla T4, 15360 MiB, 00000000:00:05.0, GPU-7b92e4c8, 535.183.01"


def changed(name: str, **changes) -> Observation:
    return dataclasses.replace(load_machine(name), **changes)


def marks(diagnosis: Diagnosis) -> str:
    return "".join({True: "+", False: "-", None: "?"}[row.ok] for row in diagnosis.rows)


def test_every_machine_is_expected_and_every_expected_one_is_there():
    assert {path.stem for path in MACHINES.glob("*.json")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_right_layer_decides_and_says_what_to_do(name):
    answers, layer, found, step = EXPECTED[name]
    diagnosis = diagnose(load_machine(name))
    row = diagnosis.deciding
    assert marks(diagnosis) == answers
    assert (row.layer, found in row.found, step in row.next_step) == (layer, True, True), row
    assert bool(row.next_step) == bool(step)
    assert diagnosis.verdict.startswith("TensorFlow sees ") and row.found in diagnosis.verdict


@pytest.mark.parametrize("name", EXPECTED)
def test_the_table_has_a_row_per_layer_and_one_verdict_last(name):
    diagnosis = diagnose(load_machine(name))
    assert tuple(row.layer for row in diagnosis.rows) == NAMES
    assert all(row.asked and row.found and not row.found.endswith(".") for row in diagnosis.rows)
    text = str(diagnosis)
    assert max(map(len, text.splitlines())) <= 79
    assert text == str(diagnose(load_machine(name)))
    table, verdict = text.split("\n\n")
    assert " ".join(verdict.split()) == diagnosis.verdict
    assert verdict.endswith(".") and not re.search(r"\.\s", verdict), "one sentence"
    starts = [line[5:17].strip() for line in table.splitlines() if line[:1] == "["]
    assert tuple(starts) == NAMES
    for row in diagnosis.rows:
        for part in (row.found, *row.next_step.splitlines()):
            assert "".join(part.split()) in "".join(text.split())


@pytest.mark.parametrize("name", ["no_card", "windows", "macos"])
def test_where_nothing_can_help_nothing_is_proposed(name):
    rows = diagnose(load_machine(name)).rows
    first = next(i for i, row in enumerate(rows) if row.ok is False)
    proposed = {row.next_step for row in rows[first + 1 :] if row.next_step}
    assert proposed == {f"Nothing, as long as {rows[first].layer} says no."}


def test_the_last_row_points_to_the_one_that_decides():
    assert "Do what driver says" in diagnose(load_machine("no_driver")).rows[-1].next_step


# Single layers


LOST = "Unable to determine the device handle for GPU1: 0000:0A:00.0: GPU is lost.  Reboot"
ONE = load_machine("one_gpu").nvidia_smi
NOT_TRIED = (Library("libcudart.so.12", None, "the check failed (exit code -9)"),)
ABSENT = "libcufft.so.11: cannot open shared object file"
BROKEN = Library("libcudnn.so.9", False, "/opt/x/libcudnn.so.9: file too short")
NO_DRIVER_LIBRARY = Library(DRIVER_LIBRARY, False, f"{DRIVER_LIBRARY}: no", "/usr/lib/wsl/lib")
UNKNOWN_CARD = f"{HEAD}\n0, Tesla T4, [N/A], [N/A], [N/A], [N/A]"
# A machine with other facts: what one layer then answers, and a part of what to do.
SINGLE = [
    (
        "unlike_gpus",
        {},
        "hardware",
        True,
        "lists 2 cards: 0 NVIDIA GeForce GTX 1060 6GB (6144 MiB)",
    ),
    (
        "one_gpu",
        {"nvidia_smi": NvidiaSmi(True, 15, f"{ONE.output}\n{LOST}")},
        "hardware",
        True,
        '1 card: 0 Tesla T4 (15360 MiB); it also says "Unable to determine the device handle for '
        'GPU1: 0000:0A:00.0: GPU is lost" (exit code 15)',
    ),
    ("cpu_build", {"system": "FreeBSD"}, "system", None, "FreeBSD on x86_64"),
    ("one_gpu", {"wsl": True}, "system", True, "Linux on x86_64, inside Windows (WSL)"),
    ("hidden", {"nvidia_smi": NvidiaSmi(True, 0, UNKNOWN_CARD)}, "driver", True, "version unknown"),
    ("hidden", {"activated": "/opt/other"}, "interpreter", None, "/opt/other is activated"),
    ("hidden", {"libraries": NOT_TRIED}, "libraries", None, "the check failed (exit code -9)"),
    ("other_interpreter", {"libraries": NOT_TRIED}, "interpreter", None, "is activated"),
    ("hidden", {"libraries": ()}, "libraries", None, "not known which ones this build needs"),
]
STEPS = [
    (
        "one_gpu",
        {"gpus": (), "driver_library": NO_DRIVER_LIBRARY},
        ("driver", "libcuda.so.1 does not load", "LD_LIBRARY_PATH=/usr/lib/wsl/lib"),
    ),
    (
        "no_driver",
        {"nvidia_smi": NvidiaSmi(True, 255, "")},
        ("driver", 'nvidia-smi fails: "no output" (exit code 255)', "Install NVIDIA's driver"),
    ),
    (
        "hidden",
        {"libraries": (Library("libcufft.so.11", False, ABSENT), BROKEN)},
        ("libraries", f"libcudnn.so.9 ({BROKEN.error})", "--force-reinstall"),
    ),
    (
        "hidden",
        {
            "libraries": (
                Library("libcufft.so.11", False, ABSENT, "/opt/x"),
                Library("libcudnn.so.9", False, "libcudnn.so.9: cannot open shared object file"),
            )
        },
        ("libraries", "2 of 2 cannot be loaded: libcufft.so.11, libcudnn.so.9", "make setup GPU=1"),
    ),
]


@pytest.mark.parametrize(("name", "changes", "layer", "ok", "found"), SINGLE)
def test_a_single_layer_is_judged(name, changes, layer, ok, found):
    row = diagnose(changed(name, **changes)).row(layer)
    assert row.ok is ok and found in row.found, row


@pytest.mark.parametrize(("name", "changes", "expected"), STEPS)
def test_a_layer_that_fails_says_what_to_do(name, changes, expected):
    layer, found, step = expected
    row = diagnose(changed(name, **changes)).deciding
    assert (row.layer, row.ok) == (layer, False)
    assert found in row.found and step in row.next_step
    assert ("LD_LIBRARY_PATH" in row.next_step) == ("LD_LIBRARY_PATH" in step)


def test_a_mac_with_a_plug_in_has_a_gpu():
    diagnosis = diagnose(changed("macos", gpus=(Gpu("/physical_device:GPU:0", "METAL"),)))
    assert marks(diagnosis) == "++++??++"
    assert diagnosis.verdict == "TensorFlow sees 1 GPU: GPU:0 METAL."


@pytest.mark.parametrize("name", ["driver_not_running", "driver_too_old", "libraries_missing"])
def test_what_tensorflow_sees_outweighs_a_question_that_failed(name):
    diagnosis = diagnose(changed(name, gpus=load_machine("one_gpu").gpus))
    assert "-" not in marks(diagnosis)
    assert diagnosis.verdict.startswith("TensorFlow sees 1 GPU: GPU:0 Tesla T4")


def test_renumbering_is_told_card_by_card_where_it_is_sure():
    four = load_machine("four_gpus").gpus
    for value, expected in (
        ("3,2", "shows 2 cards: GPU:0 is card 3, GPU:1 is card 2"),
        ("0,9,1", "shows 1 card: GPU:0 is card 0"),
        ("GPU-c05a", "shows 1 card: GPU:0 is card 2"),
    ):
        row = diagnose(changed("four_gpus", visible_devices=value, gpus=four[:1])).row("visibility")
        assert (row.ok, row.found) == (True, f"CUDA_VISIBLE_DEVICES={value} {expected}")
    unlike = diagnose(changed("unlike_gpus", visible_devices="1,0")).row("visibility")
    assert unlike.found == "CUDA_VISIBLE_DEVICES=1,0 shows 2 cards"
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in unlike.next_step
    sure = diagnose(changed("unlike_gpus", visible_devices="1,0", device_order="PCI_BUS_ID"))
    assert "GPU:0 is card 1" in sure.row("visibility").found
    assert not sure.row("visibility").next_step


@pytest.mark.parametrize(
    ("value", "ok"),
    [(None, True), ("0", True), ("GPU-1d", True), ("-1", False), ("", False), ("none", False)],
)
def test_the_variable_is_judged_without_nvidia_smi_too(value, ok):
    seen = changed("one_gpu", nvidia_smi=NvidiaSmi(False), gpus=(), visible_devices=value)
    assert diagnose(seen).row("visibility").ok is ok


@pytest.mark.parametrize(
    ("value", "ok", "why"),
    [
        ("0,0", False, "names card 0 twice"),
        (" 1 , 0", False, "has a space in it"),
        ("GPU-,0", False, "has 'GPU-' in it"),
        ("NoDevFiles", False, "has 'NoDevFiles' in it"),
        ("MIG-GPU-1d6f0a52/1/0", None, "part of a card (MIG), which the course does not cover"),
    ],
)
def test_a_value_without_a_meaning_says_so(value, ok, why):
    hidden = diagnose(changed("four_gpus", visible_devices=value, gpus=())).row("visibility")
    assert (hidden.ok, hidden.found) == (
        ok,
        f"what CUDA_VISIBLE_DEVICES={value} shows is not known",
    )
    assert why in hidden.next_step and hidden.next_step.endswith("before the kernel starts.")
    assert diagnose(changed("four_gpus", visible_devices=value)).row("visibility").ok is None


@pytest.mark.parametrize("smi", [NvidiaSmi(False), load_machine("two_gpus").nvidia_smi])
@pytest.mark.parametrize("value", ["-1", "0"])
def test_a_variable_that_hides_what_tensorflow_sees_came_too_late(value, smi):
    seen = changed("two_gpus", visible_devices=value, nvidia_smi=smi)
    row = diagnose(seen).row("visibility")
    late = value == "-1" or bool(smi.cards)  # without nvidia-smi, "0" may show any number
    assert (row.ok, "after TensorFlow had read it" in row.found) == (None if late else True, late)


def test_fewer_gpus_than_visible_cards_are_reported():
    row = diagnose(changed("two_gpus", gpus=load_machine("one_gpu").gpus)).deciding
    assert row.found.endswith("(compute capability 7.5); 2 cards should be visible")
    assert "too old" in row.next_step


def test_a_container_needs_no_nvidia_smi():
    diagnosis = diagnose(changed("one_gpu", bus_cards=None, nvidia_smi=NvidiaSmi(False)))
    assert marks(diagnosis) == "++++++++"
    assert "but TensorFlow reaches one" in diagnosis.row("hardware").found


def test_an_unknown_layer_is_named_with_those_there_are():
    with pytest.raises(KeyError, match="no layer 'cuda'; there are: system, hardware, driver"):
        diagnose(load_machine("no_card")).row("cuda")


# Any observation at all

OUTPUTS = [load_machine(name).nvidia_smi.output for name in EXPECTED]


def any_observation(seed: int) -> Observation:
    """Return facts that need not fit together, some of them nonsense."""
    draw = random.Random(seed)

    def words() -> str:
        return "".join(draw.choices("aZ09.,:;-/\\ \n\tÄ中\u2028", k=draw.randrange(60)))

    def libraries(most: int) -> list[Library]:
        return [
            Library(name, draw.choice([True, False, None]), words(), draw.choice(["", "/opt/x"]))
            for name in draw.sample(CUDA_12_LIBRARIES, draw.randint(0, most))
        ]

    return Observation(
        system=draw.choice(["Linux", "Linux", "Windows", "Darwin", "FreeBSD"]),
        processor=draw.choice(["x86_64", "aarch64"]),
        wsl=draw.choice([True, False]),
        python=words(),
        environment=words(),
        activated=draw.choice([None, words()]),
        bus_cards=draw.choice([None, 0, 1, 8]),
        nvidia_smi=NvidiaSmi(
            draw.choice([True, False]),
            draw.choice([None, 0, 9, -11]),
            draw.choice([words(), *OUTPUTS]),
        ),
        driver_library=next(iter(libraries(1)), None),
        visible_devices=draw.choice([None, "-1", "0", "1,0", "GPU-1d", words()]),
        device_order=draw.choice([None, "PCI_BUS_ID", "FASTEST_FIRST"]),
        tensorflow=draw.choice([None, "2.21.0"]),
        import_error=words(),
        cuda_build=draw.choice([True, False]),
        cuda_version=draw.choice(["", "12.5.1", "13.0.0"]),
        cudnn_version=draw.choice(["", "9"]),
        libraries=tuple(libraries(3)),
        gpus=tuple(Gpu(words(), words(), words()) for _ in range(draw.choice([0, 0, 1, 3]))),
    )


@pytest.mark.parametrize("start", range(0, 1000, 250))
def test_every_observation_has_exactly_one_verdict(start):
    for seed in range(start, start + 250):
        seen = any_observation(seed)
        diagnosis = diagnose(seen)
        assert tuple(row.layer for row in diagnosis.rows) == NAMES
        assert max(map(len, str(diagnosis).split("\n"))) <= 79, seed
        decides = diagnosis.deciding
        assert (decides.layer == "TensorFlow" and decides.ok is True) == bool(seen.gpus), seed
        if not seen.gpus:
            assert decides is next(row for row in diagnosis.rows if row.ok is False), seed
        assert diagnosis.verdict.startswith("TensorFlow sees ") and diagnosis.verdict[-1] == "."
        assert diagnosis == diagnose(seen)


# Records


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_says_what_it_is_and_that_it_was_constructed(name):
    record = json.loads((MACHINES / f"{name}.json").read_text(encoding="utf-8"))
    assert set(record) == {"about", "origin", "observation"}
    assert record["origin"].startswith("constructed in the format of")
    readme = (MACHINES / "README.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {record['about']} |" in readme
    assert "**Every machine here is constructed.**" in readme
    assert json.loads(json.dumps(dataclasses.asdict(load_machine(name)))) == record["observation"]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_constructed_machine_names_the_libraries_that_are_asked_for(name):
    seen = load_machine(name)
    if seen.cuda_build:
        assert tuple(library.name for library in seen.libraries) == CUDA_12_LIBRARIES
    assert seen.driver_library is None or seen.driver_library.name == DRIVER_LIBRARY


def test_an_unknown_machine_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no machine 'two'; there are: .*two_gpus"):
        load_machine("two")
    with pytest.raises(ValueError, match="no machine '../README'"):
        load_machine("../README")


# This machine


def in_fresh_process(code: str, folder: Path, **variables: str | None) -> str:
    """Run Python code in a new process, in a folder; returns what it wrote, without any error."""
    env = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={name: value for name, value in env.items() if value is not None},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """This machine with an nvidia-smi that answers, fails, hangs, cannot start, is missing.

    One process for all. Two files in its LD_LIBRARY_PATH: a library that loads, one that is none.
    """
    import _ctypes  # some shared library

    folder = tmp_path_factory.mktemp("machine")
    shutil.copy(_ctypes.__file__, folder / "libcufft.so.11")
    (folder / "libcudnn.so.9").write_text("no library\n")
    (folder / "listing").write_text(f"{HEAD}\n{CARD}\n")
    (folder / "late").mkdir()
    shutil.copy(_ctypes.__file__, folder / "late" / "libcourse.so")
    output = in_fresh_process(
        """
        import json, os, pathlib, pickle
        from utils.diagnosis.probe import _search_folders, check_libraries, observe

        program = pathlib.Path("nvidia-smi").absolute()
        # the loader has read this one at the start; what it becomes later does not count
        os.environ["LD_LIBRARY_PATH"] = str(program.parent / "late")

        def answer(script, deadline=60):
            program.write_text(script)
            program.chmod(0o700)
            return observe(deadline)

        path = os.environ["PATH"]
        os.environ["PATH"] = f"{program.parent}:{path}"
        seen = [
            answer('#!/bin/sh\\necho "$@" > asked\\ncat listing\\n'),
            answer("#!/bin/sh\\necho broken\\necho driver >&2\\nexit 9\\n"),
            answer("#!/bin/sh\\necho $$ > pid\\nexec sleep 600\\n", deadline=3),
            answer("no program\\n"),
        ]
        program.unlink()
        os.environ["PATH"] = str(program.parent)
        seen.append(observe())
        try:
            os.kill(int(pathlib.Path("pid").read_text()), 0)
            left = True
        except ProcessLookupError:
            left = False

        import tensorflow as tf
        cpu = tf.config.list_physical_devices("CPU")[0]
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
        framework = "libtensorflow_framework.so.2"
        print(json.dumps({
            "seen": pickle.dumps(seen).hex(),
            "left": left,
            "loaded": check_libraries((framework,), [], [], 60)[0].loaded,
            "early": check_libraries(("libcufft.so.11",), [], [], 60)[0].loaded,
            "late": check_libraries(("libcourse.so",), [], [], 60)[0].loaded,
            "search": [*map(str, _search_folders(pathlib.Path(tf.sysconfig.get_lib(), framework)))],
            "cpus": len(tf.config.list_logical_devices("CPU")),
            "version": tf.__version__,
            "cuda": tf.sysconfig.get_build_info().get("cuda_version", ""),
        }))
        """,
        folder,
        CUDA_VISIBLE_DEVICES="-1",
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
        VIRTUAL_ENV=str(folder),
        LD_LIBRARY_PATH=str(folder),
        TF_CPP_MIN_LOG_LEVEL="3",
    )
    result = json.loads(output)  # so nothing else was written, whatever TensorFlow has to say
    result["seen"] = pickle.loads(bytes.fromhex(result["seen"]))
    return SimpleNamespace(folder=folder, **result)


@LINUX
def test_nvidia_smi_is_asked_and_its_failures_are_answers(asked):
    good, failing, hanging, broken, missing = (seen.nvidia_smi for seen in asked.seen)
    assert good == NvidiaSmi(True, 0, f"{HEAD}\n{CARD}")
    assert [str(card) for card in good.cards] == ["1 Tesla T4 (15360 MiB)"] and not good.remarks
    assert (asked.folder / "asked").read_text().strip() == (
        "--query-gpu=index,name,memory.total,pci.bus_id,uuid,driver_version --format=csv"
    )
    assert failing == NvidiaSmi(True, 9, "broken\ndriver")
    assert hanging == NvidiaSmi(True, None, "no answer within 3 s")
    assert not asked.left, "the program that hung was ended"
    assert broken == NvidiaSmi(True, None, "it cannot be started: Exec format error")
    assert missing == NvidiaSmi(found=False)


@LINUX
def test_devices_can_still_be_configured_afterwards(asked):
    assert asked.cpus == 2


@LINUX
def test_this_process_and_its_tensorflow_are_described(asked):
    seen = asked.seen[0]
    assert (seen.system, seen.visible_devices, seen.device_order) == ("Linux", "-1", "PCI_BUS_ID")
    assert seen.python == sys.executable and seen.environment == os.path.realpath(sys.prefix)
    assert seen.activated == os.path.realpath(asked.folder)
    assert (seen.tensorflow, seen.import_error, seen.gpus) == (asked.version, "", ())
    assert (seen.cuda_version, seen.cuda_build) == (asked.cuda, bool(asked.cuda))
    assert seen.driver_library.name == DRIVER_LIBRARY


@LINUX
def test_a_library_that_this_process_has_loaded_counts_wherever_it_lies(asked):
    assert asked.loaded is True


@LINUX
def test_libraries_are_looked_for_where_tensorflow_looks(asked):
    seen = asked.seen[0]
    if not seen.cuda_build:
        pytest.skip("this TensorFlow is a CPU build, which needs no CUDA library")
    assert tuple(library.name for library in seen.libraries) == CUDA_12_LIBRARIES
    found = {library.name: library for library in seen.libraries}
    assert found["libcufft.so.11"] == Library("libcufft.so.11", True)
    assert found["libcudnn.so.9"].loaded is False
    assert str(asked.folder) in found["libcudnn.so.9"].error
    assert os.path.realpath(asked.folder) in asked.search


@LINUX
def test_only_folders_that_were_named_before_the_start_count(asked):
    assert (asked.early, asked.late) == (True, False)


def test_without_tensorflow_the_reason_is_kept(tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise ImportError('libfoo.so: not here\\nmore')\n")
    code = """
        import pickle
        from utils.diagnosis.probe import observe
        print(pickle.dumps(observe()).hex())
        """
    seen = pickle.loads(bytes.fromhex(in_fresh_process(code, tmp_path)))
    assert seen.tensorflow is None and seen.import_error == "libfoo.so: not here"
    assert (seen.cuda_build, seen.libraries, seen.gpus) == (False, (), ())


@LINUX
def test_a_library_outside_the_search_path_is_told_but_not_called_loaded(tmp_path):
    import _ctypes

    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder, name in ((inside, "liba_course.so"), (outside, "libb_course.so")):
        folder.mkdir()
        shutil.copy(_ctypes.__file__, folder / name)
    names = ("liba_course.so", "libb_course.so", "libc_course.so")
    a, b, c = check_libraries(names, [inside], [inside, outside], 60)
    assert a == Library("liba_course.so", True)
    assert (b.loaded, b.elsewhere) == (False, str(outside))
    assert (c.loaded, c.elsewhere) == (False, "")
    assert c.error.startswith("libc_course.so: cannot open shared object file")
    assert str(inside) not in Path("/proc/self/maps").read_text(), "tried in a child process"


@LINUX
def test_a_check_that_does_not_end_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.diagnosis.probe._OPEN_EACH", "import time; time.sleep(600)")
    (library,) = check_libraries(("libcourse.so",), [], [], 0.2)
    assert library == Library("libcourse.so", None, "the check failed (no answer within 0.2 s)")


@LINUX
def test_the_names_are_those_that_tensorflow_opens(tmp_path):
    """TensorFlow's own check, with the loader writing down what it is asked for."""
    in_fresh_process(
        """
        import ctypes, importlib.util, pathlib
        home = pathlib.Path(importlib.util.find_spec("tensorflow").submodule_search_locations[0])
        library = ctypes.CDLL(str(home / "libtensorflow_framework.so.2"))
        check = library._ZN3tsl8internal9DsoLoader26MaybeTryDlopenGPULibrariesEv
        check.argtypes, check.restype = [ctypes.c_void_p], ctypes.c_void_p
        check(ctypes.byref(ctypes.c_uint64(0)))
        """,
        tmp_path,
        LD_DEBUG="libs",
        LD_DEBUG_OUTPUT=str(tmp_path / "loader"),
    )
    (log,) = tmp_path.glob("loader.*")
    asked = re.findall(r"find library=(libcu\S+)", log.read_text())
    if not asked:
        pytest.skip("this TensorFlow is a CPU build, which opens no CUDA library")
    # the driver's library is opened by the CUDA libraries too, where they are installed
    assert tuple(dict.fromkeys(name for name in asked if name != DRIVER_LIBRARY)) == (
        CUDA_12_LIBRARIES
    )


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([], None),
        ([("0x8086", "0x030000")], 0),
        ([("0x10de", "0x030000"), ("0x10de", "0x040300"), ("0x10de", "0x030200")], 2),
    ],
)
def test_cards_on_the_bus_are_counted_without_a_driver(tmp_path, devices, expected):
    for number, (vendor, kind) in enumerate(devices):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "vendor").write_text(f"{vendor}\n")
        (tmp_path / f"{number}" / "class").write_text(f"{kind}\n")
    assert machine_probe._bus_cards(tmp_path) == expected


@pytest.mark.parametrize(
    ("venv", "conda", "prefix", "expected"),
    [
        (None, None, "/opt/a", None),
        ("/opt/b", "/opt/conda", "/opt/a", "/opt/b"),
        (None, "/opt/conda", "/opt/a", None),  # a venv that was made inside conda's base
        (None, "/opt/conda", "/usr", "/opt/conda"),
    ],
)
def test_the_activated_environment(monkeypatch, venv, conda, prefix, expected):
    for name, value in (("VIRTUAL_ENV", venv), ("CONDA_PREFIX", conda)):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert machine_probe._activated() == expected


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"device_name": "Tesla T4", "compute_capability": (7, 5)}, ("Tesla T4", "7.5")),
        ({}, ("", "")),
    ],
)
def test_tensorflow_may_say_more_or_less_about_a_gpu(details, expected):
    config = SimpleNamespace(experimental=SimpleNamespace(get_device_details=lambda _: details))
    card = SimpleNamespace(name="/physical_device:GPU:0")
    gpu = machine_probe._gpu(SimpleNamespace(config=config), card)
    assert gpu == Gpu("/physical_device:GPU:0", *expected)


def test_a_diagnosis_of_this_machine_needs_no_argument(monkeypatch):
    monkeypatch.setattr("utils.diagnosis.layer_table.observe", lambda: load_machine("two_gpus"))
    assert diagnose() == diagnose(load_machine("two_gpus"))


def test_a_row_shows_its_steps_line_by_line():
    row = Row("build", "a question", "an answer", "First this:\nthen that", False)
    assert str(row).splitlines() == [
        "[no] build       a question",
        "     found an answer",
        "     next  First this:",
        "           then that",
    ]


# Placement logs

PLACED = {
    "one_gpu": {"add": "GPU:0", "a": "GPU:0", "b": "GPU:0"},
    "four_gpus": {"add": "GPU:0", "a": "GPU:0", "b": "GPU:0"},
    "four_gpus_pinned": {"add": "GPU:1", "a": "CPU:0", "b": "CPU:0"},
}
DEVICE = "/job:localhost/replica:0/task:0/device:"
MAPPING = re.compile(
    r"^I0000 00:00:\d{10}\.\d{6} +\d+ direct_session\.cc:\d+\] Device mapping:\n"
    rf"((?:{DEVICE}\w+:\d+ -> device: \S.*\n)+)\n",
    re.MULTILINE,
)


@pytest.mark.parametrize("name", PLACED)
def test_a_constructed_log_is_read_like_a_real_one(name):
    text = (LOGS / f"{name}.txt").read_text(encoding="utf-8")
    rows, other = parse(text)
    assert {row.name: row.device for row in rows} == {
        operation: DEVICE + device for operation, device in PLACED[name].items()
    }
    assert other.startswith("# Constructed, not recorded: ")
    cards = MAPPING.search(other)[1].splitlines()
    assert len(cards) == (1 if name == "one_gpu" else 4)
    for number, line in enumerate(cards):
        assert re.fullmatch(
            rf"{DEVICE}GPU:{number} -> device: {number}, name: Tesla T4, "
            r"pci bus id: 0000:00:1[b-e]\.0, compute capability: 7\.5",
            line,
        )
    assert set(PLACED) == {path.stem for path in LOGS.glob("*.txt")}


def test_the_constructed_logs_have_the_form_of_this_tensorflow(tmp_path):
    """The same programs on logical CPUs; XLA_CPU is a second kind of device with a mapping."""
    output = in_fresh_process(
        """
        import tensorflow as tf
        v1 = tf.compat.v1
        cpu = tf.config.list_physical_devices("CPU")[0]
        three = [tf.config.LogicalDeviceConfiguration()] * 3
        tf.config.set_logical_device_configuration(cpu, three)
        config = v1.ConfigProto(log_device_placement=True, device_count={"CPU": 3})
        for inputs, sum_ in ((None, None), ("/cpu:0", "/cpu:1")):
            with tf.Graph().as_default():
                with tf.device(inputs):
                    a = tf.constant([1.0, 2.0, 3.0], name="a")
                    b = tf.constant([4.0, 5.0, 6.0], name="b")
                with tf.device(sum_):
                    total = tf.add(a, b, name="add")
                with v1.Session(config=config) as session:
                    assert session.run(total).tolist() == [5, 7, 9]
        """,
        tmp_path,
        TF_CPP_MIN_LOG_LEVEL="0",
        TF_XLA_FLAGS="--tf_xla_enable_xla_devices",
        CUDA_VISIBLE_DEVICES="-1",
    )
    assert len(MAPPING.findall(output)) == 2
    free, pinned = (
        [line for line in (LOGS / f"{name}.txt").read_text().splitlines() if "): /" in line]
        for name in ("one_gpu", "four_gpus_pinned")
    )
    constructed = [line.replace("GPU:0", "CPU:0") for line in free]
    constructed += [line.replace("GPU:1", "CPU:1") for line in pinned]
    rows, _ = parse(output)
    assert [f"{row.name}: ({row.op}): {row.device}" for row in rows] == constructed
