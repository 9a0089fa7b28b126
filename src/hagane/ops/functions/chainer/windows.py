"""Chainer's sliding windows: convolutions, pooling, and their inverses.

Where ``cover_all`` is set the last window reaches over the end, so that all elements lie in one.
A margin of ``stride - 1`` elements at the end gives exactly these windows, for any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.images.windows import padded, planes, tap
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mask_like,
    mul,
    sub,
    transpose,
    unsqueeze,
)
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.functions.tensors.shapes import filled_like
from hagane.symbolic import Dim, product


def margins(strides: Sequence[int], pads: Sequence[int], cover_all: bool) -> list[int]:
    """Return the padding before all axes, then behind them."""
    return [*pads, *(p + (s - 1 if cover_all else 0) for p, s in zip(pads, strides, strict=True))]


def convolution(
    x: Any, weight: Any, bias: Any, strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], groups: int, *, cover_all: bool = False,
) -> Any:  # fmt: skip
    """Return a convolution in the element type of ``x``.

    Args:
        x: (batch, channels, *sizes).
        weight: (maps, channels / groups, *kernel).
        bias: (maps,), or None.
        strides: Distance between neighbouring windows.
        pads: The width of the margins of zeros.
        dilations: Distance between neighbouring taps.
        groups: Into how many parts channels and maps are split.
        cover_all: Whether the last window may reach over the end.
    """
    dtype = dtype_of(x)
    given = [cast(weight, dtype), None if bias is None else cast(bias, dtype)]
    kept: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations)}
    kept["group"] = groups
    return op("Conv", x, *given, pads=margins(strides, pads, cover_all), **kept)


def depthwise(
    x: Any, weight: Any, bias: Any, strides: Sequence[int], pads: Sequence[int], channels: int
) -> Any:
    """Return a convolution of each channel with filters (multiplier, channels, *kernel)."""
    shape = [-1, 1, *shape_of(weight)[2:]]
    filters = op("Reshape", transpose(weight, [1, 0, 2, 3]), shape)
    return convolution(x, filters, bias, strides, pads, [1, 1], channels)


def deconvolution(
    x: Any, weight: Any, bias: Any, strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], groups: int, sizes: Sequence[Dim] | None,
) -> Any:  # fmt: skip
    """Return a transposed convolution in the element type of ``x``.

    Args:
        x: (batch, channels, *counts).
        weight: (channels, maps / groups, *kernel).
        bias: (maps,), or None.
        strides: Distance between neighbouring windows.
        pads: How much is cut off at both ends.
        dilations: Distance between neighbouring taps.
        groups: Into how many parts channels and maps are split.
        sizes: Those of the result; None for the least that have so many windows.
    """
    dtype = dtype_of(x)
    given = [cast(weight, dtype), None if bias is None else cast(bias, dtype)]
    kept: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "group": groups}
    if sizes is None:
        return op("ConvTranspose", x, *given, pads=[*pads, *pads], **kept)
    kernel, counts = shape_of(weight)[2:], shape_of(x)[2:]
    natural = [
        (n - 1) * s + (k - 1) * d + 1 - 2 * p
        for n, s, k, d, p in zip(counts, strides, kernel, dilations, pads, strict=True)
    ]
    more = [
        a - b if isinstance(a, int) and isinstance(b, int) else s - 1
        for a, b, s in zip(sizes, natural, strides, strict=True)
    ]
    added = [max(m, 0) for m in more]
    wide = op("ConvTranspose", x, *given, pads=[*pads, *pads], output_padding=added, **kept)
    if [n + m for n, m in zip(natural, added, strict=True)] == list(sizes):
        return wide
    rank = len(sizes)
    return op("Slice", wide, [0] * rank, list(sizes), list(range(2, 2 + rank)))


def taps_of(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], counts: Sequence[Dim], *, cover_all: bool,
) -> Any:  # fmt: skip
    """Return windows: (batch, channels, taps, *counts), taps in the order of rows.

    Args:
        x: (batch, channels, *sizes).
        kernel: Sizes of a window.
        strides: Distance between neighbouring windows.
        pads: The width of the margins.
        dilations: Distance between neighbouring taps.
        counts: How many windows there are along each axis.
        cover_all: Whether the last window may reach over the end.
    """
    image = padded(x, margins(strides, pads, cover_all))
    found = [
        tap(image, [n * d for n, d in zip(place, dilations, strict=True)], counts, strides)
        for place in np.ndindex(*kernel)
    ]
    return op("Concat", *(unsqueeze(one, [2]) for one in found), axis=2)


def image_columns(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    dilations: Sequence[int], counts: Sequence[Dim], cover_all: bool,
) -> Any:  # fmt: skip
    """Return windows as channels: (batch, channels * taps, *counts)."""
    found = taps_of(x, kernel, strides, pads, dilations, counts, cover_all=cover_all)
    batch, channels, taps, *rest = shape_of(found)
    return op("Reshape", found, [batch, channels * taps, *rest], allowzero=1)


def local_convolution(x: Any, weight: Any, bias: Any, strides: Sequence[int]) -> Any:
    """Return a convolution with a filter of its own at every place, in the type of ``x``.

    Args:
        x: (batch, channels, height, width).
        weight: (maps, rows, columns, channels, *kernel).
        bias: (maps, rows, columns), or None.
        strides: Distance between neighbouring windows.
    """
    maps, rows, columns, channels, *kernel = shape_of(weight)
    sizes = [int(str(size)) for size in kernel]
    found = image_columns(x, sizes, strides, [0, 0], [1, 1], [rows, columns], False)
    weight = cast(weight, dtype_of(x))
    filters = op("Reshape", weight, [maps, rows, columns, channels * sizes[0] * sizes[1]])
    y = op("Einsum", found, filters, equation="nkij,oijk->noij")
    return y if bias is None else add(y, cast(bias, dtype_of(x)))


def shifted(x: Any, kernel: Sequence[int], dilations: Sequence[int], channels: int) -> Any:
    """Return images of which groups of channels are moved to all sides (Wu et al., 2017)."""
    height, width = kernel
    count = height * width
    weight = np.zeros((channels, 1, height, width), dtype_of(x).numpy())
    places = np.minimum(np.arange(channels) // (channels // count), count - 1)
    # The group that stays in place is the last, which may be the largest.
    last, middle = count - 1, (count - 1) // 2
    places = np.where(places == middle, last, np.where(places == last, middle, places))
    rows, columns = height - 1 - places // width, width - 1 - places % width
    weight[np.arange(channels), 0, rows, columns] = 1
    pads = [k // 2 * d for k, d in zip(kernel, dilations, strict=True)]
    return convolution(x, weight, None, [1, 1], pads, dilations, channels)


# Pooling.


def max_pool(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], cover_all: bool
) -> Any:
    """Return the largest element of each window of (batch, channels, *sizes)."""
    x, around = _poolable(x, kernel, strides, pads, cover_all)
    return op("MaxPool", x, kernel_shape=list(kernel), strides=list(strides), pads=around)


def max_pool_with_places(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], cover_all: bool
) -> tuple[Any, Any]:
    """Return the largest element of each window, and where in its window it lies, int64.

    The operator counts places in whole arrays, which cost no window to be built.
    """
    x, around = _poolable(x, kernel, strides, pads, cover_all)
    y, rest = op(
        "MaxPool", x, kernel_shape=list(kernel), strides=list(strides), pads=around, outputs=2
    )
    sizes = shape_of(x)[2:]
    rank, rest = len(kernel), op("Mod", rest, product(sizes))
    found: Any = None
    weight = 1
    for axis in reversed(range(rank)):
        place, rest = op("Mod", rest, sizes[axis]), op("Div", rest, sizes[axis])
        starts = sub(mul(positions_along(y, 2 + axis), strides[axis]), around[axis])
        inside = sub(place, unsqueeze(starts, list(range(1, rank - axis))))
        inside = mul(inside, weight)
        found = inside if found is None else add(found, inside)
        weight *= kernel[axis]
    return y, found


def max_places(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], cover_all: bool
) -> Any:
    """Return where in its window each maximum lies, int64: (batch, channels, *counts)."""
    return max_pool_with_places(x, kernel, strides, pads, cover_all)[1]


def _poolable(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], cover_all: bool
) -> tuple[Any, list[int]]:
    """Return an array and its margins; the operator takes narrow ones only, others are filled."""
    around = margins(strides, pads, cover_all)
    sizes = shape_of(x)[2:]
    for axis, (size, k, s) in enumerate(zip(sizes, kernel, strides, strict=True)):
        if isinstance(size, int):  # no more than the windows reach: margins cost a copy
            before, behind = pads[axis], around[len(pads) + axis]
            reach = (size + before + behind - k) // s * s + k
            around[len(pads) + axis] = max(reach - size - before, 0)
    if any(amount >= size for amount, size in zip(around, (*kernel, *kernel), strict=True)):
        return padded(x, around, -np.inf), [0] * len(around)
    return x, around


def average_pool(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], padding_counts: bool
) -> Any:
    """Return the mean of each window; margins count as zeros, or not at all.

    Where they do not count, the mean of a window in the margins alone is not a number.
    """
    around = [*pads, *pads]
    if all(p < k for p, k in zip(pads, kernel, strict=True)):
        return op("AveragePool", x, kernel_shape=list(kernel), strides=list(strides), pads=around,
                  count_include_pad=int(padding_counts))  # fmt: skip

    def mean(y: Any) -> Any:
        return op("AveragePool", padded(y, around), kernel_shape=list(kernel),
                  strides=list(strides))  # fmt: skip

    # The operator takes no window that lies in the margins alone; its mean is that of nothing.
    return mean(x) if padding_counts else div(mean(x), mean(filled_like(x, 1)))


def unpool(
    x: Any, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
    sizes: Sequence[Dim], places: Any = None,
) -> Any:  # fmt: skip
    """Return each element at all places of its window, or at one; they add up where they meet.

    Args:
        x: (batch, channels, *counts).
        kernel: Sizes of a window.
        strides: Distance between neighbouring windows.
        pads: How much is cut off at both ends.
        sizes: Those of the result.
        places: Where in its window each element goes, integers of the shape of ``x``; None for
            everywhere.
    """
    batch, channels = shape_of(x)[:2]
    dtype, taps = dtype_of(x).numpy(), int(np.prod(kernel))
    rows, weight = planes(x), np.ones((1, 1, *kernel), dtype)
    if places is not None:
        numbers = np.arange(taps).reshape(1, taps, *(1 for _ in kernel))
        chosen = op("Equal", cast(planes(places), ir.DataType.INT64), numbers)
        rows = mul(rows, mask_like(chosen, x))
        weight = np.eye(taps, dtype=dtype).reshape(taps, 1, *kernel)
    made = deconvolution(rows, weight, None, strides, pads, [1] * len(kernel), 1, sizes)
    return op("Reshape", made, [batch, channels, *sizes], allowzero=1)


def pyramid(x: Any, levels: int, height: int, width: int) -> Any:
    """Return the maxima of images cut into 1, 4, 16, … parts (He et al., 2014).

    Returns:
        (batch, channels * parts, 1, 1).
    """
    found = []
    for bins in (2**level for level in range(levels)):
        kernel = [-(-height // bins), -(-width // bins)]
        pads = [(k * bins - n) // 2 for k, n in zip(kernel, (height, width), strict=True)]
        y = max_pool(x, kernel, kernel, pads, True)
        batch, channels, *rest = shape_of(y)
        found.append(op("Reshape", y, [batch, channels * rest[0] * rest[1], 1, 1]))
    return op("Concat", *found, axis=1)
