"""Type rules that many operators share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

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


_LARGEST_DENOMINATOR = 1000
_MOST_WHOLE = 1 << 16


@cache
def ratio_of_sizes(factor: Fraction, dtype: str = "float32", *, divides: bool = False) -> Fraction:
    """Return the ratio by which a float multiplies sizes, as far as their floors and ceilings tell.

    A product of floats comes out whole where that of the number meant does: in float32, 10 * 0.7
    is 7, though 0.7 is a little less there. Where it does at some sizes only (13 / 10 is missed at
    90), no ratio tells what comes out.

    Args:
        factor: A float, exactly.
        dtype: The type in which the product is rounded, by NumPy's name.
        divides: Whether sizes are divided by the float.

    Raises:
        ValueError: No ratio gives what float arithmetic does for all sizes up to 65,536.
    """
    short = factor.limit_denominator(_LARGEST_DENOMINATOR)
    number = np.dtype(dtype).type(float(factor))
    sizes = np.arange(_MOST_WHOLE + 1)
    floats = sizes.astype(dtype)
    rounded = (floats / number if divides else floats * number).astype(np.float64)
    for ratio in (short, factor):
        if ratio == 0 and divides:
            break
        if ratio.numerator.bit_length() > 40 or ratio.denominator.bit_length() > 40:
            continue  # beyond 64 bits
        top, bottom = ratio.numerator, ratio.denominator
        if divides:
            top, bottom = (bottom, top) if top > 0 else (-bottom, -top)
        if np.array_equal(sizes * top // bottom, np.floor(rounded)) and np.array_equal(
            -(sizes * -top // bottom), np.ceil(rounded)
        ):
            return Fraction(top, bottom)
    raise ValueError(f"{float(factor)} times a size is rounded")


def has_expressions(array: Array) -> bool:
    """Whether an array of known values holds any dimension."""
    return array.dtype == object and any(isinstance(item, Expr) for item in array.ravel())
