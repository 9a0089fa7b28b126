"""Convolutions, pooling, padding and resizing of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.torch.operands import (
    INT64,
    cast,
    category,
    need_float,
    need_tensor,
    per_axis,
    same_dtype,
    shape_of,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.arithmetic import exact, round_down
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.images import images
from hagane.ops.functions.images.pooling import adaptive_means
from hagane.ops.functions.tensors.padding import padded_around
from hagane.symbolic import Dim, floordiv, product
from hagane.symbolic.expression import multiply


def _batched(t: Core, x: Tensor, spatial: int, what: str) -> tuple[Tensor, bool]:
    """Return the input with a batch axis, and whether it came without one."""
    shape = shape_of(t, x)
    if len(shape) == spatial + 1:
        return t.op("Unsqueeze", x, np.array([0], dtype=np.int64)), True
    if len(shape) != spatial + 2:
        names = "batch, channels, " + ", ".join(("depth", "height", "width")[-spatial:])
        t.fail("rank", f"{what} expects ({names}), got {t.show(x)}", x)
    return x, False


def _unbatched(t: Core, x: Tensor, lone: bool) -> Tensor:
    return t.op("Squeeze", x, np.array([0], dtype=np.int64)) if lone else x


def _positive(t: Core, y: Tensor, spatial: int, what: str) -> Tensor:
    """Restrict the inputs to those for which something is left to compute."""
    for size in shape_of(t, y)[-spatial:]:
        if isinstance(size, int) and size < 1:
            t.fail("shape-mismatch", f"{what} leaves nothing: the output would be {t.show(y)}", y)
        t.emit.require_size(size, 1, f"output of {t.emit.label or what}")
    return y


def conv(t: Core, spatial: int, x: Value, weight: Value, bias: Value, stride: Value,
         padding: Value, dilation: Value, groups: Value) -> Tensor:  # fmt: skip
    """Return a convolution over the last ``spatial`` axes."""
    what = f"conv{spatial}d"
    x, w = need_tensor(t, x, "input"), need_tensor(t, weight, "weight")
    same_dtype(t, x, w, "input and weight")
    x, lone = _batched(t, x, spatial, what)
    strides, dilations = (
        per_axis(t, stride, spatial, "stride"),
        per_axis(t, dilation, spatial, "dilation"),
    )
    shape, kernel = shape_of(t, x), shape_of(t, w, spatial + 2, "weight")
    if t.emit.differ(shape[1], kernel[1] * groups):
        places = [i for i, dim in enumerate(shape) if dim == kernel[1] * groups]
        remedy = f"move axis {places[0]} to axis 1 with permute" if places else ""
        t.fail(
            "shape-mismatch",
            f"expected {kernel[1] * groups} channels in axis 1, got {shape[1]}: {t.show(x)}",
            x,
            remedy=remedy,
        )
    pads: Sequence[Dim] | None = None
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            t.fail("value", f"expected padding to be 'same', 'valid' or numbers, got '{padding}'")
        if padding == "same" and any(s != 1 for s in strides):
            t.fail("value", f"padding='same' needs stride 1, got {strides}",
                   remedy="pad with numbers")  # fmt: skip
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(dilations, kernel[2:], strict=True)]
            pads = [n // 2 for n in totals] + [n - n // 2 for n in totals]
    else:
        pads = per_axis(t, padding, spatial, "padding") * 2
    y = t.op("Conv", x, w, bias, strides=strides, dilations=dilations, pads=pads, group=groups,
             kernel_shape=[int(str(k)) for k in kernel[2:]])  # fmt: skip
    return _unbatched(t, _positive(t, y, spatial, what), lone)


def conv_transpose(
    t: Core, spatial: int, x: Value, weight: Value, bias: Value, stride: Value, padding: Value,
    output_padding: Value, groups: Value, dilation: Value,
) -> Tensor:  # fmt: skip
    """Return a transposed convolution over the last ``spatial`` axes."""
    what = f"conv_transpose{spatial}d"
    x, w = need_tensor(t, x, "input"), need_tensor(t, weight, "weight")
    same_dtype(t, x, w, "input and weight")
    x, lone = _batched(t, x, spatial, what)
    shape, kernel = shape_of(t, x), shape_of(t, w, spatial + 2, "weight")
    if t.emit.differ(shape[1], kernel[0]):
        t.fail(
            "shape-mismatch",
            f"expected {kernel[0]} channels in axis 1, got {shape[1]}: {t.show(x)}",
            x,
        )
    strides, dilations = (
        per_axis(t, stride, spatial, "stride"),
        per_axis(t, dilation, spatial, "dilation"),
    )
    extra = per_axis(t, output_padding, spatial, "output_padding")
    if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        t.fail("value", f"expected output_padding below stride or dilation, got {extra}")
    pads = per_axis(t, padding, spatial, "padding")
    y = t.op("ConvTranspose", x, w, bias, strides=strides, dilations=dilations, pads=pads * 2,
             output_padding=extra, group=groups)  # fmt: skip
    return _unbatched(t, _positive(t, y, spatial, what), lone)


def _register_conv(spatial: int) -> None:
    def forward(
        t: Core, input: Value, weight: Value, bias: Value = None, stride: Value = 1,
        padding: Value = 0, dilation: Value = 1, groups: Value = 1,
    ) -> Tensor:  # fmt: skip
        return conv(t, spatial, input, weight, bias, stride, padding, dilation, groups)

    def transposed(
        t: Core, input: Value, weight: Value, bias: Value = None, stride: Value = 1,
        padding: Value = 0, output_padding: Value = 0, groups: Value = 1, dilation: Value = 1,
    ) -> Tensor:  # fmt: skip
        return conv_transpose(
            t, spatial, input, weight, bias, stride, padding, output_padding, groups, dilation
        )

    TORCH.function(f"nn.functional.conv{spatial}d", f"conv{spatial}d")(forward)
    TORCH.function(f"nn.functional.conv_transpose{spatial}d", f"conv_transpose{spatial}d")(
        transposed
    )


def pool(t: Core, operator: str, spatial: int, x: Value, kernel_size: Value, stride: Value,
         padding: Value, dilation: Value, ceil_mode: Value) -> Tensor:  # fmt: skip
    """Return a pooling over the last ``spatial`` axes."""
    what = f"{operator} over {spatial} axes"
    x, lone = _batched(t, need_tensor(t, x, "input"), spatial, what)
    kernel = per_axis(t, kernel_size, spatial, "kernel_size")
    strides = kernel if stride in (None, (), []) else per_axis(t, stride, spatial, "stride")
    pads = per_axis(t, padding, spatial, "padding")
    if any(2 * p > k for p, k in zip(pads, kernel, strict=True)):
        t.fail("value", f"expected padding of at most half the kernel {kernel}, got {pads}")
    dilations = per_axis(t, dilation, spatial, "dilation")
    source = x if category(x.dtype) == 2 else cast(t, x, ir.DataType.DOUBLE)
    y: Tensor = t.op(operator, source, kernel_shape=kernel, strides=strides, pads=pads * 2,
                     dilations=dilations, ceil_mode=int(bool(ceil_mode)))  # fmt: skip
    y = y if source is x else cast(t, y, x.dtype)
    return _unbatched(t, _positive(t, y, spatial, what), lone)


def _counts(t: Core, operator: str, spatial: int, x: Tensor, *settings: Value) -> Tensor:
    """Return the type of a pooling, which nothing computes."""
    with t.emit.types_only():
        return pool(t, operator, spatial, x, *settings)


def average_pool(
    t: Core, spatial: int, input: Value, kernel_size: Value, stride: Value, padding: Value,
    ceil_mode: Value, count_include_pad: Value, divisor_override: Value,
) -> Tensor:  # fmt: skip
    """Return the means of windows over the last ``spatial`` axes."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    made = _counts(t, "AveragePool", spatial, x, kernel_size, stride, padding, 1, ceil_mode)
    kernel = per_axis(t, kernel_size, spatial, "kernel_size")
    strides = kernel if stride in (None, (), []) else per_axis(t, stride, spatial, "stride")
    pads = per_axis(t, padding, spatial, "padding")
    counts = list(shape_of(t, made)[-spatial:]) if ceil_mode else None
    lone = len(shape_of(t, x)) == spatial + 1

    def means(x: Tensor) -> Any:
        wide = op("Unsqueeze", x, [0]) if lone else x
        found = images.averages(
            wide, kernel, strides, pads, counts, include_pads=bool(count_include_pad),
            divisor=divisor_override,
        )  # fmt: skip
        return op("Squeeze", found, [0]) if lone else found

    return built(t, made, means, x)


