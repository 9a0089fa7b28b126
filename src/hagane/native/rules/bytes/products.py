"""Products of bytes with constant matrices: MatMulInteger and QLinearMatMul."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.expression import FLOAT32, Apply, Constant, Leaf
from hagane.native.kernels.kernel import Body
from hagane.native.kernels.packing import Packing, as_is
from hagane.native.kernels.tensor import Buffer, Kind, Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.layouts.quads import quad_weights
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.forms import Lazy
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.bytes.int8 import emit_int8_product, pack_rows
from hagane.native.rules.bytes.operands import (
    INT32_TERMS,
    byte_weight,
    has_quads,
    one_for_all,
    parameters,
    requantize,
    scale_and_zero,
    signed_weight,
)
from hagane.native.rules.bytes.scaled import Scaled, scaled
from hagane.native.rules.bytes.shorts import emit_short_rows, fits_shorts, rows_of_shorts
from hagane.native.rules.elementwise import keep
from hagane.native.rules.products.matrix import (
    emit_product,
    product_groups,
    row_length,
    row_tile,
)
from hagane.native.rules.products.packed import packed_rows
from hagane.native.tiles.contraction import pack_weights
from hagane.native.tiles.tile import Store, Words, whole_words
from hagane.ops.definition import Array
from hagane.ops.values import factor_of
from hagane.symbolic import product


def lower_matmul_integer(low: Lowering, node: ir.Node) -> None:
    """Lower MatMulInteger with constant weights; the left zero point may come at run time."""
    a = node.inputs[0]
    weight = byte_weight(low, node.inputs[1])
    if weight.ndim != 2 or len(low.facts.shape(a)) < 2 or 0 in weight.shape:
        raise NotNative("operands that are not a stack of rows and a matrix")
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    if zero is not None and product(low.facts.shape(zero)) != 1:
        raise NotNative("a zero point a row")
    right = one_for_all(low, node.inputs[3] if len(node.inputs) > 3 else None)
    signed = signed_weight(weight, right)
    if has_quads(low) and signed is not None:
        _lower_quads(low, node, signed, zero)
        return
    if has_quads(low) and weight.shape[0] <= INT32_TERMS:
        _lower_uncentred(low, node, weight, zero, right)
        return
    if _lower_shorts(low, node, weight, zero, right):
        return
    point = None if zero is None else low.forms.contiguous(zero)

    def left(body: Body) -> str:
        return "0" if point is None else f"{body.pointer(point)}[0]"

    target = low.forms.result(node.outputs[0])
    source = low.forms.contiguous(a)
    rows = product(source.shape[:-1])
    packed = pack_rows(low, node, source, rows, weight.shape[0])
    emit_int8_product(
        low, node, packed, rows, weight, (left, right), target, shifted=source.dtype == np.int8
    )
    low.forms[node.outputs[0]] = target


def _lower_shorts(
    low: Lowering, node: ir.Node, weight: Array, zero: ir.Value | None, right: int
) -> bool:
    """Lower a product with 16-bit numbers, and the floats that its sums become; say whether it fits."""
    k, n = weight.shape
    centred = weight.astype(np.int32) - right
    if 0 in low.facts.shape(node.inputs[0]) or not fits_shorts(centred.T, np.zeros(n)):
        return False
    none = np.zeros(n, np.float32)
    found = scaled(low, node.outputs[0], n, 0) or Scaled(node.outputs[0], none, none, ())
    known = np.zeros(1) if zero is None else low.facts.constant(zero)
    point = zero if known is None else int(known.reshape(-1)[0])
    rows = rows_of_shorts(low, node.inputs[0], k, point)
    target = low.forms.result(found.value)
    emit_short_rows(low, node, centred, rows, found, target)
    return True


def _lower_quads(
    low: Lowering,
    node: ir.Node,
    weight: Array,
    zero: ir.Value | None,
    sums_to: Tensor | None = None,
) -> None:
    """Lower a product of quads; a cast, a scale and a row that follow come with it.

    Args:
        low: Takes the kernel.
        node: The node.
        weight: Signed, around nought.
        zero: The zero point of the rows.
        sums_to: Takes the sums, where more than these belongs to the result.
    """
    k, n = weight.shape
    a, out = node.inputs[0], node.outputs[0]
    rows = product(low.facts.shape(a)[:-1])
    shift = 128 if low.facts.dtype(a) == np.int8 else 0
    sums = weight.astype(np.int64).sum(0)
    known = np.zeros(()) if zero is None else low.facts.constant(zero)
    followers: tuple[ir.Node, ...] = ()
    tile = row_tile(low.facts.level, Words.QUAD)
    length = row_length(n, low.facts.level)
    if known is not None:
        start = (-(int(known.reshape(-1)[0]) + shift) * sums).astype(np.int32)
        after = None if sums_to is not None else scaled(low, out, n, 0)
        if after is None:
            kept = parameters(low, id(node), length, start)
        else:
            kept = parameters(low, id(node), length, start, after.factor, after.shift)
            tile = replace(tile, store=Store.SCALED, parameters=kept.distance)
            out, followers = after.value, after.nodes
        first = kept.buffer
    else:
        assert zero is not None
        first = _starts(low, node, low.forms.contiguous(zero), sums, shift, length)
    target = low.forms.result(out) if sums_to is None else sums_to
    read = packed_rows(low, a, rows, k, Words.QUAD)
    sizes = product_groups(n, rows, low.facts.level, words=Words.QUAD)
    weights = packed_quads(low, node, weight, sizes)
    if sums_to is None:
        low.forms[out] = target
    emit_product(
        low, node, read, (weights, first), None, target, tile, followers, 2.0 * n * k, sizes
    )


def _lower_uncentred(
    low: Lowering, node: ir.Node, weight: Array, zero: ir.Value | None, right: int
) -> None:
    """Lower a product of quads whose right zero point is none that quads have.

    That times the sum of each row, less its own zero point, is subtracted afterwards.
    """
    out, a = node.outputs[0], low.forms.contiguous(node.inputs[0])
    k = weight.shape[0]
    signed, middle = _about_the_middle(weight)
    shape, dtype = low.facts.shape(out), low.facts.dtype(out)
    sums = low.recorder.new(f"{node.name} sums", dtype, shape)
    _lower_quads(low, node, signed, zero, sums)
    rows = low.recorder.new(f"{node.name} rows", dtype, (*shape[:-1], 1))
    point = None if zero is None else low.forms.contiguous(zero)
    reads = {"a": a} | ({} if point is None else {"zero": point})
    emit_written(
        low.recorder, node,
        f"""
