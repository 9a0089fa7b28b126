"""Arrays in files, mapped into memory: NumPy's own format, Arrow and Parquet."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hagane.errors import MissingExtra
from hagane.training.datasets.base import DatasetMixin, PerProcess, existing
from hagane.training.datasets.tabular import Mode, TabularDataset
from hagane.training.errors import DatasetError


class MemmapDataset(DatasetMixin):
    """Rows of ``.npy`` files of one length, mapped and never read whole.

    One file gives its rows, several give tuples of rows. The paths travel to workers;
    each maps the files itself.

    Raises:
        DatasetError: A file is no array, or lengths differ.
    """

    def __init__(self, *paths: str | Path):
        if not paths:
            raise DatasetError("MemmapDataset: expected at least one .npy file, got none")
        self._paths = [existing(path) for path in paths]
        self._maps = [PerProcess(partial(_map, path)) for path in self._paths]
        lengths = {
            path: len(each.get()) for path, each in zip(self._paths, self._maps, strict=True)
        }
        if len(set(lengths.values())) != 1:
            raise DatasetError(f"MemmapDataset: expected arrays of one length, got {lengths}")
        self._length = lengths[self._paths[0]]

    def __len__(self) -> int:
        return self._length

    def get_example(self, i: int) -> Any:
        """Return a row, or the tuple of rows."""
        rows = tuple(np.asarray(each.get()[i]) for each in self._maps)
        return rows if len(rows) > 1 else rows[0]

    def stacked_columns(self) -> tuple[Any, None] | None:
        """Return the maps themselves, for batches that are taken at once."""
        if type(self) is not MemmapDataset:
            return None
        arrays = tuple(each.get() for each in self._maps)
        if any(array.ndim < 2 for array in arrays):
            return None
        return (arrays if len(arrays) > 1 else arrays[0]), None


def _map(path: str) -> Any:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise DatasetError(f"MemmapDataset: '{path}' is no .npy file: {error}") from error
    if not isinstance(array, np.ndarray) or not array.ndim:
        raise DatasetError(f"MemmapDataset: '{path}' holds no array with rows")
    return array


def _pyarrow(feature: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra(feature, "data") from None
    return pyarrow


def _existing(paths: str | Path | Sequence[str | Path]) -> list[str]:
    """Return one path or several as a list; raises DatasetError for a file that is not there."""
    given = [paths] if isinstance(paths, str | Path) else paths
    return [existing(path) for path in given]


class ParquetDataset(TabularDataset):
    """Rows of Parquet files, one row group in memory at a time.

    Orders that stay within a row group read it once; a full shuffle over large row groups reads
    much. Lists of numbers become arrays.

    Args:
        paths: A path or several.
        columns: Names of columns to read; None is all of them.
        mode: ``"dict"`` or ``"tuple"``.

    Raises:
        DatasetError: A file cannot be read, or lacks a column.
        MissingExtra: pyarrow is not installed.
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        columns: Sequence[str] | None = None,
        mode: Mode = "dict",
    ):
        _pyarrow("reading Parquet files")
        self._paths = _existing(paths)
        self._files = [PerProcess(partial(_parquet, path)) for path in self._paths]
        self._groups: list[tuple[int, int]] = []
        sizes = []
        for number, file in enumerate(self._files):
            metadata = file.get().metadata
            for group in range(metadata.num_row_groups):
                self._groups.append((number, group))
                sizes.append(metadata.row_group(group).num_rows)
        self._ends = list(itertools.accumulate(sizes))
        self._keys = _chosen(self._paths, self._files, columns)
        self.mode = mode
        self._cached: tuple[int, dict[str, Any]] = (-1, {})

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._keys

    def get_column(self, key: str, rows: Sequence[int]) -> list[Any]:
        """Return some rows of a column."""
        values = []
        for row in rows:
            number = bisect.bisect_right(self._ends, row)
            column = self._group(number)[key]
            values.append(column[row - (self._ends[number - 1] if number else 0)])
        return values

    def _group(self, number: int) -> dict[str, Any]:
        if self._cached[0] != number:
            file, group = self._groups[number]
            table = self._files[file].get().read_row_group(group, columns=list(self._keys))
            columns = {name: _values(table.column(name)) for name in self._keys}
            self._cached = (number, columns)
        return self._cached[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached": (-1, {})}


class ArrowDataset(TabularDataset):
    """Rows of Arrow IPC files (Feather version 2), mapped into memory.

    Args:
        paths: A path or several.
        columns: Names of columns to read; None is all of them.
        mode: ``"dict"`` or ``"tuple"``.

    Raises:
        DatasetError: A file cannot be read, or lacks a column.
        MissingExtra: pyarrow is not installed.
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        columns: Sequence[str] | None = None,
        mode: Mode = "dict",
    ):
        _pyarrow("reading Arrow files")
        self._paths = _existing(paths)
        self._files = [PerProcess(partial(_arrow, path)) for path in self._paths]
        self._ends = list(itertools.accumulate(file.get().num_rows for file in self._files))
        self._keys = _chosen(self._paths, self._files, columns)
        self.mode = mode

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._keys

    def get_column(self, key: str, rows: Sequence[int]) -> list[Any]:
        """Return some rows of a column."""
        values = []
        for row in rows:
            number = bisect.bisect_right(self._ends, row)
            at = row - (self._ends[number - 1] if number else 0)
            values.append(_plain(self._files[number].get().column(key)[at].as_py()))
        return values


def _parquet(path: str) -> Any:
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path, memory_map=True)
    except (pyarrow.ArrowException, OSError) as error:
        raise DatasetError(f"ParquetDataset: cannot read '{path}': {error}") from error


def _arrow(path: str) -> Any:
    import pyarrow

    try:
        return pyarrow.ipc.open_file(pyarrow.memory_map(path)).read_all()
    except (pyarrow.ArrowException, OSError) as error:
        raise DatasetError(f"ArrowDataset: cannot read '{path}': {error}") from error


def _chosen(
    paths: Sequence[str], files: Sequence[PerProcess[Any]], columns: Sequence[str] | None
) -> tuple[str, ...]:
    names: tuple[str, ...] = tuple(columns or ())
    for path, file in zip(paths, files, strict=True):
        opened = file.get()
        there = (opened.schema_arrow if hasattr(opened, "schema_arrow") else opened.schema).names
        names = names or tuple(there)
        for name in names:
            if name not in there:
                raise DatasetError(
                    f"'{path}' has no column '{name}'; its columns are {', '.join(there)}"
                )
    return names


def _values(column: Any) -> Any:
    """Return a column's values: an array of numbers where it can be, else a list."""
    import pyarrow.types as kinds

    kind = column.type
    if (kinds.is_integer(kind) or kinds.is_floating(kind)) and not column.null_count:
        return column.to_numpy()
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], int | float):
        return np.asarray(value)
    return value
