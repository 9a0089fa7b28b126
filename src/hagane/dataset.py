"""Datasets' base class, and converters of samples to batches."""

from hagane.nn.conversion import (
    ConcatWithAsyncTransfer,
    Converter,
    concat_examples,
    converter,
    to_device,
)
from hagane.training.datasets.base import DatasetMixin
from hagane.training.iterators.base import Iterator

__all__ = [
    "ConcatWithAsyncTransfer",
    "Converter",
    "DatasetMixin",
    "Iterator",
    "concat_examples",
    "converter",
    "to_device",
]
