"""MNIST for every training lesson: load it, shard it, walk through it in batches.

The file `data/mnist.npz` holds 10,000 training and 2,000 test images; `data/README.md` says
where they come from. This module needs NumPy only: it never imports TensorFlow.
"""

import hashlib
import io
import operator
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from utils import DATA

FILE = DATA / "mnist.npz"

# What the file must hold: name -> (type, shape). Each index array gives the position, from 0,
# of every chosen image in the original MNIST files.
ARRAYS = {
    "train_images": ("uint8", (10_000, 28, 28)),
    "train_labels": ("uint8", (10_000,)),
    "train_index": ("uint16", (10_000,)),
    "test_images": ("uint8", (2_000, 28, 28)),
    "test_labels": ("uint8", (2_000,)),
    "test_index": ("uint16", (2_000,)),
}
CHECKSUM = "b3ce3a68fca2f42000eb3dbf4190ddde998d5a6d1b982ee5598c737a78540171"


class MnistFileError(RuntimeError):
    """The data file is missing or damaged; the message says which, and how to mend it."""


@dataclass(frozen=True, eq=False, repr=False)
class Mnist:
    """The course's MNIST: images uint8 of shape (n, 28, 28), labels int64 of shape (n,).

    The order is random and fixed, so any slice is a fair sample. The arrays are read-only,
    because all callers share them. Introduced in lesson 05.
    """

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    def __repr__(self) -> str:
        """Say how many images there are, instead of printing them."""
        return (
            f"MNIST: {len(self.train_images):,} training and {len(self.test_images):,} test "
            f"images of 28×28 pixels"
        )


def load() -> Mnist:
    """Return MNIST: 10,000 training and 2,000 test images with their labels.

    The file is read and verified once per process. Raises `MnistFileError` if it is missing
    or damaged. Introduced in lesson 05.
    """
    return _load(FILE)


def inputs(images: ArrayLike, dtype: DTypeLike = "float32") -> np.ndarray:
    """Turn uint8 images of shape (n, 28, 28) into network inputs of shape (n, 784) in [0, 1].

    `dtype` is a NumPy or TensorFlow float type; proofs of equality use float64. Raises
    `ValueError` for anything but uint8 images (so that nothing is scaled twice) or for a type
    that is not float. Introduced in lesson 05.
    """
    images = np.asarray(images)
    if images.dtype != np.uint8 or images.ndim != 3 or images.shape[1:] != (28, 28):
        raise ValueError(
            f"inputs needs uint8 images of shape (n, 28, 28), but got {images.dtype} of shape "
            f"{images.shape}. Pass images as load() returns them; one image is images[i:i+1]."
        )
    numpy_type = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
    if numpy_type.kind != "f":
        raise ValueError(f"dtype must be a float type such as 'float32', but is {numpy_type}.")
    return images.reshape(-1, 28 * 28).astype(numpy_type) / numpy_type.type(255)


def shards(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut the training set into `n` shards: a list of n pairs (images, labels).

    No image is in two shards, and together they are the whole training set. If `n` does not
    divide 10,000, the first shards have one image more than the others. Raises `ValueError`
    unless 1 <= n <= 10,000. Introduced in lesson 06.
    """
    data = load()
    n = _whole("n", n, 1, len(data.train_labels), "the number of training images")
    images = np.array_split(data.train_images, n)
    labels = np.array_split(data.train_labels, n)
    return list(zip(images, labels, strict=True))


def batches(
    x: ArrayLike, y: ArrayLike, size: int, *, seed: int = 42, steps: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield `steps` batches (x, y) of exactly `size` examples, drawn without replacement.

    Every pass over the data has a new order, fixed by `seed`: the same arguments give the
    same batches. What is left over at the end of a pass (fewer than `size` examples) is
    dropped; the next pass shuffles all examples again. `steps=None` means one pass. Batches
    are made as they are asked for, so `steps` may be larger than needed.
    Raises `ValueError` if x and y differ in length, `size` is not in 1 … len(x), `steps` is
    below 1, or `seed` is not in 0 … 2**32 - 1. Introduced in lesson 06.
    """
    x, y = np.asarray(x), np.asarray(y)
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y) or len(x) == 0:
        raise ValueError(
            "x and y must hold one row per example, equally many and at least one, but have "
            f"shapes {x.shape} and {y.shape}."
        )
    size = _whole("size", size, 1, len(x), "the number of examples")
    seed = _whole("seed", seed, 0, 2**32 - 1, "the largest seed")
    steps = len(x) // size if steps is None else _whole("steps", steps, 1)
    # A generator would report a wrong argument only at the first batch; this call reports now.
    return _batches(x, y, size, seed, steps)


def checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of the arrays: of name, type, shape and bytes of each, by name.

    It is taken of the content, not of the file, because two versions of zlib may compress
    the same content differently. Introduced in lesson 05, behind `load`.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array)
    return digest.hexdigest()


def read(path: Path) -> dict[str, np.ndarray]:
    """Read and verify the file at `path`; return its six arrays by name (see `ARRAYS`).

    Raises `MnistFileError` if the file is missing or differs from what is recorded here.
    Introduced in lesson 05, behind `load`.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise _file_error(path, "is missing") from None
    except OSError as error:
        raise _file_error(path, f"cannot be read ({error.strerror})") from error
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            arrays = {name: _member(archive, name) for name in ARRAYS}
    # A damaged zip raises any of a dozen types, depending on the byte that is wrong.
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise _file_error(path, f"is damaged or incomplete ({cause})") from error
    for name, (dtype, shape) in ARRAYS.items():
        found = arrays[name]
        if found.dtype != dtype or found.shape != shape:
            what = f"{name} is {found.dtype} of shape {found.shape}, not {dtype} of shape {shape}"
            raise _file_error(path, f"is not the course's file: {what}")
    if (found := checksum(arrays)) != CHECKSUM:
        what = f"the checksum of its content is {found}, not {CHECKSUM}"
        raise _file_error(path, f"is not the course's file: {what}")
    return arrays


@cache
def _load(path: Path) -> Mnist:
    arrays = read(path)
    data = Mnist(
        train_images=arrays["train_images"],
        train_labels=arrays["train_labels"].astype(np.int64),
        test_images=arrays["test_images"],
        test_labels=arrays["test_labels"].astype(np.int64),
    )
    for array in vars(data).values():
        array.flags.writeable = False
    return data


def _member(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    return np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)


def _file_error(path: Path, problem: str) -> MnistFileError:
    return MnistFileError(
        f"The data file {path} {problem}. To get it back, run in the course's folder: "
        "git checkout -- data/mnist.npz (or, with network access: make data)."
    )


def _batches(
    x: np.ndarray, y: np.ndarray, size: int, seed: int, steps: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    # RandomState, because its stream is frozen: the same batches under every NumPy version.
    random = np.random.RandomState(seed)
    per_pass = len(x) // size
    for step in range(steps):
        position = step % per_pass
        if position == 0:
            order = random.permutation(len(x))
        rows = order[position * size : (position + 1) * size]
        yield x[rows], y[rows]


def _whole(name: str, value: int, low: int, high: int | None = None, what: str = "") -> int:
    """Return `value` as an int, or say which whole numbers are allowed."""
    allowed = f"at least {low}" if high is None else f"from {low} to {high} ({what})"
    wrong = ValueError(f"{name} must be a whole number {allowed}, but is {value!r}.")
    if isinstance(value, bool):  # a whole number for Python, but never meant as one here
        raise wrong
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong from None
    if number < low or (high is not None and number > high):
        raise wrong
    return number
