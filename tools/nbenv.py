"""The one place that says in which environment notebook kernels run.

Stored outputs, `make test` and CI use it, so that they agree. What TensorFlow reads at import
(log level, oneDNN) is not here: `utils.start.begin` decides it for every learner.
"""

import os
import tempfile
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

PIN = {
    "CUDA_VISIBLE_DEVICES": "-1",  # outputs are compared as a machine without GPUs gives them
    "KERAS_BACKEND": "tensorflow",
    "LC_ALL": "C.UTF-8",
    "MATPLOTLIBRC": os.devnull,  # no user's style; the font cache stays shared
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "TZ": "UTC",
}
# Whatever the shell has set of these would change an output or a picture.
DROP = (
    "COLUMNS", "LINES", "JUPYTER_COLUMNS", "NO_COLOR", "FORCE_COLOR",
    "MPLBACKEND", "PYTHONSTARTUP", "PYTHONWARNINGS", "IPYKERNEL_CELL_NAME",
    "COURSE_STRICT", "TF_CONFIG", "TF_XLA_FLAGS", "XLA_FLAGS",
    "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS",
    "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS",
)  # fmt: skip


def apply(env: MutableMapping[str, str] = os.environ) -> MutableMapping[str, str]:
    """Pin and drop variables in `env` (this process's by default) and return it."""
    env.update(PIN)
    for name in DROP:
        env.pop(name, None)
    return env


@contextmanager
def private_ipython() -> Iterator[None]:
    """Kernels started inside see no user start-up files, share no history, leave nothing."""
    before = os.environ.get("IPYTHONDIR")
    with tempfile.TemporaryDirectory(prefix="ipython-", ignore_cleanup_errors=True) as folder:
        os.environ["IPYTHONDIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["IPYTHONDIR"]
            else:
                os.environ["IPYTHONDIR"] = before
