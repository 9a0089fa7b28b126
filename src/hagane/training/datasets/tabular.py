"""Tables: samples with named columns, of which views show a part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from hagane.training.datasets.base import DatasetMixin, many, normal_index
from hagane.training.errors import DatasetError

Mode = Literal["tuple", "dict"] | None


class TabularDataset(DatasetMixin):
    """Samples with named columns; reading some columns leaves the others alone.

    A subclass defines ``__len__``, ``keys`` and ``get_column``; ``Table`` holds columns that are
    there already. ``dataset.slice[rows, columns]`` is a view, which reads nothing itself.
    """

    mode: Mode = "tuple"

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        raise NotImplementedError(f"{type(self).__name__} lacks keys")

    def get_column(self, key: str, rows: Sequence[int]) -> Any:
        """Return some rows of a column, an array or a list."""
        raise NotImplementedError(f"{type(self).__name__} lacks get_column(key, rows)")

    def get_examples(
        self, rows: Sequence[int] | None, columns: Sequence[int] | None
    ) -> tuple[Any, ...]:
        """Return some columns, by number, at some rows; None is all of them."""
        names = self.keys if columns is None else [self.keys[number] for number in columns]
        chosen = range(len(self)) if rows is None else rows
        return tuple(self.get_column(name, chosen) for name in names)

    def get_example(self, i: int) -> Any:
        """Return a sample: a tuple or a dict, or the value alone if ``mode`` is None."""
        return self._sample([column[0] for column in self.get_examples([i], None)])

    def _sample(self, values: Sequence[Any]) -> Any:
        if self.mode == "dict":
            return dict(zip(self.keys, values, strict=True))
        return tuple(values) if self.mode == "tuple" else values[0]

    def fetch(self) -> Any:
        """Return whole columns: a tuple or a dict of them, or the column if ``mode`` is None."""
        return self._sample(self.get_examples(None, None))

    @property
    def slice(self) -> _Slicer:
        """Views by rows (a slice, indices or a mask) and columns (a name or names)."""
        return _Slicer(self)

    def as_tuple(self) -> TabularDataset:
        """Return a view whose samples are tuples."""
        return _View(self, None, self.keys, "tuple")

    def as_dict(self) -> TabularDataset:
        """Return a view whose samples are dicts."""
        return _View(self, None, self.keys, "dict")

    def with_column(self, key: str, function: Callable[..., Any], *of: str) -> TabularDataset:
        """Return a view with a column more, computed of others when it is read."""
        return _Computed(self, key, function, of or self.keys)

    def join(self, *datasets: TabularDataset) -> TabularDataset:
        """Return a view of the columns of this table and others of the same length."""
        from hagane.training.datasets.tables import Joined  # it builds on this module

        return Joined(self, *datasets)

    def concat(self, *datasets: TabularDataset) -> TabularDataset:
        """Return a view of the rows of this table, then of others with the same columns."""
        from hagane.training.datasets.tables import Concatenated  # it builds on this module

        return Concatenated(self, *datasets)

    def transform(
        self, keys: str | tuple[str, ...], function: Callable[..., Any]
    ) -> TabularDataset:
        """Return a view of the results of a function for each sample.

        Args:
            keys: Names of the columns of the result.
            function: Called with the columns of a sample, by name if ``mode`` is ``"dict"``;
                returns a tuple, a dict or, for one column, a value.
        """
        from hagane.training.datasets.tables import Transformed  # it builds on this module

        return Transformed(self, keys, function, batch=False)

    def transform_batch(
        self, keys: str | tuple[str, ...], function: Callable[..., Any]
    ) -> TabularDataset:
        """Return a view of the results of a function for several samples at once.

        As ``transform``, but the function takes columns and returns columns as long.
        """
        from hagane.training.datasets.tables import Transformed  # it builds on this module

        return Transformed(self, keys, function, batch=True)


class Table(TabularDataset):
    """Columns given as sequences of one length.

    Raises:
        DatasetError: There are no columns, or they differ in length.
    """

    def __init__(self, columns: Mapping[str, Any], mode: Mode = "tuple"):
        self._columns = dict(columns)
        lengths = {key: len(column) for key, column in self._columns.items()}
        if len(set(lengths.values())) != 1:
            raise DatasetError(f"Table: expected columns of one length, got {lengths}")
        self._length = next(iter(lengths.values()))
        self.mode = mode

    def __len__(self) -> int:
        return self._length

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._columns)

    def get_column(self, key: str, rows: Sequence[int]) -> Any:
        """Return some rows of a column."""
        column = self._columns[key]
        if isinstance(column, np.ndarray):
            if isinstance(rows, range) and rows == range(len(column)):
                return column
            return column[np.asarray(rows, dtype=np.int64)]
        return [column[row] for row in rows]

    def get_example(self, i: int) -> Any:
        """Return a sample."""
        return self._sample([column[i] for column in self._columns.values()])

    def stacked_columns(self) -> tuple[Any, None] | None:
        """Return the columns themselves, for batches that are taken at once."""
        if type(self) is not Table or self.mode is None:
            return None
        columns = self._columns
        return (columns if self.mode == "dict" else tuple(columns.values())), None


class _Slicer:
    def __init__(self, dataset: TabularDataset):
        self._dataset = dataset

    def __getitem__(self, chosen: Any) -> TabularDataset:
        rows, columns = chosen if isinstance(chosen, tuple) else (chosen, None)
        dataset = self._dataset
        mode = dataset.mode
        keys: tuple[str | int, ...]
        if columns is None:
            keys = dataset.keys
        elif isinstance(columns, str | int):
            keys, mode = (columns,), None
        else:
            keys = tuple(columns)
        names = tuple(dataset.keys[key] if isinstance(key, int) else key for key in keys)
        for name in names:
            if name not in dataset.keys:
                raise DatasetError(
                    f"slice: there is no column '{name}'; the columns are {', '.join(dataset.keys)}"
                )
        return _View(dataset, _rows(rows, len(dataset)), names, mode)


def _rows(rows: Any, length: int) -> Sequence[int] | None:
    if isinstance(rows, slice):
        return None if rows == slice(None) else range(*rows.indices(length))
    if not many(rows):
        raise DatasetError(f"slice: expected rows as a slice, indices or a mask, got {rows!r}")
    array = np.asarray(rows)
    if array.dtype == bool:
        if len(array) != length:
            raise DatasetError(f"slice: expected a mask of {length} rows, got {len(array)}")
        return np.flatnonzero(array).tolist()
    return [normal_index(row, length, "slice") for row in array.tolist()]


class _View(TabularDataset):
    def __init__(
        self,
        dataset: TabularDataset,
        rows: Sequence[int] | None,
        keys: tuple[str, ...],
        mode: Mode,
    ):
        self._dataset = dataset
        self._rows = rows
        self._keys = keys
        self.mode = mode

    def __len__(self) -> int:
        return len(self._dataset) if self._rows is None else len(self._rows)

    @property
    def keys(self) -> tuple[str, ...]:
        return self._keys

    def get_column(self, key: str, rows: Sequence[int]) -> Any:
        under = rows if self._rows is None else [self._rows[row] for row in rows]
        return self._dataset.get_column(key, under)

    def get_examples(
        self, rows: Sequence[int] | None, columns: Sequence[int] | None
    ) -> tuple[Any, ...]:
        # All columns in one call: a transformed table makes its samples once and not for each.
        names = self._keys if columns is None else [self._keys[number] for number in columns]
        under = rows if self._rows is None else self._rows
        if rows is not None and self._rows is not None:
            under = [self._rows[row] for row in rows]
        numbers = [self._dataset.keys.index(name) for name in names]
        return self._dataset.get_examples(under, numbers)


class _Computed(TabularDataset):
    def __init__(
        self,
        dataset: TabularDataset,
        key: str,
        function: Callable[..., Any],
        of: tuple[str, ...],
    ):
        self._dataset = dataset
        self._key = key
        self._function = function
        self._of = of
        self.mode = dataset.mode or "tuple"

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        return (*(key for key in self._dataset.keys if key != self._key), self._key)

    def get_column(self, key: str, rows: Sequence[int]) -> Any:
        if key != self._key:
            return self._dataset.get_column(key, rows)
        columns = [self._dataset.get_column(name, rows) for name in self._of]
        return [self._function(*values) for values in zip(*columns, strict=True)]
