"""ReduceSum, ReduceMean, ReduceMax and the rest of the family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
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
            return [tuple(ctx.fresh() for _ in shape)] if keep else [None]
    else:
        axes = ()
    if not axes and ctx.attr("noop_with_empty_axes"):
        return [shape]
    folded = {ctx.axis(axis, len(shape), "an axis") for axis in axes} or set(range(len(shape)))
    if keep:
        return [tuple(1 if axis in folded else dim for axis, dim in enumerate(shape))]
    return [tuple(dim for axis, dim in enumerate(shape) if axis not in folded)]


def _reduction(
    name: str, fold: Fold, elementwise: Callable[[Array], Array], **facets: Any
) -> OpDef:
    """Define a reduction.

    Args:
        name: The operator.
        fold: (array, axes, keepdims) to the folded array.
        elementwise: What remains of the operator when no axis is folded, as
            ``noop_with_empty_axes`` asks for.
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
        chosen = () if axes is None else tuple(int(axis) for axis in axes)
        if not chosen:
            if noop_with_empty_axes:
                return elementwise(x)
            chosen = tuple(range(x.ndim))
        return np.asarray(fold(x, chosen, bool(keepdims))).astype(x.dtype, copy=False)

    return OpDef(name, _infer_reduce, reference, traits=Trait.REDUCING, **facets)


def _mean(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    if x.dtype.kind in "iu":
        count = int(np.prod([x.shape[axis] for axis in axes]))
        return np.sum(x, axis=axes, keepdims=keep, dtype=x.dtype) // max(count, 1)
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
    return np.sqrt(_sum(np.square(x), axes, keep))


def _log_sum(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
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


OPERATORS = (
    _reduction("ReduceL1", _l1, np.abs),
    _reduction("ReduceL2", _l2, np.abs),
    _reduction("ReduceLogSum", _log_sum, np.log),
    _reduction("ReduceLogSumExp", _log_sum_exp, _itself),
    _reduction("ReduceMax", _extreme(np.max, -np.inf), _itself, data=_data(maximum, None)),
    _reduction("ReduceMean", _mean, _itself),
    _reduction("ReduceMin", _extreme(np.min, np.inf), _itself, data=_data(minimum, None)),
    _reduction("ReduceProd", _product, _itself, data=_data(lambda a, b: a * b, 1)),
    _reduction("ReduceSum", _sum, _itself, data=_data(lambda a, b: a + b, 0)),
    _reduction("ReduceSumSquare", _sum_square, np.square),
)
