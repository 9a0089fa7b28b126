"""How low the elements of a value can be, as far as its nodes tell."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import constant, has_dtype

# Masks are a few nodes away from their source.
_MOST_STEPS = 24


def lower_bound(value: ir.Value | None, types: GraphTypes) -> float:
    """Return a number that no element of a float32 value is below; −∞ if none is known."""
    return _bounds(value, types, _MOST_STEPS)[0]


def _bounds(value: ir.Value | None, types: GraphTypes, steps: int) -> tuple[float, float]:
    """Return the least and greatest that a value holds; (−∞, ∞) also where it may be NaN."""
    unknown = (-np.inf, np.inf)
    array = constant(value, types)
    if array is not None:
        if array.dtype.kind not in "bfiu" or not array.size or np.isnan(array).any():
            return unknown
        return float(array.min()), float(array.max())
    if value is None:
        return unknown
    if has_dtype(value, types, ir.DataType.BOOL):
        return 0.0, 1.0
    node = value.producer()
    if node is None or node.domain != "" or not steps:
        return unknown
    if has_trait(node, Trait.MOVING):
        return _bounds(node.inputs[0], types, steps - 1)
    if node.op_type == "Cast":
        low, high = _bounds(node.inputs[0], types, steps - 1)
        return (low, high) if has_dtype(value, types, ir.DataType.FLOAT) else unknown
    if node.op_type == "Where":
        (a, b), (c, d) = (_bounds(one, types, steps - 1) for one in node.inputs[1:])
        return min(a, c), max(b, d)
    if node.op_type not in ("Add", "Sub", "Mul") or not has_dtype(value, types, ir.DataType.FLOAT):
        return unknown
    (a, b), (c, d) = (_bounds(one, types, steps - 1) for one in node.inputs)
    if not np.isfinite([a, b, c, d]).all():
        return unknown
    if node.op_type == "Sub":
        c, d = -d, -c
    ends = [x * y for x in (a, b) for y in (c, d)] if node.op_type == "Mul" else [a + c, b + d]
    # Rounding to float32 keeps order, and overflows where the ends do.
    with np.errstate(over="ignore"):
        return float(np.float32(min(ends))), float(np.float32(max(ends)))
