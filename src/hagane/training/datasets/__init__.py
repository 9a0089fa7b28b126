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
from hagane.training.datasets.published import (
    get_cifar10,
    get_cifar100,
    get_fashion_mnist,
    get_fashion_mnist_labels,
    get_kuzushiji_mnist,
    get_kuzushiji_mnist_labels,
    get_mnist,
    get_ptb_words,
    get_ptb_words_vocabulary,
    get_svhn,
)
from hagane.training.datasets.records import (
    PickleDataset,
    PickleDatasetWriter,
    TextDataset,
    open_pickle_dataset,
    open_pickle_dataset_writer,
)
from hagane.training.datasets.root import (
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
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
    "get_cifar10",
    "get_cifar100",
    "get_cross_validation_datasets",
    "get_cross_validation_datasets_random",
    "get_dataset_directory",
    "get_dataset_root",
    "get_fashion_mnist",
    "get_fashion_mnist_labels",
    "get_kuzushiji_mnist",
    "get_kuzushiji_mnist_labels",
    "get_mnist",
    "get_ptb_words",
    "get_ptb_words_vocabulary",
    "get_svhn",
    "open_pickle_dataset",
    "open_pickle_dataset_writer",
    "set_dataset_root",
    "split_dataset",
    "split_dataset_n",
    "split_dataset_n_random",
    "split_dataset_random",
]
