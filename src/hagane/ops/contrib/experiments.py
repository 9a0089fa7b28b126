"""Operators that ONNX had as experiments up to its opset 9; models have them still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hagane.ops.builder import op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import ANY, FLOAT_LIST, FLOATS, INDICES, INT_LIST, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.layout import OPERATORS as LAYOUT
from hagane.ops.precision import composed_wide, widened
from hagane.ops.rules import same_shape
from hagane.ops.traits import Trait
from hagane.ops.vjp import through


def _over_maps(values: Sequence[float], rank: int) -> Array:
    return np.array(values, np.float32).reshape(-1, *(1,) * (rank - 2))


@widened
def _affine(x: Array, *, alpha: float = 1.0, beta: float = 0.0) -> Array:
    return np.asarray(alpha * x + beta, dtype=x.dtype)


@composed_wide
def _composed_affine(x: Any, *, alpha: float = 1.0, beta: float = 0.0) -> Any:
    return op("Add", op("Mul", x, alpha), beta)


@widened
def _scale(x: Array, *, scale: float = 1.0) -> Array:
    return np.asarray(x * scale, dtype=x.dtype)


@composed_wide
def _composed_scale(x: Any, *, scale: float = 1.0) -> Any:
    return op("Mul", x, scale)


@widened
def _parametric_softplus(x: Array, *, alpha: float = 1.0, beta: float = 1.0) -> Array:
    return np.asarray(alpha * np.logaddexp(0, beta * x), dtype=x.dtype)


@composed_wide
def _composed_parametric_softplus(x: Any, *, alpha: float = 1.0, beta: float = 1.0) -> Any:
    return op("Mul", op("Softplus", op("Mul", x, beta)), alpha)


@widened
def _scaled_tanh(x: Array, *, alpha: float = 1.0, beta: float = 1.0) -> Array:
    return np.asarray(alpha * np.tanh(beta * x), dtype=x.dtype)


@composed_wide
def _composed_scaled_tanh(x: Any, *, alpha: float = 1.0, beta: float = 1.0) -> Any:
    return op("Mul", op("Tanh", op("Mul", x, beta)), alpha)


@widened
def _image_scaler(x: Array, *, bias: Sequence[float], scale: float = 1.0) -> Array:
    return np.asarray(x * scale + _over_maps(bias, x.ndim), dtype=x.dtype)


@composed_wide
def _composed_image_scaler(x: Any, *, bias: Sequence[float], scale: float = 1.0) -> Any:
    return op("Add", op("Mul", x, scale), _over_maps(bias, rank_of(x)))


def _infer_image_scaler(ctx: InferContext) -> Sequence[Any]:
    shape, bias = ctx.shape(0, rank=4), ctx.attr("bias")
    ctx.unify(shape[1], len(bias), f"expected one bias a channel ({shape[1]}), got {len(bias)}")
    return [shape]


def _crop(x: Array, *, border: Sequence[int], scale: Sequence[int] | None = None) -> Array:
    left, top, right, bottom = border
    height, width = scale or (x.shape[2] - top - bottom, x.shape[3] - left - right)
    if min(height, width, x.shape[2] - top - height, x.shape[3] - left - width) < 0:
        raise ValueError(f"border {list(border)} and {height} x {width} do not fit the image")
    return x[:, :, top : top + height, left : left + width]


def _composed_crop(x: Any, *, border: Sequence[int], scale: Sequence[int] | None = None) -> Any:
    if scale and not all(isinstance(size, int) for size in shape_of(x)[2:]):
        return None  # a slice would be cut short without a word
    left, top, right, bottom = border
    ends = [top + scale[0], left + scale[1]] if scale else [_before(bottom), _before(right)]
    return op("Slice", x, [top, left], ends, [2, 3])


def _before(border: int) -> int:
    """Return the end of a slice so many elements before that of the axis."""
    return -border if border else 2**63 - 1


def _infer_crop(ctx: InferContext) -> Sequence[Any]:
    n, c, *sizes = ctx.shape(0, rank=4)
    border, scale = ctx.attr("border"), ctx.attr("scale")
    if len(border) != 4 or min(border) < 0:
        ctx.fail(f"expected border to be left, top, right, bottom, from 0 on, got {list(border)}")
    if scale and (len(scale) != 2 or min(scale) < 0):
        ctx.fail(f"expected scale to be height, width, from 0 on, got {list(scale)}")
    left, top, right, bottom = border
    pairs = ((top, bottom), (left, right))
    found = scale or [
        size - before - after for size, (before, after) in zip(sizes, pairs, strict=True)
    ]
    for size, (before, _), taken in zip(sizes, pairs, found, strict=True):
        short = isinstance(size, int) and isinstance(taken, int) and before + taken > size
        if short or (isinstance(taken, int) and taken < 0):
            ctx.fail(f"expected an image of more than the border {list(border)}, got {sizes}")
    return [(n, c, *found)]


_ELEMENTWISE = {
    "Affine": (_affine, _composed_affine),
    "ParametricSoftplus": (_parametric_softplus, _composed_parametric_softplus),
    "Scale": (_scale, _composed_scale),
    "ScaledTanh": (_scaled_tanh, _composed_scaled_tanh),
}
(_SLICE,) = (one for one in LAYOUT if one.name == "Slice")


def _composed_slice(data: Any, starts: Any, ends: Any, axes: Any = None) -> Any:
    return op("Slice", data, starts, ends, axes)


OPERATORS = (
    *(
        OpDef(
            name,
            same_shape,
            reference,
            vjp=through(compose),
            compose=compose,
            traits=Trait.ELEMENTWISE,
        )
        for name, (reference, compose) in _ELEMENTWISE.items()
    ),
    OpDef("Crop", _infer_crop, _crop, compose=_composed_crop),
    replace(_SLICE, name="DynamicSlice", compose=_composed_slice),
    OpDef("ImageScaler", _infer_image_scaler, _image_scaler, compose=_composed_image_scaler),
)

SCHEMAS = {
    ("", "Affine"): declare("X:T -> Y:T", {"alpha": 1.0, "beta": 0.0}, T=FLOATS),
    ("", "Crop"): declare(
        "input:T -> output:T", {"border": INT_LIST, "scale": INT_LIST}, ("border",), T=FLOATS
    ),
    ("", "DynamicSlice"): declare(
        "data:T, starts:I, ends:I, axes:I? -> output:T", T=ANY, I=INDICES
    ),
    ("", "ImageScaler"): declare(
        "input:T -> output:T", {"bias": FLOAT_LIST, "scale": 1.0}, ("bias",), T=FLOATS
    ),
    ("", "ParametricSoftplus"): declare("X:T -> Y:T", {"alpha": 1.0, "beta": 1.0}, T=FLOATS),
    ("", "Scale"): declare("input:T -> output:T", {"scale": 1.0}, T=FLOATS),
    ("", "ScaledTanh"): declare("input:T -> output:T", {"alpha": 1.0, "beta": 1.0}, T=FLOATS),
}
