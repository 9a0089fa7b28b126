"""Pooling by windows, GlobalLpPool, MaxUnpool, MaxRoiPool, Col2Im."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    as_bits,
    bits_type,
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import new_size
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers
from hagane.symbolic import Dim, product


def numbers_of(low: Lowering, node: ir.Node, name: str, count: int, default: int) -> list[int]:
    """Return an attribute of one number an axis."""
    given = low.facts.attributes(node).get(name)
    return [default] * count if not given else [int(item) for item in given]


def lower_pool(low: Lowering, node: ir.Node) -> None:
    """Lower AveragePool, LpPool and MaxPool of any rank and type."""
    from hagane.native.rules.vision import pooled_rows  # few models need it

    pooled_rows.lower_pool(low, node)


def power(p: float, a: str) -> str:
    """Return C of a number's absolute value to a power."""
    if p == 1:
        return f"({a} < 0 ? -{a} : {a})"
    return f"{a} * {a}" if p == 2 else f"(N)pow(fabs((double){a}), {p!r})"


def root(p: float, v: str) -> str:
    """Return C of the root of a sum of powers."""
    if p in (0, 1):
        return v
    return f"(N)sqrt({v})" if p == 2 else f"(N)pow({v}, {1 / p!r})"


def lower_global_lp_pool(low: Lowering, node: ir.Node) -> None:
    """Lower GlobalLpPool."""
    x, y = low.forms.contiguous(node.inputs[0]), low.forms.result(node.outputs[0])
    p = float(low.facts.attributes(node)["p"])
    text = f"""
for (int64_t item = first; item < last; item++) {{
N sum = 0;
for (int64_t i = 0; i < n; i++) {{ const N a = {loaded(x.dtype, "x[item * n + i]")}; sum += {power(p, "a")}; }}
y[item] = {stored(x.dtype, root(p, "sum"))}; }}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": product(x.shape[2:])},
        types={"N": number_type(x.dtype)}, items=x.shape[0] * x.shape[1],
        each=product(x.shape[2:]),
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_max_unpool(low: Lowering, node: ir.Node) -> None:
    """Lower MaxUnpool: elements go back to where MaxPool found them, among zeros."""
    x, index = low.forms.contiguous(node.inputs[0]), whole_numbers(low, node.inputs[1])
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        raise NotNative("a shape of the result of its own")
    y = low.forms.result(node.outputs[0])
    text = """
for (int64_t i = 0; i < total; i++) y[i] = 0;
for (int64_t i = 0; i < n; i++) {
int64_t at = index[i];
if (at < 0 || at >= total) { hg_fail(thread, at); return; }
y[at] = x[i]; }"""
    emit_written(
        low.recorder, node, text,
        reads={"x": as_bits(x), "index": index}, writes={"y": as_bits(y)},
        sizes={"n": x.size, "total": y.size}, types={"T": bits_type(x.dtype)}, tasks=1,
        cost=65536.0,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def _find_image(low: Lowering, node: ir.Node, x: Tensor, kernel: Sequence[Dim]) -> None:
    """Find the sizes of an image, its channels, and those of a block where they are not known."""
    shape = low.facts.shape(node.outputs[0])
    rank = len(shape) - 2
    text = f"""
