"""Depthwise convolution of bytes a plane at a time, for any processor, weights and zero points.

Sums of a row are built up a tap after the other, which compilers make vector code of.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import C_TYPES, Body, work_of
from hagane.native.kernels.packing import Packing, as_is
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.window import Window
from hagane.ops.definition import Array

# Sums of this many columns lie on the stack.
_COLUMNS = 256
# A function that is not inlined: GCC 12 (-O3) leaves products out where it unrolls this loop into
# the one over taps.
_ADD = """
__attribute__((noinline, noclone))
static void KERNEL_add(int32_t *sums, const %(type)s *p, int64_t count, int32_t weight) {
  for (int64_t x = 0; x < count; x++) sums[x] += weight * ((int32_t)p[x * %(step)s] - %(zero)d);
}
"""


def lower_depthwise_planes(
    low: Lowering,
    node: ir.Node,
    window: Window,
    weight: Array,
    x_zero: int,
    factor: Array,
    bias: Array | None,
    zero: int,
) -> None:
    """Write the kernel of a QLinearConv in which each channel has a filter of its own.

    Args:
        low: Takes it.
        node: The convolution.
        window: Its sizes.
        weight: One filter a channel, whole numbers around zero.
        x_zero: The zero point of the image.
        factor: From sums to the result, one or one a channel.
        bias: Whole numbers that are added to sums.
        zero: The zero point of the result.
    """
    channels, (kh, kw) = window.channels, window.kernel
    source, target = low.forms.plain(node.inputs[0]), low.forms.result(node.outputs[0])
    strides = source.strides
    if len(strides) == 3:
        strides = (*strides[:2], 0, strides[2])
    filters = np.ascontiguousarray(weight.reshape(channels, kh * kw), np.int32)
    spread = np.broadcast_to(factor, (channels,)).astype(np.float32)
    added = np.zeros(channels, np.int32) if bias is None else bias.astype(np.int32)
    body = Body()
    s, d = body.pointer(source), body.pointer(target, written=True)
    w = body.raw(
        low.recorder.weight(("planes", id(node)), Packing(as_is, (filters,)), filters.nbytes),
        ctype="int32_t",
    )
    f = body.raw(
        low.recorder.weight(("factor", id(node)), Packing(as_is, (spread,)), channels * 4),
        ctype="float",
    )
    b = body.raw(
        low.recorder.weight(("added", id(node)), Packing(as_is, (added,)), channels * 4),
        ctype="int32_t",
    )
    (sh, sw), (dh, dw), (top, left) = window.strides, window.dilations, window.pads[:2]
    (n, c, h, v), number = (body.size(stride) for stride in strides), body.number
    height, width, across = map(number, (window.height, window.width, window.out_width))
    assert isinstance(strides[3], int), "an image of fixed sizes"
    kept = {"type": C_TYPES[source.dtype.name], "step": sw * strides[3], "zero": x_zero}
    body.helper(_ADD % kept)
    limits = np.iinfo(target.dtype)
    most = _COLUMNS
    if isinstance(window.out_width, int):
        most = min(_COLUMNS, window.out_width)
    body.add(
        f"int64_t c = q % {channels}, image = q / {channels};",
        f"__typeof__({s}) plane = {s} + image * {n} + c * {c};",
        f"for (int64_t y = 0; y < {number(window.out_height)}; y++)",
        f"for (int64_t x0 = 0; x0 < {across}; x0 += {most}) {{",
        f"int64_t count = hg_min({most}, {across} - x0);",
        f"int32_t sums[{most}];",
        f"for (int64_t x = 0; x < count; x++) sums[x] = {b}[c];",
        f"for (int64_t i = 0; i < {kh}; i++) {{",
        f"int64_t row = y * {sh} - {number(top)} + i * {dh};",
        # The border of the image is its zero point, and adds nothing.
        f"if (row < 0 || row >= {height}) continue;",
        f"for (int64_t j = 0; j < {kw}; j++) {{",
        f"int64_t at = x0 * {sw} - {number(left)} + j * {dw};  /* of the first sum, in the image */",
        f"int64_t first = at < 0 ? (-at + {sw - 1}) / {sw} : 0;",
        f"int64_t last = at >= {width} ? 0 : ({width} - at + {sw - 1}) / {sw};",
        "last = hg_min(count, last);",
        f"if (first < last) KERNEL_add(sums + first, plane + row * {h} + (at + first * {sw}) * {v}, "
        f"last - first, {w}[c * {kh * kw} + i * {kw} + j]);",
        "} }",
        f"float factor = {f}[c];",
        f"__typeof__({d}) o = {d} + (q * {number(window.out_height)} + y) * {across} + x0;",
        "for (int64_t x = 0; x < count; x++)",
        f"o[x] = hg_saturate((float)sums[x] * factor, {zero}, {limits.min}, {limits.max});",
        "}",
    )
    flops, count = 2.0 * kh * kw, window.elements
    low.recorder.emit(
        node,
        body,
        window.images * channels,
        work=work_of(count, flops / 4),
        flops=work_of(count, flops),
    )
    low.forms[node.outputs[0]] = target
