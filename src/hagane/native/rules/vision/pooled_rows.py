"""AveragePool, LpPool and MaxPool of any rank and type, a row of results at a time.

The taps of a window along the last axis each meet all results of a row, side by side.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import (
    coordinates,
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.state import Lowering
from hagane.native.rules.ordering.reducing import limits
from hagane.native.rules.vision.windows import numbers_of, power, root
from hagane.symbolic import Dim, product


def _pads(low: Lowering, node: ir.Node, kernel: list[int], dilations: list[int]) -> list[str]:
    """Return C of the padding before each axis, then behind each."""
    rank = len(kernel)
    mode = low.facts.attributes(node).get("auto_pad", "NOTSET")
    if mode == "VALID":
        return ["0"] * 2 * rank
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        return [str(pad) for pad in numbers_of(low, node, "pads", 2 * rank, 0)]
    # The padding follows from the sizes.
    strides, lower = numbers_of(low, node, "strides", rank, 1), 1 if mode == "SAME_LOWER" else 0
    total = [
        f"hg_max(0, (Y{i} - 1) * {strides[i]} + {(kernel[i] - 1) * dilations[i] + 1} - X{i})"
        for i in range(rank)
    ]
    before = [f"(({each} + {lower}) / 2)" for each in total]
    return before + [f"({each} - ({each} + {lower}) / 2)" for each in total]


def lower_pool(low: Lowering, node: ir.Node) -> None:
    """Lower AveragePool, LpPool and MaxPool. A window without elements is zero."""
    attributes = low.facts.attributes(node)
    x, out = low.forms.contiguous(node.inputs[0]), node.outputs[0]
    rank, dtype, operator = len(x.shape) - 2, x.dtype, node.op_type
    kernel = [int(k) for k in attributes["kernel_shape"]]
    strides, dilations = (numbers_of(low, node, name, rank, 1) for name in ("strides", "dilations"))
    pads = _pads(low, node, kernel, dilations)
    y = low.forms.result(out)
    sizes: dict[str, Dim] = {f"X{i}": dim for i, dim in enumerate(x.shape[2:])}
    sizes |= {f"Y{i}": dim for i, dim in enumerate(y.shape[2:])}
    include = bool(attributes.get("count_include_pad")) and operator == "AveragePool"
    p = float(attributes.get("p", 2))
    number = number_type(dtype)
    join = {"MaxPool": _larger(dtype)}.get(operator, "{0} += a;")
    start, taken, end = {
        "MaxPool": (limits(number)[0], "v", "n ? acc[o] : 0"),
        "AveragePool": ("0", "v", "acc[o] / (N)n"),
        "LpPool": ("0", power(p, "v"), root(p, "acc[o]")),
    }[operator]  # fmt: skip
    writes = {"y": y}
    places = len(node.outputs) > 1 and bool(node.outputs[1].name)
    index = ""
    if places:
        found = low.forms.result(node.outputs[1])
        writes["places"] = found
        low.forms[node.outputs[1]] = found
        index = _place(rank, column_major=bool(attributes.get("storage_order")))
    last = rank - 1
    loops, close, row = "", "", "0"
    for i in range(last):
        loops += (
            f"for (int64_t k{i} = 0; k{i} < {kernel[i]}; k{i}++) {{\n"
            f"const int64_t i{i} = o{i} * {strides[i]} + k{i} * {dilations[i]} - {pads[i]};\n"
        )
        row = f"({row}) * X{i} + i{i}"
        close += "}"
    within = " && ".join(f"i{i} < X{i} + {pads[rank + i]}" for i in range(last)) or "1"
    inside = " && ".join(f"i{i} >= 0 && i{i} < X{i}" for i in range(last)) or "1"
    # Results o of which tap k lies within a row of so many elements behind the first.
    span = """