int64_t taps = 1; double pixels = 1;
for (int64_t i = 0; i < {rank}; i++) {{
if (block[i] < 1 || image[i] < 0 || taps > (1LL << 46) / block[i] || (pixels *= (double)image[i]) > 0x1p46) {{
hg_fail(thread, block[i]); return; }}
taps *= block[i];
found[{1} + i] = image[i]; {f"found[{1 + rank} + i] = block[i];" if kernel else ""} }}
if (rows % taps != 0) {{ hg_fail(thread, taps); return; }}
found[0] = rows / taps;"""
    reads = {
        "image": whole_numbers(low, node.inputs[1]),
        "block": whole_numbers(low, node.inputs[2]),
    }
    wanted = [*shape[1:], *kernel]
    found_numbers(low, node, text, wanted, reads=reads, sizes={"rows": x.shape[1]})


def lower_col2im(low: Lowering, node: ir.Node) -> None:
    """Lower Col2Im: each pixel gathers from the blocks that cover it."""
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    shape = low.facts.shape(out)
    rank = len(shape) - 2
    if rank < 1:
        raise NotNative("an image without axes")
    block = low.facts.constant(node.inputs[2])
    kernel: list[Dim] = [new_size(low, out, f"block {i}") for i in range(rank)]
    if block is not None:
        kernel = [int(k) for k in block.reshape(-1)]
    if block is None or low.facts.constant(node.inputs[1]) is None:
        _find_image(low, node, x, [] if block is not None else kernel)
    y = low.forms.result(out)
    strides, dilations = (numbers_of(low, node, name, rank, 1) for name in ("strides", "dilations"))
    pads = numbers_of(low, node, "pads", 2 * rank, 0)
    spans = [f"(K{i} - 1) * {d} - 1" for i, d in enumerate(dilations)]
    blocks = "\n".join(
        f"const int64_t B{i} = (Y{i} + {pads[i] + pads[rank + i]} - {spans[i]}) / {strides[i]} + 1;"
        for i in range(rank)
    )
    from hagane.native.rules.vision.columns import emit_columns  # few models need it

    before = [str(pad) for pad in pads[:rank]]
    emit_columns(low, node, x, y, kernel, (strides, dilations), before, blocks=blocks)
    low.forms[out] = y


def lower_max_roi_pool(low: Lowering, node: ir.Node) -> None:
    """Lower MaxRoiPool: a channel of a region at a time."""
    x, rois = (low.forms.contiguous(value) for value in node.inputs[:2])
    if not is_real(x.dtype) or rois.dtype != x.dtype:
        raise NotNative(f"element types {x.dtype} and {rois.dtype}")
    attributes, out = low.facts.attributes(node), node.outputs[0]
    rows, columns = (int(size) for size in attributes["pooled_shape"])
    y, dtype = low.forms.result(out), x.dtype
    # (Corners are rounded to the element type, as NumPy does.)
    scaled = loaded(dtype, stored(dtype, f"{loaded(dtype, 'roi[i + 1]')} * (N)scale"))
    half = loaded(dtype, stored(dtype, "v + (N)0.5"))
    text = f"""
const double scale = {float(attributes["spatial_scale"]).hex()};
for (int64_t item = first; item < last; item++) {{
const T *roi = rois + item / channels * 5;
int64_t image = (int64_t){loaded(dtype, "roi[0]")}, edge[4];
image += image < 0 ? images : 0;
if (image < 0 || image >= images) {{ hg_fail(thread, image); return; }}
for (int i = 0; i < 4; i++) {{ const N v = {scaled}; edge[i] = (int64_t)floor({half}); }}
const T *from = x + (image * channels + item % channels) * height * width;
const double high = (double)hg_max(edge[3] - edge[1] + 1, 1) / {rows}, wide = (double)hg_max(edge[2] - edge[0] + 1, 1) / {columns};
for (int64_t i = 0; i < {rows}; i++) {{
const int64_t y0 = hg_min(hg_max((int64_t)floor(i * high) + edge[1], 0), height);
const int64_t y1 = hg_min(hg_max((int64_t)ceil((i + 1) * high) + edge[1], 0), height);
for (int64_t j = 0; j < {columns}; j++) {{
const int64_t x0 = hg_min(hg_max((int64_t)floor(j * wide) + edge[0], 0), width);
const int64_t x1 = hg_min(hg_max((int64_t)ceil((j + 1) * wide) + edge[0], 0), width);
N top = y1 > y0 && x1 > x0 ? -INFINITY : 0;
for (int64_t r = y0; r < y1; r++) for (int64_t c = x0; c < x1; c++) {{
const N a = {loaded(dtype, "from[r * width + c]")};
if (top == top && !(a <= top)) top = a; }}
y[(item * {rows} + i) * {columns} + j] = {stored(dtype, "top")}; }} }} }}"""
    names = ("images", "channels", "height", "width")
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "rois": rois}, writes={"y": y},
        sizes=dict(zip(names, x.shape, strict=True)),
        types={"T": c_type(dtype), "N": number_type(dtype)},
        items=rois.shape[0] * x.shape[1], each=x.shape[2] * x.shape[3],
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {
    **{("", name): lower_pool for name in ("AveragePool", "LpPool", "MaxPool")},
    ("", "Col2Im"): lower_col2im,
    ("", "GlobalLpPool"): lower_global_lp_pool,
    ("", "MaxRoiPool"): lower_max_roi_pool,
    ("", "MaxUnpool"): lower_max_unpool,
}
