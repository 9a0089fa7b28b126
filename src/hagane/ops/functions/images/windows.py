"""Gradients of sliding windows: as products of matrices, sums of taps, other convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import transpose, unsqueeze
from hagane.ops.functions.tensors.shapes import filled_like
from hagane.symbolic import Dim


def explicit_pads(call: Call, kernel: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the padding of a call, before all axes and then behind them.

    Raises:
        NotDifferentiable: It depends on sizes that are not known.
    """
    from hagane.ops.convolution.window import Window

    auto_pad = call.attr("auto_pad") or "NOTSET"
    if not auto_pad.startswith("SAME"):
        given = call.attr("pads") if auto_pad == "NOTSET" else None
        return list(given or [0] * 2 * len(kernel))
    window = Window.of(kernel, strides, call.attr("dilations"), None, auto_pad)
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
        like: A value whose spatial sizes the result has; elements outside of them are left out.
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
    # The unreached rest behind the last window is shorter than a stride.
    added = [stride - 1 for stride in strides]
    pads = [*before, *(0 for _ in before)]
    wide = op("ConvTranspose", g, weight, pads=pads, output_padding=added, **kept)
    ends = op("Shape", like, start=2)
    return op("Slice", wide, [0] * rank, ends, list(range(2, 2 + rank)))


def tap(x: Any, offset: Sequence[int], counts: Sequence[Dim], strides: Sequence[int]) -> Any:
    """Return one element of each window.

    Args:
        x: (batch, channels, *sizes), padded.
        offset: The place of the element in its window.
        counts: How many windows there are along each axis.
        strides: Distance between neighbouring windows.

    Returns:
        (batch, channels, *counts).
    """
    ends = [o + (n - 1) * s + 1 for o, n, s in zip(offset, counts, strides, strict=True)]
    axes = list(range(2, 2 + len(counts)))
    return op("Slice", x, list(offset), ends, axes, list(strides))


def padded(x: Any, pads: Sequence[int], fill: float = 0.0) -> Any:
    """Return images with margins.

    Args:
        x: (batch, channels, *sizes).
        pads: Amounts before all spatial axes, then behind them.
        fill: The content of the margins.
    """
    if not any(pads):
        return x
    rank = len(pads) // 2
    amounts = [0, 0, *pads[:rank], 0, 0, *pads[rank:]]
    return op("Pad", x, amounts, np.array(fill, dtype_of(x).numpy()))


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
    if 0 in shape_of(g) or not all(isinstance(size, int) for size in kernel):
        return _weight_gradient_by_convolution(x, g, kernel, strides, dilations, pads, group)
    return op(
        "ConvWeightGradient",
        x,
        g,
        domain="hagane",
        kernel_shape=list(kernel),
        strides=list(strides),
        dilations=list(dilations),
        pads=list(pads),
        group=group,
    )


