"""Conv, ConvInteger and QLinearConv of any rank, type and zero points, weights from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written, is_real, loaded, number_type, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input
from hagane.native.rules.looped.byte_sums import are_bytes, emit_byte_sums, prepared
from hagane.symbolic import Dim, floordiv, product

# Pixels of a row that are summed at once.
_PIXELS = 128


def _number(
    low: Lowering, value: ir.Value | None, name: str, reads: dict[str, Tensor], index: str = "m"
) -> str:
    """Return C text for a parameter of one number, or one a map; adds it to the operands.

    A count that only a run knows has to be that of the maps by name.
    """
    if value is None:
        return "0"
    found = reads[name] = low.forms.contiguous(value)
    if len(found.shape) > 1:
        raise NotNative("parameters of several axes")
    one = found.size == 1
    if not one and not isinstance(found.size, int) and found.size != reads["w"].shape[0]:
        raise NotNative("as many parameters as the data have")
    return f"{name}[{'0' if one else index}]"


def lower_convolution(low: Lowering, node: ir.Node) -> None:
    """Lower a convolution: a row of pixels of one map at a time."""
    attributes = low.facts.attributes(node)
    quantized, whole = node.op_type == "QLinearConv", node.op_type == "ConvInteger"
    w_at = 3 if quantized else 1
    x, w = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[w_at])
    rank = len(x.shape) - 2
    y = low.forms.result(node.outputs[0])
    reads = {"x": x, "w": w}
    kernel: list[Dim] = list(w.shape[2:])
    strides = [int(s) for s in attributes.get("strides") or [1] * rank]
    dilations = [int(d) for d in attributes.get("dilations") or [1] * rank]
    pads = [str(p) for p in attributes.get("pads") or [0] * 2 * rank]
    mode = attributes.get("auto_pad", "NOTSET")
    if mode == "VALID":
        pads = ["0"] * 2 * rank
    elif mode != "NOTSET":
        lower = int(mode == "SAME_LOWER")
        pads = [
            f"((hg_max(0, (Y{i} - 1) * {strides[i]} + (W{i} - 1) * {dilations[i]} + 1 - X{i}) + {lower}) / 2)"
            for i in range(rank)
        ]
    bias = "0"
    if quantized:
        zx, zw = (
            _number(low, node.inputs[2], "zx", reads, "0"),
            _number(low, node.inputs[5], "zw", reads),
        )
        scales = [
            _number(low, node.inputs[i], name, reads)
            for i, name in ((1, "sx"), (4, "sw"), (6, "sy"), (7, "zy"))
        ]
        bias = _number(low, number_input(low, node, 8), "bias", reads)
        if any(reads[name].dtype != np.float32 for name in ("sx", "sw", "sy")):
            raise NotNative("scales that are not float32")
        limits = np.iinfo(y.dtype)
        kind = "int32_t"
        result = (
            f"hg_saturate((float)sum[j] * ({scales[0]} * {scales[1]} / {scales[2]}), "
            f"{scales[3]}, {limits.min}, {limits.max})"
        )
    elif whole:
        zx = _number(low, number_input(low, node, 2), "zx", reads, "0")
        zw = _number(low, number_input(low, node, 3), "zw", reads)
        kind, result = "int32_t", "sum[j]"
    else:
        if not is_real(x.dtype) or w.dtype != x.dtype:
            raise NotNative(f"element type {x.dtype}")
        zx = zw = ""
        kind = number_type(x.dtype)
        bias_value = number_input(low, node, 2)
        if bias_value is not None:
            bias = loaded(x.dtype, _number(low, bias_value, "bias", reads))
        result = stored(y.dtype, "sum[j]")
    if (quantized or whole) and are_bytes(x, w):
        bytes_of = _Bytes(x, w, y, strides, dilations, pads, int(attributes["group"]))
        del reads["x"], reads["w"]
        result = result.replace("sum[j]", "sum" if bias == "0" else f"(sum + {bias})")
        _lower_bytes(low, node, bytes_of, (zw, zx), result.replace("[m]", "[MAP]"), reads)
        return
    weight, pixel = loaded(w.dtype, "*weight"), loaded(x.dtype, "from[j * step]")
    weight = f"({weight} - {zw})" if zw else weight
    pixel = f"({pixel} - {zx})" if zx else pixel
    last = rank - 1
    rows = [f"o{i}" for i in range(last)]
    unravel = "\n".join(
        f"const int64_t {name} = left % Y{i}; left /= Y{i};"
        for i, name in reversed(list(enumerate(rows)))
    )
    taps = "".join(
        f"for (int64_t k{i} = 0; k{i} < W{i}; k{i}++{', weight++' if i == last else ''}) {{\n"
        + (
            f"int64_t i{i} = o{i} * {strides[i]} + k{i} * {dilations[i]} - {pads[i]};\n"
            f"if (i{i} < 0 || i{i} >= X{i}) {{ weight += {' * '.join([*(f'W{j}' for j in range(i + 1, rank)), '1'])}; continue; }}\n"
            if i != last
            else ""
        )
        for i in range(rank)
    )
    place = "0"
    for i in range(last):
        place = f"({place}) * X{i} + i{i}"
    new_plane = " * ".join(f"X{i}" for i in range(rank))
    text = f"""
