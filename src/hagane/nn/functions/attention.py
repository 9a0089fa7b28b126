"""Attention, and positions as rotations."""

from __future__ import annotations

from typing import Any

from hagane.nn.autograd import type_check
from hagane.nn.functions.applying import array_of, function, require, shape_of
from hagane.nn.functions.drawn.noise import dropout
from hagane.ops.builder import op
from hagane.ops.functions.layers import attention


@function("query", "key", "value", "attn_mask")
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Any:
    """Return means of values, weighted by how queries fit keys (Vaswani et al. 2017, equation 1).

    Args:
        query: (..., queries, features).
        key: (..., keys, features).
        value: (..., keys, size).
        attn_mask: Truth values, true where visible, or numbers that are added to the scores:
            (..., queries, keys).
        dropout_p: The share of weights that is dropped in training.
        is_causal: Whether a query sees only keys that do not come after it.
        scale: Of the products; 1 / sqrt(features) if None.

    Returns:
        (..., queries, size); zeros for a query that sees no key.
    """
    where = "scaled_dot_product_attention"
    require(where, "query", query, kind="f", at_least=2)
    features = shape_of(query)[-1]
    for name, x in (("key", key), ("value", value)):
        require(where, name, x, dtype_as=("query", query), at_least=2)
    if shape_of(key)[-1] != features or shape_of(key)[-2] != shape_of(value)[-2]:
        raise type_check.refuse(
            where,
            f"key: (…, keys, {features}), value: (…, keys, size)",
            f"key.shape == {shape_of(key)}, value.shape == {shape_of(value)}",
        )
    mask = attention.hiding(query, key, attn_mask, causal=is_causal)
    y, weights = attention.attend(query, key, value, mask, scale)
    return op("MatMul", dropout(weights, dropout_p), value) if dropout_p else y


@function("x")
def rotary(x: Any, positions: Any = None, base: float = 10000.0) -> Any:
    """Return vectors whose halves are turned by angles of their position (Su et al. 2021).

    Args:
        x: (..., length, features), with an even number of features.
        positions: Integers (length,), or of the shape of ``x`` but for features; 0, 1, … if None.
        base: Feature ``i`` of ``features / 2`` turns by ``base ** (-2 i / features)`` a step.
    """
    require("rotary", "x", x, kind="f", at_least=2)
    features = shape_of(x)[-1]
    if features % 2:
        raise type_check.refuse("rotary", "an even number of features", f"{features}")
    places = None if positions is None else array_of(positions)
    return attention.rotary(x, places, base)
