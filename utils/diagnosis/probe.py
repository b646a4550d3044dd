"""Asking this machine and this process what they know about GPUs.

Nothing here sets up TensorFlow's devices or keeps a library loaded. What could
do so is tried in a short-lived child process.
"""

import contextlib
import ctypes
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from utils.diagnosis.record import Gpu, Library, NvidiaSmi, Observation
from utils.machine import captured

# Without compute_cap: a driver that does not know it would answer with an error alone.
QUERY = ("--query-gpu=index,name,memory.total,pci.bus_id,uuid,driver_version", "--format=csv")
DRIVER_LIBRARY = "libcuda.so.1"
# What TensorFlow 2.21 opens before it offers a GPU (a test compares the names with those it asks
# for). One that is missing hides every GPU.
CUDA_12_LIBRARIES = (
    "libcudart.so.12",
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcufft.so.11",
    "libcusolver.so.11",
    "libcusparse.so.12",
    "libcudnn.so.9",
)
_WSL_LIBRARIES = Path("/usr/lib/wsl/lib")  # where WSL shows the driver of Windows
_OPEN_EACH = """
import ctypes, json, sys
errors = []
for path in json.loads(sys.argv[1]):
    try:
        ctypes.CDLL(path)
        errors.append("")
    except OSError as error:
        errors.append(str(error))
print(json.dumps(errors))
"""


def observe(deadline: float = 20) -> Observation:
    """Ask this machine and this process what they know about GPUs.

    TensorFlow is imported, but its devices are not set up. What TensorFlow writes to the error
    stream on the way is dropped: the answer says it in words.

    Args:
        deadline: seconds that nvidia-smi gets to answer, and so the loading of libraries.

    Introduced in lesson 01.
    """
    linux = platform.system() == "Linux"
    wsl = linux and "microsoft" in platform.uname().release.lower()
    facts, search, also = _ask_tensorflow()
    needed = CUDA_12_LIBRARIES if linux and facts["cuda_version"].startswith("12.") else ()
    also += [_WSL_LIBRARIES] * wsl
    names = (DRIVER_LIBRARY, *needed) if linux else ()
    checked = check_libraries(names, search, also, deadline)
    return Observation(
        system=platform.system(),
        processor=platform.machine(),
        wsl=wsl,
        python=sys.executable,
        environment=os.path.realpath(sys.prefix),
        activated=_activated(),
        bus_cards=None if wsl else _bus_cards(),
        nvidia_smi=_ask_nvidia_smi(deadline),
        driver_library=checked[0] if checked else None,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        device_order=os.environ.get("CUDA_DEVICE_ORDER"),
        libraries=checked[1:],
        **facts,
    )


def check_libraries(
    names: tuple[str, ...], search: list[Path], also: list[Path], deadline: float
) -> tuple[Library, ...]:
    """Try in a child process which libraries load.

    Args:
        names: file names.
        search: folders in which the process looks, in order, before the system's.
        also: folders in which it does not look, to say where a library lies instead.
        deadline: seconds for all of them together.

    Introduced in lesson 01, behind ``observe``.
    """
    if not names:
        return ()
    paths = [next((str(d / name) for d in search if (d / name).exists()), name) for name in names]
    command = [sys.executable, "-I", "-S", "-c", _OPEN_EACH, json.dumps(paths)]
    code, output = _run(command, deadline, _environment_of_the_loader())
    if code != 0:
        reason = output.splitlines()[-1] if output else f"exit code {code}"
        return tuple(Library(name, None, f"the check failed ({reason})") for name in names)
    checked = []
    for name, error in zip(names, json.loads(output.splitlines()[-1]), strict=True):
        if not error or _in_this_process(name):
            checked.append(Library(name, True))
        else:
            elsewhere = next((str(d) for d in also if d not in search and (d / name).exists()), "")
            checked.append(Library(name, False, error, elsewhere))
    return tuple(checked)


def _ask_tensorflow() -> tuple[dict, list[Path], list[Path]]:
    """Return TensorFlow's facts, where it looks for libraries, and where pip puts them."""
    facts = dict.fromkeys(("cuda_version", "cudnn_version", "import_error"), "")
    facts |= {"tensorflow": None, "cuda_build": False, "gpus": ()}
    with captured(2) if os.name == "posix" else contextlib.nullcontext():
        try:
            tf = importlib.import_module("tensorflow")
        except ImportError as error:
            first = str(error).strip().splitlines() or [type(error).__name__]
            return facts | {"import_error": first[0]}, [], []
        build = tf.sysconfig.get_build_info()
        facts["tensorflow"] = tf.__version__
        facts["cuda_build"] = tf.test.is_built_with_cuda()
        facts["cuda_version"] = str(build.get("cuda_version", ""))
        facts["cudnn_version"] = str(build.get("cudnn_version", ""))
        facts["gpus"] = tuple(_gpu(tf, card) for card in tf.config.list_physical_devices("GPU"))
    home = Path(tf.sysconfig.get_lib())
    search = _search_folders(home / "libtensorflow_framework.so.2")
    return facts, search, sorted((home.parent / "nvidia").resolve().glob("*/lib"))


