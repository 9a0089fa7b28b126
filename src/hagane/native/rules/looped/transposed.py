"""ConvTranspose of any rank, groups and type of floats, weights from anywhere."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    coordinates,
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input
from hagane.native.rules.products.gemm import emit_batched
from hagane.symbolic import Dim, floordiv, product

# Results of a row that are summed at once.
_PIXELS = 256


def _cut(low: Lowering, node: ir.Node, rank: int) -> list[str]:
    """Return C text for the results that are cut before each axis; negative where zeros are added."""
    attributes = low.facts.attributes(node)
    mode = attributes.get("auto_pad", "NOTSET")
    if not attributes.get("output_shape") and not mode.startswith("SAME"):
        return [f"({int(pad)}L)" for pad in (attributes.get("pads") or [0] * rank)[:rank]]
    strides, dilations, extra = (
        attributes.get(name) or [default] * rank
        for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    # Halves are rounded down; shifts do that for negative numbers too.
    more = 0 if mode == "SAME_UPPER" else 1
    return [
        f"(((X{i} - 1) * {strides[i]} + {extra[i]} + (W{i} - 1) * {dilations[i]} + 1 - Y{i} + {more}) >> 1)"
        for i in range(rank)
    ]


def lower_transposed(low: Lowering, node: ir.Node) -> None:
    """Lower a transposed convolution: a row of results of one map at a time.

    Sums of results a stride apart lie side by side, because each tap adds to such ones alone.
    """
    attributes = low.facts.attributes(node)
    x, w = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    if not is_real(x.dtype) or w.dtype != x.dtype:
        raise NotNative(f"element type {x.dtype}")
    rank, groups = len(x.shape) - 2, int(attributes["group"])
    y = low.forms.result(node.outputs[0])
    reads = {"x": x, "w": w}
    strides = [int(s) for s in attributes.get("strides") or [1] * rank]
    dilations = [int(d) for d in attributes.get("dilations") or [1] * rank]
    cut = _cut(low, node, rank)
    bias = number_input(low, node, 2)
    first_sum = "0"
    if bias is not None:
        reads["bias"] = low.forms.contiguous(bias)
        first_sum = loaded(x.dtype, "bias[m]")
    if x.dtype == np.float32 and w.shape[0] != groups and x.size != 0:
        _by_columns(low, node, x, w, y, groups, (strides, dilations), cut, reads.get("bias"))
        return
    last = rank - 1
    stride, apart = strides[last], -(-_PIXELS // strides[last])
    outer = [
        f"for (int64_t k{i} = 0; k{i} < W{i}; k{i}++) {{\n"
        f"const int64_t p{i} = o{i} + {cut[i]} - k{i} * {dilations[i]}, i{i} = p{i} / {strides[i]};\n"
        f"if (p{i} < 0 || p{i} % {strides[i]} != 0 || i{i} >= X{i}) continue;\n"
        for i in range(last)
    ]
    tap, place = "0", "0"
    for i in range(last):
        tap, place = f"({tap}) * W{i} + k{i}", f"({place}) * X{i} + i{i}"
    names, lengths = ["image", "m", *(f"o{i}" for i in range(last))], ["0", "maps"]
    text = f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))}, length = Y{last};
const int64_t taps = {" * ".join(f"W{i}" for i in range(rank))};
const int64_t of_group = channels / {groups}, before = {cut[last]};
for (int64_t row = first; row < last; row++) {{
int64_t left = row;
{coordinates(names, [*lengths, *(f"Y{i}" for i in range(last))])}
const int64_t c0 = m / of_maps * of_group;
for (int64_t x0 = 0; x0 < length; x0 += {_PIXELS}) {{
const int64_t count = hg_min({_PIXELS}, length - x0);
S sum[{stride * apart}];
for (int64_t j = 0; j < {stride * apart}; j++) sum[j] = {first_sum};
for (int64_t c = c0; c < c0 + of_group; c++) {{
const W *weight = w + (c * of_maps + m % of_maps) * taps;
const T *in = x + (image * channels + c) * plane;
{"".join(outer)}
for (int64_t k = 0; k < W{last}; k++) {{
/* the result of the first pixel, and the first and last pixel that this tap brings here */
const int64_t at = k * {dilations[last]} - before - x0;
const int64_t low = at >= 0 ? 0 : (-at + {stride - 1}) / {stride};
const int64_t high = count - at <= 0 ? 0 : hg_min(X{last}, (count - at + {stride - 1}) / {stride});
const S v = {loaded(w.dtype, f"weight[({tap}) * W{last} + k]")};
const T *from = in + ({place}) * X{last} + low;
const int64_t begin = at + low * {stride};
S *to = sum + begin % {stride} * {apart} + begin / {stride};
for (int64_t i = 0; i < high - low; i++) to[i] += v * (S){loaded(x.dtype, "from[i]")};
}}
{"}" * last}
}}
Y *to = y + row * length + x0;
for (int64_t j = 0; j < count; j++) to[j] = {stored(y.dtype, f"sum[j % {stride} * {apart} + j / {stride}]")};
}} }}"""
    sizes: dict[str, Dim] = {
        "channels": x.shape[1], "maps": y.shape[1], "of_maps": w.shape[1],
        **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])},
        **{f"Y{i}": dim for i, dim in enumerate(y.shape[2:])},
        **{f"W{i}": dim for i, dim in enumerate(w.shape[2:])},
    }  # fmt: skip
    emit_written(
        low.recorder, node, text,
        reads=reads, writes={"y": y}, sizes=sizes,
        types={
            "T": c_type(x.dtype), "W": c_type(w.dtype), "Y": c_type(y.dtype),
            "S": number_type(x.dtype),
        },
        items=product(y.shape[:-1]), each=product((w.shape[0], *w.shape[2:], x.shape[-1])),
        cost=0.2 / groups,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def _by_columns(
    low: Lowering,
    node: ir.Node,
    x: Tensor,
    w: Tensor,
    y: Tensor,
    groups: int,
    steps: tuple[list[int], list[int]],
    before: list[str],
    bias: Tensor | None,
) -> None:
    """Write a product that gives all taps of each pixel, and the kernel that brings them together."""
    from hagane.native.rules.vision.columns import emit_columns  # few models need it

    images, channels, *lengths = x.shape
    of_group, kernel = floordiv(channels, groups), w.shape[2:]
    pixels, rows = product(lengths), product(w.shape[1:])
    columns = low.recorder.new(
        f"{node.outputs[0].name} columns", x.dtype, (images, groups, rows, pixels)
    )
    left = Tensor(
        w.buffer, w.dtype, (images, groups, rows, of_group), (0, of_group * rows, 1, rows), w.offset
    )
    emit_batched(low, node, left, x.reshaped((images, groups, of_group, pixels)), columns)
    sizes = {f"{name}{i}": dim for name in "BX" for i, dim in enumerate(lengths)}
    sizes |= {f"W{i}": dim for i, dim in enumerate(kernel)}
    emit_columns(
        low, node, columns.reshaped((images, rows * groups, pixels)), y, kernel, steps, before,
        sizes=sizes, bias=bias,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {("", "ConvTranspose"): lower_transposed}
