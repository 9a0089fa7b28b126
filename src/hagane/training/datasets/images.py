"""Pictures in files, in folders of classes and in zip archives."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.errors import MissingExtra
from hagane.nn.autograd.configuration import get_dtype
from hagane.training.datasets.base import DatasetMixin, PerProcess, existing
from hagane.training.errors import DatasetError, NoSuchData

_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})

Image = npt.NDArray[Any]


def read_image(source: Any, dtype: Any, name: str) -> Image:
    """Return a picture as an array of ``(channels, height, width)``, values as in the file.

    A picture with a palette has the places in it as its one channel, so that masks keep their
    classes.

    Raises:
        DatasetError: It is no readable picture.
        MissingExtra: Pillow is not installed.
    """
    try:
        from PIL import Image as pillow  # noqa: N813
        from PIL import UnidentifiedImageError
    except ImportError:
        raise MissingExtra("reading pictures", "image") from None
    try:
        with pillow.open(source) as image:
            pixels = np.asarray(image, dtype=dtype)
    except FileNotFoundError:
        raise NoSuchData(f"dataset: there is no picture '{name}'") from None
    except (UnidentifiedImageError, OSError) as error:
        raise DatasetError(f"dataset: cannot read the picture '{name}': {error}") from error
    return pixels[np.newaxis] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


class ImageDataset(DatasetMixin):
    """Pictures given by a list of paths, or a file with a path on each line.

    Args:
        paths: The paths, or the file of them.
        root: Folder that relative paths start from.
        dtype: Element type; None is that of ``config.dtype``.
    """

    def __init__(self, paths: Any, root: str | Path = ".", dtype: Any = None):
        if isinstance(paths, str | Path):
            lines = Path(existing(paths)).read_text(encoding="utf-8").splitlines()
            paths = [line.strip() for line in lines if line.strip()]
        self._paths: list[str] = [os.fspath(path) for path in paths]
        self._root = os.fspath(root)
        self._dtype = get_dtype(dtype)

    def __len__(self) -> int:
        return len(self._paths)

    def get_example(self, i: int) -> Image:
        """Return a picture of ``(channels, height, width)``."""
        path = os.path.join(self._root, self._paths[i])
        return read_image(path, self._dtype, path)


class LabeledImageDataset(DatasetMixin):
    """Pictures with labels, given by pairs, or by a file with a path and a label on each line.

    Args:
        pairs: Pairs of path and label, or the file of them.
        root: Folder that relative paths start from.
        dtype: Element type of pictures; None is that of ``config.dtype``.
        label_dtype: Type of labels.

    Raises:
        DatasetError: A line is not a path and a label; it is named by file and number.
    """

    def __init__(
        self,
        pairs: Any,
        root: str | Path = ".",
        dtype: Any = None,
        label_dtype: Any = np.int32,
    ):
        kind = np.dtype(label_dtype)
        if isinstance(pairs, str | Path):
            pairs = _read_pairs(Path(existing(pairs)), kind)
        self._paths: list[str] = [os.fspath(path) for path, _ in pairs]
        self._labels = np.asarray([label for _, label in pairs], dtype=kind)
        self._root = os.fspath(root)
        self._dtype = get_dtype(dtype)

    @classmethod
    def from_directory(
        cls, root: str | Path, dtype: Any = None, label_dtype: Any = np.int32
    ) -> LabeledImageDataset:
        """Return the pictures under a folder that has one folder for each class.

        Classes are numbered in the sorted order of their folders' names, kept as ``classes``.

        Raises:
            DatasetError: The folder has no folders, or they have no pictures.
        """
        base = Path(root)
        if not base.is_dir():
            raise DatasetError(f"from_directory: there is no folder '{base}'")
        classes = sorted(entry.name for entry in base.iterdir() if entry.is_dir())
        pairs = [
            (str(path.relative_to(base)), label)
            for label, name in enumerate(classes)
            for path in sorted((base / name).rglob("*"))
            if path.suffix.lower() in _SUFFIXES
        ]
        if not pairs:
            raise DatasetError(
                f"from_directory: expected folders of pictures in '{base}', one for each class, "
                f"got {len(classes)} folders without pictures"
            )
        made = cls(pairs, base, dtype, label_dtype)
        made.classes = tuple(classes)
        return made

    classes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._paths)

    def get_example(self, i: int) -> tuple[Image, Any]:
        """Return a picture of ``(channels, height, width)`` and its label."""
        path = os.path.join(self._root, self._paths[i])
        return read_image(path, self._dtype, path), np.asarray(self._labels[i])


def _read_pairs(path: Path, kind: np.dtype[Any]) -> list[tuple[str, Any]]:
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        try:
            (name, label) = words
            pairs.append((name, kind.type(label)))
        except ValueError:
            raise DatasetError(
                f"{path}:{number}: expected a path and a label of type {kind}, got '{line.strip()}'"
            ) from None
    return pairs


def _open_zip(path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise DatasetError(f"dataset: cannot open the archive '{path}': {error}") from error


class ZippedImageDataset(DatasetMixin):
    """Pictures of a zip archive, in the archive's order.

    Args:
        zipfilename: Path of the archive.
        dtype: Element type; None is that of ``config.dtype``.
    """

    def __init__(self, zipfilename: str | Path, dtype: Any = None):
        self._path = os.fspath(zipfilename)
        self._archive = PerProcess(partial(_open_zip, self._path))
        names = self._archive.get().namelist()
        self._names = [name for name in names if not name.endswith("/")]
        self._dtype = get_dtype(dtype)

    def __len__(self) -> int:
        return len(self._names)

    def get_example(self, i: int | str) -> Image:
        """Return the picture at an index, or of a name."""
        name = i if isinstance(i, str) else self._names[i]
        try:
            data = self._archive.get().read(name)
        except KeyError:
            raise DatasetError(f"dataset: '{self._path}' holds no '{name}'") from None
        return read_image(io.BytesIO(data), self._dtype, f"{self._path}:{name}")


class MultiZippedImageDataset(DatasetMixin):
    """Pictures of several zip archives, one archive after the other."""

    def __init__(self, zipfilenames: Sequence[str | Path], dtype: Any = None):
        self._archives = [ZippedImageDataset(name, dtype) for name in zipfilenames]
        self._places = [
            (number, place)
            for number, archive in enumerate(self._archives)
            for place in range(len(archive))
        ]

    def __len__(self) -> int:
        return len(self._places)

    def get_example(self, i: int) -> Image:
        """Return a picture of ``(channels, height, width)``."""
        number, place = self._places[i]
        return self._archives[number].get_example(place)


class LabeledZippedImageDataset(DatasetMixin):
    """Pictures of a zip archive with labels from a file of names and labels.

    Args:
        zipfilename: Path of the archive.
        labelfilename: File with a name in the archive and a label on each line.
        dtype: Element type of pictures; None is that of ``config.dtype``.
        label_dtype: Type of labels.
    """

    def __init__(
        self,
        zipfilename: str | Path,
        labelfilename: str | Path,
        dtype: Any = None,
        label_dtype: Any = np.int32,
    ):
        self._images = ZippedImageDataset(zipfilename, dtype)
        pairs = _read_pairs(Path(existing(labelfilename)), np.dtype(label_dtype))
        self._pairs = pairs

    def __len__(self) -> int:
        return len(self._pairs)

    def get_example(self, i: int) -> tuple[Image, Any]:
        """Return a picture of ``(channels, height, width)`` and its label."""
        name, label = self._pairs[i]
        return self._images.get_example(name), np.asarray(label)