const int64_t plane = {new_plane}, step = {strides[last]}, length = Y{last};
const int64_t of_maps = maps / {int(attributes["group"])};
if (of_group * {int(attributes["group"])} != channels || of_maps * {int(attributes["group"])} != maps) {{ hg_fail(thread, channels); return; }}
for (int64_t row = first; row < last_row; row++) {{
int64_t left = row;
{unravel}
const int64_t m = left % maps, image = left / maps;
const T *group = x + (image * channels + m / of_maps * of_group) * plane;
for (int64_t x0 = 0; x0 < length; x0 += {_PIXELS}) {{
const int64_t count = hg_min({_PIXELS}, length - x0);
S sum[{_PIXELS}];
for (int64_t j = 0; j < count; j++) sum[j] = {bias};
const W *weight = w + m * of_group * {" * ".join(f"W{i}" for i in range(rank))};
for (int64_t c = 0; c < of_group; c++) {{
const T *in = group + c * plane;
{taps}
const int64_t start = x0 * step + k{last} * {dilations[last]} - {pads[last]};
const int64_t low = start >= 0 ? 0 : (-start + step - 1) / step;
const int64_t high = X{last} - start <= 0 ? 0 : hg_min(count, (X{last} - start + step - 1) / step);
const S v = {weight};
const T *from = in + ({place}) * X{last} + start;
if (step == 1) for (int64_t j = low; j < high; j++) sum[j] += v * (S){pixel.replace("j * step", "j")};
else for (int64_t j = low; j < high; j++) sum[j] += v * (S){pixel};
{"}" * rank}
}}
Y *to = y + row * length + x0;
for (int64_t j = 0; j < count; j++) to[j] = {result};
}} }}"""
    text = text.replace("last_row", "last")
    sizes: dict[str, Dim] = {
        "channels": x.shape[1], "maps": w.shape[0], "of_group": w.shape[1],
        **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])},
        **{f"Y{i}": dim for i, dim in enumerate(y.shape[2:])},
        **{f"W{i}": dim for i, dim in enumerate(kernel)},
    }  # fmt: skip
    terms = product(w.shape[1:])
    emit_written(
        low.recorder, node, text,
        reads=reads, writes={"y": y}, sizes=sizes,
        types={"T": c_type(x.dtype), "W": c_type(w.dtype), "Y": c_type(y.dtype), "S": kind},
        items=product(y.shape[:-1]), each=terms * y.shape[-1], cost=0.2,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


# Pixels ``low`` to ``high`` of a row, others of the piece from ``j`` on lie outside of the image.
_COPIED = """
uint8_t *at = to + j;
for (int64_t i = 0; i < low; i++) at[i] = outside;
for (int64_t i = low; i < high; i++) at[i] = row[i * {by}] ^ FLIP;
for (int64_t i = high; i < count; i++) at[i] = outside;"""
_BEGIN = "__m512i bytes = _mm512_set1_epi8((char)(outside ^ FLIP));"
_LOADED = "if (high > low) bytes = _mm512_mask_loadu_epi8(bytes, ~0ull >> (64 - (high - low)) << (j + low), row - j);"
_END = "_mm512_storeu_si512(to, _mm512_xor_si512(bytes, _mm512_set1_epi8((char)FLIP)));"


@dataclass(frozen=True, slots=True)
class _Bytes:
    """A convolution of bytes; ``pads`` are C texts."""

    x: Tensor
    w: Tensor
    y: Tensor
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[str]
    groups: int


def _lower_bytes(
    low: Lowering,
    node: ir.Node,
    conv: _Bytes,
    zeros: tuple[str, str],
    result: str,
    reads: dict[str, Tensor],
) -> None:
    """Write the kernels of a convolution of bytes: maps times windows, as a product.

    The right side has a row for each tap of each channel, and a column for each pixel.
    """
    x, w, y, groups = conv.x, conv.w, conv.y, conv.groups
    rank = len(x.shape) - 2
    last, maps = rank - 1, w.shape[0]
    terms = product(w.shape[1:])
    rows = prepared(low, node, w.reshaped((maps, terms)))
    taps = [f"const int64_t k{i} = tap % W{i}; tap /= W{i};" for i in reversed(range(rank))]
    outer = "\n".join(
        f"{{ const int64_t at = o % Y{i} * {conv.strides[i]} + k{i} * {conv.dilations[i]} - {conv.pads[i]}; "
        f"o /= Y{i}; inside &= at >= 0 && at < X{i}; place += at * step; step *= X{i}; }}"
        for i in reversed(range(last))
    )
    by, zw = conv.strides[last], zeros[0].replace("[m]", "[MAP]").replace("MAP", "(map0 + row)")
    start = f"""
