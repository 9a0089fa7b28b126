"""Datasets: objects with ``__len__`` and ``__getitem__``, and ways to put them together."""

from __future__ import annotations

from hagane.training.datasets.arrays import ArrowDataset, MemmapDataset, ParquetDataset
from hagane.training.datasets.base import DatasetMixin
from hagane.training.datasets.columns import DictDataset, TupleDataset
from hagane.training.datasets.images import (
    ImageDataset,
    LabeledImageDataset,
    LabeledZippedImageDataset,
    MultiZippedImageDataset,
    ZippedImageDataset,
)
from hagane.training.datasets.records import (
    PickleDataset,
    PickleDatasetWriter,
    TextDataset,
    open_pickle_dataset,
    open_pickle_dataset_writer,
)
from hagane.training.datasets.shards import TarShardDataset
from hagane.training.datasets.tabular import Table, TabularDataset
from hagane.training.datasets.views import (
    ConcatenatedDataset,
    SubDataset,
    TransformDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)

__all__ = [
    "ArrowDataset",
    "ConcatenatedDataset",
    "DatasetMixin",
    "DictDataset",
    "ImageDataset",
    "LabeledImageDataset",
    "LabeledZippedImageDataset",
    "MemmapDataset",
    "MultiZippedImageDataset",
    "ParquetDataset",
    "PickleDataset",
    "PickleDatasetWriter",
    "SubDataset",
    "Table",
    "TabularDataset",
    "TarShardDataset",
    "TextDataset",
    "TransformDataset",
    "TupleDataset",
    "ZippedImageDataset",
    "get_cross_validation_datasets",
    "get_cross_validation_datasets_random",
    "open_pickle_dataset",
    "open_pickle_dataset_writer",
    "split_dataset",
    "split_dataset_n",
    "split_dataset_n_random",
    "split_dataset_random",
]
