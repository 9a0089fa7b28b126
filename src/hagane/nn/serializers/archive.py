"""Common parts of readers of snapshots: the keys that are there, and the missing ones."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hagane.errors import HaganeError
from hagane.nn.serializers.serializer import Deserializer


class SnapshotError(HaganeError, KeyError):
    """A snapshot whose keys are not those of the object; all of them are listed."""

    def __str__(self) -> str:
        return str(self.args[0])


class SnapshotSizeError(SnapshotError, ValueError):
    """A snapshot with arrays of other sizes than those of the object; all of them are listed."""


def into(value: Any, data: Any, key: str) -> Any:
    """Return loaded data as a value of the kind that an object holds; arrays are filled in place.

    Raises:
        ValueError: The sizes differ.
    """
    if value is None:
        return data
    if isinstance(value, np.ndarray):
        if value.shape != data.shape:
            raise ValueError(
                f"'{key}': expected an array of shape {value.shape}, the snapshot has {data.shape}"
            )
        if not np.can_cast(data.dtype, value.dtype, "same_kind"):
            raise TypeError(
                f"'{key}': expected {value.dtype}, the snapshot has {data.dtype}, which would lose "
                "more than precision"
            )
        np.copyto(value, data, casting="same_kind")
        return value
    found = np.asarray(data)
    wanted = np.asarray(value).dtype
    whole = found.dtype.kind in "iub" and isinstance(value, int)
    if found.dtype.kind in "iufb" and not whole and not np.can_cast(found.dtype, wanted, "safe"):
        raise TypeError(
            f"'{key}': expected a {type(value).__name__}, the snapshot has {found.dtype}, which "
            "would lose more than precision"
        )
    return type(value)(found.item() if found.ndim == 0 else found)


class Reader(Deserializer):
    """A reader of values by path.

    Args:
        names: The paths there are.
        read: Returns the array of one.
        path: The beginning of paths.
        strict: Whether a missing path is an error.
        ignore_names: Paths, or functions that tell them, that are not read.
    """

    def __init__(
        self,
        names: Iterable[str],
        read: Callable[[str], Any],
        path: str = "",
        strict: bool = True,
        ignore_names: Any = None,
    ):
        self.names = names
        self.read = read
        self.path = path
        self.strict = strict
        self.ignore_names = _as_list(ignore_names)

    def __getitem__(self, key: str) -> Reader:
        """Return the reader of a part."""
        part = copy.copy(self)
        part.path = f"{self.path}{key.strip('/')}/"
        return part

    def __call__(self, key: str, value: Any) -> Any:
        """Return the value of a path, in the array that there is.

        Raises:
            KeyError: The path is missing.
        """
        key = self.path + key.lstrip("/")
        if self.ignores(key):
            return value
        if key not in self.names:
            if self.strict:
                raise KeyError(f"'{key}' is not in the snapshot")
            return value
        data = self.read(key)
        return None if _is_none(data) else into(value, data, key)

    def ignores(self, key: str) -> bool:
        """Return whether a path is one that is not read."""
        return any(key == one if isinstance(one, str) else one(key) for one in self.ignore_names)


def _as_list(names: Any) -> list[Any]:
    if names is None:
        return []
    found = list(names) if isinstance(names, list | tuple) else [names]
    for one in found:
        if not (isinstance(one, str) or callable(one)):
            raise ValueError(
                f"ignore_names needs to be a callable, string or list of them, got {one!r}"
            )
    return found


def _is_none(data: Any) -> bool:
    return data is None or (
        isinstance(data, np.ndarray) and data.dtype == object and data.item() is None
    )


class _Noting(Deserializer):
    """Notes the paths that an object asks for with its values, and loads nothing."""

    def __init__(self, values: dict[str, Any], path: str = ""):
        self.values = values
        self.path = path

    def __getitem__(self, key: str) -> _Noting:
        return _Noting(self.values, f"{self.path}{key.strip('/')}/")

    def __call__(self, key: str, value: Any) -> Any:
        self.values[self.path + key.lstrip("/")] = value
        return value


def difference(
    obj: Any,
    names: Iterable[str],
    path: str,
    *,
    shape: Callable[[str], tuple[int, ...] | None] | None = None,
    exact: bool = False,
    ignored: Callable[[str], bool] = lambda name: False,
    strict: bool = True,
) -> str | None:
    """Return how the paths of an object and a snapshot differ, None where they do not.

    Args:
        obj: The object.
        names: The paths of the snapshot.
        path: The part of the snapshot that is the object's.
        shape: Returns the sizes of an array of the snapshot; sizes are not compared without it.
        exact: Whether paths that the object lacks are a difference where none is missing.
        ignored: Whether a path does not count.
        strict: Whether paths count; else sizes only.
    """
    wanted: dict[str, Any] = {}
    obj.serialize(_Noting(wanted, path))
    here = {name for name in wanted if not ignored(name)}
    there = {name for name in names if name.startswith(path) and not ignored(name)}
    sizes = []
    for name in sorted(here & there):
        value, found = wanted[name], None if shape is None else shape(name)
        if isinstance(value, np.ndarray) and found is not None and found != value.shape:
            sizes.append(f"  {name}: expected shape {value.shape}, the snapshot has {found}")
    missing, extra = sorted(here - there), sorted(there - here)
    # Alone, paths too much are no difference: a part of a model loads from the snapshot of all.
    if not (missing or sizes or exact):
        extra = []
    if not strict:
        missing = extra = []
    lines = [f"  missing in the snapshot: {name}" for name in missing]
    lines += [f"  not in the object: {name}" for name in extra]
    if not lines and not sizes:
        return None
    remedy = ["strict=False loads what is there"] if missing or (exact and extra) else []
    return "\n".join(["the snapshot is not one of this object:", *lines, *sizes, *remedy])
