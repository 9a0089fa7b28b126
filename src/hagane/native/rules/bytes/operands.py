"""Common parts of products of bytes: constant weights, scales, zero points; sums brought back."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.machine import multiplies_bytes
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing, as_is, padded_rows
from hagane.native.kernels.tensor import Pads, Tensor
from hagane.native.layouts.quads import Quads, to_quads
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.window import covers
from hagane.native.tiles.tile import Parameters
from hagane.ops.definition import Array
from hagane.symbolic import Dim

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
# The largest result before rounding; larger ones are as far outside of a byte.
MOST = 1.0e6

# 32 bits hold a sum of so many products of two bytes less their zero points, each of 255 * 255 at most.
INT32_TERMS = 32768


def has_quads(low: Lowering) -> bool:
    """Whether this processor multiplies quads of bytes at the level that is generated for."""
    return multiplies_bytes(low.facts.level)


def one_for_all(low: Lowering, value: ir.Value | None, default: int = 0) -> int:
    """Return a constant zero point, which has to be one for all."""
    if value is None:
        return default
    array = low.facts.constant(value)
    if array is None or len(set(array.reshape(-1).tolist())) != 1:
        raise NotNative("a zero point that differs, or is known only at run time")
    return int(array.reshape(-1)[0])


def byte_weight(low: Lowering, value: ir.Value | None) -> Array:
    """Return constant weights of bytes."""
    array = low.facts.constant(value)
    if array is None or array.dtype not in _BYTES:
        raise NotNative("weights that are not constant bytes")
    return array


def scale_and_zero(low: Lowering, node: ir.Node, first: int) -> tuple[Array, int]:
    """Return a constant scale and its constant zero point."""
    scale = low.facts.constant(node.inputs[first])
    if scale is None:
        raise NotNative("a scale known only at run time")
    return scale.reshape(-1), one_for_all(low, node.inputs[first + 1])


def signed_weight(weight: Array, zero: int) -> Array | None:
    """Return weights as int8 around a zero point of nought, or None if they have another."""
    if weight.dtype == np.uint8:
        return (weight.astype(np.int16) - 128).astype(np.int8) if zero == 128 else None
    return weight if zero == 0 else None


def image_of_quads(low: Lowering, value: ir.Value | None, zero: int, pads: Pads) -> Quads:
    """Return an image in quads whose border holds the zero point."""
    assert value is not None
    found = low.forms.quads.get(value)
    shift = 128 if low.facts.dtype(value) == np.int8 else 0
    fits = found is not None and found.zero == zero + shift
    if found is None or not fits or not covers(found.pads, pads):
        source, found = low.forms.plain(value), low.forms.new_quads(value, zero)
        to_quads(low.recorder, str(value.name), source, found)
        low.forms.quads.setdefault(value, found)
    return found


def bounded_bytes(
    low: Lowering, value: ir.Value
) -> tuple[ir.Value, tuple[int, int | None], tuple[ir.Node, ...]]:
    """Return bytes after a maximum and a minimum with constants, and these bounds.

    They stand for a rectification or for a clip. Without a minimum the upper bound is None.
    """
    least, most = int(np.iinfo(low.facts.dtype(value)).min), None
    nodes: list[ir.Node] = []
    for operator in ("Max", "Min"):
        node = low.only_use(value)
        if node is None or node.op_type != operator or len(node.inputs) != 2:
            continue
        (other,) = [v for v in node.inputs if v is not value] or [None]
        array = low.facts.constant(other)
        if array is None or array.size != 1:
            continue
        bound = int(array.reshape(-1)[0])
        if operator == "Max":
            least = max(least, bound)
        elif bound < least:
            continue
        else:
            most = bound
        low.done.add(node)
        nodes.append(node)
        value = node.outputs[0]
    return value, (least, most), tuple(nodes)


def may_overflow(weight: Array, start: Array, factor: Array) -> bool:
    """Whether a sum of bytes times signed weights, scaled, may be no int32.

    Args:
        weight: ``(out, in, rows, columns)``.
        start: The starts of sums, one number a channel.
        factor: The same of their factor.
    """
    signed = weight.astype(np.int64)
    most = start + 255 * np.maximum(signed, 0).sum((1, 2, 3))
    least = start + 255 * np.minimum(signed, 0).sum((1, 2, 3))
    far = np.maximum(np.abs(most), np.abs(least)) * np.abs(factor.astype(np.float64))
    return not float(far.max(initial=0)) < 2.0**30


def parameters(low: Lowering, key: object, length: int, *rows: Array) -> Parameters:
    """Return the buffer of some rows of 32-bit numbers, each filled up with zeros."""
    words = tuple(np.ascontiguousarray(row).view(np.uint32) for row in rows)
    packing = Packing(padded_rows, (words, length, "uint32"))
    buffer = low.recorder.weight(("parameters", key), packing, len(rows) * length * 4)
    return Parameters(buffer, length * 4)


def requantize(
    low: Lowering,
    node: ir.Node,
    sums: Tensor,
    target: Tensor,
    factor: Array,
    bias: Array | None,
    zero: int,
    pixels: Dim,
) -> None:
    """Bring sums (images * pixels, maps) to bytes (images, maps, pixels)."""
    rows, maps = sums.shape
    assert isinstance(maps, int)
    spread = np.broadcast_to(factor, (maps,)).astype(np.float32)
    added = np.zeros(maps, np.int32) if bias is None else bias.astype(np.int32)
    body = Body()
    s, d = body.pointer(sums), body.pointer(target, written=True)
    f = body.raw(
        low.recorder.weight(("factor", id(node)), Packing(as_is, (spread,)), maps * 4),
        ctype="float",
    )
    b = body.raw(
        low.recorder.weight(("added", id(node)), Packing(as_is, (added,)), maps * 4),
        ctype="int32_t",
    )
    least, most = np.iinfo(target.dtype).min, np.iinfo(target.dtype).max
    size, plane = body.size(rows), body.size(pixels)
    body.add(
        f"int64_t r0 = q * 64, r1 = hg_min({size}, r0 + 64);",
        f"for (int64_t r = r0, end; r < r1; r = end) {{ int64_t image = r / {plane};",
        f"end = hg_min(r1, (image + 1) * {plane}); int64_t m = end - r;",
        f"for (int64_t j = 0; j < {maps}; j++) {{ float factor = {f}[j]; int32_t own = {b}[j];",
        f"const int32_t *x = {s} + r * {maps} + j;",
        f"__typeof__({d}) o = {d} + (image * {maps} + j) * {plane} + r - image * {plane};",
        "for (int64_t i = 0; i < m; i++) {",
        f"o[i] = hg_saturate((float)(x[i * {maps}] + own) * factor, {zero}, {least}, {most});",
        "} } }",
    )
    low.recorder.emit(
        f"requantize '{node.name}'", body, (rows + 63) // 64, work=work_of(rows, float(maps))
    )