def _gpu(tf, card) -> Gpu:
    details = tf.config.experimental.get_device_details(card)
    capability = ".".join(map(str, details.get("compute_capability", ())))
    return Gpu(card.name, details.get("device_name", ""), capability)


def _ask_nvidia_smi(deadline: float) -> NvidiaSmi:
    program = shutil.which("nvidia-smi") or shutil.which(_WSL_LIBRARIES / "nvidia-smi")
    if program is None:
        return NvidiaSmi(found=False)
    try:
        return NvidiaSmi(True, *_run([program, *QUERY], deadline))
    except OSError as error:
        return NvidiaSmi(True, None, f"it cannot be started: {error.strerror}")


def _run(command: list[str], deadline: float, env: dict | None = None) -> tuple[int | None, str]:
    """Run a program and return its exit code (None if it was cut) and what it wrote."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=env,
        )
        try:
            code = process.wait(deadline)
        except subprocess.TimeoutExpired:
            return None, f"no answer within {deadline:g} s"
        finally:
            if process.poll() is None:
                _kill(process)
        output.seek(0)
        return code, output.read().decode(errors="replace").strip()


def _kill(process: subprocess.Popen) -> None:
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    # A process that hangs inside the driver survives even this; waiting on would hang us too.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)


def _bus_cards(bus: Path = Path("/sys/bus/pci/devices")) -> int | None:
    """Count NVIDIA's display devices on the PCI bus, which needs no driver."""
    devices = list(bus.glob("*"))
    if not devices:
        return None
    ids = [[(d / file).read_text().strip() for file in ("vendor", "class")] for d in devices]
    return sum(vendor == "0x10de" and kind.startswith("0x03") for vendor, kind in ids)


def _activated() -> str | None:
    """Return the environment that was activated; a venv made inside conda counts as a venv."""
    in_venv = sys.prefix != sys.base_prefix
    found = os.environ.get("VIRTUAL_ENV") or (not in_venv and os.environ.get("CONDA_PREFIX"))
    return os.path.realpath(found) if found else None


class _Folder(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("flags", ctypes.c_uint)]


class _SearchInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("count", ctypes.c_uint), ("folders", _Folder * 1)]


def _search_folders(library: Path) -> list[Path]:
    """Return where the loader looks for what a loaded library opens: dlinfo(3), RTLD_DI_SERINFO.

    Being installed is not enough: the search path is written into the library that opens another.
    """
    if sys.platform != "linux" or not library.exists():
        return []
    handle = ctypes.c_void_p(ctypes.CDLL(str(library), mode=os.RTLD_NOLOAD | os.RTLD_NOW)._handle)
    dlinfo = ctypes.CDLL(None).dlinfo
    size = _SearchInfo()
    dlinfo(handle, 5, ctypes.byref(size))  # RTLD_DI_SERINFOSIZE
    memory = ctypes.create_string_buffer(size.size)
    dlinfo(handle, 5, memory)  # the next call wants the sizes filled in
    dlinfo(handle, 4, memory)  # RTLD_DI_SERINFO
    folders = (_Folder * size.count).from_buffer(memory, _SearchInfo.folders.offset)
    names = (Path(os.path.realpath(os.fsdecode(folder.name))) for folder in folders)
    return list(dict.fromkeys(names))


def _environment_of_the_loader() -> dict[str, str]:
    """Return the environment with the LD_LIBRARY_PATH that this process was started with.

    The loader has read it then; a notebook that sets it later changes nothing for TensorFlow.
    """
    start = Path("/proc/self/environ").read_bytes().split(b"\0")
    name = "LD_LIBRARY_PATH"
    then = [os.fsdecode(x).partition("=")[2] for x in start if x.startswith(name.encode() + b"=")]
    now = {key: value for key, value in os.environ.items() if key != name}
    return {**now, name: then[0]} if then else now


def _in_this_process(name: str) -> bool:
    try:
        ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True