def composed_weight_gradient(
    x: Any,
    g: Any,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    group: int,
) -> Any:
    """Return the results of :func:`weight_gradient`, in operators of ONNX.

    The windows of all positions are the rows of a matrix, so that it is one product of matrices.
    """
    rank = len(kernel)
    if 0 in shape_of(g):
        return _weight_gradient_by_convolution(x, g, kernel, strides, dilations, pads, group)
    if all(size == 1 for size in (*kernel, *strides)) and group == 1 and not any(pads):
        # Each pixel is a row.
        columns, rows = (_flat_pixels(v) for v in (x, g))
        product = op("MatMul", rows, transpose(columns, [0, 2, 1]))
        return unsqueeze(op("ReduceSum", product, [0], keepdims=0), list(range(2, 2 + rank)))
    counts = shape_of(g)[2:]
    image = padded(x, pads)
    places = list(np.ndindex(*kernel))
    taps = [
        tap(image, [p * d for p, d in zip(place, dilations, strict=True)], counts, strides)
        for place in places
    ]
    maps, channels = shape_of(g)[1], shape_of(x)[1]
    if group == channels == maps:
        return _of_single_channels(g, taps, kernel)
    last = [0, *range(2, 2 + rank), 1]  # channels behind the positions
    inner = channels // group
    rows = op("Reshape", transpose(g, [1, 0, *range(2, 2 + rank)]), [group, maps // group, -1])
    lines = [op("Reshape", transpose(one, last), [-1, group, inner]) for one in taps]
    matrix = op("Concat", *lines, axis=2) if len(lines) > 1 else lines[0]
    product = op("MatMul", rows, transpose(matrix, [1, 0, 2]))
    found = op("Reshape", product, [maps, *kernel, inner])
    return transpose(found, [0, 1 + rank, *range(1, 1 + rank)])


def _of_single_channels(g: Any, taps: Sequence[Any], kernel: Sequence[Dim]) -> Any:
    """Return the gradient of a weight that connects each channel with itself alone."""
    rank = len(kernel)
    axes = [0, *range(2, 2 + rank)]
    sums = [op("ReduceSum", op("Mul", g, one), axes, keepdims=0) for one in taps]
    columns = op("Concat", *(unsqueeze(one, [1]) for one in sums), axis=1)
    return op("Reshape", columns, [shape_of(g)[1], 1, *kernel])


def spread_taps(
    taps: Mapping[tuple[int, ...], Any], like: Any, strides: Sequence[int], before: Sequence[int]
) -> Any:
    """Return images to which windows give: the reverse of :func:`tap`, with sums where they meet.

    Args:
        taps: The values of elements, (batch, channels, *counts), by their offset in the window.
        like: An image of the shape of the result; elements outside of it are left out.
        strides: Distance between neighbouring windows.
        before: How far the first window begins before the first element, along each axis.

    Returns:
        (batch, channels, *sizes).
    """
    rank, sizes = len(strides), shape_of(like)[2:]
    steps = [max(o[axis] // strides[axis] for o in taps) for axis in range(rank)]
    phases: dict[tuple[int, ...], Any] = {}
    for offset, value in taps.items():
        step = [o // s for o, s in zip(offset, strides, strict=True)]
        phase = tuple(o % s for o, s in zip(offset, strides, strict=True))
        moved = padded(value, [*step, *(most - n for most, n in zip(steps, step, strict=True))])
        phases[phase] = op("Add", phases[phase], moved) if phase in phases else moved
    counts = [n + most for n, most in zip(shape_of(next(iter(taps.values())))[2:], steps,
                                          strict=True)]  # fmt: skip
    wide = _interleaved(phases, strides)
    lead = shape_of(like)[:2]
    wide = op("Reshape", wide, [*lead, *(n * s for n, s in zip(counts, strides, strict=True))])
    ends = [b + size for b, size in zip(before, sizes, strict=True)]
    lengths = [n * s for n, s in zip(counts, strides, strict=True)]
    # The last stride may not be a whole one.
    room = [
        max(0, end - length) if isinstance(end, int) and isinstance(length, int) else stride - 1
        for end, length, stride in zip(ends, lengths, strides, strict=True)
    ]
    wide = padded(wide, [*(0 for _ in room), *room])
    if not any(before) and shape_of(wide)[2:] == tuple(sizes):
        return wide
    return op("Slice", wide, list(before), ends, list(range(2, 2 + rank)))


def _interleaved(phases: Mapping[tuple[int, ...], Any], strides: Sequence[int]) -> Any:
    """Return images of every n-th element as (batch, channels, count, stride, count, stride, …)."""
    rank = len(strides)
    zero: Any = None

    def at(phase: tuple[int, ...]) -> Any:
        nonlocal zero
        axis = len(phase)
        if axis < rank:
            parts = [at((*phase, n)) for n in range(strides[axis])]
            return parts[0] if len(parts) == 1 else op("Concat", *parts, axis=3 + 2 * axis)
        if phase not in phases:
            zero = filled_like(next(iter(phases.values())), 0.0) if zero is None else zero
        return unsqueeze(phases.get(phase, zero), [3 + 2 * n for n in range(rank)])

    return at(())


def _weight_gradient_by_convolution(
    x: Any,
    g: Any,
    kernel: Sequence[Dim],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    group: int,
) -> Any:
    """Return the gradient of a weight as a convolution of the data with the gradient.

    Batch and channels change places, and strides and dilations.
    """
    rank = len(kernel)
    batch, channels, *sizes = shape_of(x)
    if 0 in shape_of(g):
        zero = np.zeros(1, dtype_of(g).numpy())
        shape = [shape_of(g)[1], channels // group, *kernel]
        return op("ConstantOfShape", shape, value=zero)
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