if (of_group * {groups} != channels || M * {groups} != maps) {{ hg_fail(thread, channels); return; }}
const int64_t group = piece % {groups}, map0 = group * M, row0 = map0;
const uint8_t *image = (const uint8_t *)b + (piece / {groups} * channels + group * of_group) * plane;
Y *out = y + piece * M * N;
const uint8_t outside = (uint8_t)({zeros[1]}) ^ FLIP;"""
    # Neighbouring pixels of a row come by masked loads, into one vector for all rows of a line.
    begin, copied, end = "", _COPIED.format(by=by), ""
    if by == 1:
        begin = f"#if defined(__AVX512BW__)\n{_BEGIN}\n#endif"
        copied = f"#if defined(__AVX512BW__)\n{_LOADED}\n#else\n{copied}\n#endif"
        end = f"#if defined(__AVX512BW__)\n{_END}\n#endif"
    line = f"""
int64_t tap = k;
{" ".join(taps)}
const uint8_t *of_channel = image + tap * plane;
{begin}
for (int64_t j = 0; j < w;) {{
int64_t o = (n0 + j) / Y{last}, place = 0, step = X{last}; (void)step;
const int64_t o0 = n0 + j - o * Y{last}, count = hg_min(Y{last} - o0, w - j);
int inside = 1;
{outer}
const int64_t from = o0 * {by} + k{last} * {conv.dilations[last]} - {conv.pads[last]};
const int64_t low = !inside ? count : from >= 0 ? 0 : hg_min(count, (-from + {by - 1}) / {by});
const int64_t high = !inside || X{last} <= from ? low : hg_max(low, hg_min(count, (X{last} - from + {by - 1}) / {by}));
const uint8_t *row = of_channel + place + from;
{copied}
j += count;
}}
{end}"""
    emit_byte_sums(
        low, node, rows, x, y, start=start, line=line, zeros=(zw, zeros[1]),
        signed=(w.dtype == np.int8, x.dtype == np.int8), exact=node.op_type == "QLinearConv",
        result=result.replace("MAP", "(map0 + row)"), reads=reads, pieces=x.shape[0] * groups,
        sizes={
            "M": floordiv(maps, groups), "K": terms, "N": product(y.shape[2:]), "maps": maps,
            "channels": x.shape[1], "of_group": w.shape[1], "plane": product(x.shape[2:]),
            **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])},
            **{f"Y{i}": dim for i, dim in enumerate(y.shape[2:])},
            **{f"W{i}": dim for i, dim in enumerate(w.shape[2:])},
        },
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "Conv"): lower_convolution,
    ("", "ConvInteger"): lower_convolution,
    ("", "QLinearConv"): lower_convolution,
}
