"""Datasets whose samples put together the elements of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hagane.training.errors import DatasetError


def _same_length(lengths: Mapping[str, int], what: str) -> int:
    if not lengths:
        raise DatasetError(f"{what}: expected at least one dataset, got none")
    (first, length), *rest = lengths.items()
    for name, other in rest:
        if other != length:
            raise DatasetError(
                f"{what}: expected datasets of one length, got {length} for {first} and {other} "
                f"for {name}"
            )
    return length


class TupleDataset:
    """Samples are tuples of the elements of several datasets.

    A slice gives a list of samples; an array or a list of indices what each dataset has for it,
    as with Chainer: ``x, t = dataset[indices]`` takes rows of two arrays.

    Raises:
        DatasetError: There are no datasets, or they differ in length.
    """

    def __init__(self, *datasets: Any):
        lengths = {f"dataset {number}": len(each) for number, each in enumerate(datasets)}
        self._length = _same_length(lengths, "TupleDataset")
        self._datasets = datasets

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        parts = [dataset[index] for dataset in self._datasets]
        if isinstance(index, slice):
            return list(zip(*parts, strict=True))
        return tuple(parts)

    def stacked_columns(self) -> tuple[Any, None] | None:
        """Return the arrays themselves, for batches that are taken at once."""
        if type(self).__getitem__ is not TupleDataset.__getitem__:
            return None
        return self._datasets, None


class DictDataset:
    """Samples are dicts of the elements of several named datasets.

    A slice gives a list of samples; an array or a list of indices what each dataset has for it.

    Raises:
        DatasetError: There are no datasets, or they differ in length.
    """

    def __init__(self, **datasets: Any):
        lengths = {f"'{name}'": len(each) for name, each in datasets.items()}
        self._length = _same_length(lengths, "DictDataset")
        self._datasets = datasets

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        parts = [dataset[index] for dataset in self._datasets.values()]
        names = list(self._datasets)
        if isinstance(index, slice):
            return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        return dict(zip(names, parts, strict=True))

    def stacked_columns(self) -> tuple[Any, None] | None:
        """Return the arrays themselves, for batches that are taken at once."""
        if type(self).__getitem__ is not DictDataset.__getitem__:
            return None
        return self._datasets, None
