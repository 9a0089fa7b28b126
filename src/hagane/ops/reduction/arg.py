"""ArgMax, ArgMin, NonZero, Unique."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import Call, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.tensors.positions import extent, put_along
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.traits import Trait
from hagane.ops.values import LOW_PRECISION, strings
from hagane.ops.vjp import DISCRETE
from hagane.symbolic import Dim, product


def _arg(function: Callable[..., Array]) -> Callable[..., Array]:
    def reference(
        x: Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Array:
        if select_last_index:
            found = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis)
        else:
            found = function(x, axis=axis)
        found = np.asarray(found, dtype=np.int64)
        return np.expand_dims(found, axis) if keepdims else found

    return reference


def _infer_arg(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    axis = ctx.axis(ctx.attr("axis"), len(shape))
    if shape[axis] == 0:
        ctx.fail(f"axis {axis} of {ctx.tensor(0)} is empty: there is no largest element")
    kept = (1,) if ctx.attr("keepdims") else ()
    return [(*shape[:axis], *kept, *shape[axis + 1 :])]


def _infer_non_zero(ctx: InferContext) -> Sequence[Any]:
    rank = ctx.known_rank(0)
    # A scalar counts as a vector of one element.
    rows = ctx.fresh("rank") if rank is None else max(rank, 1)
    return [(rows, ctx.fresh("nonzero"))]


def _non_zero(x: Array) -> Array:
    return np.array(np.nonzero(np.atleast_1d(x)), dtype=np.int64)


def _ranked(x: Array) -> tuple[list[str], Array]:
    """Return the texts of an array in order, and the place of each element among them.

    NumPy's own texts have no zeros at their end.
    """
    words = sorted(set(x.ravel().tolist()))
    places = {word: i for i, word in enumerate(words)}
    return words, np.array([places[word] for word in x.ravel()], np.int64).reshape(x.shape)


def _unique(
    x: Array, *, axis: int | None = None, sorted: int = 1, n_outputs: int = 4
) -> tuple[Array, ...]:
    if x.dtype == object:
        words, ranks = _ranked(x)
        y, first, inverse, counts = np.unique(
            ranks, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        y = strings(words)[y] if words else np.empty(y.shape, object)
    else:
        keys = x.astype(np.float32) if x.dtype in LOW_PRECISION else x  # where NaN is NaN's equal
        y, first, inverse, counts = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        y = y.astype(x.dtype)
    inverse = inverse.ravel()
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        y = np.take(y, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    outputs = (y, *(v.astype(np.int64) for v in (first, inverse, counts)))
    return outputs[:n_outputs]


def _infer_unique(ctx: InferContext) -> Sequence[Any]:
    count = ctx.fresh("unique")
    axis = ctx.attr("axis")
    if axis is None:
        first: Any = (count,)
        total: Dim = ctx.fresh()
        if ctx.known_rank(0) is not None:
            total = product(ctx.shape(0))
    else:
        shape = ctx.shape(0)
        axis = ctx.axis(axis, len(shape))
        first = (*shape[:axis], count, *shape[axis + 1 :])
        total = shape[axis]
    indices = [TensorType(ir.DataType.INT64, (dim,)) for dim in (count, total, count)]
    return [first, *indices]


def _unique_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """The first of equal elements stands for all of them."""
    (x,), axis = call.inputs, call.attr("axis")
    first = op("Unique", x, outputs=2, **call.attributes)[1]
    if axis is not None:
        axis %= rank_of(x)
        return [put_along(gradients[0], first, extent(x, axis), axis)]
    size = extent(op("Reshape", x, [-1]), 0)
    return [reshape_like(put_along(gradients[0], first, size, 0), x)]


OPERATORS = (
    OpDef("ArgMax", _infer_arg, _arg(np.argmax), vjp=DISCRETE),
    OpDef("ArgMin", _infer_arg, _arg(np.argmin), vjp=DISCRETE),
    OpDef("NonZero", _infer_non_zero, _non_zero, vjp=DISCRETE, traits=Trait.FREE),
    OpDef("Unique", _infer_unique, _unique, vjp=_unique_vjp),
)
