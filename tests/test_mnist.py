"""utils.training.mnist: the data file, loading, shards and batches."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from utils.training import mnist

ROOT = Path(__file__).resolve().parent.parent
COURSE_FILE = mnist.FILE  # some tests make `load` read another
# Images per digit in the original files; known since MNIST was published.
ORIGINAL = {
    "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
}
PARTS = pytest.mark.parametrize("part", ["train", "test"])


@pytest.fixture(scope="module")
def arrays():
    return mnist.read(COURSE_FILE)


@pytest.fixture
def data_file(tmp_path, monkeypatch):
    """A path that `load` reads in place of the course's file; nothing is there yet."""
    path = tmp_path / "mnist.npz"
    monkeypatch.setattr(mnist, "FILE", path)
    return path


# The file


def test_the_readme_records_the_file_and_what_is_in_it(arrays):
    content = COURSE_FILE.read_bytes()
    assert len(content) < 3_000_000
    readme = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    row = f"| the file, {len(content):,} bytes | `{mnist.SHA256}` |"
    assert row in readme, "restore the file: git checkout -- data/mnist.npz"
    for name, array in arrays.items():
        assert f"| `{name}` | {array.dtype} | {array.shape} |" in readme
    for part, original in ORIGINAL.items():
        here = np.bincount(arrays[f"{part}_labels"]).tolist()
        for name, counts in (("here", here), ("original", original)):
            row = [f"{part}, {name}", *map(str, counts), str(sum(counts))]
            assert f"| {' | '.join(row)} |" in readme


@PARTS
def test_classes_have_the_share_they_have_in_the_original(arrays, part):
    labels = arrays[f"{part}_labels"]
    original = np.array(ORIGINAL[part])
    exact = original * len(labels) / original.sum()
    assert np.all(np.abs(np.bincount(labels) - exact) < 1)


