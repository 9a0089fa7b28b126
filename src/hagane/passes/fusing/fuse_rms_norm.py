"""Recognise root-mean-square normalisation as exporters write it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    add_initializer,
    attributes_of,
    constant,
    has_dtype,
    name_of,
    only_reader,
    other_input,
    producer,
    scalar,
    shape_of,
    substitute,
    type_of,
)

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def fuse_rms_norm(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace ``x / √(mean(x²) + ε) · scale`` by RMSNormalization; return where.

    Means are over the last axis (Zhang and Sennrich, 2019). Recognised are ``Pow 2`` and ``x · x``;
    ``x / √v``, ``x · (1 / √v)`` by Div or Reciprocal, and ``x · v^-½``; a scale of one row on
    either side, constant or computed (``1 + w``); none at all, which becomes a scale of ones; and
    float16 or bfloat16 that is cast to float32 for the normalisation and back for the scale.

    Nothing changes where the mean is over other axes or loses its axis, ε is no positive constant,
    the arithmetic is not float32, or the length of the last axis is not known. A factor of another
    shape stays a product of its own.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.op_type not in ("Mul", "Div"):
            continue
        found = _normalized(node, types)
        if found is not None:
            end, inputs, epsilon = _scaled(graph, node, *found, types)
            changed.append(name_of(end))
            substitute(graph, types, end, "RMSNormalization", inputs, axis=-1, epsilon=epsilon)
    return changed


def _normalized(node: ir.Node, types: GraphTypes) -> tuple[ir.Value, float] | None:
    """Return ``x`` and ε if a node gives ``x / √(mean(x²) + ε)`` of known length."""
    left, right = node.inputs
    pairs = [(left, right)] if node.op_type == "Div" else [(left, right), (right, left)]
    for x, root in pairs:
        squares = _under_root(root, types, inverse=node.op_type == "Mul")
        add = producer(squares, "Add")
        shape = shape_of(x, types)
        if x is None or add is None or not shape or not isinstance(shape[-1], int):
            continue
        if not has_dtype(x, types, ir.DataType.FLOAT):
            continue
        for mean_value in add.inputs:
            mean = producer(mean_value, "ReduceMean")
            if mean is None or mean_value is None:
                continue
            epsilon = scalar(other_input(add, mean_value), types)
            rank = shape_of(other_input(add, mean_value), types)
            if epsilon is None or epsilon <= 0 or rank is None or len(rank) > len(shape):
                continue
            if _is_over_last(mean, len(shape), types) and _is_square(mean.inputs[0], x, types):
                return x, epsilon
    return None


def _under_root(value: ir.Value | None, types: GraphTypes, *, inverse: bool) -> ir.Value | None:
    """Return ``v`` of ``√v``, or of ``1 / √v``."""
    power = producer(value, "Pow")
    if power is not None and scalar(power.inputs[1], types) == (-0.5 if inverse else 0.5):
        return power.inputs[0]
    if inverse:
        node = producer(value, "Reciprocal")
        quotient = producer(value, "Div")
        if quotient is not None and scalar(quotient.inputs[0], types) == 1:
            value = quotient.inputs[1]
        elif node is not None:
            value = node.inputs[0]
        else:
            return None
    root = producer(value, "Sqrt")
    return None if root is None else root.inputs[0]


def _is_over_last(mean: ir.Node, rank: int, types: GraphTypes) -> bool:
    axes = constant(mean.inputs[1] if len(mean.inputs) > 1 else None, types)
    if axes is None or not attributes_of(mean)["keepdims"]:
        return False
    return [int(axis) % rank for axis in axes.reshape(-1)] == [rank - 1]


def _is_square(value: ir.Value | None, of: ir.Value, types: GraphTypes) -> bool:
    power = producer(value, "Pow")
    if power is not None:
        return power.inputs[0] is of and scalar(power.inputs[1], types) == 2
    product = producer(value, "Mul")
    return product is not None and all(factor is of for factor in product.inputs)


def _scaled(
    graph: ir.Graph, node: ir.Node, x: ir.Value, epsilon: float, types: GraphTypes
) -> tuple[ir.Node, list[ir.Value], float]:
    """Return the node that RMSNormalization takes the place of, and its inputs."""
    shape = shape_of(x, types)
    assert shape is not None
    length = shape[-1]
    end, scale, source = node, None, x
    narrow = _cast_back(node, x, types)
    for core, inner in ((narrow, _cast_from(x)), (node, x)):
        product = None if core is None else only_reader(core.outputs[0], "Mul")
        if product is None or core is None or inner is None:
            continue
        factor = other_input(product, core.outputs[0])
        found = type_of(factor, types)
        whole = shape_of(product.outputs[0], types) == shape
        if found is not None and whole and found.shape == (length,):
            end, scale, source = product, factor, inner
            break
    if scale is None:
        assert isinstance(length, int)
        scale = add_initializer(graph, "ones", np.ones(length, np.float32))
    return end, [source, scale], epsilon


def _cast_from(x: ir.Value) -> ir.Value | None:
    cast = producer(x, "Cast")
    return None if cast is None else cast.inputs[0]


def _cast_back(node: ir.Node, x: ir.Value, types: GraphTypes) -> ir.Node | None:
    """Return the Cast that alone reads a node, to the narrow type that ``x`` was cast from."""
    cast = only_reader(node.outputs[0], "Cast")
    before = type_of(_cast_from(x), types)
    if cast is None or before is None or before.dtype not in _NARROW:
        return None
    return cast if has_dtype(cast.outputs[0], types, before.dtype) else None
