"""ReduceSum, ReduceMean, ReduceMax and the rest of the family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from hagane.graph.types import Shape
from hagane.ops.builder import Call, content_of, dtype_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import (
    cast,
    div,
    exp,
    mask_like,
    mul,
    sub,
    where,
)
from hagane.ops.functions.tensors.shapes import expand_like
from hagane.ops.precision import widened
from hagane.ops.rules import exact
from hagane.ops.traits import Trait
from hagane.symbolic import maximum, minimum

Fold = Callable[[Array, tuple[int, ...], bool], Array]


def _infer_reduce(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    keep = bool(ctx.attr("keepdims"))
    if ctx.has(1):
        axes = ctx.ints(1)
        if axes is None:
            return [_of_unknown_axes(ctx, shape, keep)]
    else:
        axes = ()
    if not axes and ctx.attr("noop_with_empty_axes"):
        return [shape]
    folded = {ctx.axis(axis, len(shape), "an axis") for axis in axes} or set(range(len(shape)))
    if keep:
        return [tuple(1 if axis in folded else dim for axis, dim in enumerate(shape))]
    return [tuple(dim for axis, dim in enumerate(shape) if axis not in folded)]


def _of_unknown_axes(ctx: InferContext, shape: Shape, keep: bool) -> Shape | None:
    """Return as much of the result's shape as the number of axes tells."""
    given = ctx.tensor(1).shape
    count = given[0] if given else None
    if count == 0:
        if ctx.attr("noop_with_empty_axes"):
            return shape
        count = len(shape)
    if keep:
        return tuple(ctx.fresh() for _ in shape)
    if not isinstance(count, int) or count > len(shape):
        return None
    return tuple(ctx.fresh() for _ in range(len(shape) - count))


def _different(axes: Array, rank: int) -> tuple[int, ...]:
    """Return axes counted from the front; one that is named twice is folded once."""
    for axis in axes.flat:
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} is out of range for {rank} axes")
    return tuple(dict.fromkeys(int(axis) % rank for axis in axes.flat))


