"""Recognise rotary position embedding as exporters write it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    has_dtype,
    name_of,
    producer,
    scalar,
    shape_of,
    substitute,
)
from hagane.symbolic import Dim

# Between a table and the angles that it is made of lie a few nodes.
_MOST_STEPS = 12


def fuse_rotary(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace ``x · cos + rotate_half(x) · sin`` by RotaryEmbedding; return where.

    ``x`` is float32 of shape (batch, heads, sequence, size); ``rotate_half`` joins the negated
    second half of the last axis to the first, by Slice or Split (Su et al., "RoFormer", 2021,
    equation 34, with the pairs of GPT-NeoX). ``cos`` and ``sin`` hold each angle twice, once for
    each half: constants are compared; otherwise they have to be a Concat of one value with itself,
    behind nodes that work on elements or leave the last axis alone. They are the same for all heads
    and for all of the batch or each of it.

    Nothing changes where the halves are not known to be equal, a table differs between heads or is
    broadcast along the sequence, or the halves are of another size than half; a part of the head
    that is not rotated is joined to the result as before.
    """
    changed: list[str] = []
    caches: dict[tuple[ir.Value, Dim], ir.Value] = {}
    for node in list(graph):
        if node.op_type != "Add" or node.domain != "" or len(node.inputs) != 2:
            continue
        left, right = node.inputs
        for plain, turned in ((left, right), (right, left)):
            found = _match(plain, turned, types)
            if found is not None and shape_of(node.outputs[0], types) == shape_of(found[0], types):
                x, *tables = found
                changed.append(name_of(node))
                batch = (shape_of(x, types) or (1,))[0]
                for table in tables:
                    if (table, batch) not in caches:
                        with building(graph, types, node, name_of(node)):
                            caches[table, batch] = _cache(x, table, types)
                inputs = [x, *(caches[table, batch] for table in tables)]
                substitute(graph, types, node, "RotaryEmbedding", inputs)
                break
    return changed


def _match(
    plain: ir.Value | None, turned: ir.Value | None, types: GraphTypes
) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    """Return ``x``, ``cos`` and ``sin`` of ``x · cos`` and ``rotate_half(x) · sin``."""
    by_cos, by_sin = producer(plain, "Mul"), producer(turned, "Mul")
    if by_cos is None or by_sin is None:
        return None
    for half, sin in (by_sin.inputs, tuple(reversed(by_sin.inputs))):
        x = _rotated(half, types)
        if x is None or sin is None or x not in by_cos.inputs:
            continue
        cos = next((one for one in by_cos.inputs if one is not x), None)
        if cos is not None and all(_is_table(one, x, types) for one in (cos, sin)):
            return x, cos, sin
    return None


def _rotated(value: ir.Value | None, types: GraphTypes) -> ir.Value | None:
    """Return ``x`` if a value joins the negated second half of its last axis to the first."""
    joined = producer(value, "Concat")
    if joined is None or len(joined.inputs) != 2:
        return None
    negated = producer(joined.inputs[0], "Neg")
    second = None if negated is None else _half(negated.inputs[0], types)
    first = _half(joined.inputs[1], types)
    if first is None or second is None or first[0] is not second[0]:
        return None
    x, shape = first[0], shape_of(first[0], types)
    if shape is None or len(shape) != 4 or not has_dtype(x, types, ir.DataType.FLOAT):
        return None
    size = shape[3]
    if not isinstance(size, int) or size % 2 or attributes_of(joined)["axis"] not in (-1, 3):
        return None
    whole = first[1:] == (0, size // 2) and second[1:] == (size // 2, size)
    return x if whole else None


def _half(value: ir.Value | None, types: GraphTypes) -> tuple[ir.Value, int, int] | None:
    """Return the value that one is a piece of along the last axis, and where it begins and ends."""
    node = None if value is None else value.producer()
    if node is None or node.domain != "" or not node.inputs or node.inputs[0] is None:
        return None
    shape = shape_of(node.inputs[0], types)
    if not shape or not isinstance(shape[-1], int):
        return None
    last = len(shape) - 1
    if node.op_type == "Split":
        if attributes_of(node)["axis"] % len(shape) != last:
            return None
        start = 0
        for out in node.outputs:
            piece = shape_of(out, types)
            if piece is None or not isinstance(piece[-1], int):
                return None
            if out is value:
                return node.inputs[0], start, start + piece[-1]
            start += piece[-1]
    if node.op_type != "Slice" or len(node.inputs) < 4:
        return None
    numbers = [constant(one, types) for one in node.inputs[1:]]
    if any(array is None or array.size != 1 for array in numbers):
        return None
    start, end, axis, *step = (int(array.reshape(-1)[0]) for array in numbers if array is not None)
    if axis % len(shape) != last or step not in ([], [1]):
        return None
    begin, stop, _ = slice(start, end).indices(shape[-1])
    return node.inputs[0], begin, stop


def _is_table(table: ir.Value, x: ir.Value, types: GraphTypes) -> bool:
    """Whether a table has one row a position, the same for all heads, with two equal halves."""
    own, shape = shape_of(table, types), shape_of(x, types)
    if own is None or shape is None or not 2 <= len(own) <= 4:
        return False
    batch, heads, length, size = (1,) * (4 - len(own)) + own
    if batch not in (1, shape[0]) or heads != 1 or (length, size) != shape[2:]:
        return False
    return has_dtype(table, types, ir.DataType.FLOAT) and _has_equal_halves(table, types)


def _has_equal_halves(table: ir.Value | None, types: GraphTypes, steps: int = _MOST_STEPS) -> bool:
    """Whether the last axis of a value is known to hold the same twice."""
    array = constant(table, types)
    if array is not None:
        size = array.shape[-1] if array.ndim else 1
        return size % 2 == 0 and np.array_equal(array[..., : size // 2], array[..., size // 2 :])
    node = None if table is None else table.producer()
    if node is None or node.domain != "" or not steps:
        return False
    source = node.inputs[0] if node.inputs else None
    before, after = shape_of(source, types), shape_of(table, types)
    if before is None or after is None:
        return False
    match node.op_type:
        case "Concat":
            last = attributes_of(node)["axis"] in (-1, len(after) - 1)
            return last and len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]
        case "Identity":
            return _has_equal_halves(source, types, steps - 1)
        case _ if has_trait(node, Trait.ELEMENTWISE):
            tensors = [one for one in node.inputs if scalar(one, types) is None]
            return len(tensors) == 1 and _has_equal_halves(tensors[0], types, steps - 1)
        case "Unsqueeze" | "Squeeze" | "Reshape":
            return after[-1:] == before[-1:] and _has_equal_halves(source, types, steps - 1)
        case "Expand":
            same = bool(before) and before[-1] == after[-1]
            return same and _has_equal_halves(source, types, steps - 1)
        case "Gather":
            rows = attributes_of(node)["axis"] % len(before) != len(before) - 1
            return rows and _has_equal_halves(source, types, steps - 1)
    return False


def _cache(x: ir.Value, table: ir.Value, types: GraphTypes) -> ir.Value:
    """Return the first half of a table as (batch, sequence, size / 2)."""
    own, shape = shape_of(table, types), shape_of(x, types)
    assert own is not None
    assert shape is not None
    assert isinstance(shape[3], int)
    result: ir.Value = op("Slice", table, [0], [shape[3] // 2], [-1])
    batch = own[0] if len(own) == 4 else 1
    if len(own) != 3:
        result = op("Squeeze", result, [1]) if len(own) == 4 else op("Unsqueeze", result, [0])
    return result if batch == shape[0] else op("Expand", result, [shape[0], 1, 1])
