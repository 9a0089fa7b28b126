"""Gradients of pooling over images in blocks; the largest elements of a window are found again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx_ir as ir

from hagane.native.kernels.kernel import work_of
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.symbolic import Dim

# The taps of a window that lie in the image are those from i0 to i1 and from j0 to j1.
_WALK = """
float *to = gx + q * x_plane;
for (int64_t y = 0; y < H; y++) memset(to + y * x_row, 0, (size_t)(W * VL) * 4);
for (int64_t oy = 0; oy < OH; oy++) {{
const int64_t y0 = oy * {sh} - {top};
const int64_t i0 = y0 < 0 ? (-y0 + {dh} - 1) / {dh} : 0;
const int64_t i1 = hg_min({kh}, hg_max(0, (H - y0 + {dh} - 1) / {dh}));
for (int64_t ox = 0; ox < OW; ox++) {{
const int64_t x0 = ox * {sw} - {left};
const int64_t j0 = x0 < 0 ? (-x0 + {dw} - 1) / {dw} : 0;
const int64_t j1 = hg_min({kw}, hg_max(0, (W - x0 + {dw} - 1) / {dw}));
vf share = v_load(g + q * g_plane + oy * g_row + ox * VL);
{begin}
for (int64_t i = i0; i < i1; i++)
for (int64_t j = j0; j < j1; j++) {{
const int64_t at = (y0 + i * {dh}) * {row} + (x0 + j * {dw}) * VL;
{tap}
}} }} }}"""
_LARGEST = (
    "const vf most = v_load(y + q * y_plane + oy * y_row + ox * VL); vm free = most == most;",
    "const vm hit = (v_load(x + q * of_plane + (y0 + i * {dh}) * of_row + (x0 + j * {dw}) * VL) == most)"
    " & free;\nfree &= ~hit;\n"
    "v_store(to + at, v_load(to + at) + v_sel(hit, share, v_set1(0.f)));",
)
_MEAN = (
    "share = share / (float)({count});",
    "v_store(to + at, v_load(to + at) + share);",
)


def _numbers(attributes: Mapping[str, Any]) -> dict[str, int]:
    """Return kernel, strides, dilations and padding of two axes, by the names in the text."""
    rank = len(attributes["kernel_shape"])
    found: dict[str, int] = {}
    for letter, name in (("k", "kernel_shape"), ("s", "strides"), ("d", "dilations")):
        high, wide = [1] * (2 - rank) + [int(v) for v in attributes[name]]
        found |= {f"{letter}h": high, f"{letter}w": wide}
    pads = [int(v) for v in attributes["pads"]]
    before, behind = [0] * (2 - rank) + pads[:rank], [0] * (2 - rank) + pads[rank:]
    names = ("top", "left", "bottom", "right")
    return found | dict(zip(names, (*before, *behind), strict=True))


def _plane(name: str, found: Blocked) -> dict[str, Dim]:
    return {f"{name}_plane": found.plane_stride, f"{name}_row": found.row_stride}


def _lower(low: Lowering, node: ir.Node, *, largest: bool) -> None:
    x, gradient = node.inputs[0], node.inputs[-1]
    shape = low.facts.shape(x)
    if not low.facts.is_float(x) or len(shape) not in (3, 4) or not isinstance(shape[1], int):
        raise NotNative("data that are not images of float32")
    if 0 in (*shape, *low.facts.shape(gradient)):
        raise NotNative("an empty image")
    attributes = low.facts.attributes(node)
    at = _numbers(attributes)
    g = low.forms.blocked(gradient)
    reads: dict[str, Tensor] = {"g": g.view()}
    sizes: dict[str, Dim] = {"OH": g.rows, "OW": g.columns, **_plane("g", g)}
    begin, tap = _LARGEST if largest else _MEAN
    count = "hg_max(1, (i1 - i0) * (j1 - j0))"
    if largest:
        image, found = low.forms.blocked(x), low.forms.blocked(node.inputs[1])
        reads |= {"x": image.view(), "y": found.view()}
        sizes |= {**_plane("of", image), **_plane("y", found)}
    elif attributes.get("count_include_pad"):
        # A window that reaches past the padding, as ceil_mode allows, counts the padding.
        count = (
            "hg_min({kh}, (H + {bottom} - y0 + {dh} - 1) / {dh})"
            " * hg_min({kw}, (W + {right} - x0 + {dw} - 1) / {dw})"
        ).format(**at)
    target = low.forms.new_blocked(node.outputs[0], shape)
    sizes |= {"H": target.rows, "W": target.columns, **_plane("x", target)}
    text = _WALK.format(
        begin=begin.format(count=count, **at), tap=tap.format(**at), row="x_row", **at
    )
    planes = target.shape[0] * target.blocks
    taps = at["kh"] * at["kw"]
    emit_written(
        low.recorder, node, text, reads=reads, writes={"gx": target.view()}, sizes=sizes,
        tasks=planes, work=work_of(g.floats, 0.1 * (taps + 1)),
        name="max_pool_gradient" if largest else "average_pool_gradient",
    )  # fmt: skip
    low.forms[node.outputs[0]] = target


def lower_max_gradient(low: Lowering, node: ir.Node) -> None:
    """Lower the gradient of MaxPool: the first of equal elements in a window gets all of it."""
    _lower(low, node, largest=True)


def lower_average_gradient(low: Lowering, node: ir.Node) -> None:
    """Lower the gradient of AveragePool: each element of a window gets an equal share."""
    _lower(low, node, largest=False)


RULES: dict[tuple[str, str], list[Rule]] = {
    ("hagane", "AveragePoolGradient"): [lower_average_gradient],
    ("hagane", "MaxPoolGradient"): [lower_max_gradient],
}