def _reduction(
    name: str,
    fold: Fold,
    elementwise: Callable[[Array], Array],
    gradient: Callable[[Any, Any, Any, Callable[[str, Any], Any]], Any],
    **facets: Any,
) -> OpDef:
    """Define a reduction.

    Args:
        name: The operator.
        fold: (array, axes, keepdims) to the folded array.
        elementwise: The operator where no axis is folded, as
            ``noop_with_empty_axes`` asks for.
        gradient: Maps the gradient of the result, the operand and the result, of which the first
            and the last have the folded axes again, and the fold of another value over the same
            axes, to the gradient of the operand.
        facets: Further fields of the definition.
    """

    @widened
    def reference(
        x: Array,
        axes: Array | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Array:
        chosen = () if axes is None else _different(axes, x.ndim)
        if not chosen:
            if noop_with_empty_axes:
                return elementwise(x)
            chosen = tuple(range(x.ndim))
        return np.asarray(fold(x, chosen, bool(keepdims))).astype(x.dtype, copy=False)

    def vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
        x, axes = (*call.inputs, None)[:2]
        folded = _folded_axes(call, axes, rank_of(x))

        def again(name: str, value: Any) -> Any:
            kept = {"keepdims": 1, "noop_with_empty_axes": call.attr("noop_with_empty_axes")}
            return op(name, value, axes, **kept)

        def with_axes(value: Any) -> Any:
            return value if call.attr("keepdims") else op("Unsqueeze", value, folded)

        result = gradient(with_axes(gradients[0]), x, with_axes(call.outputs[0]), again)
        return [result, *(None for _ in call.inputs[1:])]

    return OpDef(name, _infer_reduce, reference, vjp=vjp, **facets, traits=Trait.REDUCING)


def _folded_axes(call: Call, axes: Any, rank: int) -> Any:
    """Return the folded axes: numbers, or a value that holds them."""
    known = None if axes is None else content_of(axes)
    if axes is not None and known is None:
        return axes
    chosen = () if known is None else tuple(int(axis) % rank for axis in known)
    if not chosen and not call.attr("noop_with_empty_axes"):
        chosen = tuple(range(rank))
    return chosen


def _mean(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    if x.dtype.kind in "iu":
        count = int(np.prod([x.shape[axis] for axis in axes]))
        total, count = np.sum(x, axis=axes, keepdims=keep), max(count, 1)
        return total // count + ((total < 0) & (total % count != 0))  # towards zero
    return np.mean(x, axis=axes, keepdims=keep)


def _extreme(function: Callable[..., Array], least: float) -> Fold:
    def fold(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
        if x.dtype == np.bool_:
            return function(x, axis=axes, keepdims=keep, initial=least > 0)
        if x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            start: Any = limits.min if least < 0 else limits.max
        else:
            start = least
        return function(x, axis=axes, keepdims=keep, initial=start)

    return fold


def _log_sum_exp(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    # Shifted by the maximum so that the largest exponential is 1 (infinities left alone).
    x = x.astype(np.float64) if x.dtype.kind in "iu" else x
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - shift), axis=axes, keepdims=True)) + shift
    return total if keep else np.squeeze(total, axes)


def _sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _product(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _sum_square(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return _sum(np.square(x), axes, keep)


def _l1(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    return _sum(np.abs(x), axes, keep)


def _l2(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    if x.dtype.kind in "iu":  # squares of whole numbers leave their type
        root = np.sqrt(_sum(np.square(x.astype(np.float64)), axes, keep))
        return np.minimum(root, np.nextafter(float(np.iinfo(x.dtype).max) + 1, 0))
    return np.sqrt(_sum(np.square(x), axes, keep))


def _log_sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    if x.dtype.kind in "iu":  # sums of whole numbers in 64 bits
        x = x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)
    return np.log(_sum(x, axes, keep))


def _itself(x: Array) -> Array:
    return x


def _data(rule: Callable[..., Any], start: Any) -> Callable[[InferContext], Sequence[Array | None]]:
    """Fold a known vector of dimensions."""

    def data(ctx: InferContext) -> Sequence[Array | None]:
        value = ctx.data(0)
        if value is None or value.ndim != 1 or (ctx.has(1) and ctx.ints(1) not in ((0,), (-1,))):
            return [None]
        items = list(exact(value))
        if not items and start is None:
            return [None]
        folded = reduce(rule, items) if start is None else reduce(rule, items, start)
        result = np.empty(1 if ctx.attr("keepdims") else (), dtype=object)
        result[...] = folded
        return [result]

    return data


Again = Callable[[str, Any], Any]


def _sum_gradient(g: Any, x: Any, y: Any, again: Again) -> Any:
    return expand_like(g, x)


def _mean_gradient(g: Any, x: Any, y: Any, again: Again) -> Any:
    return expand_like(div(g, _count(x, y)), x)


def _count(x: Any, y: Any) -> Any:
    """Return how many elements of ``x`` were folded into each of ``y``."""
    whole, folded = math.prod(shape_of(x)), math.prod(shape_of(y))
    if isinstance(whole, int) and isinstance(folded, int):
        return whole / max(folded, 1)
    return cast(div(op("Size", x), op("Max", op("Size", y), 1)), dtype_of(x))


def _extreme_gradient(g: Any, x: Any, y: Any, again: Again) -> Any:
    """Elements that reach the extreme share its gradient equally."""
    hits = mask_like(op("Equal", x, y), x)
    return mul(hits, div(g, again("ReduceSum", hits)))


def _product_gradient(g: Any, x: Any, y: Any, again: Again) -> Any:
    """Return the product of all others, by way of the non-zero ones."""
    zero = op("Equal", x, 0)
    safe = where(zero, 1, x)
    others, zeros = again("ReduceProd", safe), again("ReduceSum", mask_like(zero, x))
    beside_zero = where(op("Equal", zeros, 1), others, 0)
    beside_none = div(where(op("Equal", zeros, 0), others, 0), safe)
    return mul(g, where(zero, beside_zero, beside_none))


def _l2_gradient(g: Any, x: Any, y: Any, again: Again) -> Any:
    return mul(g, div(x, where(op("Equal", y, 0), 1, y)))


def _log_sum_exp_gradient(g: Any, x: Any, y: Any, again: Again) -> Any:
    # Where everything is minus infinity, so is the result, and no element has a share.
    return mul(g, exp(sub(x, where(op("Equal", y, -math.inf), 0, y))))


OPERATORS = (
    _reduction("ReduceL1", _l1, np.abs, lambda g, x, y, again: mul(g, op("Sign", x))),
    _reduction("ReduceL2", _l2, np.abs, _l2_gradient),
    _reduction(
        "ReduceLogSum",
        _log_sum,
        np.log,
        lambda g, x, y, again: expand_like(div(g, again("ReduceSum", x)), x),
    ),
    _reduction("ReduceLogSumExp", _log_sum_exp, _itself, _log_sum_exp_gradient),
    _reduction(
        "ReduceMax",
        _extreme(np.max, -np.inf),
        _itself,
        _extreme_gradient,
        data=_data(maximum, None),
    ),
    _reduction("ReduceMean", _mean, _itself, _mean_gradient),
    _reduction(
        "ReduceMin",
        _extreme(np.min, np.inf),
        _itself,
        _extreme_gradient,
        data=_data(minimum, None),
    ),
    _reduction(
        "ReduceProd", _product, _itself, _product_gradient, data=_data(lambda a, b: a * b, 1)
    ),
    _reduction("ReduceSum", _sum, _itself, _sum_gradient, data=_data(lambda a, b: a + b, 0)),
    _reduction("ReduceSumSquare", _sum_square, np.square, lambda g, x, y, again: mul(g, mul(x, 2))),
)
