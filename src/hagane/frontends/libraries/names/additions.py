"""Functions that hagane has beside Chainer's, for models of today."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.frontends.libraries.chainer.elementwise import same
from hagane.frontends.libraries.chainer.operands import (
    BOOL,
    broadcast_shape,
    computed,
    computed_parts,
    floating,
    kind_of,
    need_rank,
    same_dtype,
    shape_of,
    variable,
)
from hagane.frontends.libraries.table import Table
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.layers import attention
from hagane.ops.functions.numbers import activations
from hagane.ops.functions.sums import normalizing

HAGANE = Table("hagane", "hagane.Tensor")
_KINDS = ("none", "tanh")


def _real(t: Core, value: Value, name: str) -> float:
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return float(value)
    t.fail("value", f"expected '{name}' to be a number that is known, got {t.show(t.wrap(value))}")
    return 0.0


@HAGANE.function("functions.gelu")
def gelu(t: Core, x: Value, approximate: Value = "none") -> Tensor:
    """Return ``x`` times the normal distribution function of it."""
    found = floating(t, x)
    if approximate not in _KINDS:
        t.fail("value", f"expected 'none' or 'tanh' as 'approximate', got {approximate!r}", found)
    return same(t, found, activations.gelu, found, approximate)


@HAGANE.function("functions.silu")
def silu(t: Core, x: Value) -> Tensor:
    """Return ``x * sigmoid(x)``."""
    found = floating(t, x)
    return same(t, found, activations.silu, found)


def _checked(t: Core, x: Value, **parameters: Value) -> list[Tensor | None]:
    """Return an input and the parameters of its last axis."""
    found = floating(t, x)
    shape = shape_of(t, found)
    if not shape:
        t.fail("rank", f"expected at least one axis, got {t.show(found)}", found)
    given: list[Tensor | None] = [found]
    for name, value in parameters.items():
        if value is None:
            given.append(None)
            continue
        own = floating(t, value, name)
        same_dtype(t, found, own, f"x and {name}")
        if t.emit.differ(need_rank(t, own, 1, name)[0], shape[-1]):
            t.fail(
                "shape-mismatch",
                f"expected {shape[-1]} features in '{name}', got {t.show(own)}",
                found,
                own,
            )
        given.append(own)
    return given


@HAGANE.function("functions.layer_norm")
def layer_norm(t: Core, x: Value, gamma: Value, beta: Value = None, eps: Value = 1e-5) -> Tensor:
    """Return the last axis with its mean and variance removed, scaled and moved."""
    found, scale, shift = _checked(t, x, gamma=gamma, beta=beta)
    assert found is not None
    run = normalizing.layer_norm
    return same(t, found, run, found, 1, scale, shift, _real(t, eps, "eps"))


@HAGANE.function("functions.rms_norm")
def rms_norm(t: Core, x: Value, gamma: Value, eps: Value = 1e-6) -> Tensor:
    """Return the last axis divided by its root mean square, scaled."""
    found, scale = _checked(t, x, gamma=gamma)
    assert found is not None
    return same(t, found, normalizing.rms_norm, found, 1, scale, _real(t, eps, "eps"))


@HAGANE.function("functions.scaled_dot_product_attention")
def scaled_dot_product_attention(
    t: Core, query: Value, key: Value, value: Value, attn_mask: Value = None,
    dropout_p: Value = 0.0, is_causal: Value = False, scale: Value = None,
) -> Tensor:  # fmt: skip
    """Return means of values, weighted by how queries fit keys: (..., queries, size)."""
    q, k, v = floating(t, query, "query"), floating(t, key, "key"), floating(t, value, "value")
    for x, name in ((k, "key"), (v, "value")):
        same_dtype(t, q, x, f"query and {name}")
    shapes = [shape_of(t, x) for x in (q, k, v)]
    for x, shape in zip((q, k, v), shapes, strict=True):
        if len(shape) < 2:
            t.fail("rank", f"attention takes at least two axes, got {t.show(x)}", x)
    qs, ks, vs = shapes
    if t.emit.differ(qs[-1], ks[-1]):
        told = f"expected query and key of one feature size, got {t.show(q)} and {t.show(k)}"
        t.fail("shape-mismatch", told, q, k)
    if t.emit.differ(ks[-2], vs[-2]):
        told = f"expected as many keys as values, got {t.show(k)} and {t.show(v)}"
        t.fail("shape-mismatch", told, k, v)
    mask = None if attn_mask is None else variable(t, attn_mask, "attn_mask")
    scores = broadcast_shape(
        t, *(t.emit.new(q.dtype, (*shape[:-2], qs[-2], ks[-2])) for shape in (qs, ks)),
        *([] if mask is None else [mask]),
    )  # fmt: skip
    if mask is not None and mask.dtype not in (BOOL, q.dtype):
        told = f"expected a bool mask or one of the query's type, got {t.show(mask)}"
        t.fail("dtype-mismatch", told, mask)
    whole = broadcast_shape(
        t, *(t.emit.new(q.dtype, shape) for shape in ((*scores[:-2], 1, 1), (*vs[:-2], 1, 1)))
    )
    promised = [(q.dtype, (*whole[:-2], qs[-2], vs[-1])), (q.dtype, scores)]
    factor = None if scale is None else _real(t, scale, "scale")
    y, weights = computed_parts(t, promised, _attended, q, k, v, mask, bool(is_causal), factor)
    share = _real(t, dropout_p, "dropout_p")
    if not share:
        return y
    kept: Tensor = t.call_library("chainer.functions.dropout", [weights, share])
    return computed(t, promised[0], lambda a, b: op("MatMul", a, b), kept, v)


def _attended(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: float | None) -> Any:
    return attention.attend(q, k, v, attention.hiding(q, k, mask, causal=causal), scale)


@HAGANE.function("functions.rotary")
def rotary(t: Core, x: Value, positions: Value = None, base: Value = 10000.0) -> Tensor:
    """Return vectors whose halves are turned by angles of their position."""
    found = floating(t, x)
    shape = shape_of(t, found)
    if len(shape) < 2:
        t.fail("rank", f"expected (..., length, features), got {t.show(found)}", found)
    if not isinstance(shape[-1], int) or shape[-1] % 2:
        told = f"expected an even number of features that is known, got {t.show(found)}"
        t.fail("shape-mismatch", told, found)
    places = None if positions is None else variable(t, positions, "positions")
    if places is not None and kind_of(places) not in "iu":
        t.fail("dtype-mismatch", f"expected integers as 'positions', got {t.show(places)}", places)
    return same(t, found, attention.rotary, found, places, _real(t, base, "base"))


# Each is compared with hagane.functions in tests/capture.
MEANT = frozenset(HAGANE.functions)
__all__ = ["HAGANE", "MEANT"]
