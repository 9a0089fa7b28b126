"""Snapshots as HDF5 files, in Chainer's layout."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument, MissingExtra
from hagane.machine.whole_files import written_whole
from hagane.nn.serializers.archive import SnapshotError, SnapshotSizeError, difference, into
from hagane.nn.serializers.serializer import Deserializer, Serializer


def _h5py() -> Any:
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise MissingExtra("an HDF5 file", "chainer") from None


class HDF5Serializer(Serializer):
    """Writes values into a group.

    Args:
        group: The group of an open file.
        compression: How arrays are compressed: a level of gzip, or another of h5py's.
    """

    def __init__(self, group: Any, compression: Any = 4):
        _h5py()
        self.group = group
        self.compression = compression

    def __getitem__(self, key: str) -> HDF5Serializer:
        """Return the serializer of a part."""
        return HDF5Serializer(self.group.require_group(key.strip("/")), self.compression)

    def __call__(self, key: str, value: Any) -> Any:
        """Write a value; None is an empty entry."""
        key = key.lstrip("/")
        if value is None:
            # Chainer tells None from an array of no elements by this.
            self.group.create_dataset(key, data=_h5py().Empty("f"))
            return value
        array = np.asarray(value)
        if array.dtype.char == "U":
            # HDF5 has no text of four bytes a character.
            array = np.asarray(array, dtype=object)
            self.group.create_dataset(key, data=array, dtype=_h5py().string_dtype())
            return value
        if array.size <= 1:
            self.group.create_dataset(key, data=array)
        else:
            self.group.create_dataset(key, data=array, compression=self.compression)
        return value


class HDF5Deserializer(Deserializer):
    """Reads values from a group.

    Args:
        group: The group of an open file.
        strict: Whether a missing value is an error.
    """

    def __init__(self, group: Any, strict: bool = True):
        _h5py()
        self.group = group
        self.strict = strict

    def __getitem__(self, key: str) -> HDF5Deserializer:
        """Return the reader of a part."""
        key = key.strip("/")
        if not self.strict and key not in self.group:
            return _Nothing()
        return HDF5Deserializer(self.group[key], self.strict)

    def __call__(self, key: str, value: Any) -> Any:
        """Return a value, in the array that there is.

        Raises:
            KeyError: It is missing.
        """
        key = key.lstrip("/")
        if not self.strict and key not in self.group:
            return value
        data = self.group[key]
        if data.shape is None:
            return None
        found = data.asstr()[()] if _h5py().check_string_dtype(data.dtype) else data[()]
        return into(value, found if isinstance(found, str) else np.asarray(found), key)


class _Nothing(HDF5Deserializer):
    """Reads a part that is not there."""

    def __init__(self) -> None:
        self.group = {}
        self.strict = False

    def __getitem__(self, key: str) -> HDF5Deserializer:
        return self


def save_hdf5(filename: Any, obj: Any, compression: Any = 4) -> None:
    """Save an object.

    Args:
        filename: A path.
        obj: A link, an optimizer, a trainer, …
        compression: How arrays are compressed.
    """
    library = _h5py()
    with written_whole(filename) as path, library.File(path, "w") as file:
        file.attrs["version"] = 1
        HDF5Serializer(file, compression=compression).save(obj)


def load_hdf5(filename: Any, obj: Any) -> None:
    """Load an object.

    Args:
        filename: A path.
        obj: A link, an optimizer, a trainer, … whose values are replaced.

    Raises:
        SnapshotError: Values are missing; all of them are listed.
        SnapshotSizeError: Arrays have other sizes; all of these are listed too.
        InvalidArgument: The file is no whole HDF5 file.
    """
    h5py = _h5py()
    try:
        opened = h5py.File(filename, "r")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidArgument(f"{filename}: expected a whole HDF5 file: {error}") from error
    with opened as file:
        names: list[str] = []
        file.visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
        )

        def sizes(name: str) -> Any:
            return file[name].shape

        try:
            HDF5Deserializer(file).load(obj)
        except KeyError as error:
            raise SnapshotError(difference(obj, names, "", shape=sizes) or str(error)) from None
        except ValueError as error:
            text = difference(obj, names, "", shape=sizes)
            if text is None:
                raise
            raise SnapshotSizeError(text) from error
