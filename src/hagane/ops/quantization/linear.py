"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.cast import convert
from hagane.ops.functions.numbers.elementary import cast, mul, sub, unsqueeze
from hagane.ops.values import LOW_PRECISION, array_dtype
from hagane.ops.vjp import ROUNDED, through
from hagane.symbolic import ceildiv

_INTEGERS = {
    ir.DataType.UINT2: (0, 3),
    ir.DataType.INT2: (-2, 1),
    ir.DataType.UINT4: (0, 15),
    ir.DataType.INT4: (-8, 7),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT16: (0, 65535),
    ir.DataType.INT16: (-32768, 32767),
}


def spread(value: Array, shape: Sequence[int], axis: int, block: int) -> Array:
    """Return a scale or zero point so that it broadcasts against a tensor of ``shape``.

    It is one for the whole tensor, one an index of ``axis``, or one a block of ``block`` elements
    along ``axis``.
    """
    if value.size == 1 and value.ndim <= 1:
        return value.reshape(())
    if value.ndim == 1 and not block:
        if not -len(shape) <= axis < len(shape) or value.size != shape[axis]:
            raise ValueError(
                f"expected one value an index of axis {axis} of {list(shape)}, got {value.size}"
            )
        sizes = [1] * len(shape)
        sizes[axis] = value.size
        return value.reshape(sizes)
    if not block:
        raise ValueError("a scale of the tensor's rank needs the attribute block_size")
    blocks = [-(-n // block) if i == axis % len(shape) else n for i, n in enumerate(shape)]
    if list(value.shape) != blocks:
        raise ValueError(
            f"expected one value a block of {block} along axis {axis} of {list(shape)}, "
            f"got {list(value.shape)}"
        )
    return np.take(np.repeat(value, block, axis), np.arange(shape[axis]), axis)


def quantize(
    x: Array,
    scale: Array,
    zero: Array | None,
    to: ir.DataType,
    *,
    saturate: bool = True,
    precision: Any = None,
) -> Array:
    """Return ``saturate(round(x / scale) + zero)`` as ``to``; all broadcast already."""
    kind = scale.dtype if precision is None else precision
    if precision is None and (kind in LOW_PRECISION or x.dtype != np.float64):
        kind = np.dtype(np.float32)  # as ONNX Runtime divides
    quotient = x.astype(kind) / scale.astype(kind)
    if to in _INTEGERS:
        low, high = _INTEGERS[to]
        rounded = np.rint(quotient.astype(np.float64))
        if zero is not None:
            rounded = rounded + zero.astype(np.float64)
        whole = np.clip(np.nan_to_num(rounded, nan=0.0, posinf=high, neginf=low), low, high)
        return whole.astype(np.int32).astype(to.numpy())
    if zero is not None:
        quotient = quotient + zero.astype(quotient.dtype)
    return convert(quotient, to, saturate=saturate)


def dequantize(x: Array, scale: Array, zero: Array | None, to: Any) -> Array:
    """Return ``(x - zero) * scale`` as ``to``; all broadcast already."""
    if x.dtype.kind in "iu" or array_dtype(x).is_integer():
        shifted = x.astype(np.int64)
        if zero is not None:
            shifted = shifted - zero.astype(np.int64)
        wide = shifted.astype(np.float32)
    else:
        wide = x.astype(np.float32)
        if zero is not None:
            wide = wide - zero.astype(np.float32)
    return (wide * scale.astype(np.float32)).astype(to)


def _quantize_linear(
    x: Array,
    scale: Array,
    zero: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    to = _target(None if zero is None else array_dtype(zero), output_dtype)
    return quantize(
        x,
        spread(scale, x.shape, axis, block_size),
        None if zero is None else spread(zero, x.shape, axis, block_size),
        to,
        saturate=bool(saturate),
        precision=ir.DataType(precision).numpy() if precision else None,
    )


def _target(zero: ir.DataType | None, output_dtype: int) -> ir.DataType:
    if zero is not None:
        return zero
    return ir.DataType(output_dtype) if output_dtype else ir.DataType.UINT8


def _dequantize_linear(
    x: Array,
    scale: Array,
    zero: Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    return dequantize(
        x,
        spread(scale, x.shape, axis, block_size),
        None if zero is None else spread(zero, x.shape, axis, block_size),
        ir.DataType(output_dtype).numpy() if output_dtype else scale.dtype,
    )


def _check_scale(ctx: InferContext) -> None:
    if ctx.has(2) and ctx.known_rank(1) and ctx.known_rank(1) == ctx.known_rank(2):
        for left, right in zip(ctx.shape(1), ctx.shape(2), strict=True):
            ctx.unify(left, right, "expected one zero point a scale")
    shape, scale = ctx.tensor(0).shape, ctx.tensor(1).shape
    if shape is None or scale is None or scale in ((), (1,)):
        return
    block = ctx.attr("block_size")
    axis = ctx.axis(ctx.attr("axis"), len(shape))
    if len(scale) == 1 and not block:
        ctx.unify(scale[0], shape[axis], f"expected one scale an index of axis {axis}")
    elif len(scale) != len(shape) or not block:
        ctx.fail(
            f"expected a scale for the tensor, for axis {axis}, or (with block_size) for blocks "
            f"along it, got {ctx.inputs_text()}"
        )
    else:
        for i, (size, have) in enumerate(zip(shape, scale, strict=True)):
            wanted = ceildiv(size, block) if i == axis else size
            ctx.unify(have, wanted, f"expected one scale a block of {block} along axis {axis}")


def _infer_quantize(ctx: InferContext) -> Sequence[Any]:
    _check_scale(ctx)
    given = ctx.attr("output_dtype")
    zero = ctx.dtype(2) if ctx.has(2) else None
    if zero is not None and given and ir.DataType(given) != zero:
        ctx.fail(f"output_dtype={ir.DataType(given).name} contradicts {ctx.inputs_text()}")
    return [TensorType(_target(zero, given), ctx.tensor(0).shape)]


def _infer_dequantize(ctx: InferContext) -> Sequence[Any]:
    _check_scale(ctx)
    given = ctx.attr("output_dtype")
    return [TensorType(ir.DataType(given) if given else ctx.dtype(1), ctx.tensor(0).shape)]


def dynamic_quantize(x: Array) -> tuple[Array, Array, Array]:
    """Return ``x`` in uint8 over its own range widened to hold zero, with scale and zero point."""
    low = min(float(x.min(initial=0)), 0.0)
    high = max(float(x.max(initial=0)), 0.0)
    scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(255))
    zero = np.float32(0) if scale == 0 else np.rint(np.float32(0) - np.float32(low) / scale)
    zero_point = np.array(np.clip(zero, 0, 255), dtype=np.uint8)
    scale_of_all = np.array(scale, np.float32)
    return quantize(x, scale_of_all, zero_point, ir.DataType.UINT8), scale_of_all, zero_point


def composed_dequantize(
    x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0
) -> Any:
    """Return the operator's output, over the builder."""
    dtype = dtype_of(scale)
    shifted = cast(x, dtype)
    if zero is not None:
        shifted = sub(shifted, cast(_composed_spread(zero, x, axis, block_size), dtype))
    return mul(shifted, _composed_spread(scale, x, axis, block_size))


def _composed_spread(value: Any, x: Any, axis: int, block: int) -> Any:
    """Return a scale or zero point so that it broadcasts against ``x``, as ``spread`` does."""
    rank = rank_of(x)
    if rank_of(value) == 0 or shape_of(value) == (1,):
        return op("Reshape", value, [1] * rank)
    axis %= rank
    if not block:
        return op("Reshape", value, [-1 if i == axis else 1 for i in range(rank)])
    shape: list[Any] = [*shape_of(value)]
    copies = op(
        "Expand", unsqueeze(value, [axis + 1]), [*shape[: axis + 1], block, *shape[axis + 1 :]]
    )
    shape[axis] = shape[axis] * block
    whole = op("Reshape", copies, shape)
    return op("Slice", whole, [0], op("Shape", x, start=axis, end=axis + 1), [axis])


OPERATORS = (
    OpDef(
        "DequantizeLinear", _infer_dequantize, _dequantize_linear, vjp=through(composed_dequantize)
    ),
    OpDef(
        "DynamicQuantizeLinear", lambda ctx: [ctx.shape(0), (), ()], dynamic_quantize, vjp=ROUNDED
    ),
    OpDef("QuantizeLinear", _infer_quantize, _quantize_linear, vjp=ROUNDED),
)
