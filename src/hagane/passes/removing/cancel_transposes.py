"""Bring transpositions together that undo each other."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    add_initializer,
    attributes_of,
    building,
    constant,
    given,
    is_read_once,
    name_of,
    producer,
    remove_unread,
    replace_value,
    shape_of,
)

# Constants up to this many elements are transposed ahead.
_MOST_ELEMENTS = 1 << 16
# Groups of elementwise nodes between two transpositions are small.
_MOST_NODES = 64

Perm = tuple[int, ...]


def cancel_transposes(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Compose a Transpose with those before it, also across elementwise nodes; return where.

    Of two in a row one is left, or none if they undo each other. Between a Transpose and those
    before it may lie elementwise nodes that only lead to it: they then compute on values that were
    not transposed yet, their constants transposed ahead.

    Nothing changes where some operand of the elementwise nodes is neither a Transpose nor a
    constant, or where a Transpose that does not cancel is read by others too, so that there would
    be one more.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Transpose" or node.domain != "" or node.graph is not graph:
            continue
        perm, before, out = _perm(node, types), node.inputs[0], node.outputs[0]
        if perm is None or before is None:
            continue
        inner = before.producer()
        if inner is None or inner.graph is not graph:
            continue
        seen: set[ir.Node] = set()
        direct = producer(before, "Transpose") is not None
        if not _may_move(before, perm, types, seen, first=direct) or not (direct or seen):
            continue
        made = _moved(graph, types, node, before, perm, {})
        changed.append(name_of(node))
        replace_value(graph, types, out, made)
        remove_unread(graph, node)
    return changed


def _perm(node: ir.Node, types: GraphTypes) -> Perm | None:
    shape = shape_of(node.inputs[0], types)
    if shape is None:
        return None
    return tuple(attributes_of(node).get("perm", reversed(range(len(shape)))))


def _may_move(
    value: ir.Value, perm: Perm, types: GraphTypes, seen: set[ir.Node], *, first: bool = False
) -> bool:
    """Whether transposing the sources of a value makes no more transpositions than there were."""
    transpose = producer(value, "Transpose")
    if transpose is not None:
        own = _perm(transpose, types)
        if own is None or transpose.inputs[0] is None:
            return False
        return first or _composed(own, perm) == tuple(range(len(perm))) or is_read_once(value)
    node = value.producer()
    if node is None or not has_trait(node, Trait.ELEMENTWISE):
        return False
    if not is_read_once(value) or len(seen) >= _MOST_NODES or shape_of(value, types) is None:
        return False
    seen.add(node)
    moved = 0
    for operand in node.inputs:
        if operand is None or constant_for(operand, perm, types) is not None:
            continue
        shape = shape_of(operand, types)
        if shape is None or len(shape) != len(perm) or not _may_move(operand, perm, types, seen):
            return False
        moved += 1
    return moved > 0


def constant_for(
    value: ir.Value, perm: Perm, types: GraphTypes
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    """Return a constant operand, transposed; a single element stays as it is."""
    array = constant(value, types)
    if array is None or array.dtype == object or array.ndim > len(perm):
        return None
    if array.size == 1 and array.ndim <= 1:
        return array
    if array.size > _MOST_ELEMENTS:
        return None
    return array.reshape((1,) * (len(perm) - array.ndim) + array.shape).transpose(perm)


def _composed(first: Perm, second: Perm) -> Perm:
    return tuple(first[axis] for axis in second)


def _moved(
    graph: ir.Graph,
    types: GraphTypes,
    end: ir.Node,
    value: ir.Value,
    perm: Perm,
    made: dict[ir.Value, ir.Value],
) -> ir.Value:
    """Return a value transposed, without a Transpose of its own if that can be avoided."""
    if value in made:
        return made[value]
    node = value.producer()
    assert node is not None
    if node.op_type == "Transpose":
        own, source = _perm(node, types), node.inputs[0]
        assert own is not None
        assert source is not None
        whole = _composed(own, perm)
        result = source
        if whole != tuple(range(len(whole))):
            with building(graph, types, end, end.name or ""):
                result = op("Transpose", source, perm=whole)
    else:
        operands = [_operand(graph, types, end, one, perm, made) for one in node.inputs]
        with building(graph, types, end, node.name or ""):
            result = op(node.op_type, *operands, **given(node))
    made[value] = result
    return result


def _operand(
    graph: ir.Graph,
    types: GraphTypes,
    end: ir.Node,
    value: ir.Value | None,
    perm: Perm,
    made: dict[ir.Value, ir.Value],
) -> ir.Value | None:
    if value is None:
        return None
    array = constant_for(value, perm, types)
    if array is None:
        return _moved(graph, types, end, value, perm, made)
    if array.ndim <= 1 and array.size == 1:
        return value
    return add_initializer(graph, f"{value.name} transposed", array)
