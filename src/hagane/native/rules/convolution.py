"""Convolution: which of its forms a node is computed in."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.ending import follow
from hagane.native.kernel import Body
from hagane.native.lowering import Lowering, NotNative, Rule
from hagane.native.rules.depthwise import lower_depthwise
from hagane.native.rules.direct import Source, emit_direct
from hagane.native.rules.images import bias_buffer, four_axes, padded_planes, with_border
from hagane.native.rules.narrow import is_narrow, lower_narrow
from hagane.native.rules.window import Window, needed_pads, window_of
from hagane.native.tensor import Blocked, Pads
from hagane.native.winograd import Shape, lower_winograd, tile_size
from hagane.ops.definition import Array

# Images with fewer channels than this are read as planes, without blocks.
_FEW_CHANNELS = 4


def winograd_size(low: Lowering, window: Window) -> int:
    """Return the tile of Winograd's algorithm where it is faster than the direct form, else 0."""
    if window.kernel != (3, 3) or window.strides != (1, 1) or window.dilations != (1, 1):
        return 0
    if window.groups != 1 or low.direct_only:
        return 0
    return tile_size(_winograd_shape(window), low.threads)


def _winograd_shape(window: Window) -> Shape:
    return Shape(
        window.images,
        window.channels,
        window.out_channels,
        window.out_height,
        window.out_width,
    )


def conv_pads(low: Lowering, window: Window) -> Pads:
    """Return the border that a convolution reads, in the form that it is computed in."""
    top, left, bottom, right = needed_pads(window)
    size = winograd_size(low, window)
    if size:
        rows, columns = _winograd_shape(window).tiles(size)
        bottom = max(bottom, rows * size + 2 - top - window.height)
        right = max(right, columns * size + 2 - left - window.width)
    return top, left, bottom, right


def reads_blocks(low: Lowering, node: ir.Node) -> Window | None:
    """Return the sizes of a convolution that reads images in blocks, or None."""
    if node.op_type != "Conv":
        return None
    try:
        shape = low.fixed_shape(node.inputs[1])
        window = window_of(low, node, shape[2:], shape[0])
        return window if low.is_float(node.inputs[0]) and _is_blocked(low, window) else None
    except NotNative:
        return None


def _is_blocked(low: Lowering, window: Window) -> bool:
    lanes = low.level.lanes
    if is_narrow(low, window):
        return False
    if window.groups == 1 or window.groups == window.channels == window.out_channels:
        return True
    return (
        window.channels // window.groups % lanes == 0
        and window.out_channels // window.groups % lanes == 0
    )


def lower_conv(low: Lowering, node: ir.Node) -> None:
    """Lower a convolution with constant weights."""
    x, weight = node.inputs[0], low.constant(node.inputs[1])
    bias_value = node.inputs[2] if len(node.inputs) > 2 else None
    bias = low.constant(bias_value) if bias_value is not None else None
    if weight is None or (bias_value is not None and bias is None):
        raise NotNative("weights that are not constant")
    if not low.is_float(x):
        raise NotNative(f"element type {low.dtype(x)}")
    window = window_of(low, node, weight.shape[2:], weight.shape[0])
    if is_narrow(low, window):
        lower_narrow(low, node, window, four_axes(weight), bias)
        return
    if not _is_blocked(low, window):
        _lower_by_loops(low, node, window, weight, bias)
        return
    if window.groups > 1 and window.groups == window.channels == window.out_channels:
        lower_depthwise(low, node, window, weight, bias)
    else:
        _lower_direct(low, node, window, weight, bias)


def _lower_direct(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    lanes = low.level.lanes
    x = node.inputs[0]
    assert x is not None
    ending = follow(low, node.outputs[0])
    planes = window.channels <= _FEW_CHANNELS and not isinstance(low.get(x), Blocked)
    residual = None if ending.residual is None else low.blocked(ending.residual)
    target = low.new_blocked(ending.value, low.fixed_shape(ending.value))
    if planes:
        tensor, row, image = padded_planes(low, x, window)
        step, plane, channels, start = 1, row[1], 1, 0
        row_stride = row[0]
    else:
        source = low.blocked(x)
        pads = conv_pads(low, window)
        if any(have < want for have, want in zip(source.pads, pads, strict=True)):
            source = with_border(low, x, source, pads)
        tensor = source.view()
        start = -window.pads[0] * source.row_stride - window.pads[1] * lanes
        step, plane, channels, row_stride = lanes, source.plane_stride, lanes, source.row_stride
        image = source.blocks * source.plane_stride
        size = winograd_size(low, window)
        if size:
            lower_winograd(
                low,
                node,
                _winograd_shape(window),
                size,
                source,
                start,
                weight,
                bias_buffer(low, node, window, bias),
                ending,
                residual,
                target,
            )
            low.lowered[ending.value] = target
            return

    view = Source(tensor, start, step, plane, channels, row_stride, image)
    emit_direct(low, node, window, weight, bias, view, ending, residual, target)


def _lower_by_loops(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    """Lower a grouped convolution whose groups are no whole blocks, on planes."""
    lanes = low.level.lanes
    x = node.inputs[0]
    assert x is not None
    tensor, (row, plane), image = padded_planes(low, x, window)
    depth = window.channels // window.groups
    outs = window.out_channels // window.groups
    kh, kw = window.kernel
    weights = low.constant_tensor(
        node.inputs[1], np.ascontiguousarray(four_axes(weight), np.float32)
    )
    target = low.result(node.outputs[0])
    body = Body()
    s = body.pointer(tensor)
    w = body.pointer(weights)
    b = body.raw(bias_buffer(low, node, window, bias))
    d = body.pointer(target, written=True)
    (sh, sw), (dh, dw) = window.strides, window.dilations
    body.add(
        f"int64_t channel = q % {window.out_channels}, image = q / {window.out_channels};",
        f"const float *s = {s} + image * {image} + channel / {outs} * {depth} * {plane};",
        f"const float *w = {w} + channel * {depth * kh * kw};",
        f"float *d = {d} + q * {window.out_height * window.out_width};",
        f"for (int64_t y = 0; y < {window.out_height}; y++)",
        f"for (int64_t x = 0; x < {window.out_width}; x += {lanes}) {{",
        f"int64_t n = hg_min({lanes}, {window.out_width} - x);",
        f"vf sum = v_set1({b}[channel]);",
        f"for (int64_t c = 0; c < {depth}; c++)",
        f"for (int64_t i = 0; i < {kh}; i++)",
        f"for (int64_t j = 0; j < {kw}; j++) {{",
        f"const float *p = s + c * {plane} + (y * {sh} + i * {dh}) * {row} + x * {sw} + j * {dw};",
        f"float k = w[(c * {kh} + i) * {kw} + j];",
        "sum += k * (v_load_n(p, n));" if sw == 1 else f"sum += k * v_load_strided(p, {sw}, n);",
        "}",
        f"v_store_n(d + y * {window.out_width} + x, sum, n);",
        "}",
    )
    flops = 2.0 * window.images * window.out_channels * depth * kh * kw * window.out_height
    flops *= window.out_width
    low.emit(node, body, window.images * window.out_channels, work=flops / 6, flops=flops)
    low.lowered[node.outputs[0]] = target


RULES: dict[str, Rule] = {"Conv": lower_conv}
