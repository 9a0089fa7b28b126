"""Whole batches at once, from datasets that are arrays underneath.

A dataset says so by ``stacked_columns()``, which returns a tree (tuple, list or dict) of arrays
whose rows are the samples, and the rows that its own indices stand for, or None if it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.training.iterators.processes.layout import (
    Column,
    Layout,
    StackedColumn,
    Tree,
    Wrap,
    describe,
)
from hagane.training.iterators.processes.tensors import is_tensor
from hagane.training.iterators.processes.writer import BatchWriter


@dataclass(frozen=True, slots=True)
class Sources:
    """Arrays to take rows from.

    Attributes:
        tree: The form of a sample.
        arrays: One array for each leaf.
        tensors: For each leaf whether its rows are tensors.
        rows: For each index of the dataset the row it stands for; None if they are the same.
        length: Number of indices.
    """

    tree: Tree
    arrays: tuple[npt.NDArray[Any], ...]
    tensors: tuple[bool, ...]
    rows: npt.NDArray[np.int64] | None
    length: int


def gatherable(dataset: Any) -> Sources | None:
    """Return the arrays under a dataset, or None if its samples must be asked for one by one."""
    rows = None
    tree: Any = dataset
    if _is_tensor_dataset(type(dataset)):
        tree = tuple(dataset.tensors)
    elif type(dataset) not in (np.ndarray, np.memmap):
        columns = getattr(type(dataset), "stacked_columns", None)
        found = None if columns is None else columns(dataset)
        if found is None:
            return None
        tree, rows = found
    leaves: list[Any] = []
    shape = describe(tree, leaves)
    arrays, tensors = [], []
    for leaf in leaves:
        tensors.append(is_tensor(leaf))
        if tensors[-1]:
            arrays.append(leaf.detach().numpy())
            continue
        if type(leaf) not in (np.ndarray, np.memmap) or leaf.dtype.hasobject or not leaf.ndim:
            return None
        arrays.append(np.asarray(leaf))
    if not arrays:
        return None
    return Sources(shape, tuple(arrays), tuple(tensors), rows, len(dataset))


def _is_tensor_dataset(kind: type) -> bool:
    """Say whether this is PyTorch's TensorDataset, whose samples are tuples of rows."""
    return (kind.__module__, kind.__name__) == ("torch.utils.data.dataset", "TensorDataset")


def gather(sources: Sources, indices: npt.NDArray[np.int64], writer: BatchWriter) -> Layout | None:
    """Write the rows of a batch; None if only the dataset can answer an index."""
    if not len(indices) or indices.min() < 0 or indices.max() >= sources.length:
        return None
    rows = indices if sources.rows is None else sources.rows[indices]
    columns: list[Column] = []
    for array, tensor in zip(sources.arrays, sources.tensors, strict=True):
        offset = writer.room(len(rows) * array[:1].nbytes if len(array) else 0)
        if offset is None:
            writer.restart()
            return None
        out = writer.slot.view(offset, (len(rows), *array.shape[1:]), array.dtype)
        array.take(rows, axis=0, out=out, mode="clip")
        wrap: Wrap = "tensor" if tensor else "array" if array.ndim > 1 else "scalar"
        columns.append(StackedColumn(offset, array.dtype, array.shape[1:], wrap))
    return Layout(len(rows), sources.tree, tuple(columns), writer.stacked)
