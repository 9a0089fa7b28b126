"""How often a loop may iterate at most, and the memory that its stacked results take then."""

from __future__ import annotations

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.inference import GraphTypes
from hagane.ops.values import tensor_to_array
from hagane.symbolic import Dim, Expr, product, symbols_of

# Bytes that results may take in memory for the most iterations; of unknown sizes, a piece of each.
_MOST_BYTES, _MOST_PIECES = 1 << 22, 1 << 16


def most_rows(
    node: ir.Node, result: ir.Value, types: GraphTypes, *, inner: bool = False
) -> Dim | None:
    """Return for how many rows a stacked result of a Loop needs memory, if that is known and little.

    Args:
        node: The loop.
        result: One of its outputs.
        types: Of all values.
        inner: Whether it lies in the body of another, where sizes may differ between iterations.
    """
    limit, found = node.inputs[0] if node.inputs else None, types.types.get(result)
    if limit is None or not isinstance(found, TensorType) or not found.shape:
        return None
    count, *row = found.shape
    if not isinstance(count, Expr) or {str(count)} != set(symbols_of(count)):
        return None
    most = limit_of(limit, types)
    if most is None:
        return None
    dims = (most, *row)
    fixed = product([dim for dim in dims if isinstance(dim, int)])
    assert isinstance(fixed, int)
    is_open = any(isinstance(dim, Expr) for dim in dims)
    if is_open and (inner or any(symbols_of(dim) & types.invented for dim in dims)):
        return None
    bytes_ = fixed * found.dtype.numpy().itemsize
    return most if bytes_ <= (_MOST_PIECES if is_open else _MOST_BYTES) else None


def limit_of(limit: ir.Value, types: GraphTypes) -> Dim | None:
    """Return the most iterations of a Loop, if they are a number or a size that is known ahead."""
    content = types.values.get(limit)
    if content is None and limit.const_value is not None and limit.const_value.size == 1:
        content = tensor_to_array(limit.const_value)
    if content is None or content.size != 1:
        return None
    most = content.reshape(-1)[0]
    if isinstance(most, Expr):  # a formula may be below 0
        return most if {str(most)} == set(symbols_of(most)) else None
    return max(0, int(most))
