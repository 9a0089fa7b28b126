"""Chainer's tables of lists, arrays and functions that are there already."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.training.datasets.examples import Columns, Rows, TabularDataset, Viewed


class DelegateDataset(Viewed):
    """A base of tables of users that pass their work on to another.

    Args:
        dataset: The table.
    """

    def __init__(self, dataset: TabularDataset):
        super().__init__(dataset)
        self.dataset = dataset


def from_data(data: Any, *, size: int | None = None) -> TabularDataset:
    """Return a table.

    Args:
        data: A column (a list or an array); a pair of its name and it; a pair of a name, or of
            names, and a function of the row's number; or a tuple of these. A dict has names as its
            keys, and its samples are dicts.
        size: The number of rows, where there are functions alone.

    Raises:
        ValueError: A function has no name, or the number of rows is unknown.
    """
    if isinstance(data, tuple):
        if len(data) == 2 and _is_name(data[0]):
            return _column(*data, size)
        pairs = [one if isinstance(one, tuple) else (None, one) for one in data]
    elif isinstance(data, dict):
        pairs = list(data.items())
    else:
        return _column(None, data, size)
    if size is None:
        size = next((len(values) for _, values in pairs if hasattr(values, "__len__")), None)
    first, *others = [_column(name, values, size) for name, values in pairs]
    joined = first.join(*others)
    return joined.asdict() if isinstance(data, dict) else joined.astuple()


def _is_name(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, str)


def _column(name: Any, values: Any, size: int | None) -> TabularDataset:
    if isinstance(values, list | np.ndarray):
        return _Column(f"_{id(values)}" if name is None else name, values)
    if not callable(values):
        raise ValueError(f"expected a list, an array or a function, got {type(values)}")
    if name is None:
        raise ValueError("key(s) must be specified for callable")
    if size is None:
        raise ValueError("size must be specified for callable")
    return _Column("index", range(size)).transform(name, values)


class _Column(TabularDataset):
    """One column."""

    def __init__(self, key: str, values: Any):
        self._key = key
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @property
    def keys(self) -> tuple[str, ...]:
        return (self._key,)

    @property
    def mode(self) -> None:
        return None

    def get_examples(self, indices: Rows, key_indices: Columns) -> tuple[Any, ...]:
        values = self._values
        if isinstance(indices, slice) or (indices is not None and isinstance(values, np.ndarray)):
            values = values[indices]
        elif indices is not None:
            values = [values[row] for row in indices]
        return (values,) * (1 if key_indices is None else len(key_indices))