const int64_t off = k * {dilation} - {pad}, room = {room} - off;
const int64_t o0 = off < {least} ? hg_min(Y, ({least} - off + {stride} - 1) / {stride}) : 0;
const int64_t o1 = room > 0 ? hg_min(Y, (room + {stride} - 1) / {stride}) : 0;"""
    names = {"dilation": dilations[last], "pad": pads[last], "stride": strides[last]}
    counted = f"-({pads[last]})", f"X{last} + {pads[rank + last]}"
    of_counts = span.format(room=counted[1] if include else f"X{last}",
                            least=counted[0] if include else "0", **names)  # fmt: skip
    of_taps = span.format(room=f"X{last}", least="0", **names)
    if places:
        nan = " | (a != a)" if is_real(dtype) else ""
        begin = f"for (int64_t o = 0; o < Y; o++) {{ acc[o] = {start}; best[o] = -1; }}"
        tap = f"""
for (int64_t k = 0; k < {kernel[last]}; k++) {{ {of_taps}
for (int64_t o = o0; o < o1; o++) {{
const N a = {loaded(dtype, f"line[o * {strides[last]} + off]")};
const int better = (a > acc[o]) | (best[o] < 0){nan};
acc[o] = better ? a : acc[o]; best[o] = better ? base + o * {strides[last]} + off : best[o]; }} }}"""
        finish = ""
    else:
        # First the rows of a window are joined, then the elements of that row.
        begin = f"for (int64_t i = 0; i < X{last}; i++) whole[i] = {start};"
        tap = f"""
for (int64_t i = 0; i < X{last}; i++) {{
const N v = {loaded(dtype, "line[i]")}, a = {taken}; {join.format("whole[i]")} }}"""
        finish = f"""
for (int64_t o = 0; o < Y; o++) acc[o] = {start};
for (int64_t k = 0; k < {kernel[last]}; k++) {{ {of_taps}
for (int64_t o = o0; o < o1; o++) {{
const N a = whole[o * {strides[last]} + off]; {join.format("acc[o]")} }} }}"""
    text = f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))}, Y = Y{last};
int64_t *restrict best = (int64_t *)thread->scratch, *restrict counts = best + {"Y" if places else "0"};
N *restrict acc = (N *)(counts + Y), *restrict whole = acc + Y; (void)best, (void)whole;
for (int64_t o = 0; o < Y; o++) counts[o] = 0;
for (int64_t k = 0; k < {kernel[last]}; k++) {{ {of_counts}
for (int64_t o = o0; o < o1; o++) counts[o]++; }}
for (int64_t row = first; row < last; row++) {{
int64_t left = row, lines = 0;
{coordinates(["image", *(f"c{i}" for i in range(last))], ["0", *(f"Y{i}" for i in range(last))])}
{" ".join(f"const int64_t o{i} = c{i};" for i in range(last))}
const T *from = x + image * plane;
{begin}
{loops}
{f"if ({within}) lines++;" if include else ""}
if (!({inside})) continue;
{"" if include else "lines++;"}
const int64_t base = ({row}) * X{last}; const T *restrict line = from + base;
{tap}
{close}
{finish}
for (int64_t o = 0; o < Y; o++) {{
const int64_t n = counts[o] * lines; (void)n;
y[row * Y + o] = {stored(dtype, end)};
{index} }} }}"""
    emit_written(
        low.recorder, node, text, reads={"x": x}, writes=writes, sizes=sizes,
        types={"T": c_type(dtype), "N": number}, items=product(y.shape[:-1]),
        each=y.shape[-1] * product(kernel), cost=0.3, scratch=y.shape[-1] * 24 + x.shape[-1] * 8 + 64,
    )  # fmt: skip
    low.forms[out] = y


def _place(rank: int, *, column_major: bool) -> str:
    """Return C that writes where the largest element of a window lies."""
    if not column_major:
        return "places[row * Y + o] = image * plane + best[o];"
    text = "int64_t b = best[o] < 0 ? 0 : best[o], column = 0, size = 1;\n"
    text += coordinates([f"b{i}" for i in range(rank)], [f"X{i}" for i in range(rank)], "b") + "\n"
    text += "\n".join(f"column += b{i} * size; size *= X{i};" for i in range(rank))
    return text + "\nplaces[row * Y + o] = image * plane + column;"


def _larger(dtype: np.dtype[np.generic]) -> str:
    """Return C that keeps the larger of ``{0}`` and ``a``, or NaN."""
    nan = " | (a != a)" if is_real(dtype) else ""
    return f"{{0}} = (a > {{0}}){nan} ? a : {{0}};"
