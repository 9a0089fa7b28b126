"""Conv, and the integer convolutions built on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hagane.graph.types import Shape
from hagane.ops.builder import Call, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.convolution.window import Window, check_kernel_shape, check_window, pad_spatial
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.images.windows import add_windows, explicit_pads, weight_gradient
from hagane.ops.functions.numbers.elementary import sum_over
from hagane.ops.precision import widened
from hagane.ops.traits import Trait
from hagane.ops.vjp import DISCRETE
from hagane.symbolic import Dim


def convolve(x: Array, weight: Array, window: Window, group: int) -> Array:
    """Return the cross-correlation of ``x`` with ``weight``.

    Args:
        x: (batch, channels, *spatial).
        weight: (maps, channels / group, *kernel).
        window: The sliding window.
        group: Channels and maps split into that many independent parts.

    Returns:
        (batch, maps, *output), in the element type of ``x``.
    """
    batch, channels, *sizes = x.shape
    maps = weight.shape[0]
    output = tuple(int(n) for n in window.output(sizes))
    padded = pad_spatial(x, window.amounts(sizes))
    rank = window.rank
    if 0 in output or x.size == 0:
        return np.zeros((batch, maps, *output), dtype=x.dtype)
    windows = window.view(padded, output)  # (batch, channels, *output, *kernel)
    per_group = channels // group
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    columns = windows.transpose(order).reshape(
        batch, group, per_group * int(np.prod(window.kernel)), int(np.prod(output))
    )
    rows = weight.reshape(group, maps // group, -1)
    return np.matmul(rows, columns).reshape(batch, maps, *output)


@widened
def _conv(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
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
        y += b.reshape(-1, *(1,) * window.rank)
    return y


def _conv_integer(
    x: Array,
    w: Array,
    x_zero: Array | None = None,
    w_zero: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    window = Window.of(kernel_shape or w.shape[2:], strides, dilations, pads, auto_pad)
    # Padding adds real zeros, which is the zero point: so it is subtracted first.
    shifted = x.astype(np.int32) - (0 if x_zero is None else x_zero.astype(np.int32))
    return convolve(shifted, shift_weight(w, w_zero), window, group).astype(np.int32)


def shift_weight(w: Array, zero: Array | None) -> Array:
    """Return integer weights minus their zero point, one for all or one a map."""
    if zero is None:
        return w.astype(np.int32)
    zero = zero.astype(np.int32).reshape(-1, *(1,) * (w.ndim - 1))
    return w.astype(np.int32) - zero


def infer_conv(
    ctx: InferContext,
    x: int = 0,
    w: int = 1,
    bias: int | None = 2,
    x_shape: Shape | None = None,
) -> Sequence[Any]:
    """Infer a convolution whose data, weight and bias are the given inputs.

    Args:
        ctx: The node.
        x: The number of the data.
        w: That of the weight, (maps, channels / group, *kernel).
        bias: That of the bias, None for an operator without.
        x_shape: The shape of the data as (batch, channels, *spatial), where it lies otherwise.
    """
    x_shape, w_shape = x_shape or ctx.shape(x), ctx.shape(w)
    if len(x_shape) < 3:
        ctx.fail(
            f"expected input '{ctx.name(x)}' to be (batch, channels, *spatial), got {ctx.tensor(x)}"
        )
    if len(w_shape) != len(x_shape):
        ctx.fail(f"expected data and weight of one rank, got {ctx.inputs_text()}")
    group = ctx.attr("group")
    ctx.unify(
        x_shape[1],
        w_shape[1] * group,
        f"expected {ctx.name(w)} to hold channels / group = {x_shape[1]} / {group} channels",
    )
    if group < 1 or (isinstance(w_shape[0], int) and w_shape[0] % group):
        ctx.fail(f"expected group={group} to divide the {w_shape[0]} maps")
    if bias is not None and ctx.has(bias):
        (size,) = ctx.shape(bias, rank=1)
        ctx.unify(size, w_shape[0], f"expected one bias a map ({w_shape[0]})")
    kernel = ctx.attr("kernel_shape")
    if kernel is not None:
        check_kernel_shape(ctx, kernel, w_shape[2:])
    sizes: Sequence[Dim] = kernel or w_shape[2:]
    known = [size if isinstance(size, int) else 1 for size in sizes]
    window = Window.of(
        known, ctx.attr("strides"), ctx.attr("dilations"), ctx.attr("pads"), ctx.attr("auto_pad")
    )
    check_window(ctx, window, x_shape[2:])
    window = replace(window, kernel=tuple(sizes))
    return [(x_shape[0], w_shape[0], *window.output(x_shape[2:]))]


def _conv_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (x, w, *bias), (g,) = call.inputs, gradients
    rank, group = rank_of(x) - 2, call.attr("group")
    kernel: Any = call.attr("kernel_shape") or shape_of(w)[2:]
    strides = call.attr("strides") or (1,) * rank
    dilations = call.attr("dilations") or (1,) * rank
    pads = explicit_pads(call, kernel, strides)
    return [
        lambda: add_windows(g, w, x, strides, dilations, pads[:rank], group),
        lambda: weight_gradient(x, g, shape_of(w)[2:], strides, dilations, pads, group),
        *(None if b is None else partial(bias_gradient, g) for b in bias),
    ]


def bias_gradient(g: Any) -> Any:
    """Return the gradient of the addend of each channel."""
    return sum_over(g, [0, *range(2, rank_of(g))], keepdims=False)


OPERATORS = (
    OpDef("Conv", infer_conv, _conv, traits=Trait.LINEAR, vjp=_conv_vjp),
    OpDef("ConvInteger", lambda ctx: infer_conv(ctx, bias=None), _conv_integer, vjp=DISCRETE),
)
