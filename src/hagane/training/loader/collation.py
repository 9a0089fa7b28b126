"""Samples to batches of tensors, as PyTorch's ``default_collate`` and ``default_convert`` do it.

Workers write columns of samples into shared memory; here they become tensors over that memory, so
that nothing is stacked or copied a second time. Without PyTorch they stay NumPy arrays.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hagane.training.errors import CollationError
from hagane.training.iterators.batch import column_of
from hagane.training.iterators.processes.layout import (
    Layout,
    Node,
    ObjectColumn,
    RaggedColumn,
    StackedColumn,
    Tree,
    column_values,
    describe,
    flatten,
)


def torch_if_installed() -> Any:
    """Return PyTorch, or None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    importlib.import_module("torch.utils.data")
    return importlib.import_module("torch")


def collate_layout(layout: Layout, memory: Any) -> Any:
    """Return the batch of a layout that a worker wrote.

    Raises:
        CollationError: The samples do not go together.
    """
    if layout.tree is None:
        (objects,) = layout.columns
        assert isinstance(objects, ObjectColumn)
        return _unlike(objects.values)
    columns = []
    for number, column in enumerate(layout.columns):
        path = partial(_path, layout.tree, number)
        values = column_values(column, layout.length, memory)
        if isinstance(column, StackedColumn):
            columns.append(_tensor(values, path))
        elif isinstance(column, RaggedColumn):
            raise _ragged(values, path)
        else:
            columns.append(_objects(list(values), path))
    return _build(layout.tree, columns)


def collate_samples(samples: list[Any]) -> Any:
    """Return the batch of samples that were made in this process.

    Raises:
        CollationError: The samples do not go together.
    """
    if not samples:
        return _unlike(samples)
    rows: list[list[Any]] = []
    tree = describe(samples[0], [])
    for sample in samples:
        leaves: list[Any] = []
        if not flatten(tree, sample, leaves):
            return _unlike(samples)
        rows.append(leaves)
    columns = []
    for number, values in enumerate(zip(*rows, strict=True)):
        path = partial(_path, tree, number)
        stacked = column_of(list(values))
        if isinstance(stacked, list):
            columns.append(_objects(stacked, path))
        else:
            columns.append(_tensor(stacked, path))
    return _build(tree, columns)


def convert(sample: Any) -> Any:
    """Return a sample with its arrays as tensors; for ``batch_size=None``."""
    torch = torch_if_installed()
    return sample if torch is None else torch.utils.data.default_convert(sample)


def _tensor(values: Any, path: Callable[[], str]) -> Any:
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind in "US" and values.ndim == 1:
        return list(values)
    torch = torch_if_installed()
    if torch is None:
        return values
    try:
        return torch.from_numpy(values)
    except (TypeError, ValueError) as error:
        raise _unsuited(f"an array of {values.dtype}", path) from error


def _objects(values: list[Any], path: Callable[[], str]) -> Any:
    """Return the form of values that make no array."""
    first = values[0]
    if isinstance(first, str | bytes):
        return values
    torch = torch_if_installed()
    shaped = all(hasattr(value, "shape") for value in values)
    if shaped and len({tuple(value.shape) for value in values}) > 1:
        raise _ragged(values, path)
    if torch is None:
        raise _unsuited(f"{type(first).__module__}.{type(first).__qualname__}", path)
    try:
        return torch.utils.data.default_collate(values)
    except TypeError as error:
        kind = type(first)
        name = kind.__qualname__ if kind.__module__ == "builtins" else str(kind)
        raise _unsuited(name, path) from error
    except RuntimeError as error:
        raise CollationError(f"default collation{path()}: {error}; pass collate_fn") from error


def _unlike(samples: Sequence[Any]) -> Any:
    if not samples:
        raise CollationError(
            "default collation: expected at least one sample in a batch, got none; leave empty "
            "lists out of batch_sampler, or pass collate_fn"
        )
    torch = torch_if_installed()
    if torch is not None:
        try:
            return torch.utils.data.default_collate(list(samples))
        except Exception as error:
            cause: Exception | None = error
    else:
        cause = None
    first = _shape_of(samples[0])
    for place, sample in enumerate(samples):
        other = _shape_of(sample)
        if other != first:
            raise CollationError(
                "default collation: the samples of a batch do not look alike: expected "
                f"{first}, as at place 0, got {other} at place {place}; pass collate_fn"
            ) from cause
    raise CollationError(
        f"default collation: {cause or 'the samples do not look alike'}; pass collate_fn"
    ) from cause


def _shape_of(sample: Any) -> str:
    """Return the parts of a sample, in few words."""
    if isinstance(sample, Mapping):
        return f"a {type(sample).__name__} of {', '.join(map(repr, list(sample)[:6])) or 'nothing'}"
    if isinstance(sample, tuple | list):
        return f"a {type(sample).__name__} of {len(sample)}"
    return f"one {type(sample).__name__}"


def _ragged(values: Sequence[Any], path: Callable[[], str]) -> CollationError:
    first = list(values[0].shape)
    place, other = next(
        (place, list(value.shape))
        for place, value in enumerate(values)
        if list(value.shape) != first
    )
    return CollationError(
        f"default collation{path()}: the arrays of a batch differ in shape: expected {first}, as "
        f"at place 0, got {other} at place {place}; pad them in the dataset, or pass collate_fn"
    )


def _unsuited(name: str, path: Callable[[], str]) -> CollationError:
    return CollationError(
        f"default collation{path()}: expected tensors, arrays of numbers, numbers, strings, or "
        f"tuples, lists and dicts of them, got {name}; pass collate_fn"
    )


def _path(tree: Tree | None, number: int) -> str:
    """Return where in a sample a column is, such as `` at ['pair'][1]``."""
    steps = _steps(tree, number)
    return f" at {''.join(steps)}" if steps else ""


def _steps(tree: Tree | None, number: int) -> list[str] | None:
    if not isinstance(tree, Node):
        return [] if tree == number else None
    keys = tree.keys if tree.kind is dict else range(len(tree.children))
    for key, child in zip(keys, tree.children, strict=True):
        below = _steps(child, number)
        if below is not None:
            return [f"[{key!r}]", *below]
    return None


def _build(tree: Tree, columns: Sequence[Any]) -> Any:
    """Return one tree of columns; tuples become lists, as PyTorch has it."""
    if isinstance(tree, int):
        return columns[tree]
    parts = []
    for child in tree.children:
        part = _build(child, columns)
        strings = isinstance(part, list) and part and isinstance(part[0], str | bytes)
        if strings and isinstance(child, int) and tree.kind is not dict:
            part = tuple(part)  # PyTorch gives the strings of a tuple as a tuple
        parts.append(part)
    if tree.kind is dict:
        return dict(zip(tree.keys, parts, strict=True))
    if tree.kind in (tuple, list):
        return parts
    make: Any = tree.kind
    return make(*parts)
