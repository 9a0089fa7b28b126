"""Functions of PyTorch that reduce axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    INT64,
    as_float,
    axes,
    cast,
    category,
    dtype_of,
    element_type,
    elements,
    need_float,
    need_tensor,
    real_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import own
from hagane.frontends.python.values.values import (
    Tensor,
    Truth,
    Value,
)
from hagane.ops.functions.sums import linalg, statistics
from hagane.ops.functions.tensors import ordering
from hagane.symbolic import definitely_different, maximum
from hagane.symbolic.logic import both

# Reductions of one floating-point number that are this number.
_SELF = ("ReduceSum", "ReduceProd", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp")


# The types in which narrow integers and truth values are reduced, modulo their own.
_WIDENED = {
    "ReduceMax": ir.DataType.INT32, "ReduceMin": ir.DataType.INT32,
    "ReduceSum": INT64, "ReduceProd": INT64,
}  # fmt: skip


def reduced(
    t: Core, operator: str, x: Tensor, dim: Value, keepdim: Value, dtype: ir.DataType
) -> Tensor:
    """Return the type of a reduction; ``operator`` is one of ONNX's where the type is its own."""
    places = axes(t, dim, len(shape_of(t, x)), x)
    if not shape_of(t, x):  # a tensor without axes reduces to itself along axis 0
        if operator in _SELF and x.dtype == dtype:
            made: Tensor = t.op("Identity", x)
            own(made.value)
            return made
        return t.emit.typed(operator or "Reduce", [x], dtype, ())
    numbers = np.array(places, dtype=np.int64)
    supported = category(x.dtype) == 2 or x.dtype in (INT64, ir.DataType.INT32)
    if operator and x.dtype == dtype and supported and places:
        return t.op(operator, x, numbers, keepdims=int(bool(keepdim)))
    if operator in _WIDENED and x.dtype == dtype and category(dtype) < 2 and places:
        wide = cast(t, x, _WIDENED[operator])
        return cast(t, reduced(t, operator, wide, dim, keepdim, wide.dtype), dtype)
    shape = tuple(
        1 if place in places else size_
        for place, size_ in enumerate(shape_of(t, x))
        if keepdim or place not in places
    )
    return t.emit.typed(operator or "Reduce", [x], dtype, shape)


def over_axes(
    t: Core, made: Tensor, x: Tensor, dim: Value, keepdim: Value, function: Callable[..., Any],
    *operands: Any,
) -> Tensor:  # fmt: skip
    """Return a reduction that a function over the builder computes from the axes.

    Args:
        t: The interpreter.
        made: The type of the result.
        x: The tensor.
        dim: The axes as the program gave them.
        keepdim: Whether they stay with size 1.
        function: Called with the tensor, the axes, whether they stay, and the operands.
        operands: Its other arguments.
    """
    places = axes(t, dim, len(shape_of(t, x)), x) if shape_of(t, x) else []
    return computed(t, made, function, x, places, bool(keepdim), *operands)


def dims_of(t: Core, dim: Value, keywords: dict[str, Value]) -> Value:
    """Return the axes, which may come under NumPy's name; no other names are left."""
    unknown = set(keywords) - {"axis", "keepdims", "out", "unbiased", "correction"}
    if unknown:
        t.fail("call", f"unexpected keyword argument '{min(unknown)}'")
    return keywords.get("axis", dim)


