"""MNIST for every training lesson: load it, shard it, walk through it in batches.

The file `data/mnist.npz` holds 10,000 training and 2,000 test images; `data/README.md` says
where they come from. This module needs NumPy only: it never imports TensorFlow.
"""

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from utils import DATA
from utils.numbers import whole

FILE = DATA / "mnist.npz"

SHA256 = "08266e906a42d79394ba3951fd19713fa8f3794129dfa2a3608867e18ee433d1"  # of the file
TRAIN = 10_000  # images


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
    divide 10,000, the first shards have one image more than the others. Raises `TypeError` or
    `ValueError` unless `n` is a whole number from 1 to 10,000. Introduced in lesson 06.
    """
    data = load()
    n = whole("n", n, 1, TRAIN)
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
    size = whole("size", size, 1, len(x))
    seed = whole("seed", seed, 0, 2**32 - 1)
    steps = len(x) // size if steps is None else whole("steps", steps, 1)
    # A generator would report a wrong argument only at the first batch; this call reports now.
    return _batches(x, y, size, seed, steps)


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the file at `path` by name, if it is the course's file.

    Its SHA-256 is compared before anything in it is looked at. Raises `MnistFileError` if the
    file is missing, damaged or another one. Introduced in lesson 05, behind `load`.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise _file_error(path, "is missing") from None
    except OSError as error:
        raise _file_error(path, f"cannot be read ({error.strerror})") from error
    if (found := hashlib.sha256(content).hexdigest()) != SHA256:
        raise _file_error(path, f"is damaged or not the course's (its SHA-256 is {found})")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


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
