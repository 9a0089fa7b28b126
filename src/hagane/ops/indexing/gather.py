"""Gather, GatherElements, GatherND."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.tensors.positions import extent, positions_along, put_along
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.ops.traits import Trait


def checked(indices: Array, size: int, axis: int) -> Array:
    """Return indices counted from the front, or raise ``IndexError`` naming the first bad one."""
    if indices.size == 0:
        return indices
    low, high = indices.min(), indices.max()
    if low >= 0 and high < size:
        return indices
    if low < -size or high >= size:
        wrong = (indices < -size) | (indices >= size)
        bad = indices[wrong].ravel()[0]
        raise IndexError(f"index {bad} is out of range for axis {axis} with size {size}")
    return np.where(indices < 0, indices + size, indices)


def _gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    try:
        return x.take(indices, axis)
    except (IndexError, TypeError):  # the index is named
        return x.take(checked(indices, x.shape[axis], axis), axis)


def _infer_gather(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    axis = ctx.axis(ctx.attr("axis"), len(shape))
    known, size = ctx.ints(1), shape[axis]
    if known is not None and isinstance(size, int):
        for index in known:
            # Of nothing, items are taken on paths that no run takes: "x[-1] if x else 0".
            if size and not -size <= index < size:
                ctx.fail(
                    f"index {index} is out of range for axis {axis} with size {size}: "
                    f"{ctx.inputs_text()}"
                )
    return [(*shape[:axis], *ctx.shape(1), *shape[axis + 1 :])]


def _gather_data(ctx: InferContext) -> Sequence[Array | None]:
    value, indices = ctx.data(0), ctx.constant(1)
    if value is None or indices is None:
        return [None]
    return [np.asarray(_gather(value, indices, axis=ctx.attr("axis")))]


def _gather_elements(x: Array, indices: Array, *, axis: int = 0) -> Array:
    return x[grid(checked(indices, x.shape[axis], axis), axis)]


def grid(indices: Array, axis: int) -> tuple[Array, ...]:
    """Return an index of every element, whose coordinate on ``axis`` is taken from ``indices``."""
    coordinates: list[Array] = list(np.indices(indices.shape, sparse=True))
    coordinates[axis] = indices
    return tuple(coordinates)


def _infer_gather_elements(ctx: InferContext) -> Sequence[Any]:
    shape, indices = ctx.shape(0), ctx.shape(1)
    if len(shape) != len(indices):
        ctx.fail(f"expected data and indices of one rank, got {ctx.inputs_text()}")
    ctx.axis(ctx.attr("axis"), len(shape))
    return [indices]


def tuples(indices: Array, shape: Sequence[int], batch: int = 0) -> tuple[Array, ...]:
    """Return an index made of the tuples in the last axis, after ``batch`` common axes."""
    length = indices.shape[-1]
    parts = [checked(indices[..., i], shape[batch + i], batch + i) for i in range(length)]
    lead: tuple[Array, ...] = np.indices(indices.shape[:batch], sparse=True)
    extra = indices.ndim - 1 - batch
    return (*(axis.reshape(axis.shape + (1,) * extra) for axis in lead), *parts)


def _gather_nd(x: Array, indices: Array, *, batch_dims: int = 0) -> Array:
    if x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ValueError(
            f"expected equal sizes on {batch_dims} batch axes, got {x.shape} and {indices.shape}"
        )
    return np.asarray(x[tuples(indices, x.shape, batch_dims)])


def _infer_gather_nd(ctx: InferContext) -> Sequence[Any]:
    shape, indices = ctx.shape(0), ctx.shape(1)
    batch = ctx.attr("batch_dims")
    length = indices[-1] if indices else ctx.fail("expected indices with at least one axis")
    if not isinstance(length, int):
        return [None]
    if batch + length > len(shape):
        ctx.fail(f"tuples of {length} indices need as many axes, got {ctx.inputs_text()}")
    for axis in range(batch):
        ctx.unify(shape[axis], indices[axis], f"expected equal sizes on batch axis {axis}")
    return [(*indices[:-1], *shape[batch + length :])]


def _infer_array_feature_extractor(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    count = ctx.fresh()
    known = ctx.tensor(1).shape
    size: Any = count
    if known is not None:
        size = 1
        for dim in known:
            size = size * dim
    lead = shape[:-1] if len(shape) > 1 else (1,)
    return [(*lead, size)]


def _array_feature_extractor(x: Array, indices: Array) -> Array:
    result = _gather(x, indices.ravel(), axis=x.ndim - 1)
    return result.reshape(1, -1) if x.ndim == 1 else result


def _gather_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, indices = call.inputs
    axis = call.attr("axis") % rank_of(x)
    return [put_along(gradients[0], indices, extent(x, axis), axis), None]


def _array_feature_extractor_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, indices), (g,) = call.inputs, gradients
    axis = rank_of(x) - 1
    if axis == 0:
        g = op("Squeeze", g, [0])
    return [put_along(g, op("Reshape", indices, [-1]), extent(x, axis), axis), None]


def _gather_elements_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, indices), axis = call.inputs, call.attr("axis")
    target = zeros_like(x)
    return [
        op("ScatterElements", target, indices, gradients[0], axis=axis, reduction="add"),
        None,
    ]


def _gather_nd_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    x, indices = call.inputs
    indices = full_tuples(indices, x, call.attr("batch_dims"))
    return [op("ScatterND", zeros_like(x), indices, gradients[0], reduction="add"), None]


def full_tuples(indices: Any, x: Any, batch: int) -> Any:
    """Return tuples of indices with their coordinates on the ``batch`` common axes in front."""
    rank = rank_of(indices)
    places = []
    for axis in range(batch):
        steps = op(
            "Reshape", positions_along(x, axis), [-1 if i == axis else 1 for i in range(rank)]
        )
        sizes = op("Concat", op("Shape", indices, end=-1), [1], axis=0)
        places.append(op("Expand", steps, sizes))
    return op("Concat", *places, indices, axis=-1) if places else indices


OPERATORS = (
    OpDef(
        "ArrayFeatureExtractor",
        _infer_array_feature_extractor,
        _array_feature_extractor,
        domain="ai.onnx.ml",
        vjp=_array_feature_extractor_vjp,
    ),
    OpDef(
        "Gather",
        _infer_gather,
        _gather,
        data=_gather_data,
        vjp=_gather_vjp,
        traits=Trait.FREE | Trait.MOVING,
    ),
    OpDef(
        "GatherElements",
        _infer_gather_elements,
        _gather_elements,
        vjp=_gather_elements_vjp,
        traits=Trait.FREE | Trait.MOVING,
    ),
    OpDef(
        "GatherND",
        _infer_gather_nd,
        _gather_nd,
        vjp=_gather_nd_vjp,
        traits=Trait.FREE | Trait.MOVING,
    ),
)
