"""Shape, Size, Reshape, Flatten, Expand, Tile, Identity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef, RuntimeValue, data_by_reference
from hagane.ops.functions.tensors.shapes import reshape_like, unbroadcast
from hagane.ops.rules import same_type
from hagane.ops.traits import Trait
from hagane.ops.vjp import DISCRETE, reshaped
from hagane.symbolic import Dim, floordiv, product


def _shape(x: Array, *, start: int = 0, end: int | None = None) -> Array:
    return np.array(x.shape[slice(start, end)], dtype=np.int64)


def _shape_dims(ctx: InferContext) -> tuple[Dim, ...]:
    # Python's slices clamp as the operator does: out-of-range bounds are cut, negative ones count
    # from the back.
    return ctx.shape(0)[slice(ctx.attr("start", 0), ctx.attr("end"))]


def _infer_shape(ctx: InferContext) -> Sequence[Any]:
    if ctx.known_rank(0) is None:
        return [(ctx.fresh("rank"),)]
    return [(len(_shape_dims(ctx)),)]


def _shape_data(ctx: InferContext) -> Sequence[Array | None]:
    return [object_array(_shape_dims(ctx))]


def _size_data(ctx: InferContext) -> Sequence[Array | None]:
    return [object_array([product(ctx.shape(0))]).reshape(())]


def object_array(dims: Sequence[Dim]) -> Array:
    """Return a one-dimensional array of dimensions."""
    result = np.empty(len(dims), dtype=object)
    result[:] = list(dims)
    return result


def _reshape(x: Array, shape: Array, *, allowzero: int = 0) -> Array:
    target = [int(dim) for dim in shape]
    if not allowzero:
        copied = [i for i, dim in enumerate(target) if dim == 0]
        target = [x.shape[i] if dim == 0 else dim for i, dim in enumerate(target)]
        if target.count(-1) == 1 and any(x.shape[i] == 0 for i in copied):
            # No rows are still of some length: the axes that are not copied tell it.
            given = math.prod(dim for i, dim in enumerate(target) if i not in copied and dim != -1)
            others = math.prod(size for i, size in enumerate(x.shape) if i not in copied)
            if given and others % given == 0:
                target[target.index(-1)] = others // given
    if any(dim < -1 for dim in target):  # NumPy takes -2 for -1
        raise ValueError(f"shape {target} has a negative size other than -1")
    try:
        return x.reshape(target)
    except ValueError:
        rest = math.prod(dim for dim in target if dim != -1)
        fault = f" ({rest} elements)"
        if target.count(-1) > 1:
            fault = " with more than one axis open (-1)"
        elif -1 in target:
            fault = f": {x.size} is not a multiple of {rest}"
        found = f"{x.dtype}{_text(x.shape)} ({x.size} elements)"
        raise ValueError(f"cannot reshape {found} to {_text(target)}{fault}") from None


def _infer_reshape(ctx: InferContext) -> Sequence[Any]:
    target = ctx.dims(1)
    if target is None:
        return [None]
    dims = list(target)
    known = ctx.known_rank(0)
    copied: list[int] = []
    if ctx.data(1) is None:
        return [tuple(dims)]
    if not ctx.attr("allowzero"):
        for axis, dim in enumerate(dims):
            if isinstance(dim, int) and dim == 0:
                if known is None:
                    dims[axis] = ctx.fresh()
                elif axis >= known:
                    ctx.fail(
                        f"shape {_text(target)} copies axis {axis} of the input, "
                        f"got {ctx.inputs_text()}"
                    )
                else:
                    dims[axis] = ctx.shape(0)[axis]
                    copied.append(axis)
    unknown = [axis for axis, dim in enumerate(dims) if isinstance(dim, int) and dim == -1]
    if len(unknown) > 1:
        ctx.fail(f"shape {_text(target)} leaves more than one axis open (-1)")
    if any(isinstance(dim, int) and dim < -1 for dim in dims):
        ctx.fail(f"shape {_text(target)} has a negative size other than -1")
    if known is None:
        return [tuple(ctx.fresh() if axis in unknown else dim for axis, dim in enumerate(dims))]
    if unknown:
        # Axes that are copied tell nothing of the open one, and may be of no length.
        total = product(dim for axis, dim in enumerate(ctx.shape(0)) if axis not in copied)
        rest = product(
            dim for axis, dim in enumerate(dims) if axis not in unknown and axis not in copied
        )
        dims[unknown[0]] = _open_axis(ctx, total, rest, target)
        return [tuple(dims)]
    total, rest = product(ctx.shape(0)), product(dims)
    if ctx.differ(total, rest):
        ctx.fail(
            f"cannot reshape {ctx.tensor(0)} ({total} elements) to {_text(target)} "
            f"({rest} elements)"
        )
    return [tuple(dims)]


def _open_axis(ctx: InferContext, total: Dim, rest: Dim, target: Sequence[Dim]) -> Dim:
    if rest == 0:
        return ctx.fresh()
    if ctx.differ(total, floordiv(total, rest) * rest):
        ctx.fail(
            f"cannot reshape {ctx.tensor(0)} ({product(ctx.shape(0))} elements) to "
            f"{_text(target)}: {total} is not a multiple of {rest}"
        )
    return floordiv(total, rest)


def _text(dims: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _infer_flatten(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    axis = ctx.attr("axis")
    if not -len(shape) <= axis <= len(shape):
        ctx.fail(f"axis={axis} is out of range for {len(shape)} axes: {ctx.inputs_text()}")
    axis = axis + len(shape) if axis < 0 else axis
    return [(product(shape[:axis]), product(shape[axis:]))]


def _flatten(x: Array, *, axis: int = 1) -> Array:
    rows = int(np.prod(x.shape[:axis])) if axis != 0 else 1
    return x.reshape(rows, x.size // rows if rows else int(np.prod(x.shape[axis:])))


def _expand(x: Array, shape: Array) -> Array:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(map(int, shape)))).copy()


def _infer_expand(ctx: InferContext) -> Sequence[Any]:
    target = ctx.dims(1)
    if target is None:
        return [None]
    shape = ctx.shape(0)
    if ctx.data(1) is None:  # any of its numbers may be 1, or take the place of one
        lead = max(0, len(target) - len(shape))
        dims = [1] * lead + list(shape)
        named = [1] * (len(dims) - len(target)) + list(target)
        return [
            tuple(
                dim if wanted == 1 or (isinstance(dim, int) and dim != 1) else wanted
                for dim, wanted in zip(dims, named, strict=True)
            )
        ]
    return [ctx.broadcast(shape, tuple(target))]


def _tile(x: Array, repeats: Array) -> Array:
    if any(count < 0 for count in repeats):
        raise ValueError(f"expected repeats of 0 and more, got {repeats.tolist()}")
    return np.tile(x, tuple(int(r) for r in repeats))


def _infer_tile(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    repeats = ctx.dims(1)
    if repeats is None:
        return [tuple(ctx.fresh() for _ in shape)]
    if len(repeats) != len(shape):
        ctx.fail(f"expected one repeat an axis, got {len(repeats)} for {ctx.tensor(0)}")
    if ctx.data(1) is None:
        return [tuple(ctx.fresh() for _ in shape)]
    return [tuple(dim * times for dim, times in zip(shape, repeats, strict=True))]


def _identity(x: RuntimeValue) -> RuntimeValue:
    return x


def _expand_data(ctx: InferContext) -> Sequence[Array | None]:
    value, shape = ctx.data(0), ctx.constant(1)
    return [None] if value is None or shape is None else [_expand(value, shape)]


def _expand_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    return [unbroadcast(gradients[0], call.inputs[0]), None]


def _tile_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Sum the copies: each axis is one of copies and one of elements."""
    x, repeats = call.inputs
    columns = [op("Unsqueeze", repeats, [1]), op("Unsqueeze", op("Shape", x), [1])]
    pairs = op("Reshape", op("Concat", *columns, axis=1), [-1])
    copies = op("Reshape", gradients[0], pairs, allowzero=1)
    axes = list(range(0, 2 * len(shape_of(x)), 2))
    total = op("ReduceSum", copies, axes, keepdims=0, noop_with_empty_axes=1)
    return [reshape_like(total, x), None]