def _register_pools(spatial: int) -> None:
    def maximum(
        t: Core, input: Value, kernel_size: Value, stride: Value = None, padding: Value = 0,
        dilation: Value = 1, ceil_mode: Value = False, return_indices: Value = False,
    ) -> Value:  # fmt: skip
        y = pool(t, "MaxPool", spatial, input, kernel_size, stride, padding, dilation, ceil_mode)
        if not return_indices:
            return y
        x = need_tensor(t, input, "input")
        lone = len(shape_of(t, x)) == spatial + 1
        kernel = per_axis(t, kernel_size, spatial, "kernel_size")
        strides = kernel if stride in (None, (), []) else per_axis(t, stride, spatial, "stride")
        pads = per_axis(t, padding, spatial, "padding")
        dilations = per_axis(t, dilation, spatial, "dilation")
        settings = {"kernel_shape": kernel, "strides": strides, "pads": pads * 2,
                    "dilations": dilations, "ceil_mode": int(bool(ceil_mode))}  # fmt: skip

        def places(x: Tensor) -> Any:
            wide = op("Unsqueeze", x, [0]) if lone else x
            found = images.largest_with_places(wide, settings)[1]
            return op("Squeeze", found, [0]) if lone else found

        return y, built(t, (INT64, shape_of(t, y)), places, x)

    def average(
        t: Core, input: Value, kernel_size: Value, stride: Value = None, padding: Value = 0,
        ceil_mode: Value = False, count_include_pad: Value = True, divisor_override: Value = None,
    ) -> Tensor:  # fmt: skip
        return average_pool(
            t, spatial, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override,
        )  # fmt: skip

    def norm(
        t: Core, input: Value, norm_type: Value, kernel_size: Value, stride: Value = None,
        ceil_mode: Value = False,
    ) -> Tensor:  # fmt: skip
        x = need_tensor(t, input, "input")
        powers = t.call_library("torch.pow", [x, norm_type])
        means = average_pool(t, spatial, powers, kernel_size, stride, 0, ceil_mode, True, None)
        if not isinstance(norm_type, int | float):
            return t.emit.typed("LpPool", [means], means.dtype, means.shape)
        area = math.prod(per_axis(t, kernel_size, spatial, "kernel_size"))
        return built(t, means, images.norms_of_windows, x, means, float(norm_type), area)

    def adaptive(t: Core, input: Value, output_size: Value) -> tuple[Tensor, Tensor]:
        """Return the operand, and the type of its windows' maxima or means."""
        x = need_tensor(t, input, "input")
        _, _ = _batched(t, x, spatial, "adaptive pooling")
        shape = shape_of(t, x)
        wanted = (
            list(output_size) if isinstance(output_size, tuple | list) else [output_size] * spatial
        )
        if len(wanted) != spatial:
            t.fail("value", f"expected {spatial} output sizes, got {wanted}")
        tail = shape[-spatial:]
        result = tuple(old if new is None else new for old, new in zip(tail, wanted, strict=True))
        return x, t.emit.typed("AdaptivePool", [x], x.dtype, (*shape[:-spatial], *result))

    def adaptive_max(
        t: Core, input: Value, output_size: Value, return_indices: Value = False
    ) -> Value:
        x, y = adaptive(t, input, output_size)
        counts = shape_of(t, y)[-spatial:]
        if is_divided(x, counts):
            y = built(t, y, images.reduced_to, x, counts, "ReduceMax")
        if not return_indices:
            return y
        shape = shape_of(t, y)
        if not all(isinstance(n, int) for n in (*shape_of(t, x)[-spatial:], *counts)):
            return (y, t.emit.typed("AdaptivePool", [y], INT64, shape))
        return y, built(t, (INT64, shape), images.adaptive_places, x, counts)

    def is_divided(x: Tensor, counts: Sequence[Dim]) -> bool:
        """Whether the number of windows is known and small, or that of elements."""
        pairs = zip(_sizes(x)[-spatial:], counts, strict=True)
        return all(a == b or (isinstance(b, int) and b <= _MOST_WINDOWS) for a, b in pairs)

    def adaptive_average(t: Core, input: Value, output_size: Value) -> Value:
        x, y = adaptive(t, input, output_size)
        sizes = shape_of(t, y)[-spatial:]
        pairs = zip(shape_of(t, x)[-spatial:], sizes, strict=True)
        shared = [pair for pair in pairs if pair[1] != 1 and pair[0] != pair[1]]
        if all(isinstance(n, int) for pair in shared for n in pair):
            return built(t, y, adaptive_means, x, sizes)
        return built(t, y, images.reduced_to, x, sizes, "ReduceMean") if is_divided(
            x, sizes
        ) else y  # fmt: skip

    TORCH.function(f"nn.functional.max_pool{spatial}d", f"max_pool{spatial}d")(maximum)
    for kind, handler in (("max", adaptive_max), ("avg", adaptive_average)):
        TORCH.function(f"nn.functional.adaptive_{kind}_pool{spatial}d")(handler)
        if spatial == 1:
            TORCH.function(f"adaptive_{kind}_pool1d")(handler)
    TORCH.function(f"nn.functional.avg_pool{spatial}d")(average)
    TORCH.function(f"nn.functional.lp_pool{spatial}d")(norm)


