"""Datasets over other datasets: transformed, put end to end, cut into parts."""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.training.datasets.base import DatasetMixin
from hagane.training.errors import DatasetError


class TransformDataset(DatasetMixin):
    """Samples of a dataset, passed through a function.

    Args:
        dataset: The dataset to transform.
        keys: Left out, the function gets the sample; else names (or a name) for its results.
        transform: Called with a sample. It runs again each time the sample is asked for.
    """

    def __init__(self, dataset: Any, *arguments: Any, **named: Any):
        keys = named.pop("keys", None)
        transform = named.pop("transform", None)
        positional = list(arguments)
        if transform is None and positional:
            transform = positional.pop()
        if keys is None and positional:
            keys = positional.pop()
        if named or positional or not callable(transform):
            raise DatasetError(
                "TransformDataset: expected (dataset, transform) or (dataset, keys, transform) "
                f"with a callable transform, got {(*arguments, *named)!r}"
            )
        self._dataset = dataset
        self._keys = (keys,) if isinstance(keys, str) else keys
        self._transform: Callable[[Any], Any] = transform

    @property
    def keys(self) -> tuple[str, ...] | None:
        """Names of the function's results, if they were given."""
        return None if self._keys is None else tuple(self._keys)

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: int) -> Any:
        """Return the transformed sample."""
        return self._transform(self._dataset[i])


class ConcatenatedDataset(DatasetMixin):
    """The samples of several datasets, one dataset after the other."""

    def __init__(self, *datasets: Any):
        self._datasets = datasets
        self._ends = list(itertools.accumulate(len(dataset) for dataset in datasets))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def get_example(self, i: int) -> Any:
        """Return a sample of whichever dataset the index falls into."""
        number = bisect.bisect_right(self._ends, i)
        return self._datasets[number][i - (self._ends[number - 1] if number else 0)]


class SubDataset(DatasetMixin):
    """The samples from ``start`` to ``finish`` of a dataset, or of an order over it.

    Args:
        dataset: The source of the samples.
        start: First place.
        finish: Place after the last.
        order: For each place the index of its sample; None is the order of the indices.

    Raises:
        DatasetError: The range leaves the dataset, or the order is of another length.
    """

    def __init__(self, dataset: Any, start: int, finish: int, order: Sequence[int] | None = None):
        length = len(dataset)
        if start < 0 or finish > length:
            raise DatasetError(
                f"SubDataset: expected a range within 0 to {length}, got {start} to {finish}"
            )
        if order is not None and len(order) != length:
            raise DatasetError(
                f"SubDataset: expected an order of the dataset's {length} samples, "
                f"got one of {len(order)}"
            )
        self._dataset = dataset
        self._start = start
        self._length = max(0, finish - start)
        self._order = order

    def __len__(self) -> int:
        return self._length

    def get_example(self, i: int) -> Any:
        """Return the sample at a place of the range."""
        place = self._start + i
        return self._dataset[place if self._order is None else self._order[place]]

    def stacked_columns(self) -> tuple[Any, Any] | None:
        """Return the arrays under the dataset and the rows of this part."""
        if type(self) is not SubDataset:
            return None
        under: Any = self._dataset
        columns: Any = under if type(under) is np.ndarray else None
        rows: Any = None
        if columns is None:
            ask = getattr(type(under), "stacked_columns", None)
            found = None if ask is None else ask(under)
            if found is None:
                return None
            columns, rows = found
        chosen = np.arange(self._start, self._start + self._length)
        if self._order is not None:
            chosen = np.asarray(self._order)[chosen]
        return columns, chosen if rows is None else rows[chosen]


def split_dataset(
    dataset: Any, split_at: int, order: Sequence[int] | None = None
) -> tuple[SubDataset, SubDataset]:
    """Return the samples before ``split_at`` and the rest.

    Raises:
        DatasetError: ``split_at`` lies outside the dataset.
        TypeError: It is no integer.
    """
    at = operator.index(split_at)
    length = len(dataset)
    if not 0 <= at <= length:
        raise DatasetError(
            f"split_dataset: expected split_at from 0 to {length}, the size of the dataset, "
            f"got {at}"
        )
    return SubDataset(dataset, 0, at, order), SubDataset(dataset, at, length, order)


def split_dataset_random(
    dataset: Any, first_size: int, seed: int | None = None
) -> tuple[SubDataset, SubDataset]:
    """Return two parts of a shuffled dataset, the first of the given size."""
    return split_dataset(dataset, first_size, _shuffled(dataset, seed))


def split_dataset_n(dataset: Any, n: int, order: Sequence[int] | None = None) -> list[SubDataset]:
    """Return ``n`` parts of equal size; the remainder is left out."""
    size = len(dataset) // _count("n", n)
    return [SubDataset(dataset, k * size, (k + 1) * size, order) for k in range(n)]


def split_dataset_n_random(dataset: Any, n: int, seed: int | None = None) -> list[SubDataset]:
    """Return ``n`` parts of equal size of a shuffled dataset."""
    return split_dataset_n(dataset, n, _shuffled(dataset, seed))


def get_cross_validation_datasets(
    dataset: Any, n_folds: int, order: Sequence[int] | None = None
) -> list[tuple[SubDataset, SubDataset]]:
    """Return ``n_folds`` pairs of training and validation parts.

    Each sample is in one validation part, the last samples in the first; sizes differ by one at
    most. Training parts go on behind the validation part and around.
    """
    length = len(dataset)
    given = np.arange(length) if order is None else np.asarray(order)
    borders = [length * fold // _count("n_folds", n_folds) for fold in range(n_folds + 1)]
    folds = []
    for begin, end in reversed(list(itertools.pairwise(borders))):
        turned = np.concatenate([given[end:], given[:begin], given[begin:end]])
        folds.append(split_dataset(dataset, length - (end - begin), turned.tolist()))
    return folds


def get_cross_validation_datasets_random(
    dataset: Any, n_folds: int, seed: int | None = None
) -> list[tuple[SubDataset, SubDataset]]:
    """Return pairs of training and validation parts of a shuffled dataset."""
    return get_cross_validation_datasets(dataset, n_folds, _shuffled(dataset, seed))


def _count(name: str, value: int) -> int:
    number = operator.index(value)
    if number < 1:
        raise DatasetError(f"{name}: expected a positive number of parts, got {number}")
    return number


def _shuffled(dataset: Any, seed: int | None) -> Any:
    return np.random.RandomState(seed).permutation(len(dataset))
