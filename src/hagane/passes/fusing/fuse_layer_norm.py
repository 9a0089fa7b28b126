"""Recognise layer normalisation as exporters write it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.context import known_attributes
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.passes.edit import constant, name_of, other_input, producer, scalar, substitute


def fuse_layer_norm(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace ``(x − mean) / √(mean((x − mean)²) + ε) · scale + shift`` by LayerNormalization.

    Means are over the last axis; the square is ``Pow 2`` or a product with itself; scale and shift
    are constant rows of its length (Ba, Kiros and Hinton, 2016).
    """
    changed: list[str] = []
    for add in list(graph):
        if add.op_type != "Add" or add.domain != "" or len(add.inputs) != 2:
            continue
        for product_value in add.inputs:
            match = _match(add, product_value, types)
            if match is None:
                continue
            x, scale, shift, epsilon = match
            changed.append(name_of(add))
            inputs = [x, scale, shift]
            substitute(graph, types, add, "LayerNormalization", inputs, axis=-1, epsilon=epsilon)
            break
    return changed


def _match(
    add: ir.Node, product_value: ir.Value | None, types: GraphTypes
) -> tuple[ir.Value, ir.Value, ir.Value, float] | None:
    product = producer(product_value, "Mul")
    if product is None or product_value is None:
        return None
    shift = other_input(add, product_value)
    for quotient_value in product.inputs:
        quotient = producer(quotient_value, "Div")
        if quotient is None or quotient_value is None:
            continue
        scale = other_input(product, quotient_value)
        centred = producer(quotient.inputs[0], "Sub")
        root = producer(quotient.inputs[1], "Sqrt")
        variance = None if root is None else producer(root.inputs[0], "Add")
        if centred is None or variance is None or scale is None or shift is None:
            continue
        x = centred.inputs[0]
        mean = producer(centred.inputs[1], "ReduceMean")
        if x is None or mean is None or mean.inputs[0] is not x or not _last(mean, x, types):
            continue
        for square_mean_value in variance.inputs:
            square_mean = producer(square_mean_value, "ReduceMean")
            if square_mean is None or square_mean_value is None:
                continue
            epsilon = scalar(other_input(variance, square_mean_value), types)
            if epsilon is None or not _last(square_mean, x, types):
                continue
            if _is_square(square_mean.inputs[0], centred.outputs[0], types) and _are_rows(
                x, scale, shift, types
            ):
                return x, scale, shift, epsilon
    return None


def _last(mean: ir.Node, x: ir.Value, types: GraphTypes) -> bool:
    """Whether a mean is over the last axis of ``x`` alone, which stays with length one."""
    found = types.types.get(x)
    axes = constant(mean.inputs[1] if len(mean.inputs) > 1 else None, types)
    if not isinstance(found, TensorType) or found.shape is None or axes is None:
        return False
    keeps = known_attributes(mean, schema_of(mean).defaults)["keepdims"]
    return bool(keeps) and [int(axis) % len(found.shape) for axis in axes.reshape(-1)] == [
        len(found.shape) - 1
    ]


def _is_square(value: ir.Value | None, of: ir.Value, types: GraphTypes) -> bool:
    power = producer(value, "Pow")
    if power is not None:
        return power.inputs[0] is of and scalar(power.inputs[1], types) == 2.0
    product = producer(value, "Mul")
    return product is not None and all(factor is of for factor in product.inputs)


def _are_rows(x: ir.Value, scale: ir.Value, shift: ir.Value, types: GraphTypes) -> bool:
    found = types.types.get(x)
    if not isinstance(found, TensorType) or found.shape is None:
        return False
    for value in (scale, shift):
        array = constant(value, types)
        if array is None or array.dtype != np.float32 or array.shape != (found.shape[-1],):
            return False
    return True
