"""Make factors, summands and batch normalisation a part of the linear node before them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    add_initializer,
    attributes_of,
    constant,
    is_read_once,
    name_of,
    other_input,
    shape_of,
    substitute,
    type_of,
)


def fold_affine(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Fold scales and shifts of a linear node's channels into its weights; return where.

    Linear are Conv, ConvTranspose of one group, Gemm and MatMul with constant float32 weights and a
    constant bias or none, read by nothing else. Folded are BatchNormalization by fixed statistics
    (``W' = W · s / √(v + ε)``, ``b' = (b − m) · s / √(v + ε) + t``; Ioffe and Szegedy, 2015), after
    Gemm and MatMul if their result has two axes, and Mul, Div, Add and Sub with a constant for
    each channel or for all.

    Nothing changes where a factor or summand is not finite, differs along another axis, or widens
    the result; where a plain factor meets weights that others read, which would be held twice; and
    where there is only a summand after MatMul, which kernels take as it is.
    """
    changed: list[str] = []
    for node in list(graph):
        linear = _linear_before(node)
        if linear is None or linear.graph is not graph:
            continue
        found = _affine(node, linear, types)
        inputs = None if found is None else _folded(graph, node, linear, *found, types)
        if inputs is None:
            continue
        changed.append(name_of(node))
        attributes: dict[str, Any] = dict(linear.attributes)
        op_type = linear.op_type
        if op_type == "Gemm":
            attributes = {**attributes, "alpha": 1.0, "beta": 1.0}
        elif op_type == "MatMul" and len(inputs) == 3:
            op_type = "Gemm"
        substitute(graph, types, node, op_type, inputs, **attributes)
    return changed


def _linear_before(node: ir.Node) -> ir.Node | None:
    """Return the linear node whose result only this one reads, to scale and shift it."""
    if node.domain != "":
        return None
    if node.op_type in ("BatchNormalization", "Sub", "Div"):
        values = node.inputs[:1]
    elif node.op_type in ("Mul", "Add"):
        values = node.inputs
    else:
        return None
    for value in values:
        linear = None if value is None else value.producer()
        if linear is None or value is None:
            continue
        if has_trait(linear, Trait.LINEAR) and is_read_once(value):
            return linear
    return None


def _channel_axis(linear: ir.Node, rank: int) -> int:
    return 1 if linear.op_type in ("Conv", "ConvTranspose") else rank - 1


def _affine(node: ir.Node, linear: ir.Node, types: GraphTypes) -> tuple[Array, Array] | None:
    """Return the factor and the summand of each channel, or of all, in double precision."""
    out = linear.outputs[0]
    shape = shape_of(out, types)
    if shape is None or type_of(node.outputs[0], types) != type_of(out, types):
        return None
    axis = _channel_axis(linear, len(shape))
    one, zero = np.ones(1), np.zeros(1)
    if node.op_type == "BatchNormalization":
        attributes = attributes_of(node)
        arrays = [constant(value, types) for value in node.inputs[1:5]]
        used = any(result.uses() or result.is_graph_output() for result in node.outputs[1:])
        if attributes.get("training_mode") or used or axis != 1:
            return None
        if any(array is None for array in arrays):
            return None
        scale, shift, mean, variance = (np.asarray(array, np.float64) for array in arrays)
        factor = scale / np.sqrt(variance + attributes["epsilon"])
        found = factor, shift - mean * factor
    else:
        other = constant(other_input(node, out), types)
        vector = None if other is None else _along(other, axis, len(shape))
        if vector is None:
            return None
        match node.op_type:
            case "Mul":
                found = vector, zero
            case "Div":
                with np.errstate(divide="ignore"):
                    found = 1 / vector, zero
            case "Add":
                found = one, vector
            case _:
                found = one, -vector
        weights = linear.inputs[1]
        if node.op_type in ("Mul", "Div"):
            if weights is None or not is_read_once(weights):
                return None
        elif linear.op_type == "MatMul":
            return None
    return found if all(np.isfinite(array).all() for array in found) else None


def _along(array: Array, axis: int, rank: int) -> Array | None:
    """Return a constant as a vector along one axis of a result, or of one element."""
    if array.dtype != np.float32 or array.ndim > rank:
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    if any(size != 1 for i, size in enumerate(shape) if i != axis):
        return None
    return array.reshape(-1).astype(np.float64)


def _folded(
    graph: ir.Graph, node: ir.Node, linear: ir.Node, factor: Array, shift: Array, types: GraphTypes
) -> list[ir.Value | None] | None:
    """Return the inputs of a linear node that scales and shifts its result, too."""
    attributes = attributes_of(linear)
    weight = linear.inputs[1]
    bias = linear.inputs[2] if len(linear.inputs) > 2 else None
    if weight is None or weight.const_value is None or weight.is_graph_input():
        return None
    if bias is not None and (bias.const_value is None or bias.is_graph_input()):
        return None
    array = constant(weight, types)
    start = None if bias is None else constant(bias, types)
    if array is None or array.dtype != np.float32 or (array.ndim < 2):
        return None
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    match linear.op_type:
        case "Conv":
            axis = 0
        case "ConvTranspose":
            axis = 1
            if attributes.get("group", 1) != 1:
                return None
        case "Gemm":
            axis = 0 if attributes["transB"] else 1
        case _:
            axis = array.ndim - 1
            if shift.any() and (array.ndim != 2 or _rank(linear.inputs[0], types) != 2):
                return None
    channels = array.shape[axis]
    if start is not None and start.size != 1 and start.shape not in ((channels,), (1, channels)):
        return None
    along = [-1 if i == axis else 1 for i in range(array.ndim)]
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.empty(array.shape, np.float32)
        # In double precision, a piece after the other.
        np.multiply(
            array, (factor * alpha).reshape(along), scaled, dtype=np.float64, casting="same_kind"
        )
        before = 0.0 if start is None else beta * start.reshape(-1).astype(np.float64)
        moved = (before * factor + shift).astype(np.float32)
        total = scaled.sum()
    if not np.isfinite(moved).all():
        return None
    # A finite sum has finite summands alone, and takes a quarter of the time.
    if not np.isfinite(total) and not np.isfinite(scaled).all():
        return None
    name = str(linear.outputs[0].name)
    inputs = [linear.inputs[0], weight]
    if (factor != 1).any() or alpha != 1:
        inputs[1] = add_initializer(graph, f"{name} weights", scaled)
    if bias is not None or shift.any():
        whole = np.broadcast_to(moved, (channels,))
        inputs.append(add_initializer(graph, f"{name} bias", whole))
    return inputs


def _rank(value: ir.Value | None, types: GraphTypes) -> int | None:
    shape = shape_of(value, types)
    return None if shape is None else len(shape)
