"""Gradients of sliding windows, as convolutions of other forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, dtype_of, op, shape_of
from hagane.ops.functions.elementary import transpose, unsqueeze
from hagane.symbolic import Dim


def explicit_pads(call: Call, kernel: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the padding of a call, before all axes and then behind them.

    Raises:
        NotDifferentiable: It depends on sizes that are not known.
    """
    from hagane.ops.convolution.window import Window

    auto_pad = call.attr("auto_pad") or "NOTSET"
    window = Window.of(kernel, strides, call.attr("dilations"), call.attr("pads"), auto_pad)
    if not auto_pad.startswith("SAME"):
        return list(window.pads)
    sizes = []
    for size in shape_of(call.inputs[0])[2:]:
        if not isinstance(size, int):
            raise NotDifferentiable(
                f"{call.op.name} has no gradient with auto_pad={auto_pad} along axes of unknown "
                "size: give it pads"
            )
        sizes.append(size)
    amounts = window.amounts(sizes)
    return [before for before, _ in amounts] + [after for _, after in amounts]


def add_windows(
    g: Any,
    weight: Any,
    like: Any,
    strides: Sequence[int],
    dilations: Sequence[int],
    before: Sequence[int],
    group: int = 1,
) -> Any:
    """Return the sum of windows, each the weight times an element: a transposed convolution.

    Args:
        g: (batch, maps, *positions).
        weight: (maps, channels / group, *kernel).
        like: A value whose spatial sizes the result has; what lies outside of them is left out.
        strides: Distance between neighbouring windows.
        dilations: Distance between neighbouring taps.
        before: How far the first window begins before the first element, along each axis.
        group: Maps and channels are split into that many parts.

    Returns:
        (batch, channels, *sizes).
    """
    sizes, counts, kernel = shape_of(like)[2:], shape_of(g)[2:], shape_of(weight)[2:]
    rank = len(sizes)
    kept: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations), "group": group}
    known = [*sizes, *counts, *kernel]
    if all(isinstance(dim, int) for dim in known):
        behind = [
            (counts[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1 - before[a] - sizes[a]
            for a in range(rank)
        ]
        room = [-int(b) for b in behind]
        if 0 not in counts and all(room[a] < max(strides[a], 1) for a in range(rank)):
            cut = [max(0, -missing) for missing in room]
            added = [max(0, missing) for missing in room]
            pads = [*before, *cut]
            return op("ConvTranspose", g, weight, pads=pads, output_padding=added, **kept)
        if 0 in counts:
            channels = shape_of(weight)[1] * group
            zero = np.zeros(1, dtype_of(g).numpy())
            return op("ConstantOfShape", [shape_of(g)[0], channels, *sizes], value=zero)
    # What no window reaches behind the last one is shorter than a stride.
    added = [stride - 1 for stride in strides]
    pads = [*before, *(0 for _ in before)]
    wide = op("ConvTranspose", g, weight, pads=pads, output_padding=added, **kept)
    ends = op("Shape", like, start=2)
    return op("Slice", wide, [0] * rank, ends, list(range(2, 2 + rank)))


def weight_gradient(
    x: Any,
    g: Any,
    kernel: Sequence[Dim],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    group: int,
) -> Any:
    """Return the gradient of a convolution's weight: windows of the data, weighted and summed.

    It is a convolution of the data with the gradient in which batch and channels change places,
    and strides and dilations.

    Args:
        x: The data, (batch, channels, *sizes).
        g: The gradient of the result, (batch, maps, *positions).
        kernel: Sizes of the kernel.
        strides: Distance between neighbouring windows.
        dilations: Distance between neighbouring taps.
        pads: Amounts before all axes, then behind them.
        group: Maps and channels are split into that many parts.

    Returns:
        (maps, channels / group, *kernel).
    """
    rank = len(kernel)
    batch, channels, *sizes = shape_of(x)
    if 0 in shape_of(g):
        zero = np.zeros(1, dtype_of(g).numpy())
        shape = [shape_of(g)[1], channels // group, *kernel]
        return op("ConstantOfShape", shape, value=zero)
    if all(size == 1 for size in (*kernel, *strides)) and group == 1 and not any(pads):
        # Each pixel is a row.
        columns, rows = (_flat_pixels(v) for v in (x, g))
        product = op("MatMul", rows, transpose(columns, [0, 2, 1]))
        return unsqueeze(op("ReduceSum", product, [0], keepdims=0), list(range(2, 2 + rank)))
    spatial = list(range(2, 2 + rank))
    if group == 1:
        data = transpose(x, [1, 0, *spatial])
    else:
        parts = op("Reshape", x, [batch, group, channels // group, *sizes], allowzero=1)
        parts = transpose(parts, [2, 1, 0, *(axis + 1 for axis in spatial)])
        data = op("Reshape", parts, [channels // group, group * batch, *sizes], allowzero=1)
    taps = transpose(g, [1, 0, *spatial])
    found = op(
        "Conv",
        data,
        taps,
        strides=list(dilations),
        dilations=list(strides),
        pads=list(pads),
        group=group,
    )
    if shape_of(found)[2:] != tuple(kernel):
        # Elements that no window reaches make for further taps.
        found = op("Slice", found, [0] * rank, list(kernel), spatial)
    return transpose(found, [1, 0, *spatial])


def _flat_pixels(x: Any) -> Any:
    """Return (batch, channels, pixels)."""
    batch, channels, *sizes = shape_of(x)
    return op("Reshape", x, [batch, channels, math.prod(sizes)], allowzero=1)


def planes(x: Any) -> Any:
    """Return (batch * channels, 1, *spatial) of (batch, channels, *spatial)."""
    batch, channels, *sizes = shape_of(x)
    return op("Reshape", x, [batch * channels, 1, *sizes], allowzero=1)


def ones_kernel(like: Any, kernel: Sequence[int]) -> Any:
    """Return a weight of ones from one plane to one, in the element type of a value."""
    return np.ones((1, 1, *kernel), dtype_of(like).numpy())
