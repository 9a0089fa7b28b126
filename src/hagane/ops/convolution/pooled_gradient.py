"""MaxPoolGradient, AveragePoolGradient: gradients of pooled windows, operators of hagane's own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import Call, dtype_of, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.convolution.window import Window, check_window, pad_spatial
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.images.windows import (
    add_windows,
    explicit_pads,
    ones_kernel,
    padded,
    planes,
    spread_taps,
    tap,
)
from hagane.ops.functions.numbers.elementary import div, where
from hagane.ops.functions.tensors.shapes import reshape_like
from hagane.ops.own_schemas import DOMAIN, float_schema
from hagane.ops.precision import composed_wide, widened
from hagane.ops.vjp import through

MAXIMUM, AVERAGE = "MaxPoolGradient", "AveragePoolGradient"
# Windows of more elements are left to the positions of their largest ones.
_MOST_TAPS = 32


def window_attributes(call: Call) -> dict[str, Any]:
    """Return the attributes of the gradient of a pooling call, its padding spelled out."""
    kernel = list(call.attr("kernel_shape"))
    strides = list(call.attr("strides") or (1,) * len(kernel))
    return {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": list(call.attr("dilations") or (1,) * len(kernel)),
        "pads": explicit_pads(call, kernel, strides),
        "ceil_mode": int(call.attr("ceil_mode") or 0),
    }


def _amounts(window: Window, sizes: Sequence[int], counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return the padding that all windows need, those of ceil mode included."""
    amounts = []
    for axis, (before, after) in enumerate(window.amounts(sizes)):
        reach = (counts[axis] - 1) * window.strides[axis] + window.extent(axis)
        amounts.append((before, max(after, reach - before - sizes[axis])))
    return amounts


