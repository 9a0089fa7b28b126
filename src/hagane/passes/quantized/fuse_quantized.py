"""Recognise 8-bit operators in models that write them as dequantise, compute, quantise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.passes.edit import (
    building,
    constant,
    given,
    name_of,
    producer,
    remove_unread,
    replace_value,
)

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


@dataclass(frozen=True, slots=True)
class _Bytes:
    """A dequantised value: its bytes, their constant scale and zero point."""

    value: ir.Value
    scale: Array
    zero: Array
    axis: int


def fuse_quantized(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace operators between DequantizeLinear and QuantizeLinear by 8-bit ones.

    * ``Quantize(Relu?(Conv(Dequantize(x), Dequantize(w), b)))`` becomes QLinearConv, with Max for
      a Relu, Max and Min for a Clip. ``x`` has one scale, ``w`` one for all or one a map; ``b`` is
      a constant. A grouped convolution stays as it is, unless each channel has a filter of its own.
    * Without a Quantize behind it, such a Conv becomes ConvInteger, a cast, and a product with the
      scales; ``b`` is added as it is.
    * ``MatMul(Dequantize(x), Dequantize(w))`` and such a Gemm become MatMulInteger, a cast, and a
      product with the scales; ``w`` has one scale for all or one a column.

    Scales and zero points are constants. Rounding may differ where a result lies in the middle of
    two bytes, because sums are of whole numbers.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type == "Conv":
            done = _convolution(graph, node, types)
        elif node.op_type in ("MatMul", "Gemm"):
            done = _product(graph, node, types)
        else:
            continue
        changed += [name_of(node)] * done
    return changed


def _dequantized(value: ir.Value | None, types: GraphTypes) -> _Bytes | None:
    node = producer(value, "DequantizeLinear")
    if node is None or node.inputs[0] is None:
        return None
    attributes = known_attributes(node, schema_of(node).defaults)
    scale = constant(node.inputs[1], types)
    if scale is None or scale.dtype != np.float32 or attributes.get("block_size"):
        return None
    found = types.types.get(node.inputs[0])
    kind = getattr(found, "dtype", None)
    if kind not in (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32):
        return None
    zero_value = node.inputs[2] if len(node.inputs) > 2 else None
    zero = constant(zero_value, types)
    if zero is None:
        if zero_value is not None:
            return None
        zero = np.zeros(scale.shape, kind.numpy())
    return _Bytes(node.inputs[0], scale, zero, int(attributes["axis"]))


def _single_use(value: ir.Value, graph: ir.Graph) -> ir.Node | None:
    uses = list(value.uses())
    if len(uses) != 1 or any(output is value for output in graph.outputs):
        return None
    return uses[0].node


def _convolution(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> int:
    x, weight = _dequantized(node.inputs[0], types), _dequantized(node.inputs[1], types)
    attributes = known_attributes(node, schema_of(node).defaults)
    if x is None or weight is None:
        return 0
    content = constant(weight.value, types)
    if x.scale.size != 1 or content is None or content.dtype not in _BYTES:
        return 0
    groups = int(attributes["group"])
    depthwise = content.shape[:2] == (groups, 1) and content.ndim in (3, 4)
    if not depthwise and (groups != 1 or content.ndim != 4):
        return 0
    if weight.scale.size != 1 and weight.axis % content.ndim != 0:
        return 0
    bounds = _Bounds()
    follower = _single_use(node.outputs[0], graph)
    if follower is not None and (found := _bounds(follower, types)) is not None:
        bounds = found
        follower = _single_use(follower.outputs[0], graph)
    if follower is None or follower.op_type != "QuantizeLinear":
        return _float_convolution(graph, node, x, weight, types)
    y = _quantizer(follower, types)
    bias = _bias(node, x, weight, len(content), types)
    if y is None or bias is None:
        return 0
    y_scale, y_zero = y
    along = (-1,) if weight.scale.size > 1 else ()
    name = node.name or str(node.outputs[0].name)
    with building(graph, types, follower, name):
        made = op(
            "QLinearConv",
            x.value,
            x.scale.reshape(()),
            x.zero.reshape(-1)[0],
            weight.value,
            weight.scale.reshape(along),
            weight.zero.reshape(along),
            y_scale,
            y_zero,
            bias if bias.size else None,
            **given(node),
        )
        made.producer().name = name
        info = np.iinfo(y_zero.dtype)
        for operator, bound in (("Max", bounds.low), ("Min", bounds.high)):
            if bound is None:
                continue
            # A quantised bound bounds quantised values: rounding keeps the order of numbers.
            whole = np.rint(np.float32(bound) / y_scale) + np.float32(y_zero)
            least = np.clip(whole, info.min, info.max).astype(y_zero.dtype)
            if int(least) != (info.min if operator == "Max" else info.max):
                made = op(operator, made, least)
                made.producer().name = bounds.name
    _replace(graph, follower, made, types)
    return 1


def _float_convolution(
    graph: ir.Graph, node: ir.Node, x: _Bytes, weight: _Bytes, types: GraphTypes
) -> int:
    """Replace a convolution of bytes whose result stays a float."""
    content = constant(weight.value, types)
    kind = getattr(types.types.get(x.value), "dtype", None)
    if content is None or kind not in (ir.DataType.INT8, ir.DataType.UINT8):
        return 0
    if np.any(weight.zero != weight.zero.reshape(-1)[0]):
        return 0
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    behind = (1,) * (content.ndim - 2)
    row = None if bias is None else _float_bias(bias, types)
    if bias is not None and row is None:
        return 0
    name = node.name or str(node.outputs[0].name)
    scales = x.scale.astype(np.float32).reshape(-1) * weight.scale.reshape(-1)
    with building(graph, types, node, name):
        total = op(
            "ConvInteger",
            x.value,
            weight.value,
            x.zero.reshape(-1)[0],
            weight.zero.reshape(-1)[0],
            **given(node),
        )
        total.producer().name = name
        scale = scales.reshape(-1, *behind) if scales.size > 1 else scales.reshape(())
        made = op("Mul", op("Cast", total, to=ir.DataType.FLOAT), scale)
        if row is not None:
            made = op("Add", made, row.astype(np.float32).reshape(-1, *behind))
    _replace(graph, node, made, types)
    return 1


def _float_bias(value: ir.Value, types: GraphTypes) -> Array | None:
    """Return the content of a bias that is constant, or dequantised from a constant."""
    bias = constant(value, types)
    if bias is not None:
        return bias
    kept = _dequantized(value, types)
    content = None if kept is None else constant(kept.value, types)
    if kept is None or content is None:
        return None
    found: Array = (content.astype(np.float64) - kept.zero.astype(np.float64)) * kept.scale.astype(
        np.float64
    )
    return found


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of a rectification or a clip, and its name."""

    low: float | None = None
    high: float | None = None
    name: str | None = None


