"""Padding, resizing and rearranging of images of PyTorch."""

from __future__ import annotations

import ast
import math

import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.functions.networks.windows import batched, unbatched
from hagane.frontends.libraries.torch.operands import (
    cast,
    category,
    is_scalar,
    need_tensor,
    of_numpy,
    per_axis,
    shape_of,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.arithmetic import exact, round_down
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Host,
    Tensor,
    Value,
    is_plain,
)
from hagane.ops.builder import op
from hagane.ops.functions.images import images
from hagane.ops.functions.images.antialiased import antialiased
from hagane.ops.functions.tensors.padding import padded_around
from hagane.symbolic import Dim, Expr, floordiv, product
from hagane.symbolic.expression import multiply


@TORCH.function("constant_pad_nd")
def constant_pad(t: Core, input: Value, pad: Value, value: Value = 0) -> Tensor:
    """Return the input padded with a number."""
    made: Tensor = t.call_library("torch.nn.functional.pad", [input, pad, "constant", value])
    return made


@TORCH.function("nn.functional.pad")
def pad(t: Core, input: Value, pad: Value, mode: Value = "constant", value: Value = None) -> Tensor:
    """Return the input padded: amounts for the last axis first."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    amounts = sizes(t, (pad,))
    if len(amounts) % 2 or len(amounts) > 2 * len(shape):
        t.fail(
            "value",
            f"expected two amounts an axis, for at most {len(shape)} axes, got {len(amounts)}: "
            f"{t.show(x)}",
            x,
        )
    if mode != "constant":
        _check_mode(t, x, mode, amounts)
    for number in range(len(amounts) // 2):
        place = len(shape) - 1 - number
        for amount in amounts[2 * number : 2 * number + 2]:
            if isinstance(amount, int) and amount < 0:
                t.emit.require_size(shape[place] + amount, 0, f"axis {place} cut by {-amount}")
        shape[place] = shape[place] + amounts[2 * number] + amounts[2 * number + 1]
        t.emit.require_size(shape[place], 0, f"axis {place} after padding")
    before: list[Dim] = [0] * len(shape)
    after: list[Dim] = [0] * len(shape)
    for number in range(len(amounts) // 2):
        place = len(shape) - 1 - number
        before[place], after[place] = amounts[2 * number], amounts[2 * number + 1]
    fill: Value = 0 if value is None else of_numpy(value)
    if is_scalar(fill) and not is_plain(fill) and 0 < category(x.dtype) < 3:
        fill = cast(t, to_tensor(t, fill), x.dtype)  # a number that only the run knows
    if not isinstance(fill, int | float | Tensor) or category(x.dtype) == 3:
        return t.emit.typed("Pad", [x], x.dtype, tuple(shape))
    return built(
        t, (x.dtype, tuple(shape)), padded_around, x, [*before, *after], fill,
        _MODES[mode],
    )  # fmt: skip


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _check_mode(t: Core, x: Tensor, mode: Value, amounts: list[Dim]) -> None:
    """Check a padding that takes its content from the input."""
    if mode not in ("reflect", "replicate", "circular"):
        t.fail("value", f"expected mode constant, reflect, replicate or circular, got {mode!r}")
    shape, count = shape_of(t, x), len(amounts) // 2
    if len(shape) not in (count + 1, count + 2):
        t.fail(
            "rank",
            f"padding {count} axes by '{mode}' expects {count + 1} or {count + 2} axes, got "
            f"{t.show(x)}",
            x,
        )
    if mode != "circular":
        t.emit.require_size(shape[-count - 1], 1, f"channels of a padding by '{mode}'")
    if mode == "replicate":
        return
    for number, amount in enumerate(amounts):
        size = shape[len(shape) - 1 - number // 2]
        least = 1 if mode == "reflect" else 0
        t.emit.require_size(size - amount, least, f"size {size} minus the padding of {amount}")


@TORCH.function("nn.functional.interpolate", "nn.functional.upsample")
def interpolate(
    t: Core, input: Value, size: Value = None, scale_factor: Value = None, mode: Value = "nearest",
    align_corners: Value = None, recompute_scale_factor: Value = None, antialias: Value = False,
) -> Tensor:  # fmt: skip
    """Return the input resized over its spatial axes."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    spatial = len(shape) - 2
    expected = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode)
    if spatial < 1 or (expected is not None and spatial != expected):
        t.fail("rank", f"mode '{mode}' expects {2 + (expected or 1)} axes, got {t.show(x)}", x)
    bytes_too = mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
    if category(x.dtype) != 2 and not (bytes_too and x.dtype == ir.DataType.UINT8):
        kinds = "floating-point numbers or uint8" if bytes_too else "floating-point numbers"
        t.fail("dtype-mismatch", f"mode '{mode}' expects {kinds}, got {t.show(x)}", x,
               remedy="convert it with .float()")  # fmt: skip
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        t.fail(
            "value", f"expected align_corners to be None in mode '{mode}', got {align_corners}",
            remedy="leave it out: only linear, bilinear, bicubic and trilinear take it",
        )  # fmt: skip
    if (size is None) == (scale_factor is None):
        t.fail("value", "expected either size or scale_factor")
    if size is not None:
        given = list(size) if isinstance(size, tuple | list) else [size] * spatial
        if len(given) != spatial:
            t.fail("value", f"expected {spatial} sizes, got {len(given)}", x)
        tail = sizes(t, (given,))
    else:
        factors = (
            list(scale_factor)
            if isinstance(scale_factor, tuple | list)
            else [scale_factor] * spatial
        )
        tail = [_scaled(t, dim, factor) for dim, factor in zip(shape[2:], factors, strict=True)]
    for dim in tail:
        t.emit.require_size(dim, 1, "size to resize to")
    made = (*shape[:2], *tail)
    if mode == "area" and not antialias:
        pooled: Tensor = t.call_library(
            f"torch.nn.functional.adaptive_avg_pool{spatial}d", [x, tuple(tail)]
        )
        return pooled
    name = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic",
            "nearest": "nearest", "nearest-exact": "nearest-exact"}.get(mode)  # fmt: skip
    if antialias is True and mode not in ("bilinear", "bicubic", "lanczos"):
        t.fail(
            "value", f"expected mode bilinear, bicubic or lanczos with antialias, got {mode!r}", x
        )
    if name is None or not isinstance(antialias, bool) or category(x.dtype) != 2:
        return t.emit.typed("Resize", [x], x.dtype, made)
    scales = None
    if size is None and not recompute_scale_factor:
        if not all(isinstance(factor, int | float) for factor in factors):
            return t.emit.typed("Resize", [x], x.dtype, made)
        scales = [float(factor) for factor in factors]
    if antialias:
        return built(t, (x.dtype, made), antialiased, x, tail, scales, mode == "bicubic",
                     bool(align_corners))  # fmt: skip
    return built(t, (x.dtype, made), images.scaled, x, tail, scales, name, bool(align_corners))