@PARTS
def test_choice_has_no_image_twice_and_covers_the_whole_file(arrays, part):
    index = arrays[f"{part}_index"].astype(int)
    total = sum(ORIGINAL[part])
    assert len(np.unique(index)) == len(index) and index.max() < total
    fifty = np.bincount(index * 50 // total, minlength=50)
    assert np.all(np.abs(fifty / (len(index) / 50) - 1) < 0.25), fifty
    assert index.min() < 100 and index.max() >= total - 100


@PARTS
def test_order_is_shuffled_so_any_slice_is_a_fair_sample(arrays, part):
    index, labels = arrays[f"{part}_index"].astype(int), arrays[f"{part}_labels"]
    share = np.bincount(labels) / len(labels)
    for start in range(0, len(labels), 1000):
        slice_share = np.bincount(labels[start : start + 1000], minlength=10) / 1000
        assert np.all(np.abs(slice_share - share) < 0.04)
        mean = index[start : start + 1000].mean() / sum(ORIGINAL[part])
        assert abs(mean - 0.5) < 0.05


@PARTS
def test_images_are_centred_digits(arrays, part):
    images = arrays[f"{part}_images"].astype(float)
    assert 32 < images.mean() < 35  # the mean of MNIST is 33.3
    assert np.all(images.max(axis=(1, 2)) >= 254)
    # MNIST puts the centre of mass of each digit at pixel 14, to half a pixel.
    ink = images.sum(axis=(1, 2))
    for axis in (1, 2):
        centre = images.sum(axis=axis) @ np.arange(28) / ink
        assert np.all(np.abs(centre - 14) <= 0.5)


# load


def test_load_shapes_types_and_values(arrays):
    data = mnist.load()
    assert data.train_images.shape == (10_000, 28, 28) and data.train_images.dtype == np.uint8
    assert data.test_images.shape == (2_000, 28, 28) and data.test_images.dtype == np.uint8
    assert data.train_labels.shape == (10_000,) and data.train_labels.dtype == np.int64
    assert data.test_labels.shape == (2_000,) and data.test_labels.dtype == np.int64
    for name in ("train_images", "train_labels", "test_images", "test_labels"):
        np.testing.assert_array_equal(getattr(data, name), arrays[name])


def test_load_is_cached_read_only_and_prints_in_one_line():
    data = mnist.load()
    assert mnist.load() is data
    for array in vars(data).values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert repr(data) == "MNIST: 10,000 training and 2,000 test images of 28×28 pixels"


def test_file_is_found_from_any_folder_and_tensorflow_is_not_imported(tmp_path):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from utils.training import mnist; mnist.load(); "
        "print(sorted({'tensorflow', 'keras', 'matplotlib'} & set(sys.modules)))"
    )
    command = [sys.executable, "-B", "-c", program, str(ROOT)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


# A file that is missing or damaged


def assert_load_says(path, problem):
    with pytest.raises(mnist.MnistFileError) as caught:
        mnist.load()
    message = str(caught.value)
    assert message.startswith(f"The data file {path} ")
    assert problem in message
    assert "git checkout -- data/mnist.npz" in message and "make data" in message
    assert "\n" not in message


def test_missing_file(data_file):
    assert_load_says(data_file, "is missing")


def test_folder_in_place_of_the_file(data_file):
    data_file.mkdir()
    assert_load_says(data_file, "cannot be read")


@pytest.mark.parametrize(
    "damage",
    [lambda c: b"", lambda c: c[:-1], lambda c: c[:1000] + b"?" + c[1001:], lambda c: c + b"\0"],
)
def test_a_damaged_file_is_never_loaded_and_the_failure_is_not_remembered(data_file, damage):
    content = COURSE_FILE.read_bytes()
    data_file.write_bytes(damage(content))
    assert_load_says(data_file, "is damaged or not the course's")
    data_file.write_bytes(content)
    assert len(mnist.load().train_labels) == mnist.TRAIN


# inputs


@pytest.mark.parametrize("dtype", ["float32", np.float64, np.dtype("float16")])
def test_inputs_are_in_0_1_of_the_type_asked_for(dtype):
    images = mnist.load().train_images[:100]
    x = mnist.inputs(images, dtype)
    assert x.shape == (100, 784) and x.dtype == np.dtype(dtype)
    assert x.min() == 0 and x.max() == 1
    np.testing.assert_array_equal(np.rint(x * 255), images.reshape(100, 784))  # in their order
    assert mnist.inputs(images[:0]).dtype == np.float32


def test_inputs_in_float64_are_exact():
    every = np.zeros((1, 28, 28), np.uint8)
    every.ravel()[:256] = np.arange(256)
    expected = [value / 255 for value in range(256)]
    assert mnist.inputs(every, np.float64)[0, :256].tolist() == expected


def test_inputs_take_a_tensorflow_type():
    class TensorFlowType:  # what tf.float64 offers, without the import
        as_numpy_dtype = np.float64

    assert mnist.inputs(mnist.load().test_images[:1], TensorFlowType()).dtype == np.float64


@pytest.mark.parametrize(
    "images, found",
    [
        (np.zeros((5, 784), np.uint8), "uint8 of shape (5, 784)"),
        (np.zeros((28, 28), np.uint8), "uint8 of shape (28, 28)"),
        (np.zeros((5, 28, 28), np.float32), "float32 of shape (5, 28, 28)"),
    ],
)
def test_inputs_refuse_what_is_not_images(images, found):
    with pytest.raises(ValueError, match=re.escape(f"but got {found}")):
        mnist.inputs(images)


@pytest.mark.parametrize("dtype", ["int32", np.uint8, bool, "complex64"])
def test_inputs_refuse_types_that_are_not_float(dtype):
    with pytest.raises(ValueError, match="dtype must be a float type"):
        mnist.inputs(mnist.load().test_images[:1], dtype)


# shards


@pytest.mark.parametrize("n", [1, 2, 7, 10_000])
def test_shards_are_the_training_set_each_image_once_in_equal_parts(n):
    data = mnist.load()
    shards = mnist.shards(n)
    assert len(shards) == n
    sizes = [len(x) for x, _ in shards]
    assert max(sizes) - min(sizes) <= 1 and sizes == sorted(sizes, reverse=True)
    np.testing.assert_array_equal(np.concatenate([x for x, _ in shards]), data.train_images)
    np.testing.assert_array_equal(np.concatenate([y for _, y in shards]), data.train_labels)


# batches

X = np.arange(10) * 10
Y = np.arange(10)


def rows(*args, **kwargs):
    return [y.tolist() for _, y in mnist.batches(X, Y, *args, **kwargs)]


def test_one_pass_has_every_example_at_most_once_and_drops_the_rest():
    found = rows(3)
    assert [len(batch) for batch in found] == [3, 3, 3]
    flat = sum(found, [])
    assert len(set(flat)) == 9 and flat != sorted(flat)


def test_rows_of_x_and_y_stay_together():
    for x, y in mnist.batches(X, Y, 3, steps=20):
        np.testing.assert_array_equal(x, y * 10)


def test_passes_have_new_orders_and_each_is_a_whole_pass():
    found = rows(5, steps=6)
    assert len(found) == 6
    passes = [found[i] + found[i + 1] for i in (0, 2, 4)]
    assert all(sorted(one) == Y.tolist() for one in passes)
    assert passes[0] != passes[1] != passes[2]


def test_same_seed_same_batches_other_seed_other_batches():
    assert rows(3, seed=7, steps=9) == rows(3, seed=7, steps=9)
    assert rows(3, seed=7, steps=9) != rows(3, seed=8, steps=9)
    assert rows(3) == rows(3, seed=42)


def test_batches_are_the_same_on_every_machine_and_numpy():
    assert rows(4, seed=42) == [[8, 1, 5, 0], [7, 2, 9, 4]]


def test_batches_leave_the_global_random_state_alone():
    before = np.random.get_state()[1].copy()
    rows(3)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_steps_cut_a_pass_short_and_may_be_more_than_needed():
    assert rows(3, steps=2) == rows(3)[:2]
    endless = mnist.batches(X, Y, 3, steps=10**12)
    assert next(endless)[1].tolist() == rows(3)[0]


def test_batches_are_copies_of_any_shape():
    data = mnist.load()
    x, y = next(mnist.batches(data.train_images, data.train_labels, 64))
    assert x.shape == (64, 28, 28) and y.shape == (64,)
    x[:] = 0  # writable: it is the caller's own
    assert data.train_images.any(axis=(1, 2)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mnist.shards(0), "n=0: give a whole number from 1 to 10000"),
        (lambda: mnist.shards("2"), "n='2': give a whole number from 1 to 10000"),
        (lambda: mnist.batches(X, Y, 11), "size=11: give a whole number from 1 to 10"),
        (lambda: mnist.batches(X, Y, 3, steps=0), "steps=0: give a whole number of at least 1"),
        (lambda: mnist.batches(X, Y, 3, seed=-1), "seed=-1: give a whole number from 0 to"),
    ],
)
def test_wrong_numbers_are_refused_at_the_call(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("x, y", [(X, Y[:-1]), (X[:0], Y[:0]), (np.float32(1), Y)])
def test_x_and_y_that_do_not_belong_together_are_refused(x, y):
    with pytest.raises(ValueError, match="one row per example.*shapes"):
        mnist.batches(x, y, 1)