def _sum_like(name: str, operator: str) -> None:
    def function(
        t: Core,
        input: Value,
        dim: Value = None,
        keepdim: Value = False,
        *,
        dtype: Value = None,
        **keywords: Value,
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        if element_type(dim) is not None:
            dim, dtype = None, dim
        wanted = dtype_of(dtype, INT64 if category(x.dtype) < 2 else x.dtype)
        x = cast(t, x, wanted)
        keep = keywords.get("keepdims", keepdim)
        if name == "nansum" and category(wanted) == 2:
            x = computed(t, x, statistics.without_nan, x)
        return reduced(t, operator, x, dims_of(t, dim, keywords), keep, wanted)

    TORCH.function(name, methods=(name,))(function)


for _name, _operator in (("sum", "ReduceSum"), ("prod", "ReduceProd"), ("nansum", "ReduceSum")):
    _sum_like(_name, _operator)


def _mean_like(name: str, operator: str) -> None:
    def function(
        t: Core,
        input: Value,
        dim: Value = None,
        *arguments: Value,
        keepdim: Value = False,
        dtype: Value = None,
        **keywords: Value,
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        x = cast(t, x, dtype_of(dtype, x.dtype))
        if isinstance(dim, bool):
            dim = None
        if category(x.dtype) < 2:
            t.fail(
                "dtype-mismatch",
                f"{name}() takes floats, got {t.show(x)}",
                x,
                remedy="convert it with .float()",
            )
        keep = arguments[0] if arguments and isinstance(arguments[0], bool) else keepdim
        keep = keywords.get("keepdims", keep)
        axes_ = dims_of(t, dim, keywords)
        found = reduced(t, operator, x, axes_, keep, x.dtype)
        if name == "mean":
            return found
        made = t.emit.typed("NanMean", [x], x.dtype, found.shape)
        return over_axes(t, made, x, axes_, keep, statistics.mean_of_numbers)

    TORCH.function(name, methods=(name,))(function)


for _name in ("mean", "nanmean"):
    _mean_like(_name, "ReduceMean")


def _spread(name: str) -> None:
    function_of = statistics.variance if name == "var" else statistics.deviation

    def function(
        t: Core, input: Value, dim: Value = None, *arguments: Value, keepdim: Value = False,
        **keywords: Value,
    ) -> Tensor:  # fmt: skip
        x = need_tensor(t, input, "input")
        if category(x.dtype) < 2:
            t.fail("dtype-mismatch", f"{name}() takes floats, got {t.show(x)}", x,
                   remedy="convert it with .float()")  # fmt: skip
        unbiased: Value = True
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        elif arguments:  # the second positional argument is 'unbiased', the third 'keepdim'
            unbiased = arguments[0]
        keepdim = arguments[1] if len(arguments) > 1 else keepdim
        unbiased = keywords.get("unbiased", unbiased)
        correction = keywords.get("correction", int(bool(unbiased)))
        keep, places = keywords.get("keepdims", keepdim), dims_of(t, dim, keywords)
        found = reduced(t, "ReduceMean", x, places, keep, x.dtype)
        made = t.emit.typed(name, [x], real_dtype(x.dtype), found.shape)
        if made.dtype != x.dtype:
            return made
        correction = 1 if correction is None else correction
        return over_axes(t, made, x, places, keep, function_of, correction)

    TORCH.function(name, methods=(name,))(function)


_spread("std")
_spread("var")


@TORCH.function("logsumexp", "special.logsumexp", methods=("logsumexp",))
def logsumexp(t: Core, input: Value, dim: Value, keepdim: Value = False) -> Tensor:
    """Return the logarithm of the sum of exponentials."""
    x = as_float(t, need_tensor(t, input, "input"))
    return reduced(t, "ReduceLogSumExp", x, dim, keepdim, x.dtype)


def _spread_and_mean(name: str) -> None:
    def function(
        t: Core, input: Value, dim: Value = None, unbiased: Value = True, keepdim: Value = False,
        *, correction: Value = None,
    ) -> Value:  # fmt: skip
        x = need_tensor(t, input, "input")
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        need_float(t, x, "input")
        mean = reduced(t, "ReduceMean", x, dim, keepdim, x.dtype)
        made = t.emit.typed(name, [x], real_dtype(x.dtype), mean.shape)
        if made.dtype != x.dtype:
            return (made, mean)
        correction = int(bool(unbiased)) if correction is None else correction
        function_of = statistics.variance if name == "var" else statistics.deviation
        return (over_axes(t, made, x, dim, keepdim, function_of, correction), mean)

    TORCH.function(f"{name}_mean")(function)


_spread_and_mean("var")
_spread_and_mean("std")


@TORCH.function("norm", methods=("norm",))
def norm(
    t: Core,
    input: Value,
    p: Value = None,
    dim: Value = None,
    keepdim: Value = False,
    dtype: Value = None,
    out: Value = None,
) -> Tensor:
    """Return the norm over axes."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    made = reduced(t, "", x, dim, keepdim, real_dtype(dtype_of(dtype, x.dtype)))
    order = {None: 2, "fro": 2}.get(p, p)
    if category(x.dtype) == 3 or not isinstance(order, int | float):
        return made
    if not shape_of(t, x):  # a vector of one element
        return computed(t, made, statistics.norm, cast(t, x, made.dtype), [], False, order)
    return over_axes(t, made, cast(t, x, made.dtype), dim, keepdim, statistics.norm, order)


@TORCH.function("linalg.vector_norm")
def vector_norm(
    t: Core, x: Value, ord: Value = 2, dim: Value = None, keepdim: Value = False, *,
    dtype: Value = None,
) -> Tensor:  # fmt: skip
    """Return the norm of vectors along axes."""
    return norm(t, x, ord, dim, keepdim, dtype)


@TORCH.function("linalg.norm")
def linalg_norm(
    t: Core, A: Value, ord: Value = None, dim: Value = None, keepdim: Value = False, *,
    dtype: Value = None,
) -> Tensor:  # fmt: skip
    """Return the norm of vectors or matrices along axes."""
    x = need_tensor(t, A, "A")
    pair = len(dim) == 2 if isinstance(dim, tuple | list) else dim is None and x.rank == 2
    if pair and ord is not None:
        return matrix_norm(t, A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return norm(t, A, ord, dim, keepdim, dtype)


@TORCH.function("linalg.matrix_norm")
def matrix_norm(
    t: Core, A: Value, ord: Value = "fro", dim: Value = (-2, -1), keepdim: Value = False, *,
    dtype: Value = None,
) -> Tensor:  # fmt: skip
    """Return the norm of matrices."""
    x = need_tensor(t, A, "A")
    if ord == "fro" or category(x.dtype) != 2 or not isinstance(ord, int | float | str):
        return norm(t, A, "fro" if ord == "fro" else "nuc", dim, keepdim, dtype)
    if ord not in linalg.MATRIX_ORDERS:
        told = ", ".join(map(str, linalg.MATRIX_ORDERS))
        t.fail("value", f"expected one of {told} as order of a norm of matrices, got {ord!r}", x)
    made = reduced(t, "", x, dim, keepdim, real_dtype(dtype_of(dtype, x.dtype)))
    order = ord if isinstance(ord, str) else float(ord)
    return over_axes(t, made, cast(t, x, made.dtype), dim, keepdim, linalg.matrix_norm, order)


@TORCH.function("dist", methods=("dist",))
def dist(t: Core, input: Value, other: Value, p: Value = 2) -> Tensor:
    """Return the norm of the difference of two tensors."""
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import binary

    return norm(t, binary(t, "sub", input, other), p)


def _quantile_of(name: str, *, skip: bool) -> None:
    def function(
        t: Core, input: Value, q: Value, dim: Value = None, keepdim: Value = False, *,
        interpolation: Value = "linear",
    ) -> Tensor:  # fmt: skip
        for one in q if isinstance(q, list | tuple) else [q]:
            if isinstance(one, int | float) and not 0 <= one <= 1:
                t.fail("value", f"expected q between 0 and 1, got {one}")
        return _quantile(t, input, q, dim, keepdim, interpolation, skip=skip)

    TORCH.function(name, methods=(name,))(function)


_quantile_of("quantile", skip=False)
_quantile_of("nanquantile", skip=True)


def _quantile(
    t: Core, input: Value, q: Value, dim: Value, keepdim: Value, interpolation: Value, *,
    skip: bool,
) -> Tensor:  # fmt: skip
    """Return quantiles along an axis; several come in a first axis."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    found = reduced(t, "", x, dim, keepdim, x.dtype)
    front = shape_of(t, q) if isinstance(q, Tensor) else ()
    if isinstance(q, Tensor) and q.dtype != x.dtype:
        t.fail("dtype-mismatch", f"expected q of the input's type, got {t.show(q)}", x, q)
    made = (x.dtype, (*front, *shape_of(t, found)))
    methods = ("linear", "lower", "higher", "midpoint", "nearest")
    if not isinstance(q, Tensor | float | int) or interpolation not in methods:
        return t.emit.typed("Quantile", [x], *made)
    places = axes(t, dim, len(shape_of(t, x)), x) if shape_of(t, x) else []
    share = q if isinstance(q, Tensor) else np.array(q, x.dtype.numpy())
    return built(
        t, made, lambda x: ordering.quantiles(
            x, share, places, bool(keepdim), interpolation, skip=skip), x,
    )  # fmt: skip


def _truth(name: str) -> None:
    def function(
        t: Core, input: Value, dim: Value = None, keepdim: Value = False, **_: Value
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        made = reduced(t, "", x, dim, keepdim, BOOL)
        if category(x.dtype) == 3 or name not in ("any", "all"):
            return made
        function_of = statistics.any_true if name == "any" else statistics.all_true
        found = over_axes(t, made, x, dim, keepdim, function_of)
        return cast(t, found, x.dtype) if x.dtype == ir.DataType.UINT8 else found

    TORCH.function(name, methods=(name,))(function)


_truth("any")
_truth("all")


@TORCH.function("count_nonzero", methods=("count_nonzero",))
def count_nonzero(t: Core, input: Value, dim: Value = None) -> Tensor:
    """Return how many elements are not zero."""
    x = need_tensor(t, input, "input")
    made = reduced(t, "", x, dim, False, INT64)
    return made if category(x.dtype) == 3 else over_axes(t, made, x, dim, False, statistics.count)


@TORCH.function("numel", methods=("numel", "nelement"))
def numel(t: Core, input: Value) -> Value:
    """Return the number of elements."""
    shape_of(t, input)
    return elements(input)


@TORCH.function("equal", methods=("equal",))
def equal(t: Core, input: Value, other: Value) -> Value:
    """Return whether two tensors hold the same."""
    a, b = need_tensor(t, input, "input"), need_tensor(t, other, "other")
    if a.shape is None or b.shape is None:
        return Truth(t.unknown_truth())
    if len(a.shape) != len(b.shape) or any(map(definitely_different, a.shape, b.shape)):
        return False
    if a.shape != b.shape and not t.emit.builds:
        return Truth(t.unknown_truth())
    alike = [t.knowledge.equal(m, n) for m, n in zip(a.shape, b.shape, strict=True)]
    for place, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)):
        if m != n:  # where sizes differ the tensors do; of one size they can be compared
            turns = t.call_library(
                "torch.remainder", [t.call_library("torch.arange", [m]), maximum(n, 1)]
            )
            b = t.call_library("torch.index_select", [b, place, turns])
    same = t.as_term(t.truth(t.call_library("torch.all", [t.call_library("torch.eq", [a, b])])))
    return t.as_truth(reduce(both, alike, same))


@TORCH.function("allclose", methods=("allclose",))
def allclose(
    t: Core, input: Value, other: Value, rtol: Value = 1e-5, atol: Value = 1e-8,
    equal_nan: Value = False,
) -> Value:  # fmt: skip
    """Return whether two tensors are nearly equal."""
    near = t.call_library("torch.isclose", [input, other, rtol, atol, equal_nan])
    return t.as_truth(t.as_term(t.truth(t.call_library("torch.all", [near]))))