def _scaled(t: Core, dim: Dim, factor: Value) -> Dim:
    number = exact(factor)
    if isinstance(dim, int) and isinstance(factor, int | float):
        return math.floor(float(dim) * factor)
    if number is not None:
        return round_down(multiply(number, dim))
    found: Value = None
    if t.emit.builds:  # as PyTorch computes it, in float64
        found = t.call(Host(math.floor), [t.binary(ast.Mult, dim, factor)], {})
    return found if isinstance(found, int | Expr) else t.emit.fresh("scaled")


@TORCH.function("nn.functional.pixel_shuffle", "pixel_shuffle")
def pixel_shuffle(t: Core, input: Value, upscale_factor: Value) -> Tensor:
    """Return channels moved into space: (..., C / r^2, H r, W r)."""
    x = need_tensor(t, input, "input")
    *lead, channels, height, width = shape_of(t, x)
    square = upscale_factor * upscale_factor
    if t.emit.indivisible(channels, square, "channels"):
        t.fail("shape-mismatch", f"expected channels divisible by {square}, got {t.show(x)}", x)
    shape = (*lead, floordiv(channels, square), height * upscale_factor, width * upscale_factor)
    return built(t, (x.dtype, shape), images.channels_to_space, x, upscale_factor)


@TORCH.function("nn.functional.pixel_unshuffle", "pixel_unshuffle")
def pixel_unshuffle(t: Core, input: Value, downscale_factor: Value) -> Tensor:
    """Return space moved into channels: (..., C r^2, H / r, W / r)."""
    x = need_tensor(t, input, "input")
    *lead, channels, height, width = shape_of(t, x)
    r = downscale_factor
    for dim in (height, width):
        if t.emit.indivisible(dim, r, "height and width"):
            t.fail(
                "shape-mismatch", f"expected height and width divisible by {r}, got {t.show(x)}", x
            )
    shape = (*lead, channels * r * r, floordiv(height, r), floordiv(width, r))
    return built(t, (x.dtype, shape), images.space_to_channels, x, r)


