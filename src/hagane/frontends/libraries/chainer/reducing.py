"""Functions of Chainer that reduce axes."""

from __future__ import annotations

import numpy as np

from hagane.frontends.libraries.chainer.operands import (
    INT32,
    axes,
    computed,
    floating,
    need_rank,
    of_torch,
    shape_of,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise as functions

_OPERATORS = {
    "sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin",
    "logsumexp": "ReduceLogSumExp", "mean": "ReduceMean",
}  # fmt: skip


def reduced(t: Core, operator: str, x: Tensor, axis: Value, keepdims: Value) -> Tensor:
    """Return a reduction over axes; all without any."""
    if isinstance(axis, list):
        t.fail("type", f"expected axis to be None, an integer or a tuple, got {t.show(axis)}")
    shape = shape_of(t, x)
    places = axes(t, axis, len(shape), x)
    if not places:
        return computed(t, x, lambda x: op("Identity", x), x)
    result: Tensor = t.op(
        operator, x, np.array(places, dtype=np.int64), keepdims=int(bool(keepdims))
    )
    return result


def _reduction(name: str) -> None:
    def run(t: Core, x: Value, axis: Value = None, keepdims: Value = False) -> Tensor:
        return reduced(t, _OPERATORS[name], floating(t, x), axis, keepdims)

    function(name)(run)


for _name in ("sum", "prod", "max", "min"):
    _reduction(_name)


@function("logsumexp")
def logsumexp(t: Core, x: Value, axis: Value = None) -> Tensor:
    """Return the logarithm of the sum of exponentials."""
    return reduced(t, "ReduceLogSumExp", floating(t, x), axis, False)


@function("average", "mean")
def average(
    t: Core, x: Value, axis: Value = None, weights: Value = None, keepdims: Value = False
) -> Tensor:
    """Return the mean over axes, weighted if asked for."""
    found = floating(t, x)
    if weights is not None:
        w = floating(t, weights, "weights")
        places = axes(t, axis, len(shape_of(t, found)), found)
        if axis is not None and len(places) > 1:
            t.fail("value", "a tuple of axes is not supported when weights are given", found)
        expected = shape_of(t, found) if axis is None else (shape_of(t, found)[places[0]],)
        own = shape_of(t, w)
        if len(own) != len(expected) or any(
            t.emit.differ(a, b) for a, b in zip(own, expected, strict=True)
        ):
            t.fail("shape-mismatch", f"{t.show(w)} does not weigh {t.show(found)}", w, found)
        with t.emit.types_only():
            promised = reduced(t, "ReduceMean", found, axis, keepdims)
        run = functions.weighted_mean
        return computed(t, promised, run, found, w, places, bool(keepdims))
    return reduced(t, "ReduceMean", found, axis, keepdims)


def _place(name: str, operator: str) -> None:
    def run(t: Core, x: Value, axis: Value = None) -> Tensor:
        found = floating(t, x)
        shape = shape_of(t, found)
        if isinstance(axis, list | tuple):
            t.fail("type", f"expected axis to be None or an integer, got {t.show(axis)}")
        places = axes(t, axis, len(shape), found)
        rest = tuple(n for i, n in enumerate(shape) if i not in places)
        place = None if axis is None else places[0]
        return computed(t, (INT32, rest), functions.place, found, place, operator)

    function(name)(run)


_place("argmax", "ArgMax")
_place("argmin", "ArgMin")


@function("batch_l2_norm_squared")
def batch_l2_norm_squared(t: Core, x: Value) -> Tensor:
    """Return the squared norm of each sample."""
    found = floating(t, x)
    shape = shape_of(t, found)
    if len(shape) < 2:
        t.fail("rank", f"expected (batch, features, ...), got {t.show(found)}", found)
    rest = list(range(1, len(shape)))
    run = lambda x: op("ReduceSumSquare", x, rest, keepdims=0)  # noqa: E731
    return computed(t, (found.dtype, shape[:1]), run, found)


def _square(t: Core, a: Value, name: str) -> Tensor:
    """Return a square matrix, or a batch of such where the name says so."""
    x = floating(t, a, "a")
    shape = need_rank(t, x, 3 if name.startswith("batch") else 2, "a")
    if t.emit.differ(shape[-1], shape[-2]):
        t.fail("shape-mismatch", f"{name} takes square matrices, got {t.show(x)}", x)
    return x


def _determinant(name: str) -> None:
    def run(t: Core, a: Value) -> Tensor:
        x = _square(t, a, name)
        return computed(t, (x.dtype, shape_of(t, x)[:-2]), lambda x: op("Det", x), x)

    function(name)(run)


def _factor(name: str) -> None:
    def run(t: Core, a: Value) -> Tensor:
        x = _square(t, a, name)
        return of_torch(t, "linalg.cholesky" if name == "cholesky" else "linalg.inv", x)

    function(name)(run)


for _name in ("det", "batch_det"):
    _determinant(_name)
for _name in ("inv", "batch_inv", "cholesky"):
    _factor(_name)
