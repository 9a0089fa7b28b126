"""Softmax, LogSoftmax, Hardmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.ops.traits import Trait


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


OPERATORS = (
    OpDef("Hardmax", _infer, _hardmax, traits=Trait.ROWWISE),
    OpDef("LogSoftmax", _infer, _log_softmax, traits=Trait.ROWWISE),
    OpDef("Softmax", _infer, _softmax, traits=Trait.ROWWISE),
)
