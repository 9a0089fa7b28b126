"""Observations of a rollout on disk, so that any step can be explained later.

``observations.bin`` holds records, ``observations.idx`` their offsets as 64-bit little-endian
integers. A record is compressed: one line of JSON that names each array's place, dtype and shape,
then their bytes. Nothing is pickled, so that a log of somebody else's cannot run anything.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from hagane.tools.rl.errors import InvalidLog
from hagane.tools.rl.logs.folder import open_regular

_DATA, _INDEX = "observations.bin", "observations.idx"
_MOST = 1 << 28


class ObservationWriter:
    """Appends observations: arrays, numbers, or dicts and tuples of them."""

    def __init__(self, folder: Path):
        self._data = (folder / _DATA).open("ab")
        self._index = (folder / _INDEX).open("ab")

    def append(self, observation: Any) -> None:
        """Write one observation; raises InvalidLog for one that is not of numbers."""
        record = _packed(observation)
        self._index.write(self._data.tell().to_bytes(8, "little"))
        self._data.write(record)
        self._data.flush()
        self._index.flush()

    def __enter__(self) -> ObservationWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close both files."""
        self._data.close()
        self._index.close()


def count_observations(folder: Path) -> int:
    """Return how many observations a rollout's folder holds."""
    path = folder / _INDEX
    if path.is_symlink() or not path.is_file():
        return 0
    return path.stat().st_size // 8


def read_observation(folder: Path, step: int) -> Any:
    """Return the observation that the agent saw at a step, counted from 0.

    Raises:
        InvalidLog: there is none, or its record is damaged.
    """
    count = count_observations(folder)
    if not 0 <= step < count:
        raise InvalidLog(
            f"{folder.name}: step {step}: no observation was kept; there are {count} of them"
            + ("" if count else " (logs of ChainerRL Visualizer have none)")
        )
    start, end = _span(folder, step)
    with os.fdopen(open_regular(folder / _DATA), "rb") as file:
        file.seek(start)
        raw = file.read(-1 if end is None else max(0, end - start))
    try:
        return _unpacked(raw)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise InvalidLog(f"{folder.name}: step {step}: damaged observation: {error}") from None


def _span(folder: Path, step: int) -> tuple[int, int | None]:
    with os.fdopen(open_regular(folder / _INDEX), "rb") as file:
        file.seek(8 * step)
        raw = file.read(16)
    start = int.from_bytes(raw[:8], "little")
    return start, int.from_bytes(raw[8:16], "little") if len(raw) == 16 else None


def _packed(observation: Any) -> bytes:
    places: list[Any] = []
    arrays: list[np.ndarray[Any, Any]] = []
    _flatten(observation, [], places, arrays)
    header = json.dumps(places).encode() + b"\n"
    return zlib.compress(header + b"".join(np.ascontiguousarray(a).tobytes() for a in arrays), 1)


def _flatten(value: Any, way: list[Any], places: list[Any], arrays: list[Any]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(item, [*way, str(key)], places, arrays)
        return
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            _flatten(item, [*way, index], places, arrays)
        return
    array = np.asarray(value)
    if array.dtype.kind == "U":
        array = np.frombuffer(str(value).encode(), np.uint8)
    if array.dtype.kind not in "biuf":
        raise InvalidLog(f"observation: expected numbers, got {type(value).__name__}")
    places.append([way, array.dtype.str, list(array.shape)])
    arrays.append(array)


def _unpacked(raw: bytes) -> Any:
    opened = zlib.decompressobj().decompress(raw, _MOST)
    line, _, rest = opened.partition(b"\n")
    found: Any = None
    offset = 0
    for way, code, shape in json.loads(line):
        kind = np.dtype(code)
        if kind.kind not in "biuf":
            raise ValueError(f"dtype {code!r}")
        size = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(rest, kind, size, offset).reshape(shape)
        offset += array.nbytes
        if not way:
            return array
        found = {} if found is None else found
        inner = found
        for key in way[:-1]:
            inner = inner.setdefault(key, {})
        inner[way[-1]] = array
    return _tuples(found)


def _tuples(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = {key: _tuples(item) for key, item in value.items()}
    if items and all(isinstance(key, int) for key in items):
        return tuple(items[key] for key in sorted(items))
    return items
