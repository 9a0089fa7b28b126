"""DeformConv."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.convolution.window import Window
from hagane.ops.definition import OpDef
from hagane.ops.delegated import onnx_kernel
from hagane.ops.functions.images.sampling import linear_taps, sample
from hagane.ops.functions.numbers.elementary import add, mul
from hagane.ops.precision import widened
from hagane.ops.vjp import through
from hagane.symbolic import floordiv


def _infer_deform_conv(ctx: InferContext) -> Sequence[Any]:
    x, w = ctx.shape(0), ctx.shape(1)
    if len(x) < 3 or len(w) != len(x):
        ctx.fail(f"expected (batch, channels, *spatial) and a weight, got {ctx.inputs_text()}")
    group = ctx.attr("group")
    ctx.unify(x[1], w[1] * group, f"expected the weight to hold {x[1]} / {group} channels")
    kernel = [k for k in ctx.attr("kernel_shape") or w[2:] if isinstance(k, int)]
    if len(kernel) != len(w) - 2:
        return [(x[0], w[0], *(ctx.fresh() for _ in x[2:]))]
    window = Window.of(kernel, ctx.attr("strides"), ctx.attr("dilations"), ctx.attr("pads"))
    points, taps = window.output(x[2:]), ctx.attr("offset_group") * math.prod(kernel)
    ctx.fit(2, (x[0], taps * len(kernel), *points))
    ctx.fit(3, (w[0],))
    ctx.fit(4, (x[0], taps, *points))
    return [(x[0], w[0], *points)]


def composed_deform_conv(
    x: Any,
    w: Any,
    offset: Any,
    b: Any = None,
    mask: Any = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Any:
    """Return the operator's output, over the builder: pixels between pixels, then a product."""
    batch, channels, *_ = shape_of(x)
    maps, per_group, *found = shape_of(w)
    kernel: Any = kernel_shape or found
    positions: Any = shape_of(offset)[2:]
    rank, taps, count = len(kernel), math.prod(kernel), math.prod(positions)
    window = Window.of(kernel, strides, dilations, pads)
    pictures = [batch * offset_group, floordiv(channels, offset_group), *shape_of(x)[2:]]
    data = op("Reshape", x, pictures, allowzero=1)
    moves = op("Reshape", offset, [batch * offset_group, taps, rank, count], allowzero=1)
    places = []
    for axis in range(rank):
        regular = _regular(window, axis, positions).astype(dtype_of(x).numpy())
        place = add(op("Gather", moves, axis, axis=2), regular)
        flat = op("Reshape", place, [batch * offset_group, taps * count], allowzero=1)
        places.append(linear_taps(flat))
    read = sample(data, places)
    if mask is not None:
        shares = [batch * offset_group, 1, taps * count]
        read = mul(read, op("Reshape", mask, shares, allowzero=1))
    columns = op("Reshape", read, [batch, group, per_group * taps, count], allowzero=1)
    rows = op("Reshape", w, [group, floordiv(maps, group), per_group * taps], allowzero=1)
    y = op("Reshape", op("MatMul", rows, columns), [batch, maps, *positions], allowzero=1)
    return y if b is None else add(y, op("Reshape", b, [maps, *(1 for _ in kernel)]))


def _regular(window: Window, axis: int, positions: Sequence[int]) -> Any:
    """Return where each tap reads at each position without an offset, (taps, positions)."""
    starts = np.arange(positions[axis]) * window.strides[axis] - window.pads[axis]
    steps = np.arange(window.kernel[axis]) * window.dilations[axis]
    shape = [1] * (2 * window.rank)
    shape[axis], shape[window.rank + axis] = len(steps), len(starts)
    grid = (steps[:, None] + starts).reshape(shape)
    full = np.broadcast_to(grid, (*window.kernel, *positions))
    return full.reshape(math.prod(window.kernel), math.prod(positions))


OPERATORS = (
    OpDef(
        "DeformConv",
        _infer_deform_conv,
        widened(onnx_kernel("DeformConv")),
        compose=composed_deform_conv,
        vjp=through(composed_deform_conv),
    ),
)
