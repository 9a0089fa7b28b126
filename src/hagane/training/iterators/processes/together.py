"""Writing a batch column by column, once all of its samples are there.

That takes a few calls for a column in place of a few for each value, but holds the samples until
the last one is made. So it is for batches that are held anyway: those with ragged columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.training.iterators.processes.layout import (
    Column,
    Layout,
    ObjectColumn,
    RaggedColumn,
    StackedColumn,
    Tree,
)

if TYPE_CHECKING:
    from hagane.training.iterators.processes.writer import BatchWriter


def suits(layout: Layout) -> bool:
    """Say whether batches that look like this one are to be written so.

    They are if the only arrays in them are ragged, which wait for each other in any case.
    """
    ragged = False
    for column in layout.columns:
        if isinstance(column, RaggedColumn):
            ragged = True
        elif isinstance(column, StackedColumn) and column.shape:
            return False
    return ragged


def transpose(tree: Tree, samples: Sequence[Any], columns: list[list[Any]]) -> bool:
    """Append the leaves of samples, column by column; say whether all samples have the tree."""
    if isinstance(tree, int):
        columns.append(list(samples))
        return True
    if set(map(type, samples)) != {tree.kind} or set(map(len, samples)) != {len(tree.children)}:
        return False
    keys = tree.keys if tree.kind is dict else range(len(tree.children))
    try:
        parts = [list(map(itemgetter(key), samples)) for key in keys]
    except KeyError:
        return False
    for child, part in zip(tree.children, parts, strict=True):
        if isinstance(child, int):
            columns.append(part)
        elif not transpose(child, part, columns):
            return False
    return True


def array_column(values: list[Any], writer: BatchWriter) -> Column | None:
    """Write arrays, or NumPy's numbers, of one type; None if the values are something else."""
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return None
    kind, first = kinds.pop(), values[0]
    if kind is not np.ndarray and not issubclass(kind, np.generic):
        return None
    dtype = first.dtype
    if dtype.hasobject or {value.dtype for value in values} != {dtype}:
        return ObjectColumn(values)
    if kind is not np.ndarray:
        base = writer.room(dtype.itemsize * len(values))
        if base is None:
            return ObjectColumn(values)
        writer.slot.view(base, (len(values),), dtype)[...] = values
        return StackedColumn(base, dtype, (), "scalar")
    shapes = [value.shape for value in values]
    flat, plain = values, set(map(len, shapes)) == {1}
    if not plain:
        flat = [value.ravel() for value in values]
    sizes = list(map(len, flat))
    size = sum(sizes)
    base = writer.room(size * dtype.itemsize)
    if base is None:
        return ObjectColumn(values)
    np.concatenate(flat, out=writer.slot.view(base, (size,), dtype), casting="no")
    if len(set(shapes)) == 1:
        return StackedColumn(base, dtype, first.shape, "array")
    return RaggedColumn(base, dtype, sizes if plain else shapes, "array")
