"""Type rules that many operators share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hagane.graph.types import Shape, TensorType, Type
from hagane.ops.context import InferContext
from hagane.ops.definition import Array
from hagane.symbolic import Expr


def same_shape(ctx: InferContext) -> Sequence[Shape | Type | None]:
    """Every output has the shape of the first input."""
    return [ctx.shape(0)] * ctx.n_outputs


def same_type(ctx: InferContext) -> Sequence[Shape | Type | None]:
    """The output has the type of the first input, containers included."""
    return [ctx.type(0)]


def broadcast(ctx: InferContext) -> Sequence[Shape | Type | None]:
    """All inputs broadcast against each other."""
    return [ctx.broadcast(*(ctx.shape(i) for i in range(ctx.n_inputs)))]


def scalar(ctx: InferContext) -> Sequence[Shape | Type | None]:
    """The output has no axes."""
    return [()]


def declared_dtype(ctx: InferContext, name: str, default: int | None = None) -> int | None:
    """Return the element type that an attribute gives by its ONNX number."""
    number = ctx.attr(name, default)
    return None if number is None else int(number)


def tensor_like(shape: Shape | None, dtype: int) -> TensorType:
    """Return a tensor type from a shape and an ONNX element-type number."""
    import onnx_ir as ir

    return TensorType(ir.DataType(dtype), shape)


def exact(array: Array) -> Array:
    """Return an array of numbers as Python integers and fractions, ready to meet expressions."""
    if array.dtype == object:
        return array
    if array.dtype.kind not in "iub" and not np.all(np.isfinite(array)):
        raise ValueError("infinities and NaN are no sizes")
    result = np.empty(array.shape, dtype=object)
    flat = [
        Fraction(float(item)) if array.dtype.kind not in "iub" else int(item)
        for item in array.ravel()
    ]
    result.ravel()[:] = [
        int(item) if isinstance(item, Fraction) and item.denominator == 1 else item for item in flat
    ]
    return result


def has_expressions(array: Array) -> bool:
    """Whether an array of known values holds any dimension."""
    return array.dtype == object and any(isinstance(item, Expr) for item in array.ravel())