def _bounds(node: ir.Node, types: GraphTypes) -> _Bounds | None:
    """Return the constant bounds of an activation; None if it is another operator."""
    if node.op_type == "Relu":
        return _Bounds(0.0, None, node.name)
    if node.op_type != "Clip":
        return None
    found: list[float | None] = [None, None]
    for i, value in enumerate(node.inputs[1:3]):
        if value is None:
            continue
        array = constant(value, types)
        if array is None or array.size != 1 or np.isnan(array).any():
            return None
        found[i] = float(array.reshape(-1)[0])
    return _Bounds(found[0], found[1], node.name)


def _quantizer(node: ir.Node, types: GraphTypes) -> tuple[Array, Array] | None:
    """Return the one scale and zero point of a node that makes bytes."""
    scale = constant(node.inputs[1], types)
    zero_value = node.inputs[2] if len(node.inputs) > 2 else None
    zero = constant(zero_value, types)
    if zero_value is None and known_attributes(node, schema_of(node).defaults).get(
        "output_dtype", 0
    ) in (0, int(ir.DataType.UINT8)):
        zero = np.zeros((), np.uint8)
    if scale is None or zero is None or scale.size != 1 or zero.dtype not in _BYTES:
        return None
    if scale.dtype != np.float32:
        return None
    return scale.reshape(()), zero.reshape(())


def _bias(node: ir.Node, x: _Bytes, weight: _Bytes, maps: int, types: GraphTypes) -> Array | None:
    """Return biases in units of the product of the scales; none if there is no bias."""
    value = node.inputs[2] if len(node.inputs) > 2 else None
    if value is None:
        return np.zeros(0, np.int32)
    unit = np.broadcast_to(
        x.scale.astype(np.float64).reshape(-1) * weight.scale.astype(np.float64).reshape(-1),
        (maps,),
    )
    bias = _float_bias(value, types)
    if bias is None:
        return None
    units = np.rint(bias.astype(np.float64).reshape(-1) / unit)
    if not np.all(np.abs(units) < 2.0**30):
        return None
    return units.astype(np.int32)


def _product(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> int:
    x, weight = _dequantized(node.inputs[0], types), _dequantized(node.inputs[1], types)
    if x is None or weight is None or x.scale.size != 1:
        return 0
    content = constant(weight.value, types)
    if content is None or content.dtype not in _BYTES or content.ndim != 2:
        return 0
    kind = getattr(types.types.get(x.value), "dtype", None)
    if kind not in (ir.DataType.INT8, ir.DataType.UINT8):
        return 0
    transposed = False
    row: ir.Value | None = None
    if node.op_type == "Gemm":
        attributes = known_attributes(node, schema_of(node).defaults)
        if attributes["transA"] or attributes["alpha"] != 1 or attributes["beta"] != 1:
            return 0
        transposed = bool(attributes["transB"])
        row = node.inputs[2] if len(node.inputs) > 2 else None
    if weight.scale.size != 1 and weight.axis % 2 != (0 if transposed else 1):
        return 0
    if np.any(weight.zero != weight.zero.reshape(-1)[0]):
        return 0
    name = node.name or str(node.outputs[0].name)
    scales = x.scale.astype(np.float32).reshape(-1) * weight.scale.reshape(-1)
    with building(graph, types, node, name):
        total = op(
            "MatMulInteger",
            x.value,
            np.asarray(content.T, order="C") if transposed else weight.value,
            x.zero.reshape(-1)[0],
            weight.zero.reshape(-1)[0],
        )
        total.producer().name = name
        scale = scales if scales.size > 1 else scales.reshape(())
        made = op("Mul", op("Cast", total, to=ir.DataType.FLOAT), scale)
        if row is not None:
            made = op("Add", made, row)
    _replace(graph, node, made, types)
    return 1


def _replace(graph: ir.Graph, last: ir.Node, made: ir.Value, types: GraphTypes) -> None:
    """Let the readers of a node's output read a value made for it."""
    old = last.outputs[0]
    if old in types.types:
        types.types[made] = types.types[old]
    replace_value(graph, types, old, made)
    remove_unread(graph, last)
