"""MaxPool of images of bytes, in the layouts that convolutions of bytes write and read."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.layouts.quads import QUAD
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules.bytes.shorts import four_sizes
from hagane.native.rules.convolution.window import window_of
from hagane.symbolic import Dim

_OF = {"uint8_t": "epu8", "int16_t": "epi16"}
# Sixteen bytes of a pixel: compilers may take them one by one, if left to themselves.
_LARGEST = """
#if defined(__AVX2__)
typedef __m128i KERNEL_bytes;
#define KERNEL_load(p) _mm_loadu_si128((const __m128i *)(p))
#define KERNEL_store(p, x) _mm_storeu_si128((__m128i *)(p), x)
#define KERNEL_larger(a, b) _mm_max_%(of)s(a, b)
#else
typedef %(type)s KERNEL_bytes __attribute__((vector_size(16), aligned(1), may_alias));
#define KERNEL_load(p) (*(const KERNEL_bytes *)(p))
#define KERNEL_store(p, x) (*(KERNEL_bytes *)(p) = (x))
INLINE KERNEL_bytes KERNEL_larger(KERNEL_bytes a, KERNEL_bytes b) {
  const KERNEL_bytes above = (KERNEL_bytes)(a > b);
  return (above & a) | (~above & b);
}
#endif
"""


def lower_byte_pool(low: Lowering, node: ir.Node) -> None:
    """Lower MaxPool of an image in quads of bytes, or as 16-bit numbers.

    Raises:
        NotNative: The image lies in neither form, the places of the largest are read, or a window
            may have no elements.
    """
    x, out = node.inputs[0], node.outputs[0]
    assert x is not None
    if len(node.outputs) > 1 and low.facts.uses(node.outputs[1]):
        raise NotNative("indices of the largest elements")
    quads, shorts = low.forms.quads.get(x), low.forms.shorts.get(x)
    if quads is None and shorts is None:
        raise NotNative("bytes that are not in blocks")
    channels = low.facts.shape(x)[1]
    assert isinstance(channels, int)
    window = window_of(low, node, low.facts.attributes(node)["kernel_shape"], channels)
    if max(window.dilations) > 1 and any(pad != 0 for pad in window.pads):
        raise NotNative("windows that may lie in padding whole")
    source: Tensor
    target: Tensor
    planes: Dim
    if quads is not None:
        made = low.forms.new_quads(out, quads.zero - quads.shift)
        source, target, run = quads.view(), made.view(), quads.lanes
        planes, kind = window.images * quads.blocks, "uint8_t"
        plane, row, step = QUAD * quads.plane_stride, QUAD * quads.row_stride, quads.lanes
        to_plane, to_row = QUAD * made.plane_stride, QUAD * made.row_stride
        low.forms[out] = made
    else:
        assert shorts is not None
        wide = low.forms.new_shorts(out, four_sizes(low.facts.shape(out)), shorts.zero)
        source, target, run = shorts.pixels(), wide.pixels(), shorts.wide
        planes, kind = window.images, "int16_t"
        plane, row, step = shorts.image_stride, shorts.row_stride, shorts.wide
        to_plane, to_row = wide.image_stride, wide.row_stride
        low.forms[out] = wide
    body = Body()
    body.helper(_LARGEST % {"type": kind, "of": _OF[kind]})
    n = body.number
    s = body.pointer(source, ctype=kind)
    d = body.pointer(target, written=True, ctype=kind)
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    top, left, _, _ = window.pads
    body.add(
        f"int64_t y = q % {n(window.out_height)}, plane = q / {n(window.out_height)};",
        f"const {kind} *s = {s} + plane * {n(plane)};",
        f"{kind} *d = {d} + plane * {n(to_plane)} + y * {n(to_row)};",
        f"int64_t y0 = y * {sh} - {n(top)};",
        f"int64_t i0 = y0 < 0 ? (-y0 + {dh - 1}) / {dh} : 0;",
        f"int64_t i1 = hg_min({kh}, hg_max(0, ({n(window.height)} - y0 + {dh - 1}) / {dh}));",
        f"for (int64_t x = 0; x < {n(window.out_width)}; x++, d += {run}) {{",
        f"int64_t x0 = x * {sw} - {n(left)};",
        f"int64_t j0 = x0 < 0 ? (-x0 + {dw - 1}) / {dw} : 0;",
        f"int64_t j1 = hg_min({kw}, hg_max(0, ({n(window.width)} - x0 + {dw - 1}) / {dw}));",
        f"for (int64_t c = 0; c < {run}; c += {16 if quads is not None else 8}) {{",
        f"const {kind} *p = s + (y0 + i0 * {dh}) * {n(row)} + x0 * {step} + c;",
        f"KERNEL_bytes most = KERNEL_load(p + j0 * {dw * step});",
        f"for (int64_t i = i0; i < i1; i++, p += {dh} * {n(row)})",
        f"for (int64_t j = j0; j < j1; j++) most = KERNEL_larger(most, KERNEL_load(p + j * {dw * step}));",
        "KERNEL_store(d + c, most); } }",
    )
    elements = planes * run * window.out_height * window.out_width
    low.recorder.emit(
        node,
        body,
        planes * window.out_height,
        work=work_of(elements, kh * kw * 0.02),
        flops=work_of(elements, float(kh * kw)),
        name=window.name("maxpool_int8"),
    )
