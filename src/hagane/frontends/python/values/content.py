"""Nested lists of numbers and sizes as arrays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.values.values import Value
from hagane.ops.definition import Array
from hagane.symbolic import Expr


def as_array(content: Value, dtype: ir.DataType | None = None) -> Array:
    """Return nested lists of numbers and sizes as an array."""
    items = _flat(content)
    if any(isinstance(item, Expr) for item in items):
        shape = _extent(content)
        result = np.empty(len(items), dtype=object)
        result[:] = items
        return result.reshape(shape)
    array = np.array(content)
    if dtype is None and array.dtype == np.float64:
        return array.astype(np.float32)
    return array if array.size or dtype is not None else array.astype(np.float32)


def _flat(content: Value) -> list[Value]:
    if isinstance(content, list | tuple):
        return [item for part in content for item in _flat(part)]
    if isinstance(content, Fraction):
        return [float(content)]
    return [content]


def _extent(content: Value) -> tuple[int, ...]:
    if not isinstance(content, list | tuple):
        return ()
    return (len(content), *(_extent(content[0]) if content else ()))
