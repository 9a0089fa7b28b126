"""Resize by scales or sizes that come with the data, of parts of images, and keeping proportions.

A kernel for each axis finds the elements that each coordinate of the result is made of; another one
follows these tables row by row. Of antialiased ones, made of any number of elements, each axis is a
kernel of its own instead, whose numbers are float64 until the last kernel rounds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import (
    emit_written,
    is_real,
    loaded,
    number_type,
    stored,
)
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import around, number_input, whole_numbers
from hagane.native.rules.shaping.numbers import INT64, found_numbers, length_of
from hagane.ops.vision.resize import real_of
from hagane.symbolic import Dim

if TYPE_CHECKING:
    from hagane.native.rules.vision.resized_rows import Table

# C of the input coordinate at output coordinate ``j``, computed in the real type ``R``.
_COORDINATES = {
    "align_corners": "length == 1 ? (R)0 : (R)j * (R)(source - 1) / (R)(length - 1)",
    "asymmetric": "(R)j / scale",
    "half_pixel": "((R)j + (R)0.5) / scale - (R)0.5",
    "half_pixel_symmetric": (
        "(R)source * (R)0.5 * (1 - (R)target / (R)length) + ((R)j + (R)0.5) / scale - (R)0.5"
    ),
    "pytorch_half_pixel": "target > 1 ? ((R)j + (R)0.5) / scale - (R)0.5 : (R)0",
    "tf_crop_and_resize": (
        "target == 1 ? (R)0.5 * (start + end) * (R)(source - 1)"
        " : start * (R)(source - 1)"
        " + (R)j * (end - start) * (R)(source - 1) / (R)(target - 1)"
    ),
    "tf_half_pixel_for_nn": "((R)j + (R)0.5) / scale",
}
_NEAREST = {
    "ceil": "ceilf(x)",
    "floor": "floorf(x)",
    "round_prefer_ceil": "floorf(x + 0.5f)",
    "round_prefer_floor": "ceilf(x - 0.5f)",
}
# Whether an axis stays as it is.
_SAME = "source == target && scale == 1 && start == 0 && end == 1"


class _Plan:
    """C that finds by how much each axis is resized, and the operands that it reads."""

    def __init__(self, low: Lowering, node: ir.Node):
        attributes = low.facts.attributes(node)
        self.shape = low.facts.shape(node.inputs[0])
        rank = len(self.shape)
        given = attributes.get("axes")
        self.axes = list(range(rank)) if given is None else [int(axis) % rank for axis in given]
        self.mode = low.facts.choice(
            node, "coordinate_transformation_mode", frozenset(_COORDINATES)
        )
        self.crops = self.mode == "tf_crop_and_resize"
        kind = real_of(low.facts.dtype(node.inputs[0]), str(attributes["mode"]))
        self.real = "double" if kind is np.float64 else "float"
        self.policy = str(attributes["keep_aspect_ratio_policy"])
        self.reads: dict[str, Tensor] = {}
        roi, scales, sizes = (_given(low, node, index) for index in (1, 2, 3))
        count = len(self.axes)
        if length_of(low, sizes or scales) != count or count == 0:
            raise NotNative("numbers for other axes")
        if sizes is not None:
            self.reads["sizes"] = whole_numbers(low, sizes)
        else:
            self.reads["scales"] = low.forms.contiguous(scales)
        if self.crops:
            if roi is None or length_of(low, roi) != 2 * count:
                raise NotNative("a part of an image that is not given")
            self.reads["roi"] = low.forms.contiguous(roi)
        self.sizes: dict[str, Dim] = {f"X{axis}": self.shape[axis] for axis in self.axes}

    def text(self, number: int) -> str:
        """Return C that declares by how much one axis is resized, and its target, -1 if too large."""
        axis, count = self.axes[number], len(self.axes)
        lines = [f"typedef {self.real} R;", f"const int64_t source = X{axis};"]
        lines.append("R start = 0, end = 1;")
        if self.crops:
            kind = self.reads["roi"].dtype
            lines.append(f"start = (R){loaded(kind, f'roi[{number}]')};")
            lines.append(f"end = (R){loaded(kind, f'roi[{number + count}]')};")
        if "scales" in self.reads:
            lines += [
                f"const double factor = scales[{number}], length = factor * (double)source;",
                "const double wanted = floor((float)source * (float)factor);",
            ]
        elif self.policy == "stretch":
            lines.append(
                f"const double length = (double)sizes[{number}], wanted = length, "
                "factor = source ? (double)((R)length / (R)source) : 1;"
            )
        else:
            better = "<" if self.policy == "not_larger" else ">"
            lines.append(f"double factor = (double)sizes[0] / (double)X{self.axes[0]};")
            lines += [
                f"{{ double other = (double)sizes[{i}] / (double)X{each}; "
                f"if (other {better} factor) factor = other; }}"
                for i, each in enumerate(self.axes[1:], 1)
            ]
            lines.append(
                "const double wanted = floor(factor * (double)source + 0.5), length = wanted;"
            )
        lines.append("const R scale = (R)factor;")
        lines.append(
            "const int64_t target = wanted >= 0 && wanted < 0x1p46 ? (int64_t)wanted : -1;"
        )
        lines.append("(void)start, (void)end, (void)length, (void)scale, (void)target;")
        return "\n".join(lines)

    def along(self, number: int, x: Tensor, y: Tensor) -> dict[str, Dim]:
        """Return the sizes that the kernel of one axis needs."""
        axis = self.axes[number]
        outer, want, inner = around(y.shape, axis)
        more = {"outer": outer, "inner": inner, "have": x.shape[axis], "want": want}
        return self.sizes | more


def _given(low: Lowering, node: ir.Node, index: int) -> ir.Value | None:
    """Return an input, None where it has no elements."""
    value = number_input(low, node, index)
    return None if value is None or low.facts.shape(value) == (0,) else value


def lower_resize(low: Lowering, node: ir.Node) -> None:
    """Lower Resize: one axis after the other."""
    from hagane.native.rules.vision.resized_rows import blend_rows, pick_rows  # few models need it

    attributes = low.facts.attributes(node)
    plan, out = _Plan(low, node), node.outputs[0]
    mode = low.facts.choice(node, "mode", ("nearest", "linear", "cubic"))
    shape, x = low.facts.shape(out), low.forms.contiguous(node.inputs[0])
    dtype, nearest = x.dtype, mode == "nearest"
    if not nearest and not (is_real(dtype) or dtype.kind in "iu"):
        raise NotNative(f"element type {dtype}")
    finding = "double all = 1;\n" + "\n".join(
        f"{{ {plan.text(i)}\n"
        "if (target < 0 || (all *= (double)target) > 0x1p46 || (source == 0 && target > 0)"
        " || (source > 0 && !(factor > 0))) "
        f"{{ hg_fail(thread, target); return; }}\nfound[{i}] = target; }}"
        for i in range(len(plan.axes))
    )
    found_numbers(
        low, node, finding, [shape[axis] for axis in plan.axes], reads=plan.reads, sizes=plan.sizes
    )
    y = low.forms.result(out)
    if nearest:
        pick_rows(low, node, x, y, _nearest_tables(low, node, plan, x, y))
    elif attributes["antialias"]:
        step = x
        # The last axis but one first: its rows are summed as wholes, and fewer are left for others.
        order = sorted(range(len(plan.axes)), key=lambda i: (plan.axes[i] != len(shape) - 2, -i))
        for number in order:
            axis = plan.axes[number]
            part = (*step.shape[:axis], shape[axis], *step.shape[axis + 1 :])
            into = low.recorder.new(f"{out.name} along {axis}", np.dtype(np.float64), part)
            _blend(low, node, plan, number, step, into)
            step = into
        _round(low, node, step, y)
    else:
        narrow = is_real(dtype) and dtype.itemsize < 8
        kind = np.dtype(np.float32 if narrow else np.float64)
        tables = _weight_tables(low, node, plan, kind, x, y)
        blend_rows(low, node, x, y, tables, c_type(kind), _rounded(y.dtype))
    if plan.crops:
        value = float(low.facts.attributes(node)["extrapolation_value"])
        for number in range(len(plan.axes)):
            _fill_outside(low, node, plan, number, y, value)
    low.forms[out] = y


def _nearest_tables(
    low: Lowering, node: ir.Node, plan: _Plan, x: Tensor, y: Tensor
) -> dict[int, Table]:
    """Write kernels that find the nearest element to each coordinate of each axis."""
    from hagane.native.rules.vision.resized_rows import Table  # few models need it

    nearest, tables = low.facts.choice(node, "nearest_mode", frozenset(_NEAREST)), {}
    for number, axis in enumerate(plan.axes):
        places = low.recorder.new(f"{node.outputs[0].name} at {axis}", INT64, (y.shape[axis],))
        text = f"""
{plan.text(number)}
for (int64_t j = first; j < last; j++) {{
const float x = {_COORDINATES[plan.mode]};
const float near = {_NEAREST[nearest]};
places[j] = {_SAME} ? j : near >= (float)(have - 1) ? have - 1 : near > 0 ? (int64_t)near : 0;
}}"""
        emit_written(
            low.recorder, node, text,
            reads=plan.reads, writes={"places": places}, sizes=plan.along(number, x, y),
            items=y.shape[axis],
        )  # fmt: skip
        tables[axis] = Table(places)
    return tables


def _weighing(attributes: Mapping[str, Any]) -> tuple[str, str, int]:
    """Return C of a weight function, that of its value at a tap, and how far it reaches."""
    a = float(attributes["cubic_coeff_a"])
    weight, reach = "d < 1 ? 1 - d : 0", 1
    if attributes["mode"] == "cubic":  # equation 4 of Keys, 1981
        near = f"(({a + 2!r} * d - {a + 3!r}) * d * d + 1)"
        far = f"((({a!r} * d - {5 * a!r}) * d + {8 * a!r}) * d - {4 * a!r})"
        weight, reach = f"d <= 1 ? {near} : d < 2 ? {far} : 0", 2
    helper = f"INLINE double KERNEL_weight(double d) {{ d = fabs(d); return {weight}; }}"
    tap = "int64_t at = base + k;\n"
    tap += "double w = KERNEL_weight(((double)at - (double)x) * stretch);\n"
    tap += "if (at < 0 || at >= have) w = 0;\n" if attributes["exclude_outside"] else ""
    return helper, tap, reach


def _weight_tables(
    low: Lowering, node: ir.Node, plan: _Plan, kind: np.dtype[Any], x: Tensor, y: Tensor
) -> dict[int, Table]:
    """Write kernels that find the elements and weights of each coordinate of each axis."""
    from hagane.native.rules.vision.resized_rows import Table  # few models need it

    attributes = low.facts.attributes(node)
    helper, tap, reach = _weighing(attributes)
    tables = {}
    for number, axis in enumerate(plan.axes):
        shape = (2 * reach, y.shape[axis])
        places = low.recorder.new(f"{node.outputs[0].name} at {axis}", INT64, shape)
        weights = low.recorder.new(f"{node.outputs[0].name} by {axis}", kind, shape)
        total = "double total = 1;"
        if attributes["exclude_outside"]:
            total = f"double total = 0;\nfor (int64_t k = {1 - reach}; k <= {reach}; k++) {{ {tap} total += w; }}"
        text = f"""
{plan.text(number)}
const double stretch = 1;
for (int64_t j = first; j < last; j++) {{
R x = {_COORDINATES[plan.mode]};
if ({_SAME}) x = (R)j;
const int64_t base = (int64_t)floor(x);
{total}
for (int64_t k = {1 - reach}; k <= {reach}; k++) {{
{tap}
const int64_t to = (k - {1 - reach}) * want + j;
places[to] = at < 0 ? 0 : at >= have ? have - 1 : at;
weights[to] = ({c_type(kind)})(w / total);
}} }}"""
        emit_written(
            low.recorder, node, text,
            reads=plan.reads, writes={"places": places, "weights": weights},
            sizes=plan.along(number, x, y), items=y.shape[axis], each=4 * reach, helper=helper,
        )  # fmt: skip
        tables[axis] = Table(places, weights, 2 * reach)
    return tables


def _blend(low: Lowering, node: ir.Node, plan: _Plan, number: int, x: Tensor, y: Tensor) -> None:
    attributes = low.facts.attributes(node)
    helper, tap, reach = _weighing(attributes)
    total = (
        f"double total = 0;\nfor (int64_t k = least; k < 2 - least; k++) {{ {tap} total += w; }}"
    )
    sizes = plan.along(number, x, y)
    text = f"""
{plan.text(number)}
const double stretch = factor < 1 ? factor : 1;
const int64_t least = 1 - (int64_t)ceil({reach} / stretch);
for (int64_t j = first; j < last; j++) {{
R x = {_COORDINATES[plan.mode]};
if ({_SAME}) x = (R)j;
const int64_t base = (int64_t)floor(x);
{total}
for (int64_t o = 0; o < outer; o++)
for (int64_t i = 0; i < inner; i++) to[(o * want + j) * inner + i] = 0;
for (int64_t k = least; k < 2 - least; k++) {{
{tap}
if (w == 0) continue;
w /= total;
at = at < 0 ? 0 : at >= have ? have - 1 : at;
for (int64_t o = 0; o < outer; o++) {{
const T *row = from + (o * have + at) * inner;
double *sums = to + (o * want + j) * inner;
for (int64_t i = 0; i < inner; i++) sums[i] += w * (double){loaded(x.dtype, "row[i]")};
}} }} }}"""
    emit_written(
        low.recorder, node, text,
        reads={"from": x, **plan.reads}, writes={"to": y}, sizes=sizes,
        types={"T": c_type(x.dtype)}, items=sizes["want"],
        each=sizes["outer"] * sizes["inner"] * 3, helper=helper,
    )  # fmt: skip


def _rounded(dtype: np.dtype[Any]) -> str:
    """Return C of a result from the number ``v``."""
    number = number_type(dtype)
    if is_real(dtype):
        return stored(dtype, f"({number})v")
    # Towards zero after clipping, as ONNX's own reference has it for integer pictures.
    limits = np.iinfo(dtype)
    least = "INT64_MIN" if limits.min == -(2**63) else f"{limits.min}"
    most = f"{limits.max}ULL"
    return f"v <= {limits.min}.0 ? ({number}){least} : v >= {limits.max}.0 ? ({number}){most} : ({number})v"


def _round(low: Lowering, node: ir.Node, x: Tensor, y: Tensor) -> None:
    value = _rounded(y.dtype)
    text = f"for (int64_t i = first; i < last; i++) {{ const double v = x[i]; y[i] = {value}; }}"
    emit_written(low.recorder, node, text, reads={"x": x}, writes={"y": y}, items=y.size)


def _fill_outside(
    low: Lowering, node: ir.Node, plan: _Plan, number: int, y: Tensor, value: float
) -> None:
    """Write the value outside of the image along one axis."""
    sizes = plan.along(number, y, y)
    item = stored(y.dtype, f"({number_type(y.dtype)})({value!r})")
    text = f"""
{plan.text(number)}
if ({_SAME}) return;
for (int64_t j = first; j < last; j++) {{
const R x = {_COORDINATES[plan.mode]};
if (x >= 0 && x <= (R)(source - 1)) continue;
for (int64_t o = 0; o < outer; o++)
for (int64_t i = 0; i < inner; i++) y[(o * want + j) * inner + i] = {item};
}}"""
    emit_written(
        low.recorder, node, text,
        reads=plan.reads, writes={"y": y}, sizes=sizes, items=sizes["want"],
        each=sizes["outer"] * sizes["inner"],
    )  # fmt: skip


RULES: dict[tuple[str, str], Rule] = {("", "Resize"): lower_resize}
