"""Extremes, their places and ordered values along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.torch.functions.numbers.reducing import dims_of, over_axes, reduced
from hagane.frontends.libraries.torch.operands import (
    INT64,
    axes,
    axis,
    category,
    need_tensor,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Fields,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.definition import Array
from hagane.ops.functions.sums import statistics
from hagane.ops.functions.tensors import ordering
from hagane.symbolic import Expr, symbols_of


def _expect_some(t: Core, x: Tensor, dim: Value) -> None:
    """Expect elements along an axis of which one is chosen."""
    if not x.shape:
        return
    for place in axes(t, dim, len(x.shape), x):
        size = x.shape[place]
        if not isinstance(size, Expr) or not t.knowledge.invented & symbols_of(size):
            t.emit.require_size(size, 1, "number of elements to choose from")


def _extreme(name: str) -> None:
    operator = "ReduceMax" if name in ("max", "amax", "cummax") else "ReduceMin"

    def function(
        t: Core, input: Value, dim: Value = None, keepdim: Value = False, *, out: Value = None,
        **keywords: Value,
    ) -> Value:  # fmt: skip
        x = need_tensor(t, input, "input")
        dim = dims_of(t, dim, keywords)
        if isinstance(dim, Tensor):
            return t.call_library(f"torch.{name}imum", [x, dim])
        _expect_some(t, x, dim)
        if dim is None:
            known = x.known
            result = reduced(t, operator, x, None, False, x.dtype)
            if known is not None and known.size and known.dtype == object:
                result.known = _known_extreme(name, known)
            return result
        values = reduced(t, operator, x, dim, keepdim, x.dtype)
        indices = t.emit.typed("ArgMax", [x], INT64, values.shape)
        indices = over_axes(t, indices, x, dim, keepdim, statistics.position, name)
        if t.emit.training is not None and category(x.dtype) == 2 and x.shape:
            place = axis(t, dim, len(x.shape), x)
            values = computed(t, values, statistics.at_position, values, x, indices, place,
                              bool(keepdim))  # fmt: skip
        return Fields((values, indices), ("values", "indices"))

    TORCH.function(name, methods=(name,))(function)


def _known_extreme(name: str, known: Array) -> Array:
    from hagane.symbolic import maximum, minimum

    result = np.empty((), dtype=object)
    result[()] = (maximum if name == "max" else minimum)(*known.ravel())
    return result


_extreme("max")
_extreme("min")


def _plain_extreme(name: str, operator: str) -> None:
    def function(t: Core, input: Value, dim: Value = (), keepdim: Value = False) -> Tensor:
        x = need_tensor(t, input, "input")
        _expect_some(t, x, dim)
        return reduced(t, operator, x, dim, keepdim, x.dtype)

    TORCH.function(name, methods=(name,))(function)


_plain_extreme("amax", "ReduceMax")
_plain_extreme("amin", "ReduceMin")


@TORCH.function("aminmax", methods=("aminmax",))
def aminmax(t: Core, input: Value, *, dim: Value = None, keepdim: Value = False) -> Value:
    """Return the smallest and the largest elements."""
    x = need_tensor(t, input, "input")
    _expect_some(t, x, dim)
    pair = [reduced(t, op, x, dim, keepdim, x.dtype) for op in ("ReduceMin", "ReduceMax")]
    return Fields(tuple(pair), ("min", "max"))


def _arg(name: str) -> None:
    def function(t: Core, input: Value, dim: Value = None, keepdim: Value = False) -> Tensor:
        x = need_tensor(t, input, "input")
        _expect_some(t, x, dim)
        made = reduced(t, "", x, dim, keepdim, INT64)
        return over_axes(t, made, x, dim, keepdim, statistics.position, name[3:])

    TORCH.function(name, methods=(name,))(function)


_arg("argmax")
_arg("argmin")


def _middle(name: str, x: Any, place: int) -> tuple[Any, Any]:
    """Return the most frequent or the middle element along an axis, and its place."""
    if name == "mode":
        return ordering.most_frequent(x, place)
    return ordering.middle(x, place, skip=name == "nanmedian")


def _with_places(
    t: Core, x: Tensor, made: Tensor, place: int, keepdim: Value,
    function: Callable[[Any], tuple[Any, Any]],
) -> Fields:  # fmt: skip
    """Return chosen elements and their places, of which a function keeps the axis."""

    def part(x: Any, number: int) -> Any:
        found = function(x)[number]
        return found if keepdim else op("Squeeze", found, [place])

    shape = shape_of(t, made)
    pair = [
        built(t, (dtype, shape), part, x, number) for number, dtype in enumerate((x.dtype, INT64))
    ]
    return Fields(tuple(pair), ("values", "indices"))


def _with_indices(name: str) -> None:
    def function(t: Core, input: Value, dim: Value = None, keepdim: Value = False) -> Value:
        x = need_tensor(t, input, "input")
        plain = category(x.dtype) in (1, 2)
        if name == "mode":
            _expect_some(t, x, -1 if dim is None else dim)
        if dim is None:
            if name != "mode":
                made = reduced(t, "", x, None, False, x.dtype)
                if not plain:
                    return made
                return built(t, made, lambda x: op("Squeeze", _middle(
                    name, op("Reshape", x, [-1]), 0)[0], [0]), x)  # fmt: skip
            dim = -1
        made = reduced(t, "", x, dim, keepdim, x.dtype)
        if not plain or not shape_of(t, x):
            return Fields(
                (made, t.emit.typed("Indices", [x], INT64, made.shape)), ("values", "indices")
            )
        place = axes(t, dim, len(shape_of(t, x)), x)[0]
        return _with_places(t, x, made, place, keepdim, lambda x: _middle(name, x, place))

    TORCH.function(name, methods=(name,))(function)


for _name in ("median", "mode", "nanmedian"):
    _with_indices(_name)


@TORCH.function("kthvalue", methods=("kthvalue",))
def kthvalue(t: Core, input: Value, k: Value, dim: Value = -1, keepdim: Value = False) -> Value:
    """Return the k-th smallest elements along an axis, and where they are."""
    x = need_tensor(t, input, "input")
    if isinstance(k, int) and k < 1:
        t.fail("value", f"expected k to be at least 1, got {k}", x)
    if isinstance(k, int):
        (place,) = axes(t, dim, max(1, len(shape_of(t, x))), x)
        t.emit.require_size((shape_of(t, x) or (1,))[place], k, f"axis {place} for k={k}")
    values = reduced(t, "", x, dim, keepdim, x.dtype)
    if not isinstance(k, int) or category(x.dtype) not in (1, 2) or not shape_of(t, x):
        return Fields(
            (values, t.emit.typed("Indices", [x], INT64, values.shape)), ("values", "indices")
        )
    place = axes(t, dim, len(shape_of(t, x)), x)[0]
    return _with_places(
        t, x, values, place, keepdim, lambda x: ordering.smallest_of(x, place, k - 1)
    )
