"""Constant, ConstantOfShape, Range, EyeLike, OneHot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.bounds import MOST_BYTES
from hagane.ops.builder import Call, dtype_of, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import cast, mul, sub, sum_over
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.rules import exact
from hagane.ops.traits import Trait
from hagane.ops.values import LOW_PRECISION, array_dtype, strings
from hagane.ops.vjp import CONSTANT, flat
from hagane.symbolic import Dim, Expr, ceildiv, maximum


def _constant(
    *,
    value: Array | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
    sparse_value: Any = None,
) -> Array:
    if value is not None:
        return value
    if sparse_value is not None:
        return _dense(sparse_value)
    if value_float is not None or value_floats is not None:
        return np.asarray(value_float if value_floats is None else value_floats, dtype=np.float32)
    if value_int is not None or value_ints is not None:
        return np.asarray(value_int if value_ints is None else value_ints, dtype=np.int64)
    if value_string is not None:
        return strings([value_string]).reshape(())
    return strings(list(value_strings or ()))


def _dense(sparse: Any) -> Array:
    values, indices = sparse.values.numpy(), sparse.indices.numpy()
    result = np.zeros(tuple(sparse.dims), dtype=values.dtype)
    if indices.ndim == 1:
        result.ravel()[indices] = values
    else:
        result[tuple(indices.T)] = values
    return result


def _infer_constant(ctx: InferContext) -> Sequence[Any]:
    given = [name for name in ctx.attributes if name.startswith(("value", "sparse_value"))]
    if len(given) != 1:
        ctx.fail(f"expected exactly one value attribute, got {', '.join(given) or 'none'}")
    array = _constant(**{given[0]: ctx.attr(given[0])})
    return [TensorType(array_dtype(array), array.shape)]


def _constant_of_shape(shape: Array, *, value: Array | None = None) -> Array:
    fill = np.float32(0) if value is None else value.ravel()[0]
    dtype = np.float32 if value is None else value.dtype
    if any(dim < 0 for dim in shape):
        raise ValueError(f"expected sizes of 0 and more, got {shape.tolist()}")
    sizes = tuple(int(dim) for dim in shape)
    if not any(np.asarray(fill, dtype).tobytes()):  # pages that nobody writes take no memory
        return np.zeros(sizes, dtype)
    return np.full(sizes, fill, dtype=dtype)


def _infer_constant_of_shape(ctx: InferContext) -> Sequence[Any]:
    value = ctx.attr("value")
    dtype = ir.DataType.FLOAT if value is None else array_dtype(value)
    dims = ctx.dims(0)
    if dims is not None and any(isinstance(dim, int) and dim < 0 for dim in dims):
        ctx.fail(f"expected sizes that are not negative, got {list(dims)}")
    return [TensorType(dtype, dims)]


def _range(start: Array, limit: Array, delta: Array | None = None, *, stash_type: int = 1) -> Array:
    ends = (start, limit, np.ones((), start.dtype) if delta is None else delta)
    first, last, step = (np.asarray(v).ravel()[0] for v in ends)
    if start.dtype in LOW_PRECISION:
        wide = ir.DataType(stash_type).numpy().type
        first, last, step = wide(first), wide(last), wide(step)
    if step == 0:
        raise ValueError("expected a delta other than 0")
    if isinstance(first, np.integer):  # differences may not fit into the element type
        count = max(0, -((int(first) - int(last)) // int(step)))
    else:
        quotient = float(np.ceil((last - first) / step))
        if not np.isfinite(quotient):
            raise ValueError(f"expected finite start, limit and delta, got {first}, {last}, {step}")
        count = max(0, int(quotient))
    if count * start.itemsize > MOST_BYTES:
        raise ValueError(
            f"from {first} to {last} by {step} are {count} elements, of {count * start.itemsize} "
            "bytes"
        )
    return (first + np.arange(count).astype(np.asarray(first).dtype) * step).astype(start.dtype)


def _infer_range(ctx: InferContext) -> Sequence[Any]:
    values = [ctx.data(i) for i in range(2)]
    values.append(ctx.data(2) if ctx.has(2) else np.ones((), np.int64))
    if any(value is None for value in values) or not ctx.dtype(0).is_integer():
        return [(ctx.fresh(),)]
    start, limit, delta = (exact(v).ravel()[0] for v in values if v is not None)
    if isinstance(delta, Expr):
        return [(ctx.fresh(),)]
    if delta == 0:
        ctx.fail("expected a delta other than 0")
    span = limit - start if delta > 0 else start - limit
    return [(_not_negative(ceildiv(span, abs(delta))),)]


def _not_negative(dim: Dim) -> Dim:
    return maximum(dim, 0)


def _eye_like(x: Array, *, dtype: int | None = None, k: int = 0) -> Array:
    kind = x.dtype if dtype is None else ir.DataType(dtype).numpy()
    return np.eye(x.shape[0], x.shape[1], k).astype(kind)


def _infer_eye_like(ctx: InferContext) -> Sequence[Any]:
    number = ctx.attr("dtype")
    dtype = ctx.dtype(0) if number is None else ir.DataType(number)
    return [TensorType(dtype, ctx.shape(0, rank=2))]


def _one_hot(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    count = int(np.asarray(depth).ravel()[0])
    if count < 1:
        raise ValueError(f"expected a positive depth, got {count}")
    if indices.size * count * values.itemsize > MOST_BYTES:
        raise ValueError(f"{indices.size} rows of {count} elements are more than memory holds")
    whole = indices.astype(np.int64)
    # Out-of-range indices select nothing: their row holds the "off" value everywhere.
    whole = np.where((whole >= -count) & (whole < count), whole % max(count, 1), -1)
    where = axis % (indices.ndim + 1)
    hot = np.expand_dims(whole, where) == np.arange(count).reshape(
        [-1 if i == where else 1 for i in range(indices.ndim + 1)]
    )
    return np.where(hot, values[1], values[0]).astype(values.dtype)


def _infer_one_hot(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    depth = ctx.dims(1)
    known = ctx.data(1)
    size: Dim = ctx.fresh()
    if known is not None and depth is not None:
        size = depth[0]
        if isinstance(size, int) and size < 1:
            ctx.fail(f"expected a positive depth, got {size}")
    axis = ctx.axis(ctx.attr("axis"), len(shape) + 1)
    return [TensorType(ctx.dtype(2), (*shape[:axis], size, *shape[axis:]))]


def _constant_of_shape_data(ctx: InferContext) -> Sequence[Array | None]:
    shape = ctx.constant(0)
    if shape is None or int(np.prod(shape)) > 64:
        return [None]
    return [_constant_of_shape(shape, value=ctx.attr("value"))]


def _range_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """The limit only decides how many elements there are."""
    (g,), start = gradients, call.inputs[0]
    parts = [reshape_like(sum_over(g, [0], keepdims=False), start), None]
    if len(call.inputs) > 2:
        numbers = cast(positions_along(g, 0), dtype_of(g))
        parts.append(reshape_like(sum_over(mul(g, numbers), [0], keepdims=False), call.inputs[2]))
    return parts


def _one_hot_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (g,), (indices, depth, values) = gradients, call.inputs
    every = list(range(rank_of(g)))
    hot = op(
        "OneHot", indices, depth, np.array([0, 1], dtype_of(values).numpy()), axis=call.attr("axis")
    )
    on = sum_over(mul(g, hot), every, keepdims=False)
    off = sub(sum_over(g, every, keepdims=False), on)
    return [None, None, op("Concat", op("Unsqueeze", off, [0]), op("Unsqueeze", on, [0]), axis=0)]


OPERATORS = (
    OpDef("Constant", _infer_constant, _constant, vjp=CONSTANT, traits=Trait.FREE),
    OpDef(
        "ConstantOfShape",
        _infer_constant_of_shape,
        _constant_of_shape,
        data=_constant_of_shape_data,
        vjp=CONSTANT,
        traits=Trait.EXPANDING | Trait.FREE,
    ),
    OpDef("EyeLike", _infer_eye_like, _eye_like, vjp=flat, traits=Trait.EXPANDING),
    OpDef("OneHot", _infer_one_hot, _one_hot, vjp=_one_hot_vjp, traits=Trait.FREE),
    OpDef("Range", _infer_range, _range, vjp=_range_vjp, traits=Trait.EXPANDING | Trait.FREE),
)
