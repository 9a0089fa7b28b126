"""Attention: weighted means of values, weighted by how queries fit keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mean_over,
    mul,
    sqrt,
    sub,
    swapped,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.functions.tensors.shapes import size_as_number
from hagane.symbolic import floordiv


def additive(mask: Any, like: Any, *, hidden: bool) -> Any:
    """Return a mask as numbers to add to scores: 0, and minus infinity where hidden.

    Args:
        mask: Truth values, or numbers, which are cast to that type alone.
        like: A tensor of the element type of the scores.
        hidden: Whether true means hidden, rather than seen.
    """
    if dtype_of(mask) != ir.DataType.BOOL:
        return cast(mask, dtype_of(like))
    zero, low = (np.array(item, dtype_of(like).numpy()) for item in (0, -math.inf))
    return where(mask, low, zero) if hidden else where(mask, zero, low)


def causal_mask(query: Any, key: Any) -> Any:
    """Return which keys each query sees that do not come after it: (queries, keys), bool."""
    rows = unsqueeze(positions_along(query, rank_of(query) - 2), [1])
    return op("GreaterOrEqual", rows, positions_along(key, rank_of(key) - 2))


def hiding(query: Any, key: Any, mask: Any, *, causal: bool) -> Any:
    """Return the addend of the scores; None for none.

    Args:
        query: (..., queries, features).
        key: (..., keys, features).
        mask: Truth values, true where visible, or numbers that are added; or None.
        causal: Whether a query sees only keys that do not come after it.
    """
    added = None if mask is None else additive(mask, query, hidden=False)
    if not causal:
        return added
    seen = additive(causal_mask(query, key), query, hidden=False)
    return seen if added is None else add(added, seen)


def rotary(x: Any, positions: Any, base: float) -> Any:
    """Return vectors whose halves are turned by angles of their position (Su et al., 2021).

    Args:
        x: (..., length, features), with an even number of features.
        positions: Integers (length,), or of the shape of ``x`` but for features; 0, 1, … if None.
        base: Feature ``i`` of ``features / 2`` turns by ``base ** (-2 i / features)`` a step.
    """
    rank, features = rank_of(x), shape_of(x)[-1]
    assert isinstance(features, int), "its callers ask for a number of features that is known"
    half = features // 2
    places = positions_along(x, rank - 2) if positions is None else positions
    # In double precision: an angle of a late position has few digits behind the point.
    places = unsqueeze(cast(places, ir.DataType.DOUBLE), [rank_of(places)])
    angles = mul(places, np.asarray(base ** (-np.arange(half) / half)))
    cos, sin = (cast(op(name, angles), dtype_of(x)) for name in ("Cos", "Sin"))
    first = op("Slice", x, [0], [half], [rank - 1])
    second = op("Slice", x, [half], [2 * half], [rank - 1])
    turned = sub(mul(first, cos), mul(second, sin)), add(mul(second, cos), mul(first, sin))
    return op("Concat", *turned, axis=-1)


def attend(
    query: Any, key: Any, value: Any, mask: Any = None, scale: float | None = None,
    *, safe: bool = True, drop: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return softmax(q kᵀ · scale + mask) v, and the softmax (Vaswani et al., 2017, equation 1).

    Args:
        query: (..., queries, features).
        key: (..., keys, features).
        value: (..., keys, size).
        mask: Is added to the scores, (..., queries, keys); None for nothing.
        scale: 1 / sqrt(features) if None.
        safe: Whether a query that sees no key gets zeros, rather than NaN.
        drop: Dropout of the softmax; None for none.
    """
    features = shape_of(query)[-1]
    if scale is None and isinstance(features, int):
        scale = 1 / math.sqrt(features) if features else 1.0
    if scale is None:
        query = div(query, sqrt(size_as_number(query, rank_of(query) - 1, query)))
    else:
        query = mul(query, scale)
    scores = op("MatMul", query, swapped(key))
    if mask is not None:
        scores = add(scores, mask)
    weights = op("Softmax", scores, axis=-1)
    if safe and mask is not None:
        highest = op("ReduceMax", scores, [-1], keepdims=1)
        low = np.array(-math.inf, dtype_of(scores).numpy())
        weights = where(op("Equal", highest, low), np.zeros((), dtype_of(scores).numpy()), weights)
    if drop is not None:
        weights = drop(weights)
    return op("MatMul", weights, value), weights


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Return ``x weightᵀ + bias``; the weight is (out, in)."""
    y = op("MatMul", x, swapped(weight))
    return y if bias is None else add(y, bias)


def multi_head(
    query: Any, key: Any, value: Any, heads: int, projections: Any, out: Any, mask: Any,
    padding: Any, *, weighted: bool, more: tuple[Any, Any] | None = None,
    drop: Callable[[Any], Any] | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return attention in several heads, and its weights (Vaswani et al., 2017, section 3.2.2).

    Args:
        query: (batch, queries, features).
        key: (batch, keys, features).
        value: (batch, keys, features).
        heads: How many heads the projected features are split into.
        projections: Weight (out, in) and bias for query, key and value.
        out: Weight and bias of the projection of the result.
        mask: (queries, keys) or (batch · heads, queries, keys): truth values, true for hidden,
            or numbers that are added to the scores; or None.
        padding: (batch, keys), likewise; or None.
        weighted: Whether weights are wanted; queries that see nothing are NaN then.
        more: Keys and values that come behind the projected ones and that every query sees, as
            rows (1, count, features); or None.
        drop: Dropout of the weights; None for none.

    Returns:
        (batch, queries, features), and (batch, heads, queries, keys), further keys included.
    """
    given = (query, key, value)
    q, k, v = (linear(x, *p) for x, p in zip(given, projections, strict=True))
    if more is not None:
        k, v = (_followed(x, rows) for x, rows in zip((k, v), more, strict=True))
    q, k, v = (_heads(x, heads) for x in (q, k, v))
    added = None
    if mask is not None:
        added = additive(mask, q, hidden=True)
        if rank_of(added) == 3:
            _, targets, sources = shape_of(added)
            added = op("Reshape", added, [-1, heads, targets, sources])
    if padding is not None:
        hidden = unsqueeze(additive(padding, q, hidden=True), [1, 2])
        added = hidden if added is None else add(added, hidden)
    if added is not None and more is not None:
        rank = rank_of(added)
        added = op("Pad", added, [*[0] * (2 * rank - 1), shape_of(more[0])[1]])
    y, weights = attend(q, k, v, added, safe=not weighted, drop=drop)
    joined = op("Reshape", transpose(y, [0, 2, 1, 3]), [0, 0, -1])
    return linear(joined, *out), weights


def _followed(x: Any, rows: Any) -> Any:
    batch, _, features = shape_of(x)
    return op("Concat", x, op("Expand", rows, [batch, shape_of(rows)[1], features]), axis=1)


def _heads(x: Any, count: int) -> Any:
    size = floordiv(shape_of(x)[2], count)
    return transpose(op("Reshape", x, [0, 0, count, size]), [0, 2, 1, 3])


def mean_of_heads(weights: Any) -> Any:
    """Return (batch, queries, keys) of (batch, heads, queries, keys)."""
    return mean_over(weights, [1], keepdims=False)
