"""The gradient of a convolution by its weight, for any type of floats, sizes and groups."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import coordinates, emit_written, is_real, number_type
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.symbolic import Dim, product

# Sums that a row is spread over, so that they are vectors.
_SUMS = 16


def lower_any_weight_gradient(low: Lowering, node: ir.Node) -> None:
    """Lower the gradient of a weight: each element of it is a sum of products of rows."""
    attributes = low.facts.attributes(node)
    x, g = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    if not is_real(x.dtype) or x.dtype.itemsize < 4 or g.dtype != x.dtype:
        raise NotNative(f"element types {x.dtype} and {g.dtype}")
    rank = len(x.shape) - 2
    last = rank - 1
    w = low.forms.result(node.outputs[0])
    strides, dilations = (
        list(attributes.get(name) or (1,) * rank) for name in ("strides", "dilations")
    )
    pads = list(attributes.get("pads") or (0,) * (2 * rank))
    loops, x_row, g_row = [], "0", "0"
    for i in range(last):
        loops.append(
            f"for (int64_t o{i} = 0; o{i} < Y{i}; o{i}++) {{\n"
            f"const int64_t i{i} = o{i} * {strides[i]} + k{i} * {dilations[i]} - {pads[i]};\n"
            f"if (i{i} < 0 || i{i} >= X{i}) continue;"
        )
        x_row, g_row = f"({x_row}) * X{i} + i{i}", f"({g_row}) * Y{i} + o{i}"
    step = strides[last]
    names = ["m", "c", *(f"k{i}" for i in range(rank))]
    lengths = ["maps", "of_group", *(f"W{i}" for i in range(rank))]
    newline = "\n"
    text = f"""
const int64_t x_plane = {" * ".join(f"X{i}" for i in range(rank))};
const int64_t g_plane = {" * ".join(f"Y{i}" for i in range(rank))};
const int64_t of_maps = maps / {int(attributes["group"])};
for (int64_t item = first; item < last; item++) {{
int64_t left = item;
{coordinates(names, lengths)}
const int64_t shift = k{last} * {dilations[last]} - {pads[last]};
const int64_t low = shift >= 0 ? 0 : (-shift + {step - 1}) / {step};
const int64_t high = X{last} <= shift ? 0 : hg_min(Y{last}, (X{last} - shift + {step - 1}) / {step});
S sum[{_SUMS}] = {{0}};
for (int64_t n = 0; n < images; n++) {{
const T *of_x = x + (n * channels + m / of_maps * of_group + c) * x_plane;
const T *of_g = g + (n * maps + m) * g_plane;
{newline.join(loops)}
const T *a = of_x + ({x_row}) * X{last} + shift, *b = of_g + ({g_row}) * Y{last};
int64_t o = low;
for (; o + {_SUMS} <= high; o += {_SUMS})
for (int j = 0; j < {_SUMS}; j++) sum[j] += (S)a[(o + j) * {step}] * (S)b[o + j];
for (; o < high; o++) sum[0] += (S)a[o * {step}] * (S)b[o];
{"}" * last}
}}
S total = 0;
for (int j = 0; j < {_SUMS}; j++) total += sum[j];
w[item] = (T)total;
}}"""
    sizes: dict[str, Dim] = {
        "images": x.shape[0], "channels": x.shape[1], "maps": g.shape[1], "of_group": w.shape[1],
        **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])},
        **{f"Y{i}": dim for i, dim in enumerate(g.shape[2:])},
        **{f"W{i}": dim for i, dim in enumerate(w.shape[2:])},
    }  # fmt: skip
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "g": g}, writes={"w": w}, sizes=sizes,
        types={"T": c_type(x.dtype), "S": number_type(x.dtype)},
        items=product(w.shape), each=x.shape[0] * product(g.shape[2:]), cost=0.3,
    )  # fmt: skip
    low.forms[node.outputs[0]] = w
