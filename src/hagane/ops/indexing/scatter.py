"""ScatterElements, ScatterND, TensorScatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, div, mask_like, mul, where
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.functions.tensors.shapes import filled_like, zeros_like
from hagane.ops.indexing.gather import checked, grid, tuples
from hagane.ops.precision import widened

_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _write(target: Array, index: tuple[Any, ...], updates: Array, reduction: str) -> None:
    if reduction == "none":
        target[index] = updates
    else:
        _REDUCTIONS[reduction].at(target, index, updates)


@widened
def _scatter_elements(
    x: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none"
) -> Array:
    result = x.copy()
    _write(result, grid(checked(indices, x.shape[axis], axis), axis), updates, reduction)
    return result


@widened
def _scatter_nd(x: Array, indices: Array, updates: Array, *, reduction: str = "none") -> Array:
    result = x.copy()
    _write(result, tuples(indices, x.shape), updates, reduction)
    return result


def _check_reduction(ctx: InferContext) -> None:
    reduction = ctx.attr("reduction")
    if reduction not in ("none", *_REDUCTIONS):
        ctx.fail(f"expected reduction to be none, {', '.join(_REDUCTIONS)}, got '{reduction}'")


def _infer_scatter_elements(ctx: InferContext) -> Sequence[Any]:
    _check_reduction(ctx)
    shape, indices, updates = (ctx.shape(i) for i in range(3))
    if not len(shape) == len(indices) == len(updates):
        ctx.fail(f"expected data, indices and updates of one rank, got {ctx.inputs_text()}")
    ctx.axis(ctx.attr("axis"), len(shape))
    for axis, (left, right) in enumerate(zip(indices, updates, strict=True)):
        ctx.unify(left, right, f"expected indices and updates of one shape (axis {axis})")
    return [shape]


def _infer_scatter_nd(ctx: InferContext) -> Sequence[Any]:
    _check_reduction(ctx)
    shape = ctx.shape(0)
    indices, updates = ctx.tensor(1).shape, ctx.tensor(2).shape
    if indices and updates is not None and isinstance(indices[-1], int):
        expected = (*indices[:-1], *shape[indices[-1] :])
        if indices[-1] > len(shape) or len(expected) != len(updates):
            ctx.fail(f"expected updates to have {len(expected)} axes, got {ctx.inputs_text()}")
        for axis, (left, right) in enumerate(zip(expected, updates, strict=True)):
            ctx.unify(left, right, f"expected updates of size {left} on axis {axis}")
    return [shape]


def _scatter_nd_data(ctx: InferContext) -> Sequence[Array | None]:
    value, indices, updates = ctx.data(0), ctx.constant(1), ctx.data(2)
    if value is None or indices is None or updates is None or ctx.attr("reduction") != "none":
        return [None]
    result = value.astype(object)
    # An array of objects would take an array without axes as its element.
    result[tuples(indices, value.shape)] = updates if updates.ndim else updates.item()
    return [result]


def _tensor_scatter(
    cache: Array,
    update: Array,
    write_indices: Array | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Array:
    result = cache.copy()
    along = axis % cache.ndim
    length, room = update.shape[along], cache.shape[along]
    for entry in range(cache.shape[0]):
        start = 0 if write_indices is None else int(write_indices[entry])
        positions = np.arange(start, start + length)
        if mode == "circular" and start >= 0:
            positions %= room
        elif start < 0 or start + length > room:
            raise IndexError(
                f"positions {start} to {start + length} of batch entry {entry} lie outside the "
                f"cache of {room}"
            )
        np.moveaxis(result[entry], along - 1, 0)[positions] = np.moveaxis(
            update[entry], along - 1, 0
        )
    return result


def _infer_tensor_scatter(ctx: InferContext) -> Sequence[Any]:
    shape, update = ctx.shape(0), ctx.shape(1)
    if len(shape) != len(update):
        ctx.fail(f"expected cache and update of one rank, got {ctx.inputs_text()}")
    along = ctx.axis(ctx.attr("axis"), len(shape))
    if along == 0:
        ctx.fail("axis 0 is the batch and cannot be written along")
    for axis, (left, right) in enumerate(zip(shape, update, strict=True)):
        if axis != along:
            ctx.unify(left, right, f"expected cache and update to agree on axis {axis}")
    if ctx.has(2):
        ctx.unify(ctx.shape(2, rank=1)[0], shape[0], "expected one place a row of the batch")
    return [shape]


def _scatter_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Where positions repeat without a reduction, which update stays is left open."""
    (x, indices, updates), (y,), (g,) = call.inputs, call.outputs, gradients
    kept = {"axis": call.attr("axis")} if call.op.name == "ScatterElements" else {}
    reduction = call.attr("reduction")

    def gather(value: Any) -> Any:
        return op("GatherElements" if kept else "GatherND", value, indices, **kept)

    def scatter(target: Any, values: Any, how: str) -> Any:
        return op(call.op.name, target, indices, values, reduction=how, **kept)

    if reduction == "none":
        return [
            lambda: scatter(g, zeros_like(updates), "none"),
            None,
            lambda: gather(g),
        ]
    if reduction == "add":
        return [g, None, lambda: gather(g)]
    if reduction == "mul":

        def of_updates() -> Any:
            zero = op("Equal", updates, 0)
            safe = where(zero, 1, updates)
            others = gather(scatter(x, safe, "mul"))
            zeros = gather(scatter(zeros_like(x), mask_like(zero, x), "add"))
            beside_zero = where(op("Equal", zeros, 1), others, 0)
            beside_none = div(where(op("Equal", zeros, 0), others, 0), safe)
            return mul(gather(g), where(zero, beside_zero, beside_none))

        return [lambda: mul(g, scatter(filled_like(x, 1), updates, "mul")), None, of_updates]
    hits, chosen = mask_like(op("Equal", x, y), x), mask_like(op("Equal", updates, gather(y)), x)
    share = div(g, scatter(hits, chosen, "add"))
    return [lambda: mul(share, hits), None, lambda: mul(gather(share), chosen)]


def _tensor_scatter_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    cache, update, *rest = call.inputs
    (g,), rank = gradients, rank_of(cache)
    axis = call.attr("axis") % rank

    def of_cache() -> Any:
        return op("TensorScatter", g, zeros_like(update), *rest, **call.attributes)

    def of_update() -> Any:
        steps = op("Unsqueeze", positions_along(update, axis), [0])
        batch = op("Shape", cache, end=1)
        start = rest[0] if rest and rest[0] is not None else op("Expand", [0], batch)
        places = add(op("Unsqueeze", start, [1]), steps)
        if call.attr("mode") == "circular":
            places = op("Mod", places, op("Shape", cache, start=axis, end=axis + 1))
        order = [0, axis, *(i for i in range(1, rank) if i != axis)]
        taken = op(
            "GatherND", op("Transpose", g, perm=order), op("Unsqueeze", places, [2]), batch_dims=1
        )
        return op("Transpose", taken, perm=sorted(range(rank), key=lambda i: order[i]))

    return [of_cache, of_update, *(None for _ in rest)]


OPERATORS = (
    OpDef("ScatterElements", _infer_scatter_elements, _scatter_elements, vjp=_scatter_vjp),
    OpDef("ScatterND", _infer_scatter_nd, _scatter_nd, data=_scatter_nd_data, vjp=_scatter_vjp),
    OpDef("TensorScatter", _infer_tensor_scatter, _tensor_scatter, vjp=_tensor_scatter_vjp),
)