const int32_t point = {"0" if point is None else "zero[0]"};
for (int64_t row = first; row < last; row++) {{
int32_t sum = 0;
for (int64_t i = 0; i < {k}; i++) sum += a[row * {k} + i];
to[row] = (sum - {k} * point) * {right - middle}; }}""",
        reads=reads, writes={"to": rows}, sizes={}, items=product(shape[:-1]), each=k, cost=0.1,
        name="byte_rows",
    )  # fmt: skip
    less = Apply("{0} - {1}", (Leaf(sums), Leaf(rows)), dtype, vector=False)
    keep(low, out, Lazy(less, dtype, shape, False, (node,)))


def _about_the_middle(weight: Array) -> tuple[Array, int]:
    """Return weights less the middle of their type, as int8, and that middle."""
    if weight.dtype == np.int8:
        return weight, 0
    return (weight.astype(np.int16) - 128).astype(np.int8), 128


def _lower_uncentred_bytes(
    low: Lowering, node: ir.Node, weight: Array, zeros: tuple[int, int, int], scale: Array
) -> None:
    """Lower a product of bytes to bytes by quads, where the right zero point is none that they have.

    Args:
        low: Takes the kernels.
        node: The node.
        weight: Of bytes.
        zeros: The zero points of both sides, and of the result.
        scale: Of the sums, a column.
    """
    out, a = node.outputs[0], low.forms.contiguous(node.inputs[0])
    k, n = weight.shape
    signed, middle = _about_the_middle(weight)
    left, right, zero = zeros
    shape, dtype = low.facts.shape(out), low.facts.dtype(out)
    sums = low.recorder.new(f"{node.name} sums", np.dtype(np.int32), shape)
    _lower_quads(low, node, signed, node.inputs[2], sums)
    target = low.forms.result(out)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    emit_written(
        low.recorder, node,
        f"""
