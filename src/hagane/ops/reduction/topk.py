"""TopK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.ops.values import LOW_PRECISION
from hagane.symbolic import Dim


def _top_k(
    x: Array, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[Array, Array]:
    """Equal elements keep their order, the lower index first; the result is always sorted."""
    count = int(np.asarray(k).ravel()[0])
    if count > x.shape[axis]:
        raise ValueError(f"k={count} exceeds size {x.shape[axis]} of axis {axis}")
    if count < 0:
        raise ValueError(f"expected k from 0 to {x.shape[axis]}, got {count}")
    keys = x.astype(np.float32) if x.dtype in LOW_PRECISION else x  # where NumPy orders NaN
    if largest:
        # Descending and stable: sort the reversed axis ascending, then reverse the result.
        order = np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    order = np.take(order, np.arange(count), axis=axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


def _infer_top_k(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    axis = ctx.axis(ctx.attr("axis"), len(shape))
    known = ctx.data(1)
    size: Dim = ctx.fresh("k")
    if known is not None:
        size = ctx.dims(1)[0]  # type: ignore[index]
        total = shape[axis]
        if isinstance(size, int) and (size < 0 or (isinstance(total, int) and size > total)):
            ctx.fail(f"expected 0 <= k <= {total} (axis {axis} of {ctx.tensor(0)}), got {size}")
    return [(*shape[:axis], size, *shape[axis + 1 :])] * 2


def _top_k_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    target, axis = zeros_like(call.inputs[0]), call.attr("axis")
    return [op("ScatterElements", target, call.outputs[1], gradients[0], axis=axis), None]


OPERATORS = (OpDef("TopK", _infer_top_k, _top_k, vjp=_top_k_vjp),)
