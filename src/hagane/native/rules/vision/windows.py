"""Pooling by windows of any rank and type, MaxUnpool, MaxRoiPool, Col2Im."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    as_bits,
    bits_type,
    coordinates,
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


def _list(low: Lowering, node: ir.Node, name: str, count: int, default: int) -> list[int]:
    given = low.facts.attributes(node).get(name)
    return [default] * count if not given else [int(item) for item in given]


def lower_pool(low: Lowering, node: ir.Node) -> None:
    """Lower AveragePool, LpPool and MaxPool: each window by itself."""
    attributes = low.facts.attributes(node)
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    rank = len(x.shape) - 2
    kernel = [int(k) for k in attributes["kernel_shape"]]
    strides, dilations = (_list(low, node, name, rank, 1) for name in ("strides", "dilations"))
    y = low.forms.result(out)
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape[2:])}
    sizes |= {f"Y{i}": dim for i, dim in enumerate(y.shape[2:])}
    sizes |= {f"K{i}": size for i, size in enumerate(kernel)}
    pads = [str(pad) for pad in _list(low, node, "pads", 2 * rank, 0)]
    mode = attributes.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        # The padding follows from the sizes.
        lower = 1 if mode == "SAME_LOWER" else 0
        total = [
            f"hg_max(0, (Y{i} - 1) * {strides[i]} + {(kernel[i] - 1) * dilations[i] + 1} - X{i})"
            for i in range(rank)
        ]
        pads = [f"(({each} + {lower}) / 2)" for each in total]
        pads += [f"({each} - ({each} + {lower}) / 2)" for each in total]
    elif mode == "VALID":
        pads = ["0"] * 2 * rank
    include = bool(attributes.get("count_include_pad"))
    p = float(attributes.get("p", 2)) if node.op_type == "LpPool" else 0.0
    kind, dtype = number_type(x.dtype), x.dtype
    load = loaded(dtype, "v")
    begin, step, end = {
        "MaxPool": ("int64_t best = -1; N top = 0;",
                    f"N a = {load}; if (best < 0 || a > top || a != a) best = at, top = a; if (top != top) goto KERNEL_done;",
                    stored(dtype, "top")),
        "AveragePool": ("N sum = 0; int64_t count = 0;", f"sum += {load}; count++;",
                        stored(dtype, "sum / (N)count")),
        "LpPool": ("N sum = 0;", _power(p, load), stored(dtype, _root(p, "sum"))),
    }[node.op_type]  # fmt: skip
    step = step.replace("if (top != top) goto KERNEL_done;", "")
    loops, close = "", ""
    for i in range(rank):
        loops += (
            f"for (int64_t k{i} = 0; k{i} < K{i}; k{i}++) {{\n"
            f"int64_t i{i} = o{i} * {strides[i]} + k{i} * {dilations[i]} - {pads[i]};\n"
        )
        close += "}"
    inside = " && ".join(f"i{i} >= 0 && i{i} < X{i}" for i in range(rank))
    place = "i0"
    for i in range(1, rank):
        place = f"({place}) * X{i} + i{i}"
    counted = ""
    if include and node.op_type == "AveragePool":
        # Windows may reach past the padding, where nothing counts.
        within = " && ".join(f"i{i} < X{i} + {pads[rank + i]}" for i in range(rank))
        step = f"sum += {load};"
        counted = f"if ({within}) count++;"
    reads, writes = {"x": x}, {"y": y}
    index = ""
    if len(node.outputs) > 1 and node.outputs[1].name:
        places = low.forms.result(node.outputs[1])
        writes["places"] = places
        low.forms[node.outputs[1]] = places
        whole = "best"
        if attributes.get("storage_order"):
            index = "int64_t b = best < 0 ? 0 : best, column = 0, size = 1;\n"
            spatial = [f"c{i}" for i in range(rank)]
            index += coordinates(spatial, [f"X{i}" for i in range(rank)], "b") + "\n"
            index += "\n".join(f"column += c{i} * size; size *= X{i};" for i in range(rank))
            whole = "column"
        index += f"\nplaces[item] = item / out * plane + {whole};"
    text = f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))}, out = {" * ".join(f"Y{i}" for i in range(rank))};
for (int64_t item = first; item < last; item++) {{
int64_t left = item % out;
{coordinates([f"o{i}" for i in range(rank)], [f"Y{i}" for i in range(rank)])}
const T *from = x + item / out * plane;
{begin}
{loops}
{counted}
if (!({inside})) continue;
int64_t at = {place}; T v = from[at]; (void)at;
{step}
{close}
y[item] = {end};
{index}
}}"""
    emit_written(
        low.recorder, node, text,
        reads=reads, writes=writes, sizes=sizes,
        types={"T": c_type(dtype), "N": kind}, items=y.size, each=product(kernel) * 2,
    )  # fmt: skip
    low.forms[out] = y


