"""A log as columns: read once, then only lines appended since.

A log of 100,000 steps has to open within a second, so lines are parsed in one go and become columns
of NumPy; a row is read again from its place in the file when somebody asks for it. A rollout that
is finished leaves its columns beside the log (``columns.npz``), so that nothing is parsed at all.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.machine.collector import collector_at_rest
from hagane.tools.rl.logs.folder import LOG_NAME, open_regular

Floats = npt.NDArray[np.float32]

_SCALARS = ("reward", "state_value", "action_value", "state_norm", "episode")
_VECTORS = ("action_probs", "action_values", "action_means", "action_vars", "action_deterministic")
_EXPECTED = ("step", "reward", "action", "image_path")
_KEPT = "columns.npz"
_MOST_PROBLEMS = 20
_WIDEST = 64


@dataclass(slots=True)
class Log:
    """The columns of one log so far.

    Attributes:
        columns: name (``reward``, ``action_values.0``) to one float32 a step; NaN where missing.
        offsets: of each line in the file, in bytes, and one for the end.
        problems: lines that could not be read and keys that are missing, in words.
    """

    path: Path
    columns: dict[str, Floats] = field(default_factory=dict)
    offsets: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    lengths: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    problems: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    lines: int = 0
    broken: int = 0
    end: int = 0
    inode: tuple[int, int] = (0, 0)

    @property
    def steps(self) -> int:
        """How many readable lines there are."""
        return len(self.offsets)

    def refresh(self) -> None:
        """Read appended lines; a file that was replaced is read anew."""
        try:
            descriptor = open_regular(self.path)
        except LookupError:
            return
        with os.fdopen(descriptor, "rb") as file:
            info = os.fstat(file.fileno())
            if (info.st_dev, info.st_ino) != self.inode or info.st_size < self.end:
                self._forget((info.st_dev, info.st_ino))
            if not self.end:
                self._recall(file)
            if info.st_size == self.end:
                return
            file.seek(self.end)
            raw = file.read()
        whole = raw.rfind(b"\n") + 1
        tail = raw[whole:].strip()
        if tail and _loads(tail) is not None:
            whole = len(raw)
        with collector_at_rest():
            self._take(raw[:whole])

    def keep(self) -> None:
        """Write the columns beside the log, for the next opening."""
        facts = {
            "end": self.end,
            "lines": self.lines,
            "broken": self.broken,
            "problems": self.problems,
            "missing": self.missing,
            "tail": self._tail(),
        }
        arrays: dict[str, Any] = {f"column {key}": item for key, item in self.columns.items()}
        draft = self.path.with_name("columns.draft.npz")
        np.savez(
            draft, facts=json.dumps(facts), offsets=self.offsets, lengths=self.lengths, **arrays
        )
        os.replace(draft, self.path.with_name(_KEPT))

    def _tail(self) -> int:
        with os.fdopen(open_regular(self.path), "rb") as file:
            return _checksum(file, self.end)

    def _recall(self, file: io.BufferedReader) -> None:
        try:
            descriptor = open_regular(self.path.with_name(_KEPT))
        except LookupError:
            return
        with os.fdopen(descriptor, "rb") as kept:
            try:
                with np.load(kept, allow_pickle=False) as arrays:
                    facts = json.loads(str(arrays["facts"]))
                    if facts["tail"] != _checksum(file, int(facts["end"])):
                        return
                    offsets, lengths = arrays["offsets"], arrays["lengths"]
                    columns = {
                        name[7:]: np.asarray(arrays[name], np.float32)
                        for name in arrays.files
                        if name.startswith("column ")
                    }
            except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile):
                return
        shapes = {column.shape for column in (*columns.values(), lengths)}
        if shapes != {offsets.shape} or offsets.ndim != 1:
            return
        self.offsets, self.lengths, self.columns = offsets, lengths, columns
        self.end, self.lines = int(facts["end"]), int(facts["lines"])
        self.broken = int(facts["broken"])
        self.problems, self.missing = list(facts["problems"]), dict(facts["missing"])

    def rows(self, start: int = 0, count: int | None = None) -> list[dict[str, Any]]:
        """Return lines as the log holds them."""
        stop = self.steps if count is None else min(self.steps, start + count)
        start = max(0, start)
        if start >= stop:
            return []
        with os.fdopen(open_regular(self.path), "rb") as file:
            first = int(self.offsets[start])
            last = int(self.offsets[stop - 1] + self.lengths[stop - 1])
            file.seek(first)
            raw = file.read(last - first)
        found = []
        for index in range(start, stop):
            offset = int(self.offsets[index]) - first
            row = _loads(raw[offset : offset + int(self.lengths[index])])
            if row is not None:
                found.append(row)
        return found

    def warnings(self) -> list[str]:
        """Return the faults of the log, in words."""
        words = list(self.problems)
        if self.broken > len(self.problems):
            words.append(f"{self.broken - len(self.problems)} more lines could not be read")
        for key, times in self.missing.items():
            words.append(f"key {key!r} is missing in {times} of {self.steps} steps")
        return words

    def updated(self) -> str | None:
        """Return when the file last changed, in RFC 3339, None if there is none."""
        try:
            seconds = self.path.stat().st_mtime
        except OSError:
            return None
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _forget(self, inode: tuple[int, int]) -> None:
        self.columns, self.problems, self.missing = {}, [], {}
        self.offsets, self.lengths = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.lines = self.broken = self.end = 0
        self.inode = inode

    def _take(self, raw: bytes) -> None:
        lines = raw.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        sizes = np.fromiter((len(line) for line in lines), np.int64, len(lines))
        starts = self.end + np.concatenate(([0], np.cumsum(sizes + 1)[:-1])) if lines else sizes
        rows, kept = self._parsed(lines)
        self.end += len(raw)
        self.lines += len(lines)
        before = self.steps
        self.offsets = np.concatenate((self.offsets, starts[kept]))
        self.lengths = np.concatenate((self.lengths, sizes[kept]))
        fresh = _columns(rows)
        for name in (*self.columns, *(name for name in fresh if name not in self.columns)):
            old = self.columns.get(name)
            old = old if old is not None else np.full(before, np.nan, np.float32)
            new = fresh.get(name)
            new = new if new is not None else np.full(len(rows), np.nan, np.float32)
            self.columns[name] = np.concatenate((old, new))
        for key in _EXPECTED:
            absent = sum(key not in row for row in rows)
            if absent:
                self.missing[key] = self.missing.get(key, 0) + absent

    def _parsed(self, lines: Sequence[bytes]) -> tuple[list[dict[str, Any]], npt.NDArray[np.int64]]:
        try:
            rows = json.loads(b"[" + b",".join(lines) + b"]")
            if len(rows) == len(lines) and all(type(row) is dict for row in rows):
                return rows, np.arange(len(rows))
        except ValueError:
            pass
        except RecursionError:
            pass
        rows, kept = [], []
        for index, line in enumerate(lines):
            if not line.strip():
                continue
            row = _loads(line)
            if row is None:
                self.broken += 1
                if len(self.problems) < _MOST_PROBLEMS:
                    shown = line[:60].decode(errors="replace")
                    self.problems.append(
                        f"line {self.lines + index + 1}: expected an object of JSON, got {shown!r}"
                    )
                continue
            rows.append(row)
            kept.append(index)
        return rows, np.asarray(kept, np.int64)


def _checksum(file: io.BufferedReader, end: int) -> int:
    """Return a checksum of the last bytes of the part of a log that was read."""
    file.seek(max(0, end - 4096))
    return zlib.crc32(file.read(min(end, 4096)))


def _loads(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Floats]:
    """Return the columns of rows, each by one conversion where all rows are alike."""
    found: dict[str, Floats] = {}
    for key in _SCALARS:
        values = [row.get(key) for row in rows]
        if any(value is not None for value in values):
            found[key] = _floats(values)
    ends = [bool(row.get("done")) for row in rows]
    if any(ends):
        found["done"] = np.asarray(ends, np.float32)
    for key in (*_VECTORS, "action"):
        values = [row.get(key) for row in rows]
        first = next((value for value in values if value is not None), None)
        if first is None:
            continue
        if not isinstance(first, list):
            found[key] = _floats(values)
            continue
        table = _table(values)
        for index in range(min(table.shape[1], _WIDEST)):
            found[f"{key}.{index}"] = table[:, index]
    return found


def _floats(values: list[Any]) -> Floats:
    try:
        return np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        return np.asarray([_number(value) for value in values], dtype=np.float32)


def _table(values: list[Any]) -> Floats:
    try:
        table = np.asarray(values, dtype=np.float32)
        if table.ndim == 2:
            return table
    except (TypeError, ValueError):
        pass
    width = max(len(value) for value in values if isinstance(value, list))
    table = np.full((len(values), width), np.nan, np.float32)
    for index, value in enumerate(values):
        if isinstance(value, list):
            table[index, : len(value)] = [_number(item) for item in value]
    return table


def _number(value: Any) -> float:
    if isinstance(value, bool | int | float):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else float("nan")
    except ValueError:
        return float("nan")


def log_of(folder: Path) -> Log:
    """Return the log in a rollout's folder, read so far as it is written."""
    log = Log(folder / LOG_NAME)
    log.refresh()
    return log
