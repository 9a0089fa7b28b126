"""Published datasets, from small files of their layouts."""

from __future__ import annotations

import gzip
import inspect
import io
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane.datasets
import hagane.iterators
from hagane.training.datasets import root
from hagane.training.errors import DatasetError, NotProvided

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (5, 784), np.uint8)
LABELS = np.arange(5, dtype=np.uint8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CHAINER_DATASET_ROOT", str(tmp_path))
    monkeypatch.setattr(root, "_chosen", None)

    def make(name: str) -> Path:
        return Path(root.get_dataset_directory(f"pfnet/chainer/{name}"))

    return make


def idx(array: Any) -> bytes:
    head = struct.pack(f">{1 + array.ndim}i", 0x800 + array.ndim, *array.shape)
    return gzip.compress(head + array.tobytes())


def test_the_names_of_chainer_are_there() -> None:
    assert set(hagane.datasets.__all__) >= {
        *["ConcatenatedDataset", "DictDataset", "ImageDataset", "LabeledImageDataset"],
        *["LabeledZippedImageDataset", "MultiZippedImageDataset", "PickleDataset", "SubDataset"],
        *["TextDataset", "TransformDataset", "TupleDataset", "ZippedImageDataset"],
    }
    assert {*hagane.iterators.__all__} >= {"MultiprocessIterator", "MultithreadIterator"}
    arguments = inspect.signature(hagane.datasets.get_mnist).parameters
    assert list(arguments) == ["withlabel", "ndim", "scale", "dtype", "label_dtype", "rgb_format"]
    with pytest.raises(NotProvided, match=r"DaliIterator: .* got object: .* need a GPU"):
        hagane.iterators.DaliIterator(object())
    with pytest.raises(NotImplementedError):
        hagane.iterators.DaliIterator(object(), repeat=False)


@pytest.mark.parametrize(
    ("get", "name"),
    [
        (hagane.datasets.get_mnist, "mnist"),
        (hagane.datasets.get_fashion_mnist, "fashion-mnist"),
        (hagane.datasets.get_kuzushiji_mnist, "kuzushiji_mnist"),
    ],
)
@pytest.mark.parametrize("kept", ["npz", "idx"])
def test_digits_come_from_either_file(get: Any, name: str, kept: str, folder: Any) -> None:
    for part, prefix in (("train", "train"), ("test", "t10k")):
        if kept == "npz":
            np.savez(folder(name) / f"{part}.npz", x=PICTURES, y=LABELS)
        else:
            path = folder(name) / f"{prefix}-images-idx3-ubyte.gz"
            path.write_bytes(idx(PICTURES.reshape(5, 28, 28)))
            (folder(name) / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(idx(LABELS))
    train, test = get()
    assert len(train) == len(test) == 5
    picture, label = train[3]
    assert (picture.shape, picture.dtype, label, label.dtype) == ((784,), np.float32, 3, np.int32)
    np.testing.assert_allclose(picture, PICTURES[3] / 255.0, rtol=1e-6)
    wide, _ = get(withlabel=False, ndim=3, scale=255.0, dtype=np.float64, rgb_format=True)
    assert wide.shape == (5, 3, 28, 28)
    np.testing.assert_array_equal(wide[2, 1].reshape(-1), PICTURES[2])
    assert get(ndim=2)[1][0][0].shape == (28, 28)


def test_what_is_not_there_or_damaged_is_named(folder: Any) -> None:
    with pytest.raises(
        DatasetError, match=r"no train.npz or train-images-idx3-ubyte.gz in .*mnist"
    ):
        hagane.datasets.get_mnist()
    with pytest.raises(DatasetError, match="ndim: expected 1, 2 or 3, got 4"):
        hagane.datasets.get_mnist(ndim=4)
    with pytest.raises(DatasetError, match="ndim: expected 1 or 3, got 2"):
        hagane.datasets.get_cifar10(ndim=2)
    images = folder("mnist") / "train-images-idx3-ubyte.gz"
    images.write_bytes(idx(PICTURES))
    with pytest.raises(DatasetError, match="no train-labels-idx1-ubyte.gz in"):
        hagane.datasets.get_mnist()
    (folder("mnist") / "train-labels-idx1-ubyte.gz").write_bytes(idx(LABELS))
    with pytest.raises(DatasetError, match="no IDX file of 3 dimensions .* magic number is 0x802"):
        hagane.datasets.get_mnist()
    images.write_bytes(idx(PICTURES.reshape(5, 28, 28))[:40])
    with pytest.raises(DatasetError, match="no IDX file of 3 dimensions"):
        hagane.datasets.get_mnist()
    np.savez(folder("mnist") / "train.npz", x=PICTURES, y=LABELS[:3])
    with pytest.raises(DatasetError, match="as many labels as pictures, got 3 for 5"):
        hagane.datasets.get_mnist()
    np.savez(folder("mnist") / "train.npz", x=PICTURES)
    with pytest.raises(DatasetError, match="expected an .npz file with x, y"):
        hagane.datasets.get_mnist()
    (folder("cifar") / "cifar-10-binary.tar.gz").write_bytes(b"no archive")
    with pytest.raises(DatasetError, match="is not cifar-10's binary version"):
        hagane.datasets.get_cifar10()


@pytest.mark.parametrize(("name", "labels"), [("cifar-10", 1), ("cifar-100", 2)])
def test_pictures_of_cifar_come_from_either_file(name: str, labels: int, folder: Any) -> None:
    get: Any = getattr(hagane.datasets, "get_" + name.replace("-", ""))
    rows = RANDOM.integers(0, 256, (6, labels + 3072), np.uint8)
    rows[:, labels - 1] = np.arange(6)
    with tarfile.open(folder("cifar") / f"{name}-binary.tar.gz", "w:gz") as archive:
        for member, part in (("data_1.bin", rows[:4]), ("test.bin", rows[4:]), ("x.txt", rows)):
            info = tarfile.TarInfo(f"{name}/{member}")
            info.size = part.nbytes
            archive.addfile(info, io.BytesIO(part.tobytes()))
    train, test = get()
    assert (len(train), len(test)) == (4, 2)
    picture, label = test[1]
    assert picture.shape == (3, 32, 32)
    assert label == 5
    np.testing.assert_allclose(picture.reshape(-1), rows[5, labels:] / 255.0, rtol=1e-6)
    kept = {"train_x": rows[:4, labels:], "train_y": LABELS[:4]}
    kept |= {"test_x": rows[4:, labels:], "test_y": LABELS[:2]}
    np.savez(folder("cifar") / f"{name}.npz", **kept)
    flat, _ = get(withlabel=False, ndim=1)
    np.testing.assert_allclose(flat, rows[:4, labels:] / 255.0, rtol=1e-6)


def test_house_numbers_come_from_either_file(folder: Any) -> None:
    images = RANDOM.integers(0, 256, (32, 32, 3, 4), np.uint8)
    labels = np.array([[10], [1], [2], [9]], np.uint8)
    for part in ("train", "test"):
        np.savez(folder("svhn") / f"{part}.npz", x=images, y=labels)
    train, _ = hagane.datasets.get_svhn()
    assert [int(label) for _, label in train[:]] == [0, 1, 2, 9]
    np.testing.assert_allclose(train[2][0][1], images[:, :, 1, 2] / 255.0, rtol=1e-6)
    with pytest.raises(DatasetError, match=r"no extra.npz or extra_32x32.mat"):
        hagane.datasets.get_svhn(add_extra=True)
    scipy = pytest.importorskip("scipy.io", reason="SciPy is not installed")
    scipy.savemat(folder("svhn") / "extra_32x32.mat", {"X": images, "y": labels})
    *_, extra = hagane.datasets.get_svhn(add_extra=True, withlabel=False)
    np.testing.assert_array_equal(extra, hagane.datasets.get_svhn(withlabel=False)[0])


def test_words_are_numbered_in_order_of_their_first_use(folder: Any) -> None:
    for part, text in (("train", " a b a \n c\n"), ("valid", "b c\n"), ("test", "a\n")):
        (folder("ptb") / f"ptb.{part}.txt").write_text(text)
    vocabulary = hagane.datasets.get_ptb_words_vocabulary()
    assert vocabulary == {"a": 0, "b": 1, "<eos>": 2, "c": 3}
    train, valid, test = hagane.datasets.get_ptb_words()
    assert train.tolist() == [0, 1, 0, 2, 3, 2]
    assert (valid.tolist(), test.tolist()) == ([1, 3, 2], [0, 2])
    assert test.dtype == np.int32
    np.savez(folder("ptb") / "test.npz", x=np.array([7, 8]))
    assert hagane.datasets.get_ptb_words()[2].tolist() == [7, 8]
    (folder("ptb") / "ptb.valid.txt").write_text("d\n")
    with pytest.raises(DatasetError, match="the word 'd' is not among the training words"):
        hagane.datasets.get_ptb_words()
    (folder("ptb") / "vocab.txt").write_text("x\ny\n")
    assert hagane.datasets.get_ptb_words_vocabulary() == {"x": 0, "y": 1}


def test_the_root_is_what_was_set_or_the_environments_or_chainers(tmp_path: Path) -> None:
    assert root.get_dataset_root() == str(tmp_path)
    assert root.get_dataset_root({}) == str(Path.home() / ".chainer" / "dataset")
    root.set_dataset_root(tmp_path / "other")
    assert root.get_dataset_root() == str(tmp_path / "other")


def test_pictures_have_the_configured_element_type(folder: Any) -> None:
    path = folder("mnist") / "train.npz"
    for part in ("train", "test"):
        np.savez(path.with_name(f"{part}.npz"), x=PICTURES, y=LABELS)
    with hagane.using_config("dtype", np.float64):
        train, _ = hagane.datasets.get_mnist()
        assert train[0][0].dtype == np.float64
        assert hagane.datasets.ImageDataset(["a.png"])._dtype == np.float64
        named, _ = hagane.datasets.get_mnist(dtype=np.float16)
        assert named[0][0].dtype == np.float16
    with hagane.using_config("dtype", hagane.mixed16):
        assert hagane.datasets.get_mnist()[0][0][0].dtype == np.float16
