"""How a batch lies in memory: columns of samples, read without copying.

Samples are trees of tuples, lists and dicts whose leaves make columns. A column is *stacked*
(arrays of one shape: one array with the batch in front), *ragged* (arrays of one dtype, one
behind the other) or made of *objects*, pickled by protocol 5 with their buffers beside them.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hagane.training.iterators.processes.tensors import as_tensor

Wrap = Literal["array", "scalar", "tensor"]


@dataclass(frozen=True, slots=True)
class Node:
    """A tuple, list or dict of a sample; a leaf is the number of its column."""

    kind: type
    keys: tuple[Any, ...]
    children: tuple[Node | int, ...]


Tree = Node | int

# These classes are pickled once a batch; named tuples take a third of the time of dataclasses.


class StackedColumn(NamedTuple):
    """Where an array of ``(batch, *shape)`` lies, and the meaning of its rows to the dataset."""

    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    wrap: Wrap


class RaggedColumn(NamedTuple):
    """Where arrays of one dtype and several shapes lie, one behind the other.

    Shapes of one dimension are plain numbers, which are pickled sooner than tuples.
    """

    offset: int
    dtype: np.dtype[Any]
    shapes: Sequence[tuple[int, ...]] | Sequence[int]
    wrap: Wrap


class ObjectColumn(NamedTuple):
    """Leaves that are no arrays, or arrays that don't go together."""

    values: Sequence[Any]


Column = StackedColumn | RaggedColumn | ObjectColumn


class Layout(NamedTuple):
    """A batch: its columns, the tree that makes samples of them, and how it is given out.

    Attributes:
        length: Number of samples.
        tree: The structure of the samples; None says that ``columns`` holds one ObjectColumn whose
            values are the batch itself.
        stacked: Whether the batch is one tree of columns and not a list of samples.
        notice: Why samples went another way than through shared memory; empty if none did.
    """

    length: int
    tree: Tree | None
    columns: tuple[Column, ...]
    stacked: bool
    notice: str = ""


def describe(sample: Any, leaves: list[Any]) -> Tree:
    """Return the tree of a sample and append its leaves."""
    kind = type(sample)
    keys: tuple[Any, ...] = ()
    if kind is dict:
        keys, parts = tuple(sample), list(sample.values())
    elif kind is tuple or kind is list or _is_namedtuple(kind):
        parts = list(sample)
    else:
        leaves.append(sample)
        return len(leaves) - 1
    return Node(kind, keys, tuple(describe(part, leaves) for part in parts))


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_make") and hasattr(kind, "_fields")


def flatten(tree: Tree, sample: Any, leaves: list[Any]) -> bool:
    """Append the leaves of a sample that has the tree; say whether it has it."""
    if isinstance(tree, int):
        leaves.append(sample)
        return True
    parts: Any = sample
    if type(sample) is not tree.kind or len(parts) != len(tree.children):
        return False
    if tree.kind is dict:
        try:
            parts = [parts[key] for key in tree.keys]
        except KeyError:
            return False
    for child, part in zip(tree.children, parts):  # noqa: B905 - lengths are equal
        if isinstance(child, int):
            leaves.append(part)
        elif not flatten(child, part, leaves):
            return False
    return True


def read_layout(data: Any, buffers: Sequence[Any]) -> Layout:
    """Return the layout that a worker pickled, with its out-of-band buffers."""
    layout: Layout = pickle.loads(data, buffers=buffers)
    return layout


def assemble(layout: Layout, memory: Any) -> Any:
    """Return the batch that a layout describes, as views over ``memory``."""
    if layout.tree is None:
        (column,) = layout.columns
        assert isinstance(column, ObjectColumn)
        return column.values
    columns = [column_values(column, layout.length, memory) for column in layout.columns]
    if layout.stacked:
        return build_batch(layout.tree, columns)
    rows = [_rows(column, array) for column, array in zip(layout.columns, columns, strict=True)]
    return _samples(layout.tree, rows, layout.length)


def column_values(column: Column, count: int, memory: Any) -> Any:
    """Return one array of a stacked column, else a list with an element for each sample."""
    if isinstance(column, ObjectColumn):
        return column.values
    if isinstance(column, StackedColumn):
        return _wrapped(
            np.ndarray((count, *column.shape), column.dtype, memory, column.offset), column.wrap
        )
    sizes = [shape if isinstance(shape, int) else math.prod(shape) for shape in column.shapes]
    ends = list(itertools.accumulate(sizes))
    flat = np.ndarray((ends[-1],), column.dtype, memory, column.offset)
    arrays: list[Any] = list(map(flat.__getitem__, map(slice, [0, *ends], ends)))
    if not isinstance(column.shapes[0], int):
        arrays = [part.reshape(shape) for part, shape in zip(arrays, column.shapes, strict=True)]
    if column.wrap == "array":
        return arrays
    return [_wrapped(part, column.wrap) for part in arrays]


def _wrapped(array: npt.NDArray[Any], wrap: Wrap) -> Any:
    return as_tensor(array) if wrap == "tensor" else array


def _rows(column: Column, values: Any) -> list[Any]:
    """Return a column as one element for each sample."""
    if isinstance(column, StackedColumn):
        if not column.shape and column.wrap == "array":
            return [values[place, ...] for place in range(len(values))]
        return list(values)
    return values if isinstance(values, list) else list(values)


def build_batch(tree: Tree, columns: Sequence[Any]) -> Any:
    """Return one tree of columns."""
    if isinstance(tree, int):
        return columns[tree]
    parts = [build_batch(child, columns) for child in tree.children]
    if tree.kind is dict:
        return dict(zip(tree.keys, parts, strict=True))
    return parts if tree.kind is list else _tuple(tree.kind, parts)


def _samples(tree: Tree, rows: Sequence[list[Any]], count: int) -> list[Any]:
    if isinstance(tree, int):
        return rows[tree]
    if not tree.children:
        return [tree.kind() for _ in range(count)]
    parts = zip(*(_samples(child, rows, count) for child in tree.children), strict=True)
    if tree.kind is tuple:
        return list(parts)
    if tree.kind is dict:
        return [dict(zip(tree.keys, part, strict=True)) for part in parts]
    if tree.kind is list:
        return [list(part) for part in parts]
    return [_tuple(tree.kind, part) for part in parts]


def _tuple(kind: type, parts: Any) -> Any:
    make: Any = getattr(kind, "_make", kind)
    return make(parts)
