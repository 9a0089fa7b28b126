"""Snapshots as NumPy's npz files, in Chainer's layout."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.machine.whole_files import written_whole
from hagane.nn.serializers.archive import (
    Reader,
    SnapshotError,
    SnapshotSizeError,
    difference,
)
from hagane.nn.serializers.serializer import Serializer


class DictionarySerializer(Serializer):
    """Writes values into a dictionary by path.

    Args:
        target: The dictionary, a new one if None.
        path: The beginning of paths.
    """

    def __init__(self, target: dict[str, Any] | None = None, path: str = ""):
        self.target = {} if target is None else target
        self.path = path

    def __getitem__(self, key: str) -> DictionarySerializer:
        """Return the serializer of a part."""
        return DictionarySerializer(self.target, f"{self.path}{key.strip('/')}/")

    def __call__(self, key: str, value: Any) -> Any:
        """Write a value."""
        self.target[self.path + key.lstrip("/")] = np.asarray(value)
        return value


def serialize(obj: Any) -> dict[str, Any]:
    """Return the values of an object by path."""
    serializer = DictionarySerializer()
    serializer.save(obj)
    return serializer.target


def save_npz(file: Any, obj: Any, compression: bool = True) -> None:
    """Save an object.

    Args:
        file: A path or an open file.
        obj: A link, an optimizer, a trainer, …
        compression: Whether the arrays are compressed.
    """
    write = np.savez_compressed if compression else np.savez
    if hasattr(file, "write"):
        write(file, **serialize(obj))
        return
    with written_whole(file) as path, open(path, "wb") as opened:
        write(opened, **serialize(obj))


class NpzDeserializer(Reader):
    """Reads values from an npz file that is open.

    Args:
        npz: The open file, or a dictionary.
        path: The beginning of paths.
        strict: Whether a missing path is an error.
        ignore_names: Paths, or functions that tell them, that are not read.
    """

    def __init__(self, npz: Any, path: str = "", strict: bool = True, ignore_names: Any = None):
        super().__init__(npz, npz.__getitem__, path, strict, ignore_names)
        self.npz = npz


class _Guarded(Mapping[str, Any]):
    """An npz file; pickled arrays are not read unless that is allowed."""

    def __init__(self, npz: Any, allow_pickle: bool):
        self._npz = npz
        self._allow = allow_pickle

    def __getitem__(self, key: str) -> Any:
        try:
            return self._npz[key]
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
        if self._holds_none(key):
            return None
        raise InvalidArgument(
            f"'{key}' is pickled, and unpickling runs code of the file: "
            "pass allow_pickle=True if you trust it"
        )

    def _holds_none(self, key: str) -> bool:
        """Return whether an entry is None, which stands for a parameter without an array."""
        with self._entry(key) as opened:
            if _shape_in(opened) != ():
                return False
            try:
                found = _OfArrays(io.BytesIO(opened.read())).load()
            except pickle.UnpicklingError:
                return False
        return isinstance(found, np.ndarray) and found.item() is None

    def shape(self, key: str) -> tuple[int, ...] | None:
        """Return the sizes of an array, without reading it."""
        with self._entry(key) as opened:
            return _shape_in(opened)

    def _entry(self, key: str) -> Any:
        name = key if key in self._npz.zip.namelist() else f"{key}.npy"
        return self._npz.zip.open(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._npz.files)

    def __len__(self) -> int:
        return len(self._npz.files)

    def __contains__(self, key: object) -> bool:
        return key in self._npz


def _shape_in(opened: Any) -> tuple[int, ...]:
    """Return the sizes of the array whose file begins here."""
    version = np.lib.format.read_magic(opened)
    header = np.lib.format
    read = header.read_array_header_1_0 if version == (1, 0) else header.read_array_header_2_0
    shape: tuple[int, ...] = read(opened)[0]
    return shape


class _OfArrays(pickle.Unpickler):
    """Unpickles arrays of plain objects, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        known = {
            "_reconstruct": np.empty(0).__reduce__()[0],
            "ndarray": np.ndarray,
            "dtype": np.dtype,
        }
        if module.partition(".")[0] == "numpy" and name in known:
            return known[name]
        raise pickle.UnpicklingError(f"{module}.{name} is not part of an array")


def load_npz(
    file: Any,
    obj: Any,
    path: str = "",
    strict: bool = True,
    ignore_names: Any = None,
    *,
    allow_pickle: bool = False,
) -> None:
    """Load an object.

    Args:
        file: A path or an open file.
        obj: A link, an optimizer, a trainer, … whose values are replaced.
        path: The part of the file that is loaded.
        strict: Whether a missing value is an error.
        ignore_names: Paths, or functions that tell them, that are not loaded.
        allow_pickle: Whether values that were pickled are read, which runs code of the file.

    Raises:
        SnapshotError: Values are missing; all of them are listed, and surplus ones.
        SnapshotSizeError: Arrays have other sizes; all of these are listed too.
        InvalidArgument: A value is pickled, or the file is no whole npz file.
    """
    with _opened(file, allow_pickle) as opened:
        npz = _Guarded(opened, allow_pickle)
        reader = NpzDeserializer(npz, path, strict, ignore_names)
        try:
            reader.load(obj)
        except KeyError as error:
            text = difference(obj, npz, reader.path, shape=npz.shape, ignored=reader.ignores)
            raise SnapshotError(text or str(error.args[0])) from None
        except InvalidArgument:
            raise
        except ValueError as error:
            text = difference(
                obj, npz, reader.path, shape=npz.shape, ignored=reader.ignores, strict=strict
            )
            if text is None:
                raise
            raise SnapshotSizeError(text) from error


@contextmanager
def _opened(file: Any, allow_pickle: bool) -> Iterator[Any]:
    """Open an npz file.

    Raises:
        InvalidArgument: It is none, or was cut short.
    """
    if not hasattr(file, "read"):  # NumPy leaves files open that are no archives
        with open(file, "rb") as opened, _opened(opened, allow_pickle) as found:
            yield found
        return
    try:
        opened = np.load(file, allow_pickle=allow_pickle)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array")
    except (ValueError, EOFError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        name = getattr(file, "name", file)
        reason = "" if "pickle" in str(error) else f": {error}"
        raise InvalidArgument(
            f"{name}: expected a whole npz file, such as save_npz writes{reason}"
        ) from error
    with opened:
        yield opened