_MOST_WINDOWS = 64


def _sizes(x: Tensor) -> tuple[Dim, ...]:
    """Return the shape of a tensor whose rank is known."""
    assert x.shape is not None
    return x.shape


for _spatial in (1, 2, 3):
    _register_conv(_spatial)
    _register_pools(_spatial)


@TORCH.function("nn.functional.max_unpool2d")
def max_unpool2d(
    t: Core, input: Value, indices: Value, kernel_size: Value, stride: Value = None,
    padding: Value = 0, output_size: Value = None,
) -> Tensor:  # fmt: skip
    """Return maxima put back where they came from."""
    shape = shape_of(t, input)
    kernel = per_axis(t, kernel_size, 2, "kernel_size")
    strides = kernel if stride is None else per_axis(t, stride, 2, "stride")
    pads = per_axis(t, padding, 2, "padding")
    tail = [
        (n - 1) * s - 2 * p + k
        for n, s, p, k in zip(shape[-2:], strides, pads, kernel, strict=True)
    ]
    if output_size is not None:
        tail = sizes(t, (output_size,))[-2:]
    made = (*shape[:-2], *tail)
    return built(t, (input.dtype, made), images.put_back, input, indices, tail)


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
        shape[place] = shape[place] + amounts[2 * number] + amounts[2 * number + 1]
        t.emit.require_size(shape[place], 0, f"axis {place} after padding")
    before: list[Dim] = [0] * len(shape)
    after: list[Dim] = [0] * len(shape)
    for number in range(len(amounts) // 2):
        place = len(shape) - 1 - number
        before[place], after[place] = amounts[2 * number], amounts[2 * number + 1]
    fill = 0 if value is None else value
    if not isinstance(fill, int | float) or category(x.dtype) == 3:
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
    if name is None or antialias or category(x.dtype) != 2:
        return t.emit.typed("Resize", [x], x.dtype, made)
    scales = None
    if size is None and not recompute_scale_factor:
        if not all(isinstance(factor, int | float) for factor in factors):
            return t.emit.typed("Resize", [x], x.dtype, made)
        scales = [float(factor) for factor in factors]
    return built(t, (x.dtype, made), images.scaled, x, tail, scales, name, bool(align_corners))


def _scaled(t: Core, dim: Dim, factor: Value) -> Dim:
    number = exact(factor)
    if isinstance(dim, int) and isinstance(factor, int | float):
        return math.floor(float(dim) * factor)
    return t.emit.fresh("scaled") if number is None else round_down(multiply(number, dim))


@TORCH.function("nn.functional.pixel_shuffle", "pixel_shuffle")
def pixel_shuffle(t: Core, input: Value, upscale_factor: Value) -> Tensor:
    """Return channels moved into space: (..., C / r^2, H r, W r)."""
    x = need_tensor(t, input, "input")
    *lead, channels, height, width = shape_of(t, x)
    square = upscale_factor * upscale_factor
    if t.emit.differ(floordiv(channels, square) * square, channels):
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
        if t.emit.differ(floordiv(dim, r) * r, dim):
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
    if t.emit.differ(floordiv(shape[1], groups) * groups, shape[1]):
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
    """Return all windows as columns: (batch, channels * kernel, windows)."""
    x = need_tensor(t, input, "input")
    batch, channels, *space = shape_of(t, x, 4)
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
    return built(t, (x.dtype, shape), images.columns_of_windows, x, kernel, *settings, counts)


@TORCH.function("nn.functional.fold")
def fold(
    t: Core, input: Value, output_size: Value, kernel_size: Value, dilation: Value = 1,
    padding: Value = 0, stride: Value = 1,
) -> Tensor:  # fmt: skip
    """Return columns added up to pictures: (batch, channels, *output_size)."""
    batch, columns, windows = shape_of(t, input, 3)
    kernel = per_axis(t, kernel_size, 2, "kernel_size")
    settings = [
        per_axis(t, v, 2, n)
        for v, n in ((dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    ]
    area = kernel[0] * kernel[1]
    if t.emit.differ(floordiv(columns, area) * area, columns):
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
    return built(t, made, lambda x: op("Col2Im", x, space, kernel, dilations=dilations,
                                          pads=pads * 2, strides=strides), input)  # fmt: skip


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