def _places(window: Window, counts: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Yield for each tap the indices of its elements in a padded image."""
    for place in np.ndindex(*window.kernel):
        steps = zip(place, window.dilations, window.strides, counts, strict=True)
        yield (..., *(slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, s, n in steps))


def _inner(padded_sum: Array, amounts: Sequence[tuple[int, int]], like: Array) -> Array:
    inside: Any = tuple(
        slice(before, before + size)
        for (before, _), size in zip(amounts, like.shape[2:], strict=True)
    )
    return np.ascontiguousarray(padded_sum[(..., *inside)])


@widened
def _maximum(
    x: Array,
    y: Array,
    g: Array,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil_mode: int = 0,
) -> Array:
    window = Window.of(kernel_shape, strides, dilations, pads, ceil_mode=bool(ceil_mode))
    if 0 in g.shape:
        return np.zeros_like(x)
    amounts = _amounts(window, x.shape[2:], g.shape[2:])
    image = pad_spatial(x, amounts, -np.inf)
    total, free = np.zeros_like(image), np.ones(y.shape, bool)
    for at in _places(window, g.shape[2:]):
        hit = free & (image[at] == y)
        free &= ~hit
        total[at] += np.where(hit, g, 0)
    return _inner(total, amounts, x)


@widened
def _average(
    x: Array,
    g: Array,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> Array:
    window = Window.of(kernel_shape, strides, dilations, pads, ceil_mode=bool(ceil_mode))
    if 0 in g.shape:
        return np.zeros_like(x)
    amounts = _amounts(window, x.shape[2:], g.shape[2:])
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    declared = window.amounts(x.shape[2:])
    if count_include_pad:
        ones = pad_spatial(ones, declared, 1)
    have = declared if count_include_pad else [(0, 0)] * window.rank
    ones = pad_spatial(ones, [(a - c, b - d) for (a, b), (c, d) in zip(amounts, have, strict=True)])
    counts = sum(ones[at] for at in _places(window, g.shape[2:]))
    share = g / counts
    total = np.zeros((*x.shape[:2], *ones.shape[2:]), x.dtype)
    for at in _places(window, g.shape[2:]):
        total[at] += share
    return _inner(total, amounts, x)


def _infer(ctx: InferContext, images: Sequence[int], results: Sequence[int]) -> Sequence[Any]:
    x = ctx.shape(images[0])
    if len(x) < 3:
        ctx.fail(f"expected data of (batch, channels, *spatial), got {ctx.inputs_text()}")
    kernel, strides, dilations, pads = (
        ctx.attr(name) for name in ("kernel_shape", "strides", "dilations", "pads")
    )
    ceil_mode = bool(ctx.attr("ceil_mode"))
    window = Window.of(kernel, strides, dilations, pads, ceil_mode=ceil_mode)
    check_window(ctx, window, x[2:])
    for index in results:
        shape = ctx.shape(index, rank=len(x))
        for a, b in zip((*x[:2], *window.output(x[2:])), shape, strict=True):
            ctx.unify(a, b, f"expected '{ctx.name(index)}' to be of the windows' number")
    return [x]


@composed_wide
def _composed_maximum(
    x: Any,
    y: Any,
    g: Any,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil_mode: int = 0,
) -> Any:
    """Return the gradient of the largest elements: each tap gets that of its first hit."""
    rank, zero = len(kernel_shape), np.zeros((), dtype_of(g).numpy())
    if math.prod(kernel_shape) > _MOST_TAPS or 0 in shape_of(y):
        positions = op(
            "MaxPool", x, outputs=2, kernel_shape=list(kernel_shape), strides=list(strides),
            dilations=list(dilations), pads=list(pads), ceil_mode=ceil_mode,
        )[1]  # fmt: skip
        zeros = op("ConstantOfShape", [math.prod(shape_of(x))], value=zero.reshape(1))
        flat = [op("Reshape", value, [-1]) for value in (positions, g)]
        return reshape_like(op("ScatterElements", zeros, *flat, axis=0, reduction="add"), x)
    pads = _with_room(pads, strides, ceil_mode)
    image, counts = padded(x, pads, -np.inf), shape_of(y)[2:]
    found: dict[tuple[int, ...], Any] = {}
    free: Any = None
    for place in np.ndindex(*kernel_shape):
        offset = tuple(int(p) * d for p, d in zip(place, dilations, strict=True))
        hit = op("Equal", tap(image, offset, counts, strides), y)
        if free is not None:
            hit, free = op("And", hit, free), op("And", free, op("Not", hit))
        else:
            free = op("Not", hit)
        found[offset] = where(hit, g, zero)
    return spread_taps(found, x, strides, pads[:rank])


def _with_room(pads: Sequence[int], strides: Sequence[int], ceil_mode: int) -> list[int]:
    """Return paddings with which the partial windows of ceil mode are whole."""
    rank, more = len(strides), [s - 1 if ceil_mode else 0 for s in strides]
    return [*pads[:rank], *(p + m for p, m in zip(pads[rank:], more, strict=True))]


@composed_wide
def _composed_average(
    x: Any,
    g: Any,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> Any:
    counts = _window_counts(
        x, g, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad
    )
    return sum_windows(div(g, counts), x, kernel_shape, strides, dilations, pads)


def sum_windows(
    g: Any,
    x: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> Any:
    """Return each element's share of the windows that it is in, in the shape of the input.

    Args:
        g: The share of each window, (batch, channels, *positions).
        x: The input, (batch, channels, *sizes).
        kernel: Sizes of the window.
        strides: Distance between neighbouring windows.
        dilations: Distance between neighbouring taps.
        pads: Amounts before all axes, then behind them.
    """
    before = list(pads)[: len(kernel)]
    total = add_windows(planes(g), ones_kernel(g, kernel), planes(x), strides, dilations, before)
    return reshape_like(total, x)


def _window_counts(
    x: Any,
    g: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    ceil_mode: int,
    whole: int,
) -> Any:
    """Return how many elements count in each window, (1, 1, *positions).

    They are the input's, with the declared padding's if asked for; never those beyond, which a
    partial window of ceil mode reaches.
    """
    rank = len(kernel)
    sizes = op("Concat", [1, 1], op("Shape", x, start=2), axis=0)
    ones = op("ConstantOfShape", sizes, value=np.ones(1, dtype_of(x).numpy()))
    if whole:
        margins = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
        ones = op("Pad", ones, margins, np.ones((), dtype_of(x).numpy()))
        pads = [0] * (2 * rank)
    pads = _with_room(pads, strides, ceil_mode)
    kept: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "pads": pads}
    counts = op("Conv", ones, ones_kernel(x, kernel), **kept)
    if ceil_mode:
        ends = op("Shape", g, start=2)
        counts = op("Slice", counts, [0] * rank, ends, list(range(2, 2 + rank)))
    return counts


_KINDS = {
    **dict.fromkeys(("kernel_shape", "strides", "dilations", "pads"), ir.AttributeType.INTS),
    "ceil_mode": ir.AttributeType.INT,
}
OPERATORS = (
    OpDef(
        MAXIMUM, lambda ctx: _infer(ctx, (0,), (1, 2)), _maximum, domain=DOMAIN,
        vjp=through(_composed_maximum), compose=_composed_maximum,
    ),
    OpDef(
        AVERAGE, lambda ctx: _infer(ctx, (0,), (1,)), _average, domain=DOMAIN,
        vjp=through(_composed_average), compose=_composed_average,
    ),
)  # fmt: skip
SCHEMAS = {
    (DOMAIN, MAXIMUM): float_schema("X Y GY", "GX", _KINDS, defaults={"ceil_mode": 0}),
    (DOMAIN, AVERAGE): float_schema(
        "X GY", "GX", {**_KINDS, "count_include_pad": ir.AttributeType.INT},
        defaults={"ceil_mode": 0, "count_include_pad": 0},
    ),
}  # fmt: skip
