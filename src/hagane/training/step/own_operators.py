"""Operators of hagane's own in the place of several of ONNX, which steps of training have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import interpreting, op
from hagane.ops.elementwise.selected import SELECT
from hagane.ops.inference import GraphTypes
from hagane.ops.normalization.trained import TRAINING
from hagane.ops.normalization.trained_rows import ROWS
from hagane.ops.own_schemas import DOMAIN
from hagane.passes.edit import (
    attributes_of,
    constant,
    has_dtype,
    is_read_once,
    nodes_before,
    only_reader,
    other_input,
    producer,
    put_in_place,
    readers,
    replace_value,
    scalar,
    shape_of,
)
from hagane.passes.removing.merge_common import merge_common
from hagane.passes.removing.remove_dead import remove_dead

# Ranks of images in blocks of channels, for which there are kernels.
_RANKS = (3, 4)


def join_batch_norms(graph: ir.Graph, types: GraphTypes) -> None:
    """Let images be normalised by statistics of the batch in one operator, ``BatchNormTraining``.

    Its statistics, which running ones follow, take the place of those in the graph. Normalisations
    of other types than float32 stay as they are.
    """
    merge_common(graph, types)
    found = False
    for node in list(graph):
        if node.graph is graph and node.op_type == "ReduceMean" and node.domain == "":
            found |= _join_batch_norm(graph, types, node)
    if found:
        graph.sort()
        remove_dead(graph, types)


def _join_batch_norm(graph: ir.Graph, types: GraphTypes, variance: ir.Node) -> bool:
    squares = producer(variance.inputs[0], "Mul")
    centred = None if squares is None else producer(squares.inputs[0], "Sub")
    if squares is None or centred is None or squares.inputs[0] is not squares.inputs[1]:
        return False
    x, mean = centred.inputs[0], producer(centred.inputs[1], "ReduceMean")
    shape = shape_of(x, types)
    if mean is None or mean.inputs[0] is not x or shape is None or len(shape) not in _RANKS:
        return False
    others = [axis for axis in range(len(shape)) if axis != 1]
    if not has_dtype(x, types, ir.DataType.FLOAT) or not isinstance(shape[1], int):
        return False
    if any(_axes(node, types, len(shape)) != others for node in (mean, variance)):
        return False
    for epsilon, inverse in _inverses(variance.outputs[0], types):
        for last, scale, bias in _normalised(inverse, centred.outputs[0], int(shape[1]), types):
            one_each = [np.full(shape[1], number, np.float32) for number in (1, 0)]
            with interpreting(nodes_before(graph, types, last, last.name or "")):
                parameters = [
                    other if given is None else op("Reshape", given, [-1])
                    for given, other in zip((scale, bias), one_each, strict=True)
                ]
                y, *kept = op(TRAINING, x, *parameters, epsilon=epsilon, domain=DOMAIN, outputs=3)
                moments = [op("Unsqueeze", value, others) for value in kept]
            replace_value(graph, types, last.outputs[0], y)
            for old, new in zip((mean, variance), moments, strict=True):
                replace_value(graph, types, old.outputs[0], new)
            return True
    return False


def _axes(node: ir.Node, types: GraphTypes, rank: int) -> list[int] | None:
    """Return the axes of a reduction that keeps them with size 1."""
    axes = constant(node.inputs[1], types) if len(node.inputs) > 1 else None
    if axes is None or not attributes_of(node)["keepdims"]:
        return None
    return sorted(int(axis) % rank for axis in axes.reshape(-1))


def _inverses(variance: ir.Value, types: GraphTypes) -> Iterator[tuple[float, ir.Value]]:
    """Yield the inverse deviations that are made of a variance, with the addend."""
    for total in readers(variance, "Add"):
        epsilon = scalar(other_input(total, variance), types)
        root = only_reader(total.outputs[0], "Sqrt")
        found = None if root is None else only_reader(root.outputs[0], "Reciprocal")
        if epsilon is not None and found is not None:
            yield epsilon, found.outputs[0]


def _normalised(
    inverse: ir.Value, centred: ir.Value, channels: int, types: GraphTypes
) -> Iterator[tuple[ir.Node, ir.Value | None, ir.Value | None]]:
    """Yield the last node of each normalisation, with its scale and its bias."""
    for product in readers(inverse, "Mul"):
        other = other_input(product, inverse)
        scale, last = None, product
        if other is not centred:
            if not _is_per_channel(other, channels, types):
                continue
            whole = only_reader(product.outputs[0], "Mul")
            if whole is None or other_input(whole, product.outputs[0]) is not centred:
                continue
            scale, last = other, whole
        elif (scaled := only_reader(product.outputs[0], "Mul")) is not None:
            factor = other_input(scaled, product.outputs[0])
            if _is_per_channel(factor, channels, types):
                scale, last = factor, scaled
        moved = only_reader(last.outputs[0], "Add")
        bias = None if moved is None else other_input(moved, last.outputs[0])
        if moved is not None and _is_per_channel(bias, channels, types):
            yield moved, scale, bias
        else:
            yield last, scale, None


def _is_per_channel(value: ir.Value | None, channels: int, types: GraphTypes) -> bool:
    """Whether a value is one number a channel, which lie along the axis of channels."""
    shape = shape_of(value, types)
    if shape is None or len(shape) < 2:
        return False
    ones = [1] * (len(shape) - 1)
    return list(shape) in ([channels, *ones], [1, channels, *ones[1:]])


def own_layer_norms(graph: ir.Graph, types: GraphTypes) -> None:
    """Let rows of float32 be normalised by the operator whose gradients take one pass over them."""
    for node in list(graph):
        if node.op_type != "LayerNormalization" or node.domain != "":
            continue
        x, *parameters = (value for value in node.inputs if value is not None)
        if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
            continue
        shape, given = shape_of(x, types), attributes_of(node)
        if shape is None or not all(
            has_dtype(v, types, ir.DataType.FLOAT) for v in (x, *parameters)
        ):
            continue
        axis = int(given["axis"]) % len(shape)
        row = list(shape[axis:])
        fixed = all(isinstance(size, int) for size in row)
        if not fixed or any(list(shape_of(v, types) or ()) != row for v in parameters):
            continue
        made: Any
        with interpreting(nodes_before(graph, types, node, node.name or "")):
            made = op(
                ROWS, x, *parameters, axis=axis, epsilon=float(given["epsilon"]), domain=DOMAIN
            )
        put_in_place(graph, types, node, made)


def divide_taken(graph: ir.Graph, types: GraphTypes) -> None:
    """Let all entries of an axis that are taken one by one be parts of one division.

    Their gradients are then joined, in place of a sum of tensors that are zero but for one entry.
    """
    merge_common(graph, types)
    for value in [value for node in graph for value in node.outputs]:
        for axis in range(len(shape_of(value, types) or ())):
            _divide_taken(graph, types, value, axis)


def _divide_taken(graph: ir.Graph, types: GraphTypes, value: ir.Value, axis: int) -> None:
    shape = shape_of(value, types)
    assert shape is not None
    size, taken = shape[axis], dict[int, ir.Node]()
    for node in readers(value, "Gather"):
        place = constant(node.inputs[1], types)
        own = int(attributes_of(node)["axis"]) % len(shape) == axis
        here = own and node.graph is graph and node.inputs[0] is value
        if here and place is not None and place.ndim == 0 and isinstance(size, int):
            taken[int(place) % size] = node
    if len(taken) < 2 or not isinstance(size, int) or sorted(taken) != list(range(size)):
        return
    order = {node: number for number, node in enumerate(graph)}
    first = min(taken.values(), key=order.__getitem__)
    with interpreting(nodes_before(graph, types, first, first.name or "")):
        parts = op("Split", value, axis=axis, num_outputs=size, outputs=size)
        made = [op("Squeeze", part, [axis]) for part in parts]
    for number, node in taken.items():
        put_in_place(graph, types, node, made[number])


def join_selections(graph: ir.Graph, types: GraphTypes) -> None:
    """Let images be chosen by a comparison in one operator, ``SelectGreater``.

    So gradients of rectifiers are computed where the images lie, in blocks of channels.
    """
    for node in list(graph):
        if node.op_type != "Where" or node.domain != "" or not _is_image(node.outputs[0], types):
            continue
        condition, x, y = node.inputs
        for name, order in (("Greater", (0, 1)), ("Less", (1, 0))):
            compared = producer(condition, name)
            if compared is None or not is_read_once(compared.outputs[0]):
                continue
            a, b = (compared.inputs[i] for i in order)
            if not all(has_dtype(value, types, ir.DataType.FLOAT) for value in (a, b, x, y)):
                continue
            made: Any
            with interpreting(nodes_before(graph, types, node, node.name or "")):
                made = op(SELECT, a, b, x, y, domain=DOMAIN)
            put_in_place(graph, types, node, made)
            break


def _is_image(value: ir.Value, types: GraphTypes) -> bool:
    shape = shape_of(value, types)
    return shape is not None and len(shape) in _RANKS and has_dtype(value, types, ir.DataType.FLOAT)
