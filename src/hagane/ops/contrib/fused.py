"""FusedConv, FusedGemm, FusedMatMul, SparseToDenseMatMul, TransposeMatMul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import (
    DOMAIN,
    FLOAT,
    FLOAT_LIST,
    FLOATS,
    STRING,
    WINDOW,
    declare,
)
from hagane.ops.convolution.conv import convolve, infer_conv
from hagane.ops.convolution.window import Window
from hagane.ops.definition import Array, OpDef
from hagane.ops.linear.matmul import infer_gemm, product_shape
from hagane.ops.precision import composed_wide, widened
from hagane.ops.registry import operators

# The attributes of activations, in the order in which fused operators give their values.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "ParametricSoftplus": ("alpha", "beta"),
    "Relu": (),
    "ScaledTanh": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}


def check_activation(ctx: InferContext, parameters: Sequence[float] = ()) -> None:
    """Refuse an activation that is not known, or parameters that it has not."""
    name = ctx.attr("activation") or ""
    if name and name not in _ACTIVATIONS:
        ctx.fail(f"expected activation to be one of {', '.join(_ACTIVATIONS)}, got '{name}'")
    names = _ACTIVATIONS.get(name, ())
    if len(parameters) > len(names) or (name == "Clip" and len(parameters) < 2):
        wanted = f"parameters ({', '.join(names)})" if names else "no parameters"
        ctx.fail(f"expected {name or 'no activation'} to have {wanted}, got {list(parameters)}")


def _by_name(name: str | None, *values: float | None) -> list[float]:
    """Return the values of an activation's attributes in order, given those of all three names."""
    found = dict(zip(("alpha", "beta", "gamma"), values, strict=True))
    return [
        value for key in _ACTIVATIONS.get(name or "", ()) if (value := found.get(key)) is not None
    ]


def activate(y: Array, name: str | None, parameters: Sequence[float]) -> Array:
    """Return ``y`` after an activation by its ONNX name, with its attributes in order."""
    if not name:
        return y
    if name == "Clip":
        low, high = parameters
        return np.clip(y, low, high)
    attributes = dict(zip(_ACTIVATIONS[name], parameters, strict=False))
    (found,) = operators()["", name]((y,), attributes, 1)
    return np.asarray(found, y.dtype)


@widened
def _fused_conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    z: Array | None = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    window = Window.of(kernel_shape or w.shape[2:], strides, dilations, pads, auto_pad)
    y = convolve(x, w, window, group)
    if b is not None:
        y = y + b.reshape(-1, *(1,) * window.rank)
    if z is not None:
        y = y + z
    return activate(y, activation, activation_params or ())


@widened
def _fused_gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    activation: str | None = None,
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    y = np.matmul(a.T if transA else a, b.T if transB else b) * np.asarray(alpha, dtype=a.dtype)
    if c is not None:
        y = y + np.asarray(beta, dtype=a.dtype) * c
    given = _by_name(activation, activation_alpha, activation_beta, activation_gamma)
    return activate(y, activation, given)


def _infer_conv(ctx: InferContext) -> Sequence[Any]:
    check_activation(ctx, ctx.attr("activation_params") or ())
    (shape,) = infer_conv(ctx)
    if ctx.has(3):
        for ours, theirs in zip(shape, ctx.shape(3, rank=len(shape)), strict=True):
            ctx.unify(theirs, ours, "expected the sum to have the shape of the result")
    return [shape]


def _infer_gemm(ctx: InferContext) -> Sequence[Any]:
    check_activation(ctx)
    return infer_gemm(ctx)


def _turned(x: Array, trans: int, batch: int) -> Array:
    # transBatch moves the first axis in front of the rows: (a, b, …, m) to (b, …, a, m).
    if batch and x.ndim > 2:
        x = np.moveaxis(x, 0, -2)
    return np.swapaxes(x, -1, -2) if trans and x.ndim > 1 else x


