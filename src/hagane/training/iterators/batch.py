"""Batches made in this process, with the outcome that a worker's would have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.training.iterators.failures import local_failure
from hagane.training.iterators.processes.layout import build_batch, describe, flatten
from hagane.training.iterators.randomness import Loader
from hagane.training.iterators.state import Draw

if TYPE_CHECKING:
    from hagane.training.iterators.base import Collation


def make_batch(loader: Loader, seed: int, draw: Draw, collate: Collation) -> Any:
    """Return the batch of a draw.

    Raises:
        SampleError: The dataset raised.
    """
    samples: list[Any] = []
    indices = draw.indices.tolist()

    def begin() -> Any:
        samples.clear()
        return samples.append

    try:
        loader.load(seed, indices, draw.sweeps.tolist(), begin)
    except Exception as error:
        raise local_failure(error, indices[min(len(samples), len(indices) - 1)]) from error
    return collated(samples, collate)


def collated(samples: list[Any], collate: Collation) -> Any:
    """Return samples as the batch that ``collate`` asks for."""
    if collate is None:
        return samples
    return stack(samples) if collate == "stack" else collate(samples)


def stack(samples: Sequence[Any]) -> Any:
    """Return samples as one tree of columns.

    Arrays of one shape and numbers of one type become an array with the batch in front; arrays
    of several shapes, strings and other objects become a list. Samples that don't look alike
    stay a list of samples.
    """
    if not samples:
        return []
    rows: list[list[Any]] = []
    first: list[Any] = []
    tree = describe(samples[0], first)
    for sample in samples:
        leaves: list[Any] = []
        if not flatten(tree, sample, leaves):
            return list(samples)
        rows.append(leaves)
    return build_batch(tree, [column_of(list(column)) for column in zip(*rows, strict=True)])


def column_of(values: list[Any]) -> Any:
    """Return values as one array, or tensor, where they go together; else as they are."""
    first = values[0]
    kind = type(first)
    if any(type(value) is not kind for value in values):
        return values
    if kind in (bool, int, float, complex):
        array = np.asarray(values)
        return values if array.dtype.hasobject else array
    if kind is np.ndarray or issubclass(kind, np.generic):
        alike = all(value.shape == first.shape and value.dtype == first.dtype for value in values)
        if not alike or first.dtype.hasobject:
            return values
        # With ``out`` NumPy keeps a dtype of the other byte order.
        return np.stack(values, out=np.empty((len(values), *first.shape), first.dtype))
    if kind.__name__ == "Tensor" and kind.__module__.startswith("torch"):
        alike = all(value.shape == first.shape and value.dtype == first.dtype for value in values)
        return __import__("torch").stack(values) if alike else values
    return values
