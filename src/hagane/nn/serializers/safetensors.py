"""Snapshots as safetensors files: arrays by path, and nothing that runs when it is read."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument, MissingExtra
from hagane.machine.whole_files import written_whole
from hagane.nn.serializers.archive import Reader, SnapshotError, difference
from hagane.nn.serializers.npz import serialize

# The format holds arrays of numbers only. Names of values that are None, and texts, are metadata.
_NONE, _TEXTS = "hagane.none", "hagane.texts"


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra("a safetensors file", "chainer") from None


def save_safetensors(file: Any, obj: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Save an object.

    Args:
        file: A path or an open file.
        obj: A link, an optimizer, or another object that serializes numbers, arrays of them,
            texts and None.
        metadata: Texts that the file carries beside the values.

    Raises:
        InvalidArgument: Values are of a kind that the format lacks; all of them are listed.
    """
    library = _library("safetensors.numpy")
    arrays: dict[str, Any] = {}
    texts: dict[str, str] = {}
    nothing: list[str] = []
    wrong: list[str] = []
    for name, value in serialize(obj).items():
        if value.dtype == object and value.shape == () and value.item() is None:
            nothing.append(name)
        elif value.dtype.kind == "U" and value.shape == ():
            texts[name] = value.item()
        elif value.dtype.kind in "OUSMmcV" and value.dtype.name != "bfloat16":
            wrong.append(f"  {name}: {value.dtype}{list(value.shape)}")
        else:
            arrays[name] = np.array(value, order="C", copy=None)
    if wrong:
        raise InvalidArgument(
            "safetensors files hold arrays of numbers; use save_npz for an object with\n"
            + "\n".join(wrong)
        )
    notes = dict(metadata or {})
    if nothing:
        notes[_NONE] = json.dumps(nothing)
    if texts:
        notes[_TEXTS] = json.dumps(texts)
    if hasattr(file, "write"):
        file.write(library.save(arrays, notes or None))
    else:
        with written_whole(file) as path:
            library.save_file(arrays, path, notes or None)


class _Opened(Mapping[str, Any]):
    """The values of a file by path; arrays are read when they are asked for."""

    def __init__(self, opened: Any):
        self._opened = opened
        self._arrays = set(opened.keys())
        notes = opened.metadata() or {}
        self._texts: dict[str, Any] = dict.fromkeys(json.loads(notes.get(_NONE, "[]")))
        self._texts.update(json.loads(notes.get(_TEXTS, "{}")))

    def __getitem__(self, name: str) -> Any:
        if name in self._arrays:
            return self._opened.get_tensor(name)
        text = self._texts[name]
        return None if text is None else np.asarray(text)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays or name in self._texts

    def __iter__(self) -> Iterator[str]:
        yield from sorted(self._arrays | self._texts.keys())

    def __len__(self) -> int:
        return len(self._arrays) + len(self._texts)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the sizes of an array, without reading it; None of other values."""
        if name not in self._arrays:
            return None
        return tuple(self._opened.get_slice(name).get_shape())


def load_safetensors(
    file: Any, obj: Any, path: str = "", strict: bool = True, ignore_names: Any = None
) -> None:
    """Load an object.

    Args:
        file: A path.
        obj: A link, an optimizer, … whose values are replaced; its arrays are filled in place.
        path: The part of the file that is loaded.
        strict: Whether values that are missing, or too much, are an error.
        ignore_names: Paths, or functions that tell them, that are not loaded.

    Raises:
        SnapshotError: Values are missing, too much, or of other sizes; all of them are listed, and
            the object is as it was.
        InvalidArgument: It is no safetensors file.
    """
    library = _library("safetensors")
    try:
        opened = library.safe_open(file, framework="numpy")
    except library.SafetensorError as error:
        raise InvalidArgument(f"{file}: expected a safetensors file: {error}") from error
    with opened as source:
        values = _Opened(source)
        reader = Reader(values, values.__getitem__, path, strict, ignore_names)
        text = difference(
            obj, values, path, shape=values.shape, exact=True, ignored=reader.ignores, strict=strict
        )
        if text is not None:
            raise SnapshotError(text)
        reader.load(obj)