@widened
def _fused_matmul(
    a: Array,
    b: Array,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Array:
    y = np.matmul(_turned(a, transA, transBatchA), _turned(b, transB, transBatchB))
    return np.asarray(y * np.asarray(alpha, dtype=y.dtype))


def _infer_fused_matmul(ctx: InferContext) -> Sequence[Any]:
    shapes = []
    turned = any(ctx.attr(f"transBatch{side}", 0) for side in "AB")
    if turned and len(ctx.shape(0)) != len(ctx.shape(1)):
        ctx.fail(f"expected operands of one rank beside transBatch, got {ctx.inputs_text()}")
    for i, side in enumerate("AB"):
        shape = list(ctx.shape(i))
        if ctx.attr(f"transBatch{side}", 0) and len(shape) > 2:
            shape.insert(-1, shape.pop(0))
        if ctx.attr(f"trans{side}") and len(shape) > 1:
            shape[-1], shape[-2] = shape[-2], shape[-1]
        shapes.append(tuple(shape))
    return [product_shape(ctx, *shapes)]


def _activated(y: Any, name: str | None, parameters: Sequence[float]) -> Any:
    """``activate`` over the builder."""
    if not name:
        return y
    if name == "Clip":
        return op("Clip", y, *parameters)
    attributes: dict[str, Any] = dict(zip(_ACTIVATIONS[name], parameters, strict=False))
    return op(name, y, **attributes)


@composed_wide
def _composed_conv(
    x: Any,
    w: Any,
    b: Any = None,
    z: Any = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[float] | None = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    y = op(
        "Conv", x, w, b, auto_pad=auto_pad, dilations=dilations, group=group,
        kernel_shape=kernel_shape, pads=pads, strides=strides,
    )  # fmt: skip
    return _activated(y if z is None else op("Add", y, z), activation, activation_params or ())


@composed_wide
def _composed_gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    activation: str | None = None,
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    y = op("Gemm", a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    given = _by_name(activation, activation_alpha, activation_beta, activation_gamma)
    return _activated(y, activation, given)


def _transposed(x: Any, trans: int, batch: int) -> Any:
    """``_turned`` over the builder."""
    axes = list(range(rank_of(x)))
    if batch and len(axes) > 2:
        axes.insert(-1, axes.pop(0))
    if trans and len(axes) > 1:
        axes[-1], axes[-2] = axes[-2], axes[-1]
    return x if axes == sorted(axes) else op("Transpose", x, perm=axes)


@composed_wide
def _composed_matmul(
    a: Any,
    b: Any,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Any:
    left, right = _transposed(a, transA, transBatchA), _transposed(b, transB, transBatchB)
    y = op("MatMul", left, right)
    return y if alpha == 1 else op("Mul", y, alpha)


OPERATORS = (
    OpDef("FusedConv", _infer_conv, _fused_conv, domain=DOMAIN, compose=_composed_conv),
    OpDef("FusedGemm", _infer_gemm, _fused_gemm, domain=DOMAIN, compose=_composed_gemm),
    *(
        OpDef(name, _infer_fused_matmul, _fused_matmul, domain=DOMAIN, compose=_composed_matmul)
        for name in ("FusedMatMul", "SparseToDenseMatMul", "TransposeMatMul")
    ),
)

_TRANS = {"alpha": 1.0, "transA": 0, "transB": 0}

SCHEMAS = {
    (DOMAIN, "FusedConv"): declare(
        "X:T, W:T, B:T?, Z:T? -> Y:T",
        {
            **WINDOW,
            "activation": STRING,
            "activation_params": FLOAT_LIST,
            "group": 1,
        },
        T=FLOATS,
    ),
    (DOMAIN, "FusedGemm"): declare(
        "A:T, B:T, C:T? -> Y:T",
        {
            **_TRANS,
            "activation": STRING,
            "activation_alpha": FLOAT,
            "activation_beta": FLOAT,
            "activation_gamma": FLOAT,
            "beta": 1.0,
        },
        T=FLOATS,
    ),
    (DOMAIN, "FusedMatMul"): declare(
        "A:T, B:T -> Y:T", {**_TRANS, "transBatchA": 0, "transBatchB": 0}, T=FLOATS
    ),
    # (Its sparse operand is a plain tensor: ``graph/sparse.py``.)
    (DOMAIN, "SparseToDenseMatMul"): declare("A:T, B:T -> Y:T", _TRANS, T=FLOATS),
    (DOMAIN, "TransposeMatMul"): declare("A:T, B:T -> Y:T", _TRANS, T=FLOATS),
}
