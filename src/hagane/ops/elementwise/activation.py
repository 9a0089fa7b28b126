"""Activation functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.unary import erf
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape
from hagane.ops.traits import Trait


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)) without overflow."""
    return np.logaddexp(x, x.dtype.type(0))


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(x.dtype)


def _celu(x: Array, *, alpha: float = 1.0) -> Array:
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _elu(x: Array, *, alpha: float = 1.0) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu(x: Array, *, approximate: str = "none") -> Array:
    """Return x * Φ(x) (Hendrycks and Gimpel, 2016), exact or by its tanh form."""
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return (0.5 * x * (1 + np.tanh(inner))).astype(x.dtype)
    return (0.5 * x * (1 + erf(x / math.sqrt(2)))).astype(x.dtype)


def _hard_sigmoid(x: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    return np.clip(alpha * x + beta, 0, 1)


def _hard_swish(x: Array) -> Array:
    return x * np.clip(x / 6 + 0.5, 0, 1)


def _leaky_relu(x: Array, *, alpha: float = 0.01) -> Array:
    return np.where(x >= 0, x, alpha * x)


def _mish(x: Array) -> Array:
    return x * np.tanh(softplus(x))


def _prelu(x: Array, slope: Array) -> Array:
    return np.where(x >= 0, x, slope * x).astype(x.dtype)


def _infer_prelu(ctx: InferContext) -> Sequence[Any]:
    ctx.broadcast(ctx.shape(0), ctx.shape(1))
    return [ctx.shape(0)]


def _selu(
    x: Array, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Array:
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _shrink(x: Array, *, bias: float = 0.0, lambd: float = 0.5) -> Array:
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)).astype(x.dtype)


def _swish(x: Array, *, alpha: float = 1.0) -> Array:
    return x * sigmoid(alpha * x)


def _swiglu(a: Array, b: Array, *, alpha: float = 1.0) -> Array:
    return _swish(a, alpha=alpha) * b


def _infer_swiglu(ctx: InferContext) -> Sequence[Any]:
    gate, value = ctx.shape(0), ctx.shape(1)
    if len(gate) != len(value):
        ctx.fail(f"expected inputs of one shape, got {ctx.inputs_text()}")
    return [
        tuple(
            ctx.unify(a, b, "expected inputs of one shape")
            for a, b in zip(gate, value, strict=True)
        )
    ]


def _thresholded_relu(x: Array, *, alpha: float = 1.0) -> Array:
    return np.where(x > alpha, x, 0).astype(x.dtype)


def _activation(name: str, kernel: Any) -> OpDef:
    return OpDef(name, same_shape, widened(kernel), traits=Trait.ELEMENTWISE)


OPERATORS = (
    _activation("Celu", _celu),
    _activation("Elu", _elu),
    _activation("Gelu", gelu),
    _activation("HardSigmoid", _hard_sigmoid),
    _activation("HardSwish", _hard_swish),
    _activation("LeakyRelu", _leaky_relu),
    _activation("Mish", _mish),
    OpDef("PRelu", _infer_prelu, widened(_prelu), traits=Trait.ELEMENTWISE),
    OpDef("Relu", same_shape, lambda x: np.maximum(x, x.dtype.type(0)), traits=Trait.ELEMENTWISE),
    _activation("Selu", _selu),
    _activation("Shrink", _shrink),
    _activation("Sigmoid", sigmoid),
    _activation("Softplus", softplus),
    _activation("Softsign", lambda x: x / (1 + np.abs(x))),
    OpDef("SwiGLU", _infer_swiglu, widened(_swiglu)),
    _activation("Swish", _swish),
    _activation("ThresholdedRelu", _thresholded_relu),
)
