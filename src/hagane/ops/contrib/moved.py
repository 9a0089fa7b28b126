"""Operators that ONNX has by now under the same or another name, and small ones that it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops import layout
from hagane.ops.attention.recurrent import OPERATORS as RECURRENT
from hagane.ops.builder import Call, content_of, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import ANY, DOMAIN, FLOATS, INDICES, INT, declare
from hagane.ops.definition import Array, OpDef, Unsupported
from hagane.ops.functions.numbers.elementary import neg, swapped
from hagane.ops.indexing.gather import OPERATORS as GATHERS
from hagane.ops.precision import widened
from hagane.ops.registry import schema
from hagane.ops.vision.grid import OPERATORS as VISION
from hagane.ops.vjp import DISCRETE, through
from hagane.symbolic import Dim, floordiv


def _moved(name: str, source: Sequence[OpDef]) -> OpDef:
    (source_op,) = (one for one in source if one.key == ("", name))
    known = schema("", name).attribute_types

    def compose(*inputs: Any, attributes: Mapping[str, Any], n_outputs: int) -> Any:
        given = {key: attributes[key] for key in known if key in attributes}
        return op(name, *inputs, outputs=n_outputs, **given)

    return replace(source_op, domain=DOMAIN, compose=compose)


def _newer(name: str, source: Sequence[OpDef]) -> OpDef:
    """Return an operator of ONNX's with attributes beside, which stay at their defaults here."""
    (source_op,) = (one for one in source if one.key == ("", name))
    found, known = _moved(name, source), schema("", name).attribute_types
    compose = found.compose
    assert callable(compose)

    def reference(*inputs: Any, attributes: Mapping[str, Any], n_outputs: int) -> Any:
        given = {key: attributes[key] for key in known if key in attributes}
        return source_op(inputs, given, n_outputs)

    def infer(ctx: InferContext) -> Sequence[Any]:
        defaults = schema(DOMAIN, name).defaults
        for key, value in ctx.attributes.items():
            if key not in known and value != defaults[key]:
                ctx.fail(f"{key}={value} is not supported here, {defaults[key]} is")
        return found.infer(ctx)[: ctx.n_outputs]

    return replace(found, infer=infer, reference=reference, vjp=through(compose))


def _unique(x: Array) -> tuple[Array, ...]:
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    places = np.argsort(order)
    return values[order], places[inverse.reshape(-1)].astype(np.int64), counts[order]


def _composed_unique(x: Any) -> Any:
    values, _, inverse, counts = op("Unique", x, sorted=0, outputs=4)
    return values, inverse, counts


def _infer_unique(ctx: InferContext) -> Sequence[Any]:
    (size,) = ctx.shape(0, rank=1)
    found = ctx.fresh("unique")
    whole = ir.DataType.INT64
    return [(found,), TensorType(whole, (size,)), TensorType(whole, (found,))]


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
    _newer("CausalConvWithState", RECURRENT),
    _moved("GatherND", GATHERS),
    _moved("GridSample", VISION),
    OpDef(
        "Inverse",
        _infer_inverse,
        _inverse,
        domain=DOMAIN,
        compose=Unsupported("no operators of ONNX invert a matrix"),
        vjp=_inverse_vjp,
    ),
    OpDef("Irfft", _infer_irfft, _irfft, domain=DOMAIN, compose=_composed_irfft, vjp=_FOURIER_GAP),
    _newer("LinearAttention", RECURRENT),
    _moved("Pad", layout.OPERATORS),
    replace(_moved("Range", layout.OPERATORS), compose=_composed_range),
    OpDef("Rfft", _infer_rfft, _rfft, domain=DOMAIN, compose=_composed_rfft, vjp=_FOURIER_GAP),
    _moved("Trilu", layout.OPERATORS),
    OpDef("Unique", _infer_unique, _unique, domain=DOMAIN, compose=_composed_unique, vjp=DISCRETE),
)

_FOURIER = {"normalized": 0, "onesided": 1, "signal_ndim": 1}

SCHEMAS = {
    (DOMAIN, "CausalConvWithState"): declare(
        "input:T, weight:T, bias:T?, past_state:T? -> output:T, present_state:T, state_update:T?",
        {
            "activation": "none",
            "channels_last": 0,
            "dilation": 1,
            "input_channel_offset": 0,
            "input_channels": 0,
            "ndim": 1,
            "state_channels_last": -1,
            "state_length": 0,
            "state_update_capacity": 0,
            "state_window": 0,
        },
        T=FLOATS,
    ),
    (DOMAIN, "CDist"): declare("A:T, B:T -> C:T", {"metric": "sqeuclidean"}, T="float double"),
    (DOMAIN, "ExpandDims"): declare("X:T, axis:int32 -> Y:T", T=ANY),
    (DOMAIN, "GatherND"): declare(
        "data:T, indices:I -> output:T", {"batch_dims": 0}, T=ANY, I=INDICES
    ),
    (DOMAIN, "GridSample"): declare(
        "X:T, Grid:T -> Y:T",
        {"align_corners": 0, "mode": "bilinear", "padding_mode": "zeros"},
        T=FLOATS,
    ),
    (DOMAIN, "Inverse"): declare("X:T -> Y:T", T=FLOATS),
    (DOMAIN, "Irfft"): declare("X:T -> Y:T", _FOURIER, T=FLOATS),
    (DOMAIN, "LinearAttention"): declare(
        "query:T, key:T, value:T, past_state:S?, decay:T?, beta:T? -> output:T, present_state:S",
        {
            "chunk_size": 64,
            "kv_num_heads": INT,
            "q_num_heads": INT,
            "scale": 0.0,
            "state_window": 0,
            "update_rule": "gated_delta",
        },
        required=("q_num_heads", "kv_num_heads"),
        T=FLOATS,
        S=FLOATS,
    ),
    (DOMAIN, "Pad"): declare(
        "data:T, pads:int64, value:T? -> output:T", {"mode": "constant"}, T=ANY
    ),
    (DOMAIN, "Range"): declare(
        "start:T, limit:T, delta:T? -> Y:T", {"stash_type": 1}, T="float double int16 int32 int64"
    ),
    (DOMAIN, "Rfft"): declare("X:T -> Y:T", _FOURIER, T=FLOATS),
    (DOMAIN, "Trilu"): declare("X:T, k:int64? -> Y:T", {"upper": 1}, T=ANY),
    (DOMAIN, "Unique"): declare("x:float -> y:float, idx:int64, counts:int64"),
}
