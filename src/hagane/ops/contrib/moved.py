"""Operators that ONNX has by now under the same or another name, and small ones that it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hagane.ops import layout
from hagane.ops.builder import Call, content_of, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import ANY, DOMAIN, FLOATS, INDICES, declare
from hagane.ops.definition import Array, OpDef, Unsupported
from hagane.ops.functions.numbers.elementary import neg, swapped
from hagane.ops.indexing.gather import OPERATORS as GATHERS
from hagane.ops.precision import widened
from hagane.ops.registry import schema
from hagane.symbolic import Dim, floordiv


def _moved(name: str, source: Sequence[OpDef]) -> OpDef:
    (source_op,) = (one for one in source if one.key == ("", name))
    known = schema("", name).attribute_types

    def compose(*inputs: Any, attributes: Mapping[str, Any]) -> Any:
        return op(name, *inputs, **{key: attributes[key] for key in known if key in attributes})

    return replace(source_op, domain=DOMAIN, compose=compose)


@widened
def _inverse(x: Array) -> Array:
    return np.linalg.inv(x).astype(x.dtype)


def _infer_inverse(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if len(shape) < 2:
        ctx.fail(f"expected matrices in the last two axes, got {ctx.inputs_text()}")
    ctx.unify(shape[-1], shape[-2], "expected square matrices")
    return [shape]


@widened
def _cdist(a: Array, b: Array, *, metric: str = "sqeuclidean") -> Array:
    squares = ((a[:, None] - b[None]) ** 2).sum(axis=2)
    return np.sqrt(squares) if metric == "euclidean" else squares


def _infer_cdist(ctx: InferContext) -> Sequence[Any]:
    a, b = ctx.shape(0, rank=2), ctx.shape(1, rank=2)
    ctx.unify(a[1], b[1], "expected points of one dimension")
    return [(a[0], b[0])]


def _expand_dims(x: Array, axis: Array) -> Array:
    return np.expand_dims(x, int(np.asarray(axis).ravel()[0]))


def _infer_expand_dims(ctx: InferContext) -> Sequence[Any]:
    shape, known = ctx.shape(0), ctx.ints(1)
    if known is None:
        return [None]
    axis = ctx.axis(known[0], len(shape) + 1)
    return [(*shape[:axis], 1, *shape[axis:])]


def _rfft(x: Array, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Array:
    axes = tuple(range(-signal_ndim, 0))
    y = np.fft.rfftn(x, axes=axes)
    return np.stack([y.real, y.imag], axis=-1).astype(x.dtype)


def _irfft(x: Array, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Array:
    axes = tuple(range(-signal_ndim, 0))
    return np.fft.irfftn(x[..., 0] + 1j * x[..., 1], axes=axes).astype(x.dtype)


def _infer_rfft(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    return [(*shape[:-1], floordiv(shape[-1], 2) + 1, 2)]


def _infer_irfft(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    last: Dim = (shape[-2] - 1) * 2
    return [(*shape[:-2], last)]


def _composed_range(start: Any, limit: Any, delta: Any = None) -> Any:
    return op("Range", start, limit, 1 if delta is None else delta)


def _composed_cdist(a: Any, b: Any, *, metric: str = "sqeuclidean") -> Any:
    difference = op("Sub", op("Unsqueeze", a, [1]), op("Unsqueeze", b, [0]))
    squares = op("ReduceSumSquare", difference, [2], keepdims=0)
    return op("Sqrt", squares) if metric == "euclidean" else squares


def _composed_expand_dims(x: Any, axis: Any) -> Any:
    known = content_of(axis)
    return None if known is None else op("Unsqueeze", x, [int(known.ravel()[0])])


def _composed_rfft(x: Any, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Any:
    rank = rank_of(x)
    y = op("DFT", op("Unsqueeze", x, [-1]), None, rank - 1, onesided=1)
    for axis in range(rank - signal_ndim, rank - 1):
        y = op("DFT", y, None, axis)
    return y


def _composed_irfft(x: Any, *, normalized: int = 0, onesided: int = 1, signal_ndim: int = 1) -> Any:
    rank = rank_of(x) - 1
    for axis in range(rank - signal_ndim, rank - 1):
        x = op("DFT", x, None, axis, inverse=1)
    return op("Squeeze", op("DFT", x, None, rank - 1, inverse=1, onesided=1), [-1])


def _inverse_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    turned = swapped(call.outputs[0])
    return [neg(op("MatMul", turned, op("MatMul", gradients[0], turned)))]


_FOURIER_GAP = Unsupported("use DFT of ONNX, which has a gradient")

OPERATORS = (
    OpDef("CDist", _infer_cdist, _cdist, domain=DOMAIN, compose=_composed_cdist),
    OpDef(
        "ExpandDims", _infer_expand_dims, _expand_dims, domain=DOMAIN, compose=_composed_expand_dims
    ),
    _moved("GatherND", GATHERS),
    OpDef(
        "Inverse",
        _infer_inverse,
        _inverse,
        domain=DOMAIN,
        compose=Unsupported("no operators of ONNX invert a matrix"),
        vjp=_inverse_vjp,
    ),
    OpDef("Irfft", _infer_irfft, _irfft, domain=DOMAIN, compose=_composed_irfft, vjp=_FOURIER_GAP),
    _moved("Pad", layout.OPERATORS),
    replace(_moved("Range", layout.OPERATORS), compose=_composed_range),
    OpDef("Rfft", _infer_rfft, _rfft, domain=DOMAIN, compose=_composed_rfft, vjp=_FOURIER_GAP),
    _moved("Trilu", layout.OPERATORS),
)

_FOURIER = {"normalized": 0, "onesided": 1, "signal_ndim": 1}

SCHEMAS = {
    (DOMAIN, "CDist"): declare("A:T, B:T -> C:T", {"metric": "sqeuclidean"}, T="float double"),
    (DOMAIN, "ExpandDims"): declare("X:T, axis:int32 -> Y:T", T=ANY),
    (DOMAIN, "GatherND"): declare(
        "data:T, indices:I -> output:T", {"batch_dims": 0}, T=ANY, I=INDICES
    ),
    (DOMAIN, "Inverse"): declare("X:T -> Y:T", T=FLOATS),
    (DOMAIN, "Irfft"): declare("X:T -> Y:T", _FOURIER, T=FLOATS),
    (DOMAIN, "Pad"): declare(
        "data:T, pads:int64, value:T? -> output:T", {"mode": "constant"}, T=ANY
    ),
    (DOMAIN, "Range"): declare(
        "start:T, limit:T, delta:T? -> Y:T", {"stash_type": 1}, T="float double int16 int32 int64"
    ),
    (DOMAIN, "Rfft"): declare("X:T -> Y:T", _FOURIER, T=FLOATS),
    (DOMAIN, "Trilu"): declare("X:T, k:int64? -> Y:T", {"upper": 1}, T=ANY),
}
