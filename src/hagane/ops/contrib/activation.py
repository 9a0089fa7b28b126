"""BiasGelu, FastGelu, Gelu, QuickGelu, BiasSplitGelu, BiasAdd."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.activation import gelu, sigmoid
from hagane.ops.precision import composed_wide, widened
from hagane.ops.rules import same_shape
from hagane.symbolic import floordiv


def _with_bias(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if ctx.has(1) and ctx.known_rank(1) is not None:
        (size,) = ctx.shape(1, rank=1)
        ctx.unify(size, shape[-1], "expected one bias an element of the last axis")
    return [shape]


@widened
def _bias_gelu(x: Array, bias: Array) -> Array:
    return gelu(x + bias)


@widened
def _fast_gelu(x: Array, bias: Array | None = None) -> Array:
    return gelu(x if bias is None else x + bias, approximate="tanh")


@widened
def _quick_gelu(x: Array, *, alpha: float = 1.702) -> Array:
    return x * sigmoid(alpha * x)


@widened
def _bias_split_gelu(x: Array, bias: Array) -> Array:
    left, right = np.split(x + bias, 2, axis=-1)
    return left * gelu(right)


def _infer_split(ctx: InferContext) -> Sequence[Any]:
    (shape,) = _with_bias(ctx)
    return [(*shape[:-1], floordiv(shape[-1], 2))]


@composed_wide
def _composed_gelu(x: Any, bias: Any = None, *, approximate: str = "none") -> Any:
    return op("Gelu", x if bias is None else op("Add", x, bias), approximate=approximate)


@composed_wide
def _composed_split(x: Any, bias: Any) -> Any:
    left, right = op("Split", op("Add", x, bias), axis=-1, num_outputs=2, outputs=2)
    return op("Mul", left, op("Gelu", right))


@composed_wide
def _composed_quick(x: Any, *, alpha: float = 1.702) -> Any:
    return op("Mul", x, op("Sigmoid", op("Mul", x, alpha)))


@composed_wide
def _composed_add(x: Any, bias: Any, skip: Any) -> Any:
    return op("Add", op("Add", x, bias), skip)


OPERATORS = (
    OpDef(
        "BiasAdd",
        same_shape,
        widened(lambda x, b, skip: x + b + skip),
        domain=DOMAIN,
        compose=_composed_add,
    ),
    OpDef("BiasGelu", _with_bias, _bias_gelu, domain=DOMAIN, compose=_composed_gelu),
    OpDef("BiasSplitGelu", _infer_split, _bias_split_gelu, domain=DOMAIN, compose=_composed_split),
    OpDef(
        "FastGelu",
        _with_bias,
        _fast_gelu,
        domain=DOMAIN,
        compose=partial(_composed_gelu, approximate="tanh"),
    ),
    OpDef("Gelu", same_shape, widened(lambda x: gelu(x)), domain=DOMAIN, compose=_composed_gelu),
    OpDef("QuickGelu", same_shape, _quick_gelu, domain=DOMAIN, compose=_composed_quick),
)

SCHEMAS = {
    (DOMAIN, "BiasAdd"): declare("X:T, bias:T, skip:T -> Y:T", T=FLOATS),
    (DOMAIN, "BiasGelu"): declare("A:T, B:T -> C:T", T=FLOATS),
    (DOMAIN, "BiasSplitGelu"): declare("X:T, bias:T -> Y:T", T=FLOATS),
    (DOMAIN, "FastGelu"): declare("X:T, bias:T? -> Y:T", T=FLOATS),
    (DOMAIN, "Gelu"): declare("X:T -> Y:T", T=FLOATS),
    (DOMAIN, "QuickGelu"): declare("X:T -> Y:T", {"alpha": 1.702}, T=FLOATS),
}
