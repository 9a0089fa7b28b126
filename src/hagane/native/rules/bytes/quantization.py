"""Quantised models: 8-bit integers with scales and zero points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import (
    FLOAT32,
    Apply,
    Constant,
    Expression,
    Leaf,
    stepwise,
)
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.recorder import labelled
from hagane.native.kernels.tensor import Blocked
from hagane.native.layouts.image_kernels import emit_image
from hagane.native.layouts.quads import shifted
from hagane.native.layouts.shorts import INT16
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.forms import Lazy, Lowered, operand
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.bytes.operands import has_quads
from hagane.native.rules.bytes.shorts import four_sizes
from hagane.native.rules.bytes.sums import DEQUANTIZE, summand, sums_bytes
from hagane.native.rules.elementwise import keep
from hagane.symbolic import Dim

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


# Smaller scales, or the inverse of such, are divided by.
_LEAST_SCALE = 2.0**-60


def _label(found: Lowered, node: ir.Node) -> str:
    operators = f"{found.operators}+" if isinstance(found, Lazy) and found.nodes else ""
    return labelled(f"{operators}{node.op_type}", node)


def _along(low: Lowering, node: ir.Node, value: ir.Value | None, rank: int) -> Expression | None:
    """Return a scale or zero point as an operand: one for all, or one an index of the axis."""
    if value is None:
        return None
    attributes = low.facts.attributes(node)
    array = low.facts.constant(value)
    if array is not None and array.size == 1:
        item = array.reshape(-1)[0]
        dtype = low.facts.dtype(value)
        # Bytes are computed with as floats, which hold them exactly.
        if dtype.kind == "f" or dtype in _BYTES:
            return Constant(float(item), FLOAT32)
        return Constant(int(item), dtype)
    if attributes.get("block_size") or len(low.facts.shape(value)) > 1:
        raise NotNative("a scale a block")
    if not low.facts.shape(value):
        return Leaf(low.forms.contiguous(value).reshaped([1] * rank))
    axis = int(attributes["axis"])
    shape: list[Dim] = [1] * rank
    shape[axis + rank if axis < 0 else axis] = low.facts.shape(value)[0]
    return Leaf(low.forms.contiguous(value).reshaped(shape))


def lower_quantize(low: Lowering, node: ir.Node) -> None:
    """Lower QuantizeLinear of float32 to bytes."""
    x, out = node.inputs[0], node.outputs[0]
    dtype = low.facts.dtype(out)
    if (
        not low.facts.is_float(x)
        or dtype not in _BYTES
        or low.facts.attributes(node).get("precision")
    ):
        raise NotNative(f"quantisation of {low.facts.dtype(x)} to {dtype}")
    rank = len(low.facts.shape(x))
    scale = _along(low, node, node.inputs[1], rank)
    zero = _along(low, node, node.inputs[2] if len(node.inputs) > 2 else None, rank)
    assert scale is not None
    found = low.forms.get(x)
    arguments: tuple[Expression, ...] = operand(found), scale, zero or Constant(0, FLOAT32)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    quotient = "{0} / {1}"
    if isinstance(scale, Constant) and _LEAST_SCALE < scale.value < 1 / _LEAST_SCALE:
        quotient = "v_over({0}, {1}, {3})"  # a division takes as long as ten products
        arguments += (Constant(float(1 / np.float32(scale.value)), FLOAT32),)
    text = f"v_quantize({quotient}, {{2}}, {least}.f, {most}.f)"
    steps = (stepwise(arguments[0]), *arguments[1:])
    expression = Apply(text, steps, dtype)
    in_blocks = isinstance(found, Blocked) or (isinstance(found, Lazy) and found.blocked)
    if not in_blocks:
        _keep(low, node, expression)
        return
    point = _point(arguments[0], scale, arguments[2], range(least, most + 1))
    if point is not None and rank in (3, 4) and not has_quads(low):
        shorts = low.forms.new_shorts(out, four_sizes(low.facts.shape(out)), point)
        text = f"v_quantize({quotient}, {{2}}, {least - point}.f, {most - point}.f)"
        assert isinstance(arguments[2], Constant)
        less = Constant(arguments[2].value - point, FLOAT32)  # (which may be in the sum)
        terms = (*steps[:2], less, *steps[3:])
        blocks = shorts.blocks(low.facts.level.lanes)
        emit_image(low.recorder, _label(found, node), Apply(text, terms, INT16), blocks)
        low.forms.shorts[out] = shorts
        return
    if point is not None and isinstance(scale, Constant) and rank == 4:
        image = low.forms.new_quads(out, point)
        label, sum_ = _label(found, node), arguments[0]
        assert isinstance(arguments[2], Constant)
        after = int(arguments[2].value) + image.shift
        if not sums_bytes(low, label, sum_, float(scale.value), after, image):
            emit_image(low.recorder, label, shifted(expression), image.view())
        low.forms.quads[out] = image
        return
    _keep(low, node, replace(expression, arguments=(Leaf(low.forms.plain(x)), *arguments[1:])))


def _point(sum_: Expression, scale: Expression, zero: Expression, numbers: range) -> int | None:
    """Return the constant zero point of numbers that are quantised, if scale and it are constants.

    That of numbers which are not scaled may be what is added to them last (QLinearAdd).
    """
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    added = summand(sum_) if zero.value == 0 and scale.value == 1 else None
    return int(added) if added is not None and added in numbers else int(zero.value)


def lower_dequantize(low: Lowering, node: ir.Node) -> None:
    """Lower DequantizeLinear of integers to float32."""
    x, out = node.inputs[0], node.outputs[0]
    if low.facts.dtype(out) != FLOAT32 or low.facts.dtype(x) not in (*_BYTES, np.dtype(np.int32)):
        raise NotNative(f"dequantisation of {low.facts.dtype(x)} to {low.facts.dtype(out)}")
    rank = len(low.facts.shape(x))
    scale = _along(low, node, node.inputs[1], rank)
    zero = _along(low, node, node.inputs[2] if len(node.inputs) > 2 else None, rank)
    assert scale is not None
    assert x is not None
    image = low.forms.quads.get(x)
    whole = zero is None or isinstance(zero, Constant)
    if image is not None and isinstance(scale, Constant) and whole:
        point = float(image.shift + (0 if zero is None else zero.value))  # type: ignore[union-attr]
        kept = (Leaf(image.view()), scale, Constant(point, FLOAT32))
        lazy = Lazy(Apply(DEQUANTIZE, kept, FLOAT32), FLOAT32, low.facts.shape(out), True)
        keep(low, out, replace(lazy, nodes=(node,)))
        return
    shorts = low.forms.shorts.get(x)
    taken = zero.value if isinstance(zero, Constant) else 0 if zero is None else None
    # (The filling of blocks is nought, and stays so around the zero point that was taken off.)
    if shorts is not None and isinstance(scale, Constant) and taken == shorts.zero:
        kept = (Leaf(shorts.blocks(low.facts.level.lanes)), scale, Constant(0, FLOAT32))
        lazy = Lazy(Apply(DEQUANTIZE, kept, FLOAT32), FLOAT32, low.facts.shape(out), True)
        keep(low, out, replace(lazy, nodes=(node,)))
        return
    found = operand(low.forms.get(x))
    if found.dtype in _BYTES:
        _keep(low, node, Apply(DEQUANTIZE, (found, scale, zero or Constant(0, FLOAT32)), FLOAT32))
        return
    terms = (found, scale, zero or Constant(0, found.dtype))
    text = "((float)((int64_t){0} - (int64_t){2}) * {1})"
    _keep(low, node, Apply(text, terms, FLOAT32, vector=False))


def lower_dynamic_quantize(low: Lowering, node: ir.Node) -> None:
    """Lower DynamicQuantizeLinear: the range is found first, zero always lies in it.

    What is not a number comes through the least of x, hence to the scale.
    """
    source = low.forms.contiguous(node.inputs[0])
    y, scale_value, zero_value = node.outputs
    scale, zero = low.forms.result(scale_value), low.forms.result(zero_value)
    body = Body()
    x = body.pointer(source)
    s, z = body.pointer(scale, written=True), body.pointer(zero, written=True)
    body.add(
        f"float low = 0, high = 0; int64_t n = {body.size(source.size)}, i = 0;",
        "vf least[4] = {0}, most[4] = {0};",
        "for (; i + 4 * VL <= n; i += 4 * VL) for (int j = 0; j < 4; j++) {",
        f"vf v = v_load({x} + i + j * VL);",
        "least[j] = v_min(v, least[j]); most[j] = v_max2(v, most[j]); }",
        f"for (; i < n; i += VL) {{ vf v = v_load_n({x} + i, hg_min(n - i, VL));",
        "least[0] = v_min(v, least[0]); most[0] = v_max2(v, most[0]); }",
        "for (int j = 0; j < 4; j++) for (int k = 0; k < VL; k++) {",
        "float a = least[j][k], b = most[j][k];",
        "low = a < low || a != a ? a : low; high = b > high ? b : high; }",
        "float step = (high - low) / 255.f;",
        f"{s}[0] = step; {z}[0] = step == 0 ? 0 : hg_saturate(-low / step, 0, 0, 255);",
    )
    low.recorder.emit(f"range '{node.name}'", body, 1, work=work_of(source.size, 0.03))
    low.forms[scale_value], low.forms[zero_value] = scale, zero
    byte = np.dtype(np.uint8)
    # (Where the range is nought, so is the zero point; nought over nought is no number, which is nought.)
    ones = [1] * len(source.shape)
    arguments = (Leaf(source), *(Leaf(each.reshaped(ones)) for each in (scale, zero)))
    expression = Apply("v_quantize({0} / {1}, {2}, 0.f, 255.f)", arguments, byte)
    lazy = Lazy(expression, byte, low.facts.shape(y), False, (node,))
    low.forms[y] = low.forms.store(y, lazy)


def _keep(low: Lowering, node: ir.Node, expression: Expression) -> None:
    out = node.outputs[0]
    keep(low, out, Lazy(expression, low.facts.dtype(out), low.facts.shape(out), False, (node,)))


RULES: dict[str, Rule] = {
    "DequantizeLinear": lower_dequantize,
    "DynamicQuantizeLinear": lower_dynamic_quantize,
    "QuantizeLinear": lower_quantize,
}
