"""Operators that ONNX has by now under the same or another name, and small ones that it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops import layout
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import ANY, DOMAIN, FLOATS, INDICES, INT_LIST, declare
from hagane.ops.convolution.pool import infer_pool, max_pool
from hagane.ops.definition import Array, OpDef
from hagane.ops.indexing.gather import OPERATORS as GATHERS
from hagane.ops.precision import widened
from hagane.symbolic import Dim, floordiv


def _moved(name: str, source: Sequence[OpDef]) -> OpDef:
    (op,) = (op for op in source if op.key == ("", name))
    return OpDef(name, op.infer, op.reference, domain=DOMAIN, data=op.data, traits=op.traits)


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


def _nhwc_max_pool(
    x: Array,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    kernel_shape: Sequence[int],
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    y = max_pool(
        np.moveaxis(x, -1, 1),
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    return np.moveaxis(np.asarray(y), 1, -1)


def _infer_nhwc_max_pool(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    ((n, c, *spatial),) = infer_pool(ctx, (shape[0], shape[-1], *shape[1:-1]))
    return [(n, *spatial, c)]


OPERATORS = (
    OpDef("CDist", _infer_cdist, _cdist, domain=DOMAIN),
    OpDef("ExpandDims", _infer_expand_dims, _expand_dims, domain=DOMAIN),
    _moved("GatherND", GATHERS),
    OpDef("Inverse", _infer_inverse, _inverse, domain=DOMAIN),
    OpDef("Irfft", _infer_irfft, _irfft, domain=DOMAIN),
    OpDef("NhwcMaxPool", _infer_nhwc_max_pool, _nhwc_max_pool, domain=DOMAIN),
    _moved("Pad", layout.OPERATORS),
    _moved("Range", layout.OPERATORS),
    OpDef("Rfft", _infer_rfft, _rfft, domain=DOMAIN),
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
    (DOMAIN, "NhwcMaxPool"): declare(
        "x:T -> y:T",
        {
            "auto_pad": "NOTSET",
            "ceil_mode": 0,
            "dilations": INT_LIST,
            "kernel_shape": INT_LIST,
            "pads": INT_LIST,
            "strides": INT_LIST,
        },
        required=("kernel_shape",),
        T=f"int8 uint8 {FLOATS}",
    ),
    (DOMAIN, "Pad"): declare(
        "data:T, pads:int64, value:T? -> output:T", {"mode": "constant"}, T=ANY
    ),
    (DOMAIN, "Range"): declare(
        "start:T, limit:T, delta:T? -> Y:T", {"stash_type": 1}, T="float double int16 int32 int64"
    ),
    (DOMAIN, "Rfft"): declare("X:T -> Y:T", _FOURIER, T=FLOATS),
    (DOMAIN, "Trilu"): declare("X:T, k:int64? -> Y:T", {"upper": 1}, T=ANY),
}
