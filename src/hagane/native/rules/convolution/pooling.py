"""Pooling over blocked images."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.bytes.pooling import lower_byte_pool
from hagane.native.rules.convolution.window import Window, window_of

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def lower_pool(low: Lowering, node: ir.Node) -> None:
    """Lower MaxPool and AveragePool: each output pixel over the part of its window inside."""
    attributes = low.facts.attributes(node)
    x = node.inputs[0]
    if not low.facts.is_float(x):
        if low.facts.dtype(x) in _BYTES and node.op_type == "MaxPool":
            lower_byte_pool(low, node)
            return
        raise NotNative(f"element type {low.facts.dtype(x)}")
    if len(node.outputs) > 1 and low.facts.uses(node.outputs[1]):
        raise NotNative("indices of the largest elements")
    channels = low.facts.shape(x)[1]
    if not isinstance(channels, int):
        raise NotNative("channels that only a run knows")  # rows of pixels do without
    if 2 * channels <= low.facts.level.lanes and isinstance(low.forms.get(x), Tensor):
        raise NotNative("few channels, which would not fill a block")
    window = window_of(low, node, attributes["kernel_shape"], channels)
    source = low.forms.blocked(x)
    target = low.forms.new_blocked(node.outputs[0], low.facts.shape(node.outputs[0]))
    largest = node.op_type == "MaxPool"
    lanes = low.facts.level.lanes
    body = Body()
    n = body.number
    s = body.pointer(source.view())
    d = body.pointer(target.view(), written=True)
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    top, left, _, _ = window.pads
    start = "v_set1(-INFINITY)" if largest else "v_set1(0.f)"
    body.add(
        f"int64_t y = q % {n(window.out_height)}, plane = q / {n(window.out_height)};",
        f"const float *s = {s} + plane * {n(source.plane_stride)};",
        f"float *d = {d} + plane * {n(target.plane_stride)} + y * {n(target.row_stride)};",
        f"int64_t y0 = y * {sh} - {n(top)};",
        f"int64_t i0 = y0 < 0 ? (-y0 + {dh - 1}) / {dh} : 0;",
        f"int64_t i1 = hg_min({kh}, hg_max(0, ({n(window.height)} - y0 + {dh - 1}) / {dh}));",
        f"for (int64_t x = 0; x < {n(window.out_width)}; x++) {{",
        f"int64_t x0 = x * {sw} - {n(left)};",
        f"int64_t j0 = x0 < 0 ? (-x0 + {dw - 1}) / {dw} : 0;",
        f"int64_t j1 = hg_min({kw}, hg_max(0, ({n(window.width)} - x0 + {dw - 1}) / {dw}));",
        f"vf a = {start};",
        "for (int64_t i = i0; i < i1; i++) {",
        f"const float *p = s + (y0 + i * {dh}) * {n(source.row_stride)} + x0 * {lanes};",
        f"for (int64_t j = j0; j < j1; j++) {{ vf v = v_load(p + j * {dw * lanes});",
        "a = v_max(v, a);" if largest else "a += v;",
        "} }",
    )
    if not largest:
        body.add(
            f"a = a / (float)({_divisor(body, window, bool(attributes['count_include_pad']))});"
        )
    body.add(f"v_store(d + x * {lanes}, a);", "}")
    planes = window.images * source.blocks
    elements = planes * lanes * window.out_height * window.out_width
    low.recorder.emit(
        node,
        body,
        planes * window.out_height,
        work=work_of(elements, kh * kw * 0.06),
        flops=work_of(elements, float(kh * kw)),
        name=window.name(node.op_type.lower()),
    )
    low.forms[node.outputs[0]] = target


def _divisor(body: Body, window: Window, whole: bool) -> str:
    if not whole:
        return "hg_max(1, (i1 - i0) * (j1 - j0))"
    (kh, kw), (dh, dw) = window.kernel, window.dilations
    _, _, bottom, right = window.pads
    # A window that reaches past the padding, as ceil_mode allows, counts the padding.
    rows = f"hg_min({kh}, ({body.number(window.height + bottom)} - y0 + {dh - 1}) / {dh})"
    columns = f"hg_min({kw}, ({body.number(window.width + right)} - x0 + {dw - 1}) / {dw})"
    return f"{rows} * {columns}"


def lower_global_pool(low: Lowering, node: ir.Node) -> None:
    """Lower GlobalAveragePool and GlobalMaxPool."""
    x = node.inputs[0]
    if not low.facts.is_float(x) or len(low.facts.shape(x)) not in (3, 4):
        raise NotNative("an image that is not float32 of one or two axes")
    if isinstance(low.forms.get(x), Tensor):
        raise NotNative("an image that is not in blocks")
    reduce_planes(low, node, largest=node.op_type == "GlobalMaxPool")


def reduce_planes(low: Lowering, node: ir.Node, *, largest: bool) -> None:
    """Reduce each plane of an image to one pixel."""
    shape = low.facts.shape(node.inputs[0])
    if 0 in shape:
        raise NotNative("an empty image")
    source = low.forms.blocked(node.inputs[0])
    out_shape = (*shape[:2], *[1] * (len(shape) - 2))
    target = low.forms.new_blocked(node.outputs[0], out_shape)
    body = Body()
    n = body.number
    s = body.pointer(source.view())
    d = body.pointer(target.view(), written=True)
    lanes = low.facts.level.lanes
    step = "a = v_max(v, a);" if largest else "a += v;"
    count = source.rows * source.columns
    pixels = f"{count}.f" if isinstance(count, int) else f"(float){n(count)}"
    body.add(
        f"const float *s = {s} + q * {n(source.plane_stride)};",
        "vf a = v_set1(-INFINITY);" if largest else "vf a = {0};",
        # (Sums of rows are added up apart: a chain of thousands would lose digits.)
        f"for (int64_t y = 0; y < {n(source.rows)}; y++) {{",
        "" if largest else "vf so_far = a; a = v_set1(0.f);",
        f"for (int64_t x = 0; x < {n(source.columns)}; x++) {{",
        f"vf v = v_load(s + y * {n(source.row_stride)} + x * {lanes}); {step}",
        "}",
        "}" if largest else "a += so_far; }",
        f"v_store({d} + q * {n(target.plane_stride)}, " + ("a);" if largest else f"a / {pixels});"),
    )
    low.recorder.emit(node, body, shape[0] * source.blocks, work=work_of(source.floats, 0.06))
    low.forms[node.outputs[0]] = target


RULES: dict[str, Rule] = {
    "AveragePool": lower_pool,
    "GlobalAveragePool": lower_global_pool,
    "GlobalMaxPool": lower_global_pool,
    "MaxPool": lower_pool,
}