def _power(p: float, v: str) -> str:
    if p == 1:
        return f"N a = {v}; sum += a < 0 ? -a : a;"
    if p == 2:
        return f"N a = {v}; sum += a * a;"
    return f"sum += (N)pow(fabs((double){v}), {p!r});"


def _root(p: float, v: str) -> str:
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
for (int64_t i = 0; i < n; i++) {{ {_power(p, loaded(x.dtype, "x[item * n + i]"))} }}
y[item] = {stored(x.dtype, _root(p, "sum"))}; }}"""
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
    strides, dilations = (_list(low, node, name, rank, 1) for name in ("strides", "dilations"))
    pads = _list(low, node, "pads", 2 * rank, 0)
    sizes: dict[str, Dim] = {f"Y{i}": dim for i, dim in enumerate(y.shape[2:])}
    sizes |= {f"K{i}": size for i, size in enumerate(kernel)}
    spans = [f"(K{i} - 1) * {d} - 1" for i, d in enumerate(dilations)]
    blocks = "\n".join(
        f"const int64_t B{i} = (Y{i} + {pads[i] + pads[rank + i]} - {spans[i]}) / {strides[i]} + 1;"
        for i in range(rank)
    )
    loops = "".join(
        f"for (int64_t k{i} = 0; k{i} < K{i}; k{i}++) {{\n"
        f"int64_t b{i} = c{i} + {pads[i]} - k{i} * {dilations[i]};\n"
        f"if (b{i} < 0 || b{i} % {strides[i]} != 0 || (b{i} /= {strides[i]}) >= B{i}) continue;\n"
        for i in range(rank)
    )
    tap = "k0"
    at = "b0"
    for i in range(1, rank):
        tap, at = f"({tap}) * K{i} + k{i}", f"({at}) * B{i} + b{i}"
    text = f"""
{blocks}
const int64_t plane = {" * ".join(f"Y{i}" for i in range(rank))}, all = {" * ".join(f"B{i}" for i in range(rank))};
if (all != columns) {{ hg_fail(thread, all); return; }}
for (int64_t item = first; item < last; item++) {{
int64_t left = item % plane;
{coordinates([f"c{i}" for i in range(rank)], [f"Y{i}" for i in range(rank)])}
const T *from = x + item / plane * ({" * ".join(f"K{i}" for i in range(rank))}) * all;
N sum = 0;
{loops}
sum += {loaded(x.dtype, f"from[({tap}) * all + {at}]")};
{"}" * rank}
y[item] = {stored(x.dtype, "sum")};
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes=sizes | {"columns": x.shape[2]},
        types={"T": c_type(x.dtype), "N": number_type(x.dtype)},
        items=y.size, each=product(kernel) * 2,
    )  # fmt: skip
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
    ("", "AveragePool"): lower_pool,
    ("", "Col2Im"): lower_col2im,
    ("", "GlobalLpPool"): lower_global_lp_pool,
    ("", "LpPool"): lower_pool,
    ("", "MaxPool"): lower_pool,
    ("", "MaxRoiPool"): lower_max_roi_pool,
    ("", "MaxUnpool"): lower_max_unpool,
}
