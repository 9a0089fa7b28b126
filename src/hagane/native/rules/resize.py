"""Resizing of images by nearest elements, or by weighted sums of a few along each axis.

Whole factors repeat elements, which is a copy. For all else a small kernel finds, for each place of
an axis of the result, the places that are read and their weights; another one sums them. Sizes may
be known only at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.expression import float_text
from hagane.native.kernels.kernel import Body, c_type, work_of
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.vision.repeating import repeat_rows
from hagane.symbolic import Dim, product

# C text of the coordinate of place x: n and m are the sizes before and after, as floats, ``length``
# the latter before it was rounded down to a whole number.
_COORDINATES = {
    "half_pixel": "(x + .5f) / scale - .5f",
    "half_pixel_symmetric": "n * .5f * (1.f - m / length) + ((x + .5f) / scale - .5f)",
    "pytorch_half_pixel": "m > 1.f ? (x + .5f) / scale - .5f : 0.f",
    "align_corners": "length == 1.f ? 0.f : x * (n - 1.f) / (length - 1.f)",
    "asymmetric": "x / scale",
    "tf_half_pixel_for_nn": "(x + .5f) / scale",
}
_ROUNDED = {
    "round_prefer_floor": "ceilf(c - .5f)",
    "round_prefer_ceil": "floorf(c + .5f)",
    "floor": "floorf(c)",
    "ceil": "ceilf(c)",
}
# Elements of one task.
_TASK = 8192


@dataclass(frozen=True, slots=True)
class _Axis:
    """How one axis is resized.

    Attributes:
        source: Its size.
        target: That of the result.
        scale: Their ratio, where it is given, or else it follows from the sizes.
    """

    source: Dim
    target: Dim
    scale: float | None

    @property
    def stays(self) -> bool:
        """Whether nothing changes along it."""
        return self.source == self.target and self.scale in (None, 1.0)

    @property
    def factor(self) -> int | None:
        """How often each element is repeated, if the result is a whole number of times longer."""
        if self.scale is not None:
            if self.scale != int(self.scale) or self.source * int(self.scale) != self.target:
                return None
            return int(self.scale)
        if self.source == self.target:
            return 1
        if not isinstance(self.source, int) or not isinstance(self.target, int):
            return None
        whole, rest = divmod(self.target, self.source)
        return whole if whole and not rest else None


@dataclass(frozen=True, slots=True)
class _Table:
    """For each place of an axis of the result, the places that are read and their weights."""

    places: Tensor
    weights: Tensor | None
    taps: int


def lower_resize(low: Lowering, node: ir.Node) -> None:
    """Lower a resizing of floats, or of any elements by the nearest ones."""
    attributes = low.facts.attributes(node)
    shape = low.facts.shape(node.inputs[0])
    if 0 in shape:
        raise NotNative("resizing an empty image")
    low.facts.choice(node, "mode", ("nearest", "linear", "cubic"))
    low.facts.choice(node, "nearest_mode", _ROUNDED)
    axes = _axes(low, node)
    if attributes["mode"] == "nearest" and _repeats(low, node, axes):
        return
    if attributes["coordinate_transformation_mode"] not in _COORDINATES:
        raise NotNative("resizing by coordinates of another kind")
    if attributes["mode"] != "nearest" and not low.facts.is_float(node.inputs[0]):
        raise NotNative(f"resizing {low.facts.dtype(node.inputs[0])} by {attributes['mode']}")
    moved = [number for number, axis in enumerate(axes) if not axis.stays]
    if moved and (len(axes) < 2 or min(moved) < len(axes) - 2):
        raise NotNative("resizing other axes than the last two")
    tables = [
        _table(low, node, number, axis) if number in moved else None
        for number, axis in list(enumerate(axes))[-2:]
    ]
    found = low.forms.stored(node.inputs[0])
    if isinstance(found, Blocked) and len(shape) == 4:
        _sum_blocks(low, node, found, tables)
    else:
        _sum_rows(low, node, tables)


def _axes(low: Lowering, node: ir.Node) -> list[_Axis]:
    """Return how each axis is resized."""
    attributes = low.facts.attributes(node)
    shape, out = low.facts.shape(node.inputs[0]), low.facts.shape(node.outputs[0])
    rank = len(shape)
    chosen = [int(axis) % rank for axis in attributes.get("axes") or range(rank)]
    given = node.inputs[2] if len(node.inputs) > 2 else None
    scales = None if given is None else low.facts.constant(given)
    if given is not None and scales is None and low.facts.shape(given) != (0,):
        raise NotNative("scales known only at run time")
    sizes = node.inputs[3] if len(node.inputs) > 3 else None
    told = sizes in low.facts.types.values or low.facts.constant(sizes) is not None
    if sizes is not None and not told:  # declared sizes of the result need not be those
        raise NotNative("sizes known only at run time")
    by_number: dict[int, float] = {}
    if scales is not None and scales.size:
        by_number = dict(zip(chosen, map(float, scales.reshape(-1)), strict=True))
    elif attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        by_number = _kept_aspect(low, node, chosen)
    return [
        _Axis(a, b, by_number.get(number))
        for number, (a, b) in enumerate(zip(shape, out, strict=True))
    ]


def _kept_aspect(low: Lowering, node: ir.Node, chosen: Sequence[int]) -> dict[int, float]:
    """Return the one ratio of all axes whose proportions are kept."""
    shape = low.facts.shape(node.inputs[0])
    sizes = low.facts.constant(node.inputs[3])
    sources = [size for axis in chosen if isinstance(size := shape[axis], int)]
    if sizes is None or len(sources) < len(chosen):
        raise NotNative("proportions of sizes known only at run time")
    ratios = [int(a) / b for a, b in zip(sizes.reshape(-1), sources, strict=True)]
    smaller = low.facts.attributes(node)["keep_aspect_ratio_policy"] == "not_larger"
    return dict.fromkeys(chosen, min(ratios) if smaller else max(ratios))


# ---- whole factors ----


def _repeats(low: Lowering, node: ir.Node, axes: Sequence[_Axis]) -> bool:
    """Enlarge by whole factors by repeating the nearest element; whether the node asks for that."""
    attributes = low.facts.attributes(node)
    factors = [factor for axis in axes if (factor := axis.factor) is not None]
    mode = attributes["coordinate_transformation_mode"], attributes["nearest_mode"]
    exact = mode in (
        ("asymmetric", "floor"),
        ("half_pixel", "round_prefer_floor"),
        ("half_pixel", "round_prefer_ceil"),
    )
    exact = exact or (
        mode == ("pytorch_half_pixel", "round_prefer_floor")
        and all(isinstance(axis.target, int) and axis.target > 1 for axis in axes[2:])
    )
    if not exact or len(factors) < len(axes):
        return False
    out = node.outputs[0]
    found = low.forms.stored(node.inputs[0])
    if isinstance(found, Blocked) and len(axes) == 4 and factors[:2] == [1, 1]:
        image = low.forms.new_blocked(out, low.facts.shape(out))
        source, target = found.view(), image.view()
        factors5 = [1, 1, factors[2], factors[3], 1]
        emit_copy(low.recorder, _repeated(source, factors5), _split(target, factors5))
        low.forms[out] = image
        return True
    if len(axes) > 1 and repeat_rows(low, node, factors):
        return True
    plain = low.forms.plain(node.inputs[0])
    result = low.forms.result(out)
    emit_copy(low.recorder, _repeated(plain, factors), _split(result, factors))
    low.forms[out] = result
    return True


def _repeated(tensor: Tensor, factors: list[int]) -> Tensor:
    shape: list[Dim] = []
    strides: list[Dim] = []
    for dim, stride, factor in zip(tensor.shape, tensor.strides, factors, strict=True):
        shape += [dim, factor]
        strides += [stride, 0]
    return replace(tensor, shape=tuple(shape), strides=tuple(strides))


def _split(tensor: Tensor, factors: list[int]) -> Tensor:
    shape: list[Dim] = []
    strides: list[Dim] = []
    for dim, stride, factor in zip(tensor.shape, tensor.strides, factors, strict=True):
        shape += [dim // factor, factor]
        strides += [stride * factor, stride]
    return replace(tensor, shape=tuple(shape), strides=tuple(strides))


# ---- tables ----


def _table(low: Lowering, node: ir.Node, number: int, axis: _Axis) -> _Table:
    """Write the kernel that finds the source of each place of an axis."""
    attributes = low.facts.attributes(node)
    mode, body, name = attributes["mode"], Body(), f"{node.name} {number}"
    n = body.number
    reach = {"nearest": 0, "linear": 1, "cubic": 2}[mode]
    stretch = 1.0
    antialias = bool(attributes.get("antialias")) and mode != "nearest"
    if antialias:
        scale = axis.scale
        if scale is None and isinstance(axis.source, int) and isinstance(axis.target, int):
            scale = float(np.float32(axis.target) / np.float32(axis.source))
        if scale is None:
            raise NotNative("antialiasing by a scale known only at run time")
        stretch = min(scale, 1.0)
    first = 1 - ceil(reach / stretch)
    taps = 1 if mode == "nearest" else 2 - 2 * first
    places = low.recorder.new(f"{name} places", np.dtype(np.int32), (axis.target, taps))
    weights = None
    p = body.pointer(places, written=True)
    scale_text = f"{n(axis.target)} / (float){n(axis.source)}"
    length = f"(float){n(axis.target)}"
    if axis.scale is not None:
        scale_text = float_text(float(np.float32(axis.scale)))
        length = f"(float)({axis.scale!r} * {n(axis.source)})"
    scale_text = f"(float){scale_text}"
    body.add(
        f"const int64_t size = {n(axis.source)}, made = {n(axis.target)};",
        f"if (size == 0 && made > 0) {{ hg_fail(thread, {number}); return; }}",
        f"const float n = (float)size, m = (float)made, length = {length}, scale = {scale_text};",
        "(void)n, (void)m, (void)length, (void)scale;",
        f"for (int64_t i = q * {_TASK}; i < hg_min(made, (q + 1) * {_TASK}); i++) {{",
        "const float x = (float)i;",
        f"const float c = {_COORDINATES[attributes['coordinate_transformation_mode']]};",
    )
    if mode == "nearest":
        rounded = _ROUNDED[attributes["nearest_mode"]]
        body.add(f"{p}[i] = (int32_t)hg_max(0, hg_min(size - 1, (int64_t){rounded})); }}")
    else:
        weights = low.recorder.new(f"{name} weights", np.dtype(np.float32), (axis.target, taps))
        w = body.pointer(weights, written=True)
        outside = bool(attributes.get("exclude_outside"))
        near = "d < 1 ? 1 - d : 0"
        if mode == "cubic":
            a = repr(float(attributes["cubic_coeff_a"]))
            near = (
                f"d <= 1 ? (({a} + 2) * d - ({a} + 3)) * d * d + 1 : "
                f"d < 2 ? (({a} * d - 5 * {a}) * d + 8 * {a}) * d - 4 * {a} : 0"
            )
        body.add(
            f"const int64_t base = (int64_t)floorf(c); double all = 0, own[{taps}];",
            f"for (int64_t k = 0; k < {taps}; k++) {{ const int64_t at = base + {first} + k;",
            f"const double d = fabs(((double)at - (double)c) * {stretch!r}); double v = {near};",
            "if (at < 0 || at >= size) v = 0;" if outside else "",
            f"own[k] = v; all += v; {p}[i * {taps} + k] = (int32_t)hg_max(0, hg_min(size - 1, at)); }}",
            f"for (int64_t k = 0; k < {taps}; k++) {w}[i * {taps} + k] = "
            f"(float)(own[k]{' / all' if outside or antialias else ''}); }}",
        )
    low.recorder.emit(
        f"places '{name}'",
        body,
        (axis.target + _TASK - 1) // _TASK,
        work=work_of(axis.target * taps, 4.0),
        failure="axis {value} is empty, expected an element to resize",
        name="resize_places",
    )
    return _Table(places, weights, taps)


def _columns(table: _Table | None) -> int:
    return 1 if table is None else table.taps


def _declared(body: Body, tables: Sequence[_Table | None]) -> list[tuple[str, str]]:
    """Declare the pointers of tables; return their C names, those of places and of weights."""
    names = []
    for table in tables:
        places = "" if table is None else body.pointer(table.places)
        weights = "" if table is None or table.weights is None else body.pointer(table.weights)
        names.append((places, weights))
    return names


def _at(table: _Table | None, names: tuple[str, str], place: str, tap: str) -> tuple[str, str]:
    """Return C text of a place that is read, and of its weight."""
    if table is None:
        return place, "1.f"
    at = f"[{place} * {table.taps} + {tap}]"
    return names[0] + at, names[1] + at if names[1] else "1.f"


# ---- sums ----


def _sum_blocks(
    low: Lowering, node: ir.Node, source: Blocked, tables: Sequence[_Table | None]
) -> None:
    """Sum pixels of an image in blocks of channels: a vector is a block of a pixel."""
    out = node.outputs[0]
    target = low.forms.new_blocked(out, low.facts.shape(out))
    body, lanes = Body(), source.lanes
    n = body.number
    s, d = body.pointer(source.view()), body.pointer(target.view(), written=True)
    names = _declared(body, tables)
    y_at, y_weight = _at(tables[0], names[0], "y", "i")
    x_at, x_weight = _at(tables[1], names[1], "x", "j")
    nearest = not names[0][1] and not names[1][1]
    body.add(
        f"int64_t y = q % {n(target.rows)}, plane = q / {n(target.rows)};",
        f"const float *s = {s} + plane * {n(source.plane_stride)};",
        f"float *d = {d} + plane * {n(target.plane_stride)} + y * {n(target.row_stride)};",
        f"for (int64_t x = 0; x < {n(target.columns)}; x++, d += {lanes}) {{",
        "vf a = {0};",
        f"for (int64_t i = 0; i < {_columns(tables[0])}; i++) {{",
        f"const float *row = s + (int64_t){y_at} * {n(source.row_stride)};",
        f"for (int64_t j = 0; j < {_columns(tables[1])}; j++) {{",
        f"vf v = v_load(row + (int64_t){x_at} * {lanes});",
        "a = v; } }" if nearest else f"a = v_fma(v, v_set1({y_weight} * {x_weight}), a); }} }}",
        "v_store(d, a); }",
    )
    planes = source.shape[0] * source.blocks
    each = _columns(tables[0]) * _columns(tables[1])
    elements = planes * lanes * target.rows * target.columns
    low.recorder.emit(
        node,
        body,
        planes * target.rows,
        work=work_of(elements, 0.1 * each),
        flops=work_of(elements, 2.0 * each),
    )
    low.forms[out] = target


def _sum_rows(low: Lowering, node: ir.Node, tables: Sequence[_Table | None]) -> None:
    """Sum rows of a plain image into a row of scratch memory, and elements of that."""
    out = node.outputs[0]
    source = low.forms.contiguous(node.inputs[0])
    target = low.forms.result(out)
    body = Body()
    n, kind = body.number, c_type(source.dtype)
    s, d = body.pointer(source), body.pointer(target, written=True)
    names = _declared(body, tables)
    (high, wide), (rows, columns) = source.shape[-2:], target.shape[-2:]
    y_at, y_weight = _at(tables[0], names[0], "y", "i")
    x_at, x_weight = _at(tables[1], names[1], "x", "j")
    body.add(
        f"int64_t y = q % {n(rows)}, plane = q / {n(rows)};",
        f"const {kind} *s = {s} + plane * {n(high * wide)};",
        f"{kind} *d = {d} + q * {n(columns)};",
    )
    if not names[0][1] and not names[1][1]:
        y_only, x_only = y_at.replace("i]", "0]"), x_at.replace("j]", "0]")
        body.add(
            f"s += (int64_t){y_only} * {n(wide)};",
            f"for (int64_t x = 0; x < {n(columns)}; x++) d[x] = s[{x_only}];",
        )
    else:
        body.add(
            f"const int64_t wide = {n(wide)};",
            "const float *row = s; float *sums = (float *)thread->scratch;",
        )
        if tables[0] is not None:
            body.add(
                "for (int64_t x = 0; x < wide; x += VL) { int64_t m = hg_min(VL, wide - x); vf a = {0};",
                f"for (int64_t i = 0; i < {_columns(tables[0])}; i++)",
                f"a = v_fma(v_load_n(s + (int64_t){y_at} * wide + x, m), v_set1({y_weight}), a);",
                "v_store(sums + x, a); }",
                "row = sums;",
            )
        else:
            body.add("row = s + y * wide; (void)sums;")
        if tables[1] is None:
            body.add("for (int64_t x = 0; x < wide; x++) d[x] = row[x];")
        else:
            body.add(
                f"for (int64_t x = 0; x < {n(columns)}; x++) {{ float a = 0;",
                f"for (int64_t j = 0; j < {_columns(tables[1])}; j++) a += row[{x_at}] * {x_weight};",
                "d[x] = a; }",
            )
    lines = product(target.shape[:-1])
    each = _columns(tables[0]) + _columns(tables[1])
    low.recorder.emit(
        node,
        body,
        lines,
        work=work_of(lines * columns, 0.5 * each),
        flops=work_of(lines * columns, 2.0 * each),
        scratch=(wide + 64) * 4,
    )
    low.forms[out] = target


RULES: dict[str, Rule] = {"Resize": lower_resize}
