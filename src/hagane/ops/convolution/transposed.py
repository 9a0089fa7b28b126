"""ConvTranspose and Col2Im: sums of overlapping windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product as cartesian
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.ops.builder import Call, content_of, dtype_of, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.convolution.conv import bias_gradient
from hagane.ops.convolution.window import check_kernel_shape
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.images.windows import planes, weight_gradient
from hagane.ops.functions.tensors.shapes import sizes_of
from hagane.ops.precision import widened
from hagane.ops.traits import Trait
from hagane.symbolic import Dim, floordiv, product


def _scatter_add(
    columns: Array,
    size: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    """Sum windows into a canvas.

    Args:
        columns: (…, *kernel, *positions).
        size: The canvas.
        strides: Distance between neighbouring windows.
        dilations: Distance between neighbouring taps.
    """
    rank = len(size)
    lead = columns.shape[: columns.ndim - 2 * rank]
    kernel = columns.shape[len(lead) : len(lead) + rank]
    counts = columns.shape[len(lead) + rank :]
    canvas = np.zeros((*lead, *size), dtype=columns.dtype)
    for taps in cartesian(*map(range, kernel)):
        place: tuple[Any, ...] = tuple(
            slice(tap * dilation, tap * dilation + (count - 1) * stride + 1, stride)
            for tap, dilation, count, stride in zip(taps, dilations, counts, strides, strict=True)
        )
        canvas[(..., *place)] += columns[(slice(None),) * len(lead) + taps]
    return canvas


def _geometry(
    sizes: Sequence[Dim],
    kernel: Sequence[Dim],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    extra: Sequence[int],
    auto_pad: str,
    wanted: Sequence[int] | None,
) -> tuple[list[Dim], list[tuple[Dim, Dim]]]:
    """Return output sizes and paddings (before, after) of a transposed convolution."""
    rank = len(kernel)
    outputs: list[Dim] = []
    amounts: list[tuple[Dim, Dim]] = []
    for axis in range(rank):
        full = (
            (sizes[axis] - 1) * strides[axis]
            + extra[axis]
            + (kernel[axis] - 1) * dilations[axis]
            + 1
        )
        if wanted is not None:
            size: Dim = wanted[axis]
        elif auto_pad.startswith("SAME"):
            size = sizes[axis] * strides[axis]
        else:
            outputs.append(full - pads[axis] - pads[axis + rank])
            amounts.append((pads[axis], pads[axis + rank]))
            continue
        total = full - size
        half = floordiv(total, 2)
        # The odd element is cut at the end for SAME_UPPER, at the beginning otherwise.
        pair = (half, total - half) if auto_pad == "SAME_UPPER" else (total - half, half)
        outputs.append(size)
        amounts.append(pair)
    return outputs, amounts


@widened
def _conv_transpose(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    batch, channels, *sizes = x.shape
    kernel = tuple(kernel_shape or w.shape[2:])
    rank = len(kernel)
    strides, dilations = strides or (1,) * rank, dilations or (1,) * rank
    extra = output_padding or (0,) * rank
    outputs, amounts = _geometry(
        sizes,
        kernel,
        strides,
        dilations,
        pads or (0,) * (2 * rank),
        extra,
        auto_pad,
        output_shape and output_shape[-rank:],
    )
    maps = w.shape[1]
    data = x.reshape(batch, group, channels // group, int(np.prod(sizes)))
    weight = w.reshape(group, channels // group, int(np.prod(w.shape[1:])))
    columns = np.matmul(weight.transpose(0, 2, 1), data)
    columns = columns.reshape(batch, group * maps, *kernel, *sizes)
    full = [
        max(
            (sizes[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1 + extra[a],
            int(outputs[a]) + int(amounts[a][0]),
        )
        for a in range(rank)
    ]
    canvas = _scatter_add(columns, full, strides, dilations)
    canvas = _crop(canvas, [int(a[0]) for a in amounts], [int(n) for n in outputs])
    if b is not None:
        canvas = canvas + b.reshape(-1, *(1,) * rank)
    return canvas


def _crop(canvas: Array, before: Sequence[int], sizes: Sequence[int]) -> Array:
    rank = len(sizes)
    # A negative amount asks for more than the windows cover: zeros.
    added = [(max(0, -b), 0) for b in before]
    canvas = np.pad(canvas, [(0, 0)] * (canvas.ndim - rank) + added)
    place: tuple[Any, ...] = tuple(
        slice(max(0, b), max(0, b) + n) for b, n in zip(before, sizes, strict=True)
    )
    canvas = canvas[(..., *place)]
    short = [(0, n - have) for n, have in zip(sizes, canvas.shape[-rank:], strict=True)]
    return np.pad(canvas, [(0, 0)] * (canvas.ndim - rank) + short)


def _check_extra(ctx: InferContext, sizes: Sequence[Dim], kernel: Sequence[Dim]) -> None:
    """Refuse more elements behind the last window than a further step would need."""
    rank = len(kernel)
    strides = ctx.attr("strides") or (1,) * rank
    dilations = ctx.attr("dilations") or (1,) * rank
    for axis, extra in enumerate(ctx.attr("output_padding") or ()):
        if extra >= max(strides[axis], dilations[axis]):
            ctx.fail(
                f"expected output_padding below the stride or the dilation of axis {axis}, "
                f"{max(strides[axis], dilations[axis])}, got {extra}"
            )
    for axis, size in enumerate((ctx.attr("output_shape") or ())[-rank:]):
        given = sizes[axis]
        if not isinstance(given, int) or not isinstance(kernel[axis], int):
            continue
        full = (given - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        if not 0 < size < full + max(strides[axis], dilations[axis]):
            ctx.fail(
                f"expected output_shape of axis {axis} from 1 to "
                f"{full + max(strides[axis], dilations[axis]) - 1}, got {size}"
            )


def _infer_conv_transpose(ctx: InferContext) -> Sequence[Any]:
    x_shape, w_shape = ctx.shape(0), ctx.shape(1)
    if len(x_shape) < 3 or len(w_shape) != len(x_shape):
        ctx.fail(f"expected (batch, channels, *spatial) and a weight, got {ctx.inputs_text()}")
    ctx.unify(x_shape[1], w_shape[0], "expected as many weight rows as channels")
    rank, group = len(x_shape) - 2, ctx.attr("group")
    ctx.unify(
        w_shape[0],
        floordiv(w_shape[0], group) * group,
        f"expected a multiple of {group} channels, the groups",
    )
    maps = w_shape[1] * group
    if ctx.has(2):
        ctx.unify(ctx.shape(2, rank=1)[0], maps, f"expected one bias a map ({maps})")
    given = ctx.attr("kernel_shape")
    if given is not None:
        check_kernel_shape(ctx, given, w_shape[2:])
    kernel = list(given or w_shape[2:])
    for name, length in (("strides", 1), ("dilations", 1), ("pads", 2), ("output_padding", 1)):
        values = ctx.attr(name)
        if values is not None and len(values) != length * rank:
            ctx.fail(
                f"expected {length * rank} numbers in {name} for {rank} spatial axes, "
                f"got {list(values)}"
            )
    _check_extra(ctx, x_shape[2:], kernel)
    wanted = ctx.attr("output_shape")
    outputs, _ = _geometry(
        x_shape[2:],
        kernel,
        ctx.attr("strides") or (1,) * rank,
        ctx.attr("dilations") or (1,) * rank,
        ctx.attr("pads") or (0,) * (2 * rank),
        ctx.attr("output_padding") or (0,) * rank,
        ctx.attr("auto_pad"),
        wanted and wanted[-rank:],
    )
    return [(x_shape[0], maps, *outputs)]


def _col2im(
    x: Array,
    image_shape: Array,
    block_shape: Array,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    sizes, kernel = [int(n) for n in image_shape], [int(n) for n in block_shape]
    rank = len(sizes)
    dilations, strides = dilations or (1,) * rank, strides or (1,) * rank
    pads = pads or (0,) * (2 * rank)
    padded = [sizes[a] + pads[a] + pads[a + rank] for a in range(rank)]
    counts = [
        (padded[a] - (kernel[a] - 1) * dilations[a] - 1) // strides[a] + 1 for a in range(rank)
    ]
    channels = x.shape[1] // int(np.prod(kernel))
    columns = x.reshape(x.shape[0], channels, *kernel, *counts)
    canvas = _scatter_add(columns, padded, strides, dilations)
    return _crop(canvas, pads[:rank], sizes)


def _infer_col2im(ctx: InferContext) -> Sequence[Any]:
    n, rows, _ = ctx.shape(0, rank=3)
    image, block = ctx.dims(1), ctx.dims(2)
    if image is None or block is None:
        return [None]
    channels = ctx.fresh() if ctx.data(2) is None else floordiv(rows, product(block))
    return [(n, channels, *image)]


def _conv_transpose_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, w, *bias), (g,) = call.inputs, gradients
    kernel = [int(k) for k in call.attr("kernel_shape") or shape_of(w)[2:]]
    rank, group, wanted = len(kernel), call.attr("group"), call.attr("output_shape")
    strides = call.attr("strides") or (1,) * rank
    dilations = call.attr("dilations") or (1,) * rank
    extra = call.attr("output_padding") or (0,) * rank
    _, amounts = _geometry(
        shape_of(x)[2:],
        kernel,
        strides,
        dilations,
        call.attr("pads") or (0,) * (2 * rank),
        extra,
        call.attr("auto_pad"),
        wanted and wanted[-rank:],
    )
    pads: list[Any] = [pair[0] for pair in amounts] + [pair[1] for pair in amounts]
    if not all(isinstance(amount, int) for amount in pads):
        raise NotDifferentiable(
            "ConvTranspose has no gradient with output_shape along axes of unknown size: give it "
            "pads"
        )
    spatial = list(range(2, 2 + rank))
    # Elements of the result beyond all windows do not count.
    pads[rank:] = [behind - more for behind, more in zip(pads[rank:], extra, strict=True)]
    cut = [min(0, amount) for amount in pads]
    inner = op("Pad", g, cut, None, spatial) if any(cut) else g
    pads = [max(0, amount) for amount in pads]
    kept = {"strides": strides, "dilations": dilations, "pads": pads, "group": group}
    return [
        lambda: op("Conv", inner, w, **kept),
        lambda: weight_gradient(inner, x, kernel, strides, dilations, pads, group),
        *(None if b is None else partial(bias_gradient, g) for b in bias),
    ]


def _col2im_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Take each window's elements: a convolution whose kernels each read one tap."""
    (x, _, block), (g,) = call.inputs, gradients
    kernel = content_of(block)
    if kernel is None:
        raise NotDifferentiable("Col2Im has no gradient where its block_shape is computed")
    sizes = [int(k) for k in kernel]
    taps = int(np.prod(sizes))
    one_each = np.eye(taps, dtype=dtype_of(g).numpy()).reshape(taps, 1, *sizes)
    windows = op("Conv", planes(g), one_each, **call.attributes)
    return [op("Reshape", windows, sizes_of(x), allowzero=1), None, None]


OPERATORS = (
    OpDef("Col2Im", _infer_col2im, _col2im, vjp=_col2im_vjp),
    OpDef(
        "ConvTranspose",
        _infer_conv_transpose,
        _conv_transpose,
        traits=Trait.LINEAR,
        vjp=_conv_transpose_vjp,
    ),
)