@TORCH.function("nn.functional.channel_shuffle", "channel_shuffle", "native_channel_shuffle")
def channel_shuffle(t: Core, input: Value, groups: Value) -> Tensor:
    """Return the channels of groups interleaved."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) < 3:
        t.fail("rank", f"channel_shuffle expects (batch, channels, ...), got {t.show(x)}", x)
    if t.emit.indivisible(shape[1], groups, "channels in groups"):
        t.fail("shape-mismatch", f"expected channels divisible by {groups}, got {t.show(x)}", x)
    return built(t, (x.dtype, shape), images.shuffled_channels, x, groups)


@TORCH.function("nn.functional.unfold")
def unfold(
    t: Core,
    input: Value,
    kernel_size: Value,
    dilation: Value = 1,
    padding: Value = 0,
    stride: Value = 1,
) -> Tensor:
    """Return all windows as columns: (batch, channels * kernel, windows), batch if it has one."""
    x, lone = batched(t, need_tensor(t, input, "input"), 2, "unfold")
    batch, channels, *space = shape_of(t, x)
    kernel = per_axis(t, kernel_size, 2, "kernel_size")
    settings = [
        per_axis(t, v, 2, n)
        for v, n in ((dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    ]
    counts = [
        floordiv(n + 2 * p - d * (k - 1) - 1, s) + 1
        for n, k, d, p, s in zip(space, kernel, *settings, strict=True)
    ]
    for count in counts:
        t.emit.require_size(count, 1, "number of windows")
    shape = (batch, channels * kernel[0] * kernel[1], product(counts))
    made = built(t, (x.dtype, shape), images.columns_of_windows, x, kernel, *settings, counts)
    return unbatched(t, made, lone)


@TORCH.function("nn.functional.fold")
def fold(
    t: Core, input: Value, output_size: Value, kernel_size: Value, dilation: Value = 1,
    padding: Value = 0, stride: Value = 1,
) -> Tensor:  # fmt: skip
    """Return columns added up to pictures: (batch, channels, *output_size), batch if it has one."""
    input, lone = batched(t, need_tensor(t, input, "input"), 1, "fold")
    batch, columns, windows = shape_of(t, input)
    kernel = per_axis(t, kernel_size, 2, "kernel_size")
    settings = [
        per_axis(t, v, 2, n)
        for v, n in ((dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    ]
    area = kernel[0] * kernel[1]
    if t.emit.indivisible(columns, area, "columns"):
        t.fail(
            "shape-mismatch", f"expected columns divisible by {area}, got {t.show(input)}", input
        )
    space = sizes(t, (output_size,)) if isinstance(output_size, tuple | list) else [output_size] * 2
    expected = product(
        floordiv(n + 2 * p - d * (k - 1) - 1, s) + 1
        for n, k, d, p, s in zip(space, kernel, *settings, strict=True)
    )
    if t.emit.differ(windows, expected):
        t.fail("shape-mismatch", f"expected {expected} windows, got {windows}: {t.show(input)}",
               input)  # fmt: skip
    dilations, pads, strides = settings
    made = (input.dtype, (batch, floordiv(columns, area), *space))
    joined = built(t, made, lambda x: op("Col2Im", x, space, kernel, dilations=dilations,
                                         pads=pads * 2, strides=strides), input)  # fmt: skip
    return unbatched(t, joined, lone)


@TORCH.function("nn.functional.grid_sample")
def grid_sample(
    t: Core, input: Value, grid: Value, mode: Value = "bilinear", padding_mode: Value = "zeros",
    align_corners: Value = None,
) -> Tensor:  # fmt: skip
    """Return the input sampled at the grid's places: (batch, channels, *grid sizes)."""
    shape, places = shape_of(t, input), shape_of(t, grid)
    if len(shape) != len(places) or t.emit.differ(places[-1], len(shape) - 2):
        t.fail(
            "shape-mismatch", f"the grid {t.show(grid)} does not fit {t.show(input)}", input, grid
        )
    if t.emit.differ(shape[0], places[0]):
        t.fail(
            "shape-mismatch",
            f"expected one batch size, got {t.show(input)} and {t.show(grid)}",
            input,
            grid,
        )
    made = (input.dtype, (*shape[:2], *places[1:-1]))
    name = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}.get(mode)
    if name is None or padding_mode not in ("zeros", "border", "reflection"):
        return t.emit.typed("GridSample", [input, grid], *made)
    return built(t, made, lambda x, grid: op(
        "GridSample", x, grid, mode=name, padding_mode=padding_mode,
        align_corners=int(bool(align_corners))), input, grid)  # fmt: skip


@TORCH.function("nn.functional.affine_grid")
def affine_grid(t: Core, theta: Value, size: Value, align_corners: Value = None) -> Tensor:
    """Return a grid of places for ``grid_sample``."""
    batch, _, *space = sizes(t, (size,))
    expected = (batch, len(space), len(space) + 1)
    own = shape_of(t, theta)
    if len(own) != 3 or any(map(t.emit.differ, own, expected)):
        t.fail("shape-mismatch", f"expected theta of shape ({batch}, {len(space)}, "
               f"{len(space) + 1}), got {t.show(theta)}", theta)  # fmt: skip
    whole = sizes(t, (size,))
    return built(
        t, (theta.dtype, (batch, *space, len(space))),
        lambda x: op("AffineGrid", x, whole, align_corners=int(bool(align_corners))), theta,
    )  # fmt: skip
