"""Chainer's tables: samples with named columns, read by rows and columns at once.

Their ``mode`` is a class: ``tuple``, ``dict``, or None for the value of the one column. Tables of
``hagane.datasets`` name it instead, and read one column at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hagane.training.datasets.base import DatasetMixin

Rows = slice | Sequence[int] | None
Columns = Sequence[int] | None


class TabularDataset(DatasetMixin):
    """Samples with named columns.

    A subclass defines ``__len__``, ``keys``, ``mode`` and ``get_examples``. ``slice[rows, keys]``
    is a view, which reads nothing itself.
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} defines no __len__")

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        raise NotImplementedError(f"{type(self).__name__} defines no keys")

    @property
    def mode(self) -> type | None:
        """The form of a sample: ``tuple``, ``dict``, or None for a value alone."""
        raise NotImplementedError(f"{type(self).__name__} defines no mode")

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        """Return columns.

        Args:
            indices: Numbers of the rows, a slice, or None for all.
            key_indices: Numbers of the columns, None for all.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no get_examples")

    @property
    def slice(self) -> _Slicer:
        """Views by rows (a slice, numbers or truth values) and columns (names or numbers)."""
        return _Slicer(self)

    def formed(self, values: Sequence[Any]) -> Any:
        """Return values of all columns in the form of ``mode``."""
        if self.mode is tuple:
            return tuple(values)
        if self.mode is dict:
            return dict(zip(self.keys, values, strict=True))
        return values[0]

    def fetch(self) -> Any:
        """Return whole columns: a tuple or a dict of them, or the column."""
        return self.formed(self.get_examples(None, None))

    def convert(self, data: Any) -> Any:
        """Return columns, in the form of ``fetch``, as arrays."""
        if isinstance(data, tuple):
            return tuple(_as_array(column) for column in data)
        if isinstance(data, dict):
            return {key: _as_array(column) for key, column in data.items()}
        return _as_array(data)

    def get_example(self, i: int) -> Any:
        """Return a sample."""
        return self.formed([column[0] for column in self.get_examples([i], None)])

    def __iter__(self) -> Iterator[Any]:
        return (self.get_example(i) for i in range(len(self)))

    def astuple(self) -> TabularDataset:
        """Return a view whose samples are tuples."""
        return Viewed(self, tuple)

    def asdict(self) -> TabularDataset:
        """Return a view whose samples are dicts."""
        return Viewed(self, dict)

    def with_converter(self, converter: Callable[..., Any]) -> TabularDataset:
        """Return a view whose ``convert`` calls a function with the columns."""
        return _Converted(self, converter)

    def concat(self, *datasets: TabularDataset) -> TabularDataset:
        """Return a view of the rows of this table, then of others with the same columns."""
        from hagane.training.datasets.combined import Concatenated  # it builds on this module

        return Concatenated(self, *datasets)

    def join(self, *datasets: TabularDataset) -> TabularDataset:
        """Return a view of the columns of this table and others of the same length."""
        from hagane.training.datasets.combined import Joined  # it builds on this module

        return Joined(self, *datasets)

    def transform(
        self, keys: str | tuple[str, ...], transform: Callable[..., Any]
    ) -> TabularDataset:
        """Return a view of the results of a function for each sample.

        Args:
            keys: Names of the columns of the result.
            transform: Called with the columns of a sample, by name if ``mode`` is ``dict``; returns
                a tuple, a dict, or a value for one column.
        """
        from hagane.training.datasets.combined import Transformed  # it builds on this module

        return Transformed(self, keys, transform)

    def transform_batch(
        self, keys: str | tuple[str, ...], transform_batch: Callable[..., Any]
    ) -> TabularDataset:
        """Return a view of the results of a function for several samples at once.

        As ``transform``, but the function takes columns and returns columns.
        """
        from hagane.training.datasets.combined import TransformedBatch  # it builds on this module

        return TransformedBatch(self, keys, transform_batch)


def _as_array(data: Any) -> Any:
    return data if isinstance(data, np.ndarray) else np.asarray(data)


class Viewed(TabularDataset):
    """A table as it is, whose samples may have another form.

    Args:
        dataset: The table.
        mode: The form; that of the table if there is none.
    """

    def __init__(self, dataset: TabularDataset, *mode: type):
        self._dataset = dataset
        self._mode = mode

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._dataset.keys

    @property
    def mode(self) -> type | None:
        """The form of a sample."""
        return self._mode[0] if self._mode else self._dataset.mode

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        """Return columns."""
        return self._dataset.get_examples(indices, key_indices)

    def convert(self, data: Any) -> Any:
        """Return columns as the table converts them."""
        return self._dataset.convert(data)


class _Converted(Viewed):
    def __init__(self, dataset: TabularDataset, converter: Callable[..., Any]):
        super().__init__(dataset)
        self._converter = converter

    def convert(self, data: Any) -> Any:
        if isinstance(data, tuple):
            return self._converter(*data)
        return self._converter(**data) if isinstance(data, dict) else self._converter(data)


class _Slicer:
    def __init__(self, dataset: TabularDataset):
        self._dataset = dataset

    def __getitem__(self, chosen: Any) -> TabularDataset:
        rows, keys = chosen if isinstance(chosen, tuple) else (chosen, None)
        return _Slice(self._dataset, rows, keys)


class _Slice(Viewed):
    def __init__(self, dataset: TabularDataset, rows: Any, keys: Any):
        super().__init__(dataset)
        self._alone = keys is not None and not isinstance(keys, tuple)
        row = (keys,) if self._alone else keys
        self._rows: Any = _numbers(rows, len(dataset))
        self._columns = None if row is None else tuple(_column(key, dataset.keys) for key in row)

    def __len__(self) -> int:
        if isinstance(self._rows, slice):
            return len(range(*self._rows.indices(len(self._dataset))))
        return len(self._rows)

    @property
    def keys(self) -> tuple[str, ...]:
        keys = self._dataset.keys
        return keys if self._columns is None else tuple(keys[number] for number in self._columns)

    @property
    def mode(self) -> type | None:
        if self._columns is None:
            return self._dataset.mode
        return None if self._alone else self._dataset.mode or tuple

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        own, columns = self._columns, key_indices
        if own is not None:
            columns = own if key_indices is None else tuple(own[number] for number in key_indices)
        return self._dataset.get_examples(self._under(indices), columns)

    def _under(self, indices: Rows) -> Rows:
        """Return rows of the view as those of the table: a slice where both are slices."""
        own = self._rows
        if indices is None:
            return own  # type: ignore[no-any-return]
        if not isinstance(own, slice):
            return own[indices] if isinstance(indices, slice) else [own[row] for row in indices]
        places = range(*own.indices(len(self._dataset)))
        if not isinstance(indices, slice):
            return [places.start + places.step * row for row in indices]
        return as_slice(places[indices])


def as_slice(places: range) -> slice:
    """Return a slice of these places; one that goes down to the first has no end."""
    return slice(places.start, places.stop if places.stop >= 0 else None, places.step)


def _numbers(rows: Any, length: int) -> Any:
    if isinstance(rows, slice) or len(rows) == 0:
        return rows
    if all(isinstance(row, bool | np.bool_) for row in rows):
        if len(rows) != length:
            raise ValueError(
                "The number of booleans is different from the length of dataset: "
                f"expected {length}, got {len(rows)}"
            )
        return [place for place, row in enumerate(rows) if row]
    return [_number(int(row), length, f"dataset with size {length}") for row in rows]


def _column(key: Any, keys: tuple[str, ...]) -> int:
    if isinstance(key, int | np.integer):
        return _number(int(key), len(keys), f"keys with size {len(keys)}")
    if key not in keys:
        raise KeyError(f"{key} does not exist; the columns are {', '.join(keys)}")
    return keys.index(key)


def _number(given: int, length: int, of: str) -> int:
    found = given + length if given < 0 else given
    if not 0 <= found < length:
        raise IndexError(f"index {given} is out of bounds for {of}")
    return found
