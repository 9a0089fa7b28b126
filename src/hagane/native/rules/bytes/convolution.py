"""Convolutions of bytes with constant weights: QLinearConv and ConvInteger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.machine import multiplies_bytes
from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Blocked, Pads, Tensor
from hagane.native.layouts.quads import Quads
from hagane.native.lowering.epilogue import Epilogue, follow
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.bytes.depthwise import is_near, lower_depthwise_quads
from hagane.native.rules.bytes.int8 import emit_int8_product
from hagane.native.rules.bytes.operands import (
    MOST,
    bounded_bytes,
    byte_weight,
    has_quads,
    image_of_quads,
    may_overflow,
    one_for_all,
    parameters,
    requantize,
    scale_and_zero,
)
from hagane.native.rules.bytes.planes import lower_depthwise_planes
from hagane.native.rules.bytes.rounded import Rounded, rounded, rounded_numbers
from hagane.native.rules.bytes.scaled import Scaled, scaled
from hagane.native.rules.bytes.short_depthwise import emit_short_depthwise
from hagane.native.rules.bytes.shorts import (
    Result,
    emit_shorts,
    fits_shorts,
    four_sizes,
    image_of_shorts,
)
from hagane.native.rules.convolution import window as windows
from hagane.native.rules.convolution.direct import Source, emit_direct
from hagane.native.rules.convolution.images import FEW_CHANNELS, four_axes
from hagane.native.rules.convolution.stem import by_pixels, folded, folds_rows
from hagane.native.rules.convolution.window import is_depthwise, needed_pads, pads_of, window_of
from hagane.native.tiles.tile import IN_ROWS, Words
from hagane.ops.definition import Array
from hagane.ops.values import factor_of
from hagane.symbolic import Dim


def border_of_bytes(low: Lowering, node: ir.Node) -> Pads | None:
    """Return the border that a convolution of bytes reads around its image, or None."""
    at = {"QLinearConv": 3, "ConvInteger": 1}.get(node.op_type)
    if at is None:
        return None
    try:
        weight = low.facts.constant(node.inputs[at])
        if weight is None or weight.ndim not in ((4,) if has_quads(low) else (3, 4)):
            return None
        return needed_pads(window_of(low, node, weight.shape[2:], weight.shape[0]))
    except NotNative:
        return None


def lower_qlinear_conv(low: Lowering, node: ir.Node) -> None:
    """Lower QLinearConv with constant weights, scales and zero points, of one group or depthwise."""
    weight = byte_weight(low, node.inputs[3])
    x_scale, x_zero = scale_and_zero(low, node, 1)
    w_scale = low.facts.constant(node.inputs[4])
    y_scale, y_zero = scale_and_zero(low, node, 6)
    bias_value = node.inputs[8] if len(node.inputs) > 8 else None
    bias = low.facts.constant(bias_value)
    if w_scale is None or (bias_value is not None and bias is None):
        raise NotNative("a scale or bias known only at run time")
    scale = factor_of(x_scale, w_scale.reshape(-1), y_scale)
    if weight.ndim in (3, 4):
        window = window_of(low, node, weight.shape[2:], weight.shape[0])
        filters = _around_zero(low, node.inputs[5], weight)
        in_quads = has_quads(low) and weight.ndim == 4 and _fit_bytes(filters)
        depthwise = is_depthwise(window)
        if in_quads and depthwise and is_near(window):
            lower_depthwise_quads(
                low, node, window, filters.astype(np.int8), x_zero, scale, bias, y_zero
            )
            return
        # (Matrix tiles are planned for sizes that are known.)
        open_tiles = window.is_open and bool(low.facts.level.tiles)
        if in_quads and window.groups == 1 and not open_tiles:
            _lower_quads(low, node, window, filters.astype(np.int8), x_zero, scale, bias, y_zero)
            return
        if not in_quads and _lower_shorts(low, node, window, weight, x_zero, scale, bias):
            return
        if depthwise:
            lower_depthwise_planes(low, node, window, filters, x_zero, scale, bias, y_zero)
            return
    w_zero = one_for_all(low, node.inputs[5])
    sums, pixels = _convolved(low, node, weight, x_zero, w_zero)
    target = low.forms.result(node.outputs[0])
    requantize(low, node, sums, target, scale, bias, y_zero, pixels)
    low.forms[node.outputs[0]] = target


def _lower_shorts(
    low: Lowering,
    node: ir.Node,
    window: windows.Window,
    weight: Array,
    x_zero: int,
    factor: Array,
    bias: Array | None,
) -> bool:
    """Lower a convolution of one group, or depthwise, with 16-bit numbers; say whether it fits."""
    maps, depthwise = window.out_channels, is_depthwise(window)
    filters = four_axes(_around_zero(low, node.inputs[5], weight))
    start = np.zeros(maps, np.int64) if bias is None else bias.astype(np.int64)
    if not (window.groups == 1 or depthwise) or not fits_shorts(filters, start):
        return False
    y_zero = one_for_all(low, node.inputs[7])
    if not _includes_zero(low, node.outputs[0], y_zero):
        return False
    image = image_of_shorts(low, node.inputs[0], x_zero, needed_pads(window))
    out, (least, most), followers = bounded_bytes(low, node.outputs[0])
    highest = np.iinfo(low.facts.dtype(out)).max if most is None else most
    target = low.forms.new_shorts(out, four_sizes(low.facts.shape(out)), y_zero)
    spread = np.broadcast_to(factor, (maps,))
    bounds = least - y_zero, int(highest) - y_zero
    result = Result(target, spread, np.zeros(maps), bounds)
    emit = emit_short_depthwise if depthwise else emit_shorts
    name = window.name("conv_int8")
    emit(low, node, window, filters, start, image, result, Epilogue(out, nodes=followers), name)
    return True


def _includes_zero(low: Lowering, value: ir.Value, zero: int) -> bool:
    """Whether the bounds that follow include the zero point: the filling of blocks is to be nought."""
    node = low.only_use(value)
    for _ in range(2):
        if node is None or node.op_type not in ("Max", "Min"):
            return True
        for other in node.inputs:
            array = None if other is None else low.facts.constant(other)
            beyond = np.less if node.op_type == "Min" else np.greater
            if array is not None and beyond(array.astype(np.int64), zero).any():
                return False
        node = low.only_use(node.outputs[0])
    return True


def _fit_bytes(numbers: Array) -> bool:
    limits = np.iinfo(np.int8)
    return bool((numbers >= limits.min).all() and (numbers <= limits.max).all())


def _around_zero(low: Lowering, value: ir.Value | None, weight: Array) -> Array:
    """Return weights less their zero point, which may differ from channel to channel."""
    zero = np.zeros(1, np.int32) if value is None else low.facts.constant(value)
    if zero is None:
        raise NotNative("a zero point known only at run time")
    return weight.astype(np.int32) - zero.astype(np.int32).reshape(-1, *[1] * (weight.ndim - 1))


def _lower_quads(
    low: Lowering,
    node: ir.Node,
    window: windows.Window,
    weight: Array,
    x_zero: int,
    factor: Array,
    bias: Array | None,
    y_zero: int,
) -> None:
    level, lanes = low.facts.level, low.facts.level.lanes
    x = node.inputs[0]
    assert x is not None
    pixels = window.images * window.out_height * window.out_width
    flops = work_of(pixels, 2.0 * weight.size)
    shift = 128 if low.facts.dtype(x) == np.int8 else 0
    out, (least, most), followers = bounded_bytes(low, node.outputs[0])
    target = low.forms.new_quads(out, y_zero)
    maps, length = window.out_channels, (target.blocks * target.lanes // lanes + 8) * lanes
    start = -(x_zero + shift) * weight.astype(np.int64).sum((1, 2, 3))
    start = start + (0 if bias is None else bias.astype(np.int64))
    scale = np.broadcast_to(factor, (maps,)).astype(np.float32)
    numbers = parameters(
        low,
        id(node),
        length,
        start.astype(np.int32),
        scale,
        np.full(2 * length, target.zero, np.int16),
        np.full(4 * length, least + target.shift, np.uint8),
        np.full(length, MOST if most is None else most - y_zero, np.float32),
        np.resize(np.array(IN_ROWS, np.int32), length),
    )
    limited = most is not None or may_overflow(weight, start, scale)
    numbers = replace(numbers, limited=limited)
    if folds_rows(level, window):
        window, weight, source = folded(low, x, window, weight, Words.QUAD, x_zero + shift)
    elif window.channels <= FEW_CHANNELS and not level.tiles and x not in low.forms.quads:
        source = by_pixels(low, x, window, x_zero + shift)
    else:
        image = image_of_quads(low, x, x_zero, needed_pads(window))
        first = -window.pads[0] * image.row_stride - window.pads[1] * image.step
        plane, row = image.plane_stride, image.row_stride
        source = Source(
            image.word_view(), first, image.step, plane, image.step, row,
            image.blocks * plane, Words.QUAD,
        )  # fmt: skip
    epilogue = Epilogue(out, nodes=followers)
    emit_direct(low, node, window, weight, numbers, source, epilogue, None, target, flops=flops)


def lower_conv_integer(low: Lowering, node: ir.Node) -> None:
    """Lower ConvInteger of one group with constant weights and zero points."""
    weight = byte_weight(low, node.inputs[1])
    x_zero = one_for_all(low, node.inputs[2] if len(node.inputs) > 2 else None)
    if _lower_floats(low, node, weight, x_zero):
        return
    lanes, maps = low.facts.level.lanes, weight.shape[0]
    looped = multiplies_bytes(low.facts.level) and not low.facts.level.tiles and weight.ndim == 4
    if looped and 4 * maps < 3 * (-(-maps // lanes) * lanes):
        raise NotNative("vectors of maps that are filled up by a quarter or more")
    w_zero = one_for_all(low, node.inputs[3] if len(node.inputs) > 3 else None)
    sums, pixels = _convolved(low, node, weight, x_zero, w_zero)
    out = node.outputs[0]
    images, maps = low.facts.shape(out)[0], weight.shape[0]
    by_pixel = sums.reshaped((images, pixels, maps)).permuted((0, 2, 1))
    target = low.forms.result(out)
    emit_copy(low.recorder, by_pixel, target.reshaped((images, maps, pixels)))
    low.forms[out] = target


def _lower_floats(low: Lowering, node: ir.Node, weight: Array, x_zero: int) -> bool:
    """Lower a convolution whose sums become floats at once, with its epilogue; say whether they do.

    That is a cast, a factor and a summand a channel, an image that is added, and bounds.
    """
    if weight.ndim not in (3, 4):
        return False
    window = window_of(low, node, weight.shape[2:], weight.shape[0])
    depthwise, maps = is_depthwise(window), window.out_channels
    zero = node.inputs[3] if len(node.inputs) > 3 else None
    filters = four_axes(_around_zero(low, zero, weight))
    start = np.zeros(maps, np.int64)
    in_quads = has_quads(low) and not depthwise and weight.ndim == 4 and _fit_bytes(filters)
    in_quads = in_quads and not (window.is_open and low.facts.level.tiles)
    if not (window.groups == 1 or depthwise) or not fits_shorts(filters, start):
        return False
    before = len(low.done)
    found = scaled(low, node.outputs[0], maps, weight.ndim - 2)
    if found is None:
        return False
    epilogue = follow(low, found.value)
    bounds = epilogue.activation
    if (bounds.low or 0) > 0 or (0 if bounds.high is None else bounds.high) < 0:
        low.done.take_back(before)  # the filling of blocks is to be nought
        return False
    epilogue = replace(epilogue, nodes=(*found.nodes, *epilogue.nodes))
    if in_quads:
        how = rounded(low, epilogue, found.factor)
        _emit_scaled_quads(low, node, window, filters.astype(np.int8), x_zero, found, epilogue, how)
        return True
    residual = None if epilogue.residual is None else low.forms.blocked(epilogue.residual)
    target = low.forms.new_blocked(epilogue.value, low.facts.shape(epilogue.value))
    image = image_of_shorts(low, node.inputs[0], x_zero, needed_pads(window))
    result = Result(target, found.factor, found.shift, (0, 0), bounds, residual)
    emit = emit_short_depthwise if depthwise else emit_shorts
    name = window.name("conv_int8")
    emit(low, node, window, filters, start, image, result, epilogue, name)
    return True


def _emit_scaled_quads(
    low: Lowering,
    node: ir.Node,
    window: windows.Window,
    weight: Array,
    x_zero: int,
    found: Scaled,
    epilogue: Epilogue,
    how: Rounded | None,
) -> None:
    """Write the kernel of a convolution of quads whose results are floats, or rounded after a sum."""
    x = node.inputs[0]
    lanes = low.facts.level.lanes
    shift = 128 if low.facts.dtype(x) == np.int8 else 0
    image = image_of_quads(low, x, x_zero, needed_pads(window))
    first = -window.pads[0] * image.row_stride - window.pads[1] * image.step
    plane, row = image.plane_stride, image.row_stride
    source = Source(
        image.word_view(), first, image.step, plane, image.step, row, image.blocks * plane,
        Words.QUAD,
    )  # fmt: skip
    start = -(x_zero + shift) * weight.astype(np.int64).sum((1, 2, 3))
    residual: Blocked | Quads | None = None
    target: Blocked | Quads
    if how is None:
        if epilogue.residual is not None:
            residual = low.forms.blocked(epilogue.residual)
        target = low.forms.new_blocked(epilogue.value, low.facts.shape(epilogue.value))
        length = (target.blocks + 8) * lanes
        rows = start.astype(np.int32), found.factor, found.shift
        numbers = parameters(low, id(node), length, *rows)
    else:
        residual, bounds = how.residual, (epilogue.activation.low, epilogue.activation.high)
        epilogue = how.epilogue
        target = low.forms.new_quads(epilogue.value, how.zero)
        length = (target.blocks * target.lanes // lanes + 8) * lanes
        largest = 255 * np.abs(weight.astype(np.int64)).sum((1, 2, 3))
        numbers = rounded_numbers(
            low, id(node), length, (start, largest), found, how, bounds, target
        )
    pixels = window.images * window.out_height * window.out_width
    flops = work_of(pixels, 2.0 * weight.size)
    emit_direct(low, node, window, weight, numbers, source, epilogue, residual, target, flops=flops)


def _convolved(
    low: Lowering, node: ir.Node, weight: Array, x_zero: int, w_zero: int
) -> tuple[Tensor, Dim]:
    """Return the sums (images * pixels, maps) of a convolution, and the pixels of an image.

    The image becomes pixels of bytes, channels innermost, with its padding; a window is then a few
    runs of bytes, and a row of a matrix product.
    """
    attributes = low.facts.attributes(node)
    if int(attributes["group"]) != 1 or weight.ndim != 4:
        raise NotNative("groups, or other than two spatial axes")
    source = low.forms.contiguous(node.inputs[0])
    maps, _, *kernel = weight.shape
    strides = list(attributes.get("strides") or (1, 1))
    dilations = list(attributes.get("dilations") or (1, 1))
    sizes = source.shape[2:]
    height, width = low.facts.shape(node.outputs[0])[2:]
    begin, end = pads_of(attributes, sizes, (height, width), kernel, strides, dilations)
    image = _emit_pixels(low, node, source, weight.shape[1], (begin, end), x_zero)
    maps, channels, *kernel = weight.shape
    depth = channels * kernel[0] * kernel[1]
    rows = source.shape[0] * height * width
    wide = -(-depth // 4) * 4
    packed = low.recorder.new(f"{node.name} windows", np.dtype(np.uint8), (rows, wide))
    _emit_windows(low, node, image, packed, (kernel, strides, dilations), (height, width))
    matrix = np.ascontiguousarray(weight.transpose(2, 3, 1, 0).reshape(depth, maps))
    sums = low.recorder.new(f"{node.name} sums", np.dtype(np.int32), (rows, maps))
    emit_int8_product(
        low, node, packed, rows, matrix, (lambda _: str(x_zero), w_zero), sums,
        shifted=source.dtype == np.int8,
    )  # fmt: skip
    return sums, height * width


def _emit_pixels(
    low: Lowering,
    node: ir.Node,
    source: Tensor,
    channels: int,
    pads: tuple[Sequence[Dim], Sequence[Dim]],
    zero: int,
) -> Tensor:
    """Write an image as unsigned bytes (N, rows, columns, C); its border is the zero point."""
    images, _, rows, columns = source.shape
    (top, left), (bottom, right) = pads
    shape = (images, rows + top + bottom, columns + left + right, channels)
    target = low.recorder.new(f"{node.name} pixels", np.dtype(np.uint8), shape)
    flip = 128 if source.dtype == np.int8 else 0
    body = Body()
    s, d = body.pointer(source, ctype="uint8_t"), body.pointer(target, written=True)
    high, wide, n = rows + top + bottom, columns + left + right, body.number
    body.add(
        f"int64_t image = q / {n(high)}, y = q % {n(high)} - {n(top)};",
        f"uint8_t *o = {d} + q * {n(wide * channels)};",
        f"if (y < 0 || y >= {n(rows)}) {{ for (int64_t i = 0; i < {n(wide * channels)}; i++) o[i] = "
        f"(uint8_t)({zero} ^ {flip}); return; }}",
        f"for (int64_t i = 0; i < {n(left * channels)}; i++) o[i] = (uint8_t)({zero} ^ {flip});",
        f"for (int64_t i = 0; i < {n(right * channels)}; i++) o[{n((left + columns) * channels)} + i] = "
        f"(uint8_t)({zero} ^ {flip});",
        f"o += {n(left * channels)}; const uint8_t *x = {s} + (image * {n(channels * rows)} + y) * "
        f"{n(columns)};",
        f"for (int64_t c = 0; c < {channels}; c++) for (int64_t j = 0; j < {n(columns)}; j++)",
        f"o[j * {channels} + c] = x[c * {n(rows * columns)} + j] ^ {flip};",
    )
    low.recorder.emit(f"pixels '{node.name}'", body, images * high, work=work_of(columns, 32.0))
    return target


def _emit_windows(
    low: Lowering,
    node: ir.Node,
    image: Tensor,
    packed: Tensor,
    window: tuple[Sequence[int], Sequence[int], Sequence[int]],
    output: tuple[Dim, Dim],
) -> None:
    """Copy the runs of bytes of each window into a row."""
    _, rows, columns, channels = image.shape
    (kh, kw), (sy, sx), (dy, dx) = window
    assert isinstance(channels, int)
    wide = packed.shape[1]
    height, width = output
    assert isinstance(wide, int)
    body = Body()
    s, d = body.pointer(image), body.pointer(packed, written=True)
    n = body.number
    runs, run = (1, kw * channels) if dx == 1 else (kw, channels)
    body.add(
        f"int64_t image = q / {n(height)}, oy = q % {n(height)};",
        f"const uint8_t *x = {s} + (image * {n(rows)} + oy * {sy}) * {n(columns * channels)};",
        f"for (int64_t ox = 0; ox < {n(width)}; ox++) {{",
        f"uint8_t *o = {d} + (q * {n(width)} + ox) * {wide};",
        f"for (int64_t i = 0; i < {kh}; i++) for (int64_t j = 0; j < {runs}; j++, o += {run})",
        f"__builtin_memcpy(o, x + (i * {n(dy * columns)} + ox * {sx} + j * {dx}) * {channels}, {run});",
        f"for (int64_t at = {kh * kw * channels}; at < {wide}; at++) *o++ = 0; }}",
    )
    tasks = image.shape[0] * height
    low.recorder.emit(f"windows '{node.name}'", body, tasks, work=work_of(width, wide * 0.05))


RULES: dict[str, Rule] = {
    "ConvInteger": lower_conv_integer,
    "QLinearConv": lower_qlinear_conv,
}
