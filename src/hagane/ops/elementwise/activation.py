"""Activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.unary import erf
from hagane.ops.functions.numbers.elementary import (
    add,
    div,
    exp,
    mask_like,
    mul,
    square,
    sub,
    where,
)
from hagane.ops.functions.tensors.shapes import filled_like, unbroadcast
from hagane.ops.precision import widened
from hagane.ops.rules import same_shape
from hagane.ops.traits import Trait
from hagane.ops.vjp import through


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
    return np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0)))


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
    # A slope that is larger than what it scales is none of ONNX's, and ONNX Runtime takes it.
    return [ctx.broadcast(ctx.shape(0), ctx.shape(1))]


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


Derivative = Callable[[Any, Any, Callable[[str], Any]], Any]


def _activation(name: str, kernel: Any, derivative: Derivative) -> OpDef:
    """Define an activation; its derivative is told operand, result and attributes."""

    def vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
        slope = derivative(call.inputs[0], call.outputs[0], call.attr)
        return [mul(gradients[0], slope)]

    @wraps(kernel)
    def typed(x: Array, **attributes: Any) -> Array:
        # NumPy before 2 gives a number without axes, beside one of Python, as float64.
        return np.asarray(kernel(x, **attributes), x.dtype)

    return OpDef(name, same_shape, widened(typed), vjp=vjp, traits=Trait.ELEMENTWISE)


def _within(x: Any, low: float, high: float) -> Any:
    return op("And", op("Greater", x, low), op("Less", x, high))


def _gelu_derivative(x: Any, y: Any, attribute: Any) -> Any:
    if attribute("approximate") == "tanh":
        scale = math.sqrt(2 / math.pi)
        t = op("Tanh", mul(add(x, mul(x, square(x), 0.044715)), scale))
        inner = mul(add(mul(square(x), 3 * 0.044715), 1), scale)
        return mul(add(t, 1, mul(x, sub(1, square(t)), inner)), 0.5)
    share = mul(add(op("Erf", mul(x, math.sqrt(0.5))), 1), 0.5)
    density = mul(exp(mul(square(x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return add(share, mul(x, density))


def _hard_sigmoid_derivative(x: Any, y: Any, attribute: Any) -> Any:
    return mul(mask_like(_within(y, 0, 1), x), attribute("alpha"))


def _hard_swish_derivative(x: Any, y: Any, attribute: Any) -> Any:
    inside = where(_within(x, -3, 3), add(div(x, 3), 0.5), 0)
    return where(op("GreaterOrEqual", x, 3), 1, inside)


def _mish_derivative(x: Any, y: Any, attribute: Any) -> Any:
    t = op("Tanh", op("Softplus", x))
    return add(t, mul(x, op("Sigmoid", x), sub(1, square(t))))


def _selu_derivative(x: Any, y: Any, attribute: Any) -> Any:
    alpha, gamma = attribute("alpha"), attribute("gamma")
    return where(op("Greater", x, 0), gamma, add(y, alpha * gamma))


def _shrink_derivative(x: Any, y: Any, attribute: Any) -> Any:
    bound = attribute("lambd")
    outside = op("Or", op("Less", x, -bound), op("Greater", x, bound))
    return mask_like(outside, x)


def _swish_derivative(x: Any, y: Any, attribute: Any) -> Any:
    alpha = attribute("alpha")
    s = op("Sigmoid", mul(x, alpha))
    return add(s, mul(y, sub(1, s), alpha))


def _leaky_derivative(x: Any, y: Any, attribute: Any) -> Any:
    # At 0 that of the negative side, as in PyTorch and Chainer.
    return where(op("Greater", x, 0), filled_like(x, 1), attribute("alpha"))


def _relu_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    return [where(op("Greater", call.outputs[0], 0), gradients[0], 0)]


def _prelu_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, slope), (g,) = call.inputs, gradients
    positive = op("GreaterOrEqual", x, 0)
    return [
        lambda: where(positive, g, mul(g, slope)),
        lambda: unbroadcast(where(positive, 0, mul(g, x)), slope),
    ]


def _swiglu_composed(a: Any, b: Any, *, alpha: float = 1.0) -> Any:
    return mul(op("Swish", a, alpha=alpha), b)


OPERATORS = (
    _activation(
        "Celu",
        _celu,
        lambda x, y, attribute: where(op("Greater", x, 0), 1, add(div(y, attribute("alpha")), 1)),
    ),
    _activation(
        "Elu",
        _elu,
        lambda x, y, attribute: where(op("Greater", x, 0), 1.0, add(y, attribute("alpha"))),
    ),
    _activation("Gelu", gelu, _gelu_derivative),
    _activation("HardSigmoid", _hard_sigmoid, _hard_sigmoid_derivative),
    _activation("HardSwish", _hard_swish, _hard_swish_derivative),
    _activation("LeakyRelu", _leaky_relu, _leaky_derivative),
    _activation("Mish", _mish, _mish_derivative),
    OpDef("PRelu", _infer_prelu, widened(_prelu), vjp=_prelu_vjp, traits=Trait.ELEMENTWISE),
    OpDef(
        "Relu",
        same_shape,
        lambda x: np.maximum(x, x.dtype.type(0)),
        vjp=_relu_vjp,
        traits=Trait.ELEMENTWISE,
    ),
    _activation("Selu", _selu, _selu_derivative),
    _activation("Shrink", _shrink, _shrink_derivative),
    _activation("Sigmoid", sigmoid, lambda x, y, _: mul(y, sub(1, y))),
    _activation("Softplus", softplus, lambda x, y, _: op("Sigmoid", x)),
    _activation(
        "Softsign",
        lambda x: x / (1 + np.abs(x)),
        lambda x, y, _: square(sub(1, op("Abs", y))),
    ),
    OpDef(
        "SwiGLU",
        _infer_swiglu,
        widened(_swiglu),
        compose=_swiglu_composed,
        vjp=through(_swiglu_composed),
    ),
    _activation("Swish", _swish, _swish_derivative),
    _activation(
        "ThresholdedRelu",
        _thresholded_relu,
        lambda x, y, attribute: mask_like(op("Greater", x, attribute("alpha")), x),
    ),
)
