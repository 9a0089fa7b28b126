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


def _lower_quads(low: Lowering, node: ir.Node, weight: Array, zero: ir.Value | None) -> None:
    """Lower a product of quads; a cast, a scale and a row that follow come with it."""
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
        value, scale, row, followers = _scaled(low, out, n)
        if scale is None:
            kept = parameters(low, id(node), length, start)
        else:
            kept = parameters(low, id(node), length, start, scale, row)
            tile = replace(tile, store=Store.SCALED, parameters=kept.distance)
        out, first = value, kept.buffer
    else:
        assert zero is not None
        first = _starts(low, node, low.forms.contiguous(zero), sums, shift, length)
    target = low.forms.result(out)
    read = packed_rows(low, a, rows, k, Words.QUAD)
    sizes = product_groups(n, rows, low.facts.level, words=Words.QUAD)
    weights = packed_quads(low, node, weight, sizes)
    low.forms[out] = target
    emit_product(
        low, node, read, (weights, first), None, target, tile, followers, 2.0 * n * k, sizes
    )


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


def _scaled(
    low: Lowering, value: ir.Value, n: int
) -> tuple[ir.Value, Array | None, Array, tuple[ir.Node, ...]]:
    """Return a product after a cast, a constant scale and a constant row, and these."""
    none = np.zeros(n, np.float32)
    cast = low.only_use(value)
    if cast is None or cast.op_type != "Cast" or low.facts.dtype(cast.outputs[0]) != FLOAT32:
        return value, None, none, ()
    times = low.only_use(cast.outputs[0])
    scale = None if times is None or times.op_type != "Mul" else _other(low, times, cast, n)
    if times is None or scale is None:
        return value, None, none, ()
    low.done.add(cast, times)
    plus = low.only_use(times.outputs[0])
    row = None if plus is None or plus.op_type != "Add" else _other(low, plus, times, n)
    if plus is None or row is None:
        return times.outputs[0], scale, none, (cast, times)
    low.done.add(plus)
    return plus.outputs[0], scale, row, (cast, times, plus)


def _other(low: Lowering, node: ir.Node, before: ir.Node, n: int) -> Array | None:
    """Return the constant row that a node combines with a product, one number a column."""
    (other,) = [v for v in node.inputs if v is not before.outputs[0]] or [None]
    array = low.facts.constant(other)
    if array is None or array.dtype != np.float32 or array.size not in (1, n):
        return None
    if array.size == n and array.ndim and array.shape[-1] != n:
        return None
    if array.ndim > len(low.facts.shape(before.outputs[0])):
        return None
    return np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (n,)))


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
    factor = a_scale.astype(np.float64) * b_scale.astype(np.float64)
    signed = signed_weight(weight, b_zero)
    rows = product(low.facts.shape(node.inputs[0])[:-1])
    if has_quads(low) and signed is not None:
        shift = 128 if low.facts.dtype(node.inputs[0]) == np.int8 else 0
        start = (-(a_zero + shift) * signed.astype(np.int64).sum(0)).astype(np.int32)
        scale = np.broadcast_to(factor / np.float64(y_scale[0]), (n,)).astype(np.float32)
        length = row_length(n, low.facts.level)
        kept = parameters(low, id(node), length, start, scale, np.zeros(n, np.float32))
        tile = row_tile(low.facts.level, Words.QUAD)
        tile = replace(tile, store=Store.SCALED, parameters=kept.distance)
        read = packed_rows(low, node.inputs[0], rows, weight.shape[0], Words.QUAD)
        sizes = product_groups(n, rows, low.facts.level, words=Words.QUAD)
        weights = packed_quads(low, node, signed, sizes)
        wide = low.recorder.new(f"{node.name} scaled", FLOAT32, low.facts.shape(out))
        each = 2.0 * weight.size
        emit_product(low, node, read, (weights, kept.buffer), None, wide, tile, (), each, sizes)
        least, most = np.iinfo(low.facts.dtype(out)).min, np.iinfo(low.facts.dtype(out)).max
        text = f"v_quantize({{0}}, {{1}}, {least}.f, {most}.f)"
        terms = (Leaf(wide), Constant(float(y_zero), FLOAT32))
        result = Apply(text, terms, low.facts.dtype(out))
        keep(low, out, Lazy(result, low.facts.dtype(out), low.facts.shape(out), False, (node,)))
        return
    source = low.forms.contiguous(node.inputs[0])
    sums = low.recorder.new(f"{node.name} sums", np.dtype(np.int32), (rows, n))
    packed = pack_rows(low, node, source, rows, weight.shape[0])
    emit_int8_product(
        low, node, packed, rows, weight, (lambda _: str(a_zero), b_zero), sums,
        shifted=source.dtype == np.int8,
    )  # fmt: skip
    target = low.forms.result(out)
    requantize(low, node, sums, target, factor, None, (float(y_scale[0]), y_zero), 1)
    low.forms[out] = target


RULES: dict[str, Rule] = {
    "MatMulInteger": lower_matmul_integer,
    "QLinearMatMul": lower_qlinear_matmul,
}


def pack_quads(weight: Array, sizes: Sequence[int], level: Level) -> Iterable[Array]:
    """Return a signed right side ``(k, n)`` of bytes in the order in which tiles read it."""
    words = quad_weights(weight.T[:, :, None, None], level)
    return pack_weights(words, sizes, level, level.lanes, Words.QUAD)
