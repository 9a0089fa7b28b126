"""Softmax, LogSoftmax, Hardmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import exp, mul, sub, sum_over
from hagane.ops.precision import widened
from hagane.ops.traits import Trait
from hagane.ops.vjp import flat


def softmax(x: Array, axis: int = -1) -> Array:
    """Return exp(x) normalised to sum 1 along ``axis``, shifted so that nothing overflows."""
    if x.size == 0:
        return x.copy()
    exponential = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(exponential / exponential.sum(axis=axis, keepdims=True))


def log_softmax(x: Array, axis: int = -1) -> Array:
    """Return the logarithm of ``softmax``."""
    if x.size == 0:
        return x.copy()
    shifted = x - x.max(axis=axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True)))


def _hardmax(x: Array, *, axis: int = -1) -> Array:
    result = np.zeros_like(x)
    if x.size == 0:
        return result
    np.put_along_axis(result, np.expand_dims(x.argmax(axis=axis), axis), 1, axis)
    return result


def _infer(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    ctx.axis(ctx.attr("axis"), len(shape))
    return [shape]


def _softmax(x: Array, *, axis: int = -1) -> Array:
    # float16 is computed in itself, as ONNX's own cases fix it; NumPy sums it in float32.
    return softmax(x, axis) if x.dtype == np.float16 else widened(softmax)(x, axis=axis)


@widened
def _log_softmax(x: Array, *, axis: int = -1) -> Array:
    return log_softmax(x, axis)


def _softmax_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (y,), (g,) = call.outputs, gradients
    weighted = mul(g, y)
    return [sub(weighted, mul(y, sum_over(weighted, [call.attr("axis")])))]


def _log_softmax_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    return [log_softmax_gradient(gradients[0], call.outputs[0], call.attr("axis"))]


def log_softmax_gradient(g: Any, y: Any, axis: int) -> Any:
    """Return the gradient of the scores whose logarithms of probabilities are ``y``."""
    return sub(g, mul(exp(y), sum_over(g, [axis])))


OPERATORS = (
    OpDef("Hardmax", _infer, _hardmax, traits=Trait.ROWWISE, vjp=flat),
    OpDef("LogSoftmax", _infer, _log_softmax, traits=Trait.ROWWISE, vjp=_log_softmax_vjp),
    OpDef("Softmax", _infer, _softmax, traits=Trait.ROWWISE, vjp=_softmax_vjp),
)
