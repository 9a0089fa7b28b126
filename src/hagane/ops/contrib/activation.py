"""BiasGelu, FastGelu, Gelu, QuickGelu, BiasSplitGelu, BiasAdd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.activation import gelu, sigmoid
from hagane.ops.functions.elementary import add, mul
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape
from hagane.ops.vjp import through
from hagane.symbolic import floordiv


def _with_bias(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if ctx.has(1) and ctx.known_rank(1) is not None:
        (size,) = ctx.shape(1, rank=1)
        ctx.unify(size, shape[-1], "expected one bias an element of the last axis")
    return [shape]


def _bias_gelu(x: Array, bias: Array) -> Array:
    return gelu(x + bias)


def _fast_gelu(x: Array, bias: Array | None = None) -> Array:
    return gelu(x if bias is None else x + bias, approximate="tanh")


def _quick_gelu(x: Array, *, alpha: float = 1.702) -> Array:
    return x * sigmoid(alpha * x)


def _bias_split_gelu(x: Array, bias: Array) -> Array:
    left, right = np.split(x + bias, 2, axis=-1)
    return left * gelu(right)


def _infer_split(ctx: InferContext) -> Sequence[Any]:
    (shape,) = _with_bias(ctx)
    return [(*shape[:-1], floordiv(shape[-1], 2))]


def _composed_fast(x: Any, bias: Any = None) -> Any:
    return op("Gelu", x if bias is None else add(x, bias), approximate="tanh")


def _composed_split(x: Any, bias: Any) -> Any:
    left, right = op("Split", add(x, bias), axis=-1, num_outputs=2, outputs=2)
    return mul(left, op("Gelu", right))


def _composed_quick(x: Any, *, alpha: float) -> Any:
    return op("Swish", x, alpha=alpha)


def _define(name: str, infer: Any, kernel: Any, composed: Any) -> OpDef:
    return OpDef(
        name, infer, widened(kernel), domain=DOMAIN, compose=composed, vjp=through(composed)
    )


OPERATORS = (
    _define("BiasAdd", same_shape, lambda x, b, skip: x + b + skip, add),
    _define("BiasGelu", _with_bias, _bias_gelu, lambda x, bias: op("Gelu", add(x, bias))),
    _define("BiasSplitGelu", _infer_split, _bias_split_gelu, _composed_split),
    _define("FastGelu", _with_bias, _fast_gelu, _composed_fast),
    _define("Gelu", same_shape, lambda x: gelu(x), lambda x: op("Gelu", x)),
    _define("QuickGelu", same_shape, _quick_gelu, _composed_quick),
)

SCHEMAS = {
    (DOMAIN, "BiasAdd"): declare("X:T, bias:T, skip:T -> Y:T", T=FLOATS),
    (DOMAIN, "BiasGelu"): declare("A:T, B:T -> C:T", T=FLOATS),
    (DOMAIN, "BiasSplitGelu"): declare("X:T, bias:T -> Y:T", T=FLOATS),
    (DOMAIN, "FastGelu"): declare("X:T, bias:T? -> Y:T", T=FLOATS),
    (DOMAIN, "Gelu"): declare("X:T -> Y:T", T=FLOATS),
    (DOMAIN, "QuickGelu"): declare("X:T -> Y:T", {"alpha": 1.702}, T=FLOATS),
}
