"""AveragePool, MaxPool, LpPool and their global forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.graph.types import Shape
from hagane.ops.builder import Call, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.convolution.pooled_gradient import (
    AVERAGE,
    MAXIMUM,
    sum_windows,
    window_attributes,
)
from hagane.ops.convolution.window import Window, check_window, pad_spatial
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import div, mean_over, mul, where
from hagane.ops.own_schemas import DOMAIN
from hagane.ops.precision import widened
from hagane.ops.traits import Trait
from hagane.ops.vjp import through


def _padded_windows(x: Array, window: Window, value: object) -> tuple[Array, tuple[int, ...]]:
    """Return a view of all windows, the partial ones of ceil mode filled with ``value``."""
    sizes = x.shape[2:]
    output = tuple(int(n) for n in window.output(sizes))
    amounts = []
    for axis, (before, after) in enumerate(window.amounts(sizes)):
        reach = (output[axis] - 1) * window.strides[axis] + window.extent(axis)
        amounts.append((before, max(after, reach - before - sizes[axis])))
    return window.view(pad_spatial(x, amounts, value), output), output


def _spatial(window: Window) -> tuple[int, ...]:
    return tuple(range(-window.rank, 0))


@widened
def average_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Return the mean of every window of ``x``, (batch, channels, *spatial)."""
    window = Window.of(kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    windows, _ = _padded_windows(x, window, 0)
    total = windows.sum(axis=_spatial(window))
    # Elements that count: the input's, with the declared padding's if asked for; never those
    # beyond, which a partial window of ceil mode reaches.
    ones = np.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    if count_include_pad:
        ones = pad_spatial(ones, window.amounts(x.shape[2:]), 1)
        inner = Window.of(kernel_shape, strides, dilations, None, "NOTSET", bool(ceil_mode))
        output = tuple(int(n) for n in window.output(x.shape[2:]))
        reach = [
            (0, max(0, (n - 1) * inner.strides[a] + inner.extent(a) - ones.shape[2 + a]))
            for a, n in enumerate(output)
        ]
        counts = inner.view(pad_spatial(ones, reach), output)
    else:
        counts, _ = _padded_windows(ones, window, 0)
    return (total / counts.sum(axis=_spatial(window))).astype(x.dtype)


def max_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
    n_outputs: int = 1,
) -> Array | tuple[Array, Array]:
    """Return the maximum of every window of ``x``, and where it stands if asked for."""
    window = Window.of(kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    lowest = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    windows, output = _padded_windows(x, window, lowest)
    if n_outputs == 1:
        return windows.max(axis=_spatial(window))
    flat = windows.reshape(*windows.shape[: 2 + window.rank], int(np.prod(window.kernel)))
    best = flat.argmax(axis=-1)
    values = np.take_along_axis(flat, best[..., None], axis=-1)[..., 0]
    return values, _positions(x, window, best, output, storage_order)


def _positions(
    x: Array, window: Window, best: Array, output: Sequence[int], storage_order: int
) -> Array:
    """Return where in the flattened input each window's maximum stands."""
    sizes = x.shape[2:]
    taps = np.unravel_index(best, window.kernel)
    amounts = window.amounts(sizes)
    coordinates = []
    for axis in range(window.rank):
        starts = np.arange(output[axis]) * window.strides[axis] - amounts[axis][0]
        shape = [1] * best.ndim
        shape[2 + axis] = output[axis]
        coordinates.append(starts.reshape(shape) + taps[axis] * window.dilations[axis])
    order = list(range(window.rank))
    if storage_order == 1:
        order.reverse()
    inside: Any = 0
    for axis in order:
        inside = inside * sizes[axis] + coordinates[axis]
    plane = np.arange(x.shape[0] * x.shape[1]).reshape(x.shape[0], x.shape[1])
    return np.asarray(
        inside + plane.reshape(*plane.shape, *(1,) * window.rank) * int(np.prod(sizes)),
        dtype=np.int64,
    )


@widened
def _lp_pool(
    x: Array,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    p: int = 2,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    window = Window.of(kernel_shape, strides, dilations, pads, auto_pad, bool(ceil_mode))
    windows, _ = _padded_windows(np.abs(x) ** p, window, 0)
    return (windows.sum(axis=_spatial(window)) ** (1 / p)).astype(x.dtype)


def _infer_pool(ctx: InferContext) -> Sequence[Any]:
    return infer_pool(ctx, ctx.shape(0))


def infer_pool(ctx: InferContext, shape: Shape) -> Sequence[Any]:
    """Infer a pooling of a tensor of ``shape``, (batch, channels, *spatial)."""
    if len(shape) < 3:
        ctx.fail(f"expected (batch, channels, *spatial), got {ctx.inputs_text()}")
    window = Window.of(
        ctx.attr("kernel_shape"),
        ctx.attr("strides"),
        ctx.attr("dilations"),
        ctx.attr("pads"),
        ctx.attr("auto_pad"),
        bool(ctx.attr("ceil_mode", 0)),
    )
    check_window(ctx, window, shape[2:])
    _check_pads(ctx)
    return [(*shape[:2], *window.output(shape[2:]))] * ctx.n_outputs


def _check_pads(ctx: InferContext) -> None:
    """Refuse windows that lie in the padding whole, whose average or maximum is of nothing."""
    kernel, pads = ctx.attr("kernel_shape"), ctx.attr("pads") or ()
    if any(pad >= size for pad, size in zip(pads, (*kernel, *kernel), strict=False)):
        ctx.fail(f"expected pads smaller than the kernel {list(kernel)}, got {list(pads)}")


def _infer_global(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if len(shape) < 2:
        ctx.fail(f"expected (batch, channels, *spatial), got {ctx.inputs_text()}")
    return [(*shape[:2], *(1 for _ in shape[2:]))]


def _all_spatial(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _global_average(x: Array) -> Array:
    return x.mean(axis=_all_spatial(x), keepdims=True)


def _global_max(x: Array) -> Array:
    return x.max(axis=_all_spatial(x), keepdims=True)


def _global_lp(x: Array, *, p: int = 2) -> Array:
    total = (np.abs(x) ** p).sum(axis=_all_spatial(x), keepdims=True)
    return (total ** (1 / p)).astype(x.dtype)


def _average_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    kept = {**window_attributes(call), "count_include_pad": call.attr("count_include_pad") or 0}
    return [op(AVERAGE, call.inputs[0], gradients[0], domain=DOMAIN, **kept)]


def _lp_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x,), (y,), (g,), p = call.inputs, call.outputs, gradients, call.attr("p")
    at = window_attributes(call)
    names = ("kernel_shape", "strides", "dilations", "pads")
    share = sum_windows(_over_power(g, y, p - 1), x, *(at[name] for name in names))
    return [mul(share, _signed_power(x, p - 1))]


def _over_power(g: Any, y: Any, power: int) -> Any:
    """Return ``g / y ** power``, and 0 where ``y`` is."""
    zero = op("Equal", y, 0)
    return where(zero, 0, div(g, op("Pow", where(zero, 1, y), float(power))))


def _signed_power(x: Any, power: int) -> Any:
    return mul(op("Sign", x), op("Pow", op("Abs", x), float(power)))


def _max_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Of equal elements in a window the first counts."""
    (x,), y, g = call.inputs, call.outputs[0], gradients[0]
    return [op(MAXIMUM, x, y, g, domain=DOMAIN, **window_attributes(call))]


def _all_spatial_axes(x: Any) -> list[int]:
    return list(range(2, rank_of(x)))


def _composed_global_max(x: Any) -> Any:
    axes = _all_spatial_axes(x)
    return op("ReduceMax", x, axes, keepdims=1) if axes else x


def _global_lp_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x,), (y,), (g,), p = call.inputs, call.outputs, gradients, call.attr("p")
    return [mul(_over_power(g, y, p - 1), _signed_power(x, p - 1))]


OPERATORS = (
    OpDef("AveragePool", _infer_pool, average_pool, vjp=_average_vjp),
    OpDef(
        "GlobalAveragePool",
        _infer_global,
        widened(_global_average),
        traits=Trait.REDUCING,
        vjp=through(lambda x: mean_over(x, _all_spatial_axes(x))),
    ),
    OpDef(
        "GlobalLpPool",
        _infer_global,
        widened(_global_lp),
        traits=Trait.REDUCING,
        vjp=_global_lp_vjp,
    ),
    OpDef(
        "GlobalMaxPool",
        _infer_global,
        _global_max,
        traits=Trait.REDUCING,
        vjp=through(_composed_global_max),
    ),
    OpDef("LpPool", _infer_pool, _lp_pool, vjp=_lp_vjp),
    OpDef("MaxPool", _infer_pool, max_pool, vjp=_max_vjp),
)