for (int64_t row = first; row < last; row++) {{
int32_t less = {-k * left};
for (int64_t i = 0; i < {k}; i++) less += a[row * {k} + i];
less *= {right - middle};
for (int64_t j = 0; j < {n}; j++) {{
float x = rintf((float)(sums[row * {n} + j] - less) * scale[j]) + {zero}.f;
x = x < {least}.f ? {least}.f : x;
to[row * {n} + j] = (int32_t)(x > {most}.f ? {most}.f : x); }} }}""",
        reads={"a": a, "sums": sums, "scale": low.recorder.table(node, "scale", scale.copy())},
        writes={"to": target}, sizes={}, items=product(shape[:-1]), each=k + n, cost=0.1,
        name="byte_rows",
    )  # fmt: skip
    low.forms[out] = target


def packed_quads(low: Lowering, node: ir.Node, weight: Array, sizes: list[int]) -> Buffer:
    """Return the buffer of a signed matrix ``(k, n)`` in quads."""
    k, n = weight.shape
    lanes = low.facts.level.lanes
    packing = Packing(pack_quads, (weight, tuple(sizes), low.facts.level))
    words = whole_words(k, Words.QUAD, low.facts.level)
    return low.recorder.weight(("quads", id(node)), packing, -(-n // lanes) * lanes * words * 4)


def _starts(
    low: Lowering, node: ir.Node, zero: Tensor, sums: Array, shift: int, length: int
) -> Buffer:
    """Return the starts of sums where the zero point is known only at run time."""
    buffer = Buffer(f"{node.name} starts", length * 4, Kind.ARENA)
    columns = low.recorder.weight(
        ("column sums", id(node)), Packing(as_is, (sums.astype(np.int32),)), sums.size * 4
    )
    body = Body()
    z, s = body.pointer(zero), body.raw(columns, ctype="int32_t")
    d = body.raw(buffer, ctype="int32_t")
    body.add(
        f"int32_t *to = (int32_t *){d}; int32_t point = {z}[0] + {shift};",
        f"for (int64_t i = 0; i < {sums.size}; i++) to[i] = -point * {s}[i];",
        f"for (int64_t i = {sums.size}; i < {length}; i++) to[i] = 0;",
    )
    low.recorder.emit(f"starts '{node.name}'", body, 1, work=sums.size * 0.2)
    return buffer


def lower_qlinear_matmul(low: Lowering, node: ir.Node) -> None:
    """Lower QLinearMatMul with constant weights, scales and zero points."""
    weight = byte_weight(low, node.inputs[3])
    a_scale, a_zero = scale_and_zero(low, node, 1)
    b_scale, b_zero = scale_and_zero(low, node, 4)
    y_scale, y_zero = scale_and_zero(low, node, 6)
    if weight.ndim != 2 or len(low.facts.shape(node.inputs[0])) < 2 or a_scale.size != 1:
        raise NotNative("operands that are not a stack of rows and a matrix")
    if weight.shape[0] > INT32_TERMS:
        raise NotNative("sums that 32 bits may not hold")
    out, n = node.outputs[0], weight.shape[1]
    factor = np.broadcast_to(factor_of(a_scale, b_scale, y_scale), (n,))
    signed = signed_weight(weight, b_zero)
    rows = product(low.facts.shape(node.inputs[0])[:-1])
    if has_quads(low) and signed is not None:
        shift = 128 if low.facts.dtype(node.inputs[0]) == np.int8 else 0
        start = (-(a_zero + shift) * signed.astype(np.int64).sum(0)).astype(np.int32)
        length = row_length(n, low.facts.level)
        kept = parameters(low, id(node), length, start, factor, np.zeros(n, np.float32))
        tile = row_tile(low.facts.level, Words.QUAD)
        tile = replace(tile, store=Store.SCALED, parameters=kept.distance)
        read = packed_rows(low, node.inputs[0], rows, weight.shape[0], Words.QUAD)
        sizes = product_groups(n, rows, low.facts.level, words=Words.QUAD)
        weights = packed_quads(low, node, signed, sizes)
        wide = low.recorder.new(f"{node.name} scaled", FLOAT32, low.facts.shape(out))
        each = 2.0 * weight.size
        emit_product(low, node, read, (weights, kept.buffer), None, wide, tile, (), each, sizes)
        keep(low, out, _rounded(low, node, wide, y_zero))
        return
    if has_quads(low):
        _lower_uncentred_bytes(low, node, weight, (a_zero, b_zero, y_zero), factor)
        return
    centred = weight.astype(np.int32) - b_zero
    if fits_shorts(centred.T, np.zeros(n)):
        # Rounded from floats: a product is scaled in float32, and so it is with quads.
        short = rows_of_shorts(low, node.inputs[0], weight.shape[0], a_zero)
        wide = low.recorder.new(f"{node.name} scaled", FLOAT32, low.facts.shape(out))
        after = Scaled(out, factor, np.zeros(n, np.float32), ())
        emit_short_rows(low, node, centred, short, after, wide)
        keep(low, out, _rounded(low, node, wide, y_zero))
        return
    source = low.forms.contiguous(node.inputs[0])
    sums = low.recorder.new(f"{node.name} sums", np.dtype(np.int32), (rows, n))
    packed = pack_rows(low, node, source, rows, weight.shape[0])
    emit_int8_product(
        low, node, packed, rows, weight, (lambda _: str(a_zero), b_zero), sums,
        shifted=source.dtype == np.int8,
    )  # fmt: skip
    target = low.forms.result(out)
    requantize(low, node, sums, target, factor, None, y_zero, 1)
    low.forms[out] = target


def _rounded(low: Lowering, node: ir.Node, wide: Tensor, zero: int) -> Lazy:
    """Return a node's result: scaled sums, rounded to bytes around a zero point."""
    out = node.outputs[0]
    dtype = low.facts.dtype(out)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    text = f"v_quantize({{0}}, {{1}}, {least}.f, {most}.f)"
    result = Apply(text, (Leaf(wide), Constant(float(zero), FLOAT32)), dtype)
    return Lazy(result, dtype, low.facts.shape(out), False, (node,))


RULES: dict[str, Rule] = {
    "MatMulInteger": lower_matmul_integer,
    "QLinearMatMul": lower_qlinear_matmul,
}


def pack_quads(weight: Array, sizes: Sequence[int], level: Level) -> Iterable[Array]:
    """Return a signed right side ``(k, n)`` of bytes in the order in which tiles read it."""
    words = quad_weights(weight.T[:, :, None, None], level)
    return pack_weights(words, sizes, level, level.lanes, Words.QUAD)
