"""Datasets' base classes, converters of samples to batches, and the folder of published data."""

from hagane.nn.conversion import (
    ConcatWithAsyncTransfer,
    Converter,
    concat_examples,
    converter,
    to_device,
)
from hagane.training.datasets.base import DatasetMixin
from hagane.training.datasets.cached import cache_or_load_file, cached_download
from hagane.training.datasets.examples import TabularDataset
from hagane.training.datasets.root import (
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
)
from hagane.training.iterators.protocol import Iterator

__all__ = [
    "ConcatWithAsyncTransfer",
    "Converter",
    "DatasetMixin",
    "Iterator",
    "TabularDataset",
    "cache_or_load_file",
    "cached_download",
    "concat_examples",
    "converter",
    "get_dataset_directory",
    "get_dataset_root",
    "set_dataset_root",
    "to_device",
]