OPERATORS = (
    OpDef(
        "Expand",
        _infer_expand,
        _expand,
        data=_expand_data,
        vjp=_expand_vjp,
        traits=Trait.EXPANDING | Trait.FREE | Trait.MOVING | Trait.REPEATING,
    ),
    OpDef(
        "Flatten",
        _infer_flatten,
        _flatten,
        data=data_by_reference,
        vjp=reshaped,
        traits=Trait.FREE | Trait.MOVING | Trait.RESHAPING,
    ),
    OpDef(
        "Identity",
        same_type,
        _identity,
        data=data_by_reference,
        vjp=lambda call, gradients: gradients,
        traits=Trait.FREE | Trait.MOVING,
    ),
    OpDef(
        "Reshape",
        _infer_reshape,
        _reshape,
        data=data_by_reference,
        vjp=reshaped,
        traits=Trait.FREE | Trait.MOVING | Trait.RESHAPING,
    ),
    OpDef("Shape", _infer_shape, _shape, data=_shape_data, vjp=DISCRETE, traits=Trait.FREE),
    OpDef(
        "Size",
        lambda ctx: [()],
        lambda x: np.array(x.size, dtype=np.int64),
        data=_size_data,
        vjp=DISCRETE,
        traits=Trait.FREE,
    ),
    OpDef(
        "Tile",
        _infer_tile,
        _tile,
        data=data_by_reference,
        vjp=_tile_vjp,
        traits=Trait.EXPANDING | Trait.FREE | Trait.MOVING | Trait.REPEATING,
    ),
)
