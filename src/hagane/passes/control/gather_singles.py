"""Look up the one element that a condition is made of where it was sliced."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import building, constant, name_of, producer, put_in_place, shape_of

# No axis has so many elements: Gather refuses it.
_NOWHERE = np.iinfo(np.int64).max


def gather_singles(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace Slices of one element that there has to be by Gather; return where.

    A slice from ``i`` to ``i + 1`` has no element if ``i`` is beyond the input, and its size is
    known in the run only. An If needs a condition of one element, and so do all elementwise nodes
    that lead to it: Gather fails where the If would have.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Slice" or node.domain != "" or not _is_single(node, types):
            continue
        if not _decides(graph, node.outputs[0]):
            continue
        changed.append(name_of(node))
        x, start = node.inputs[:2]
        with building(graph, types, node, node.name or ""):
            place = op("Cast", start, to=ir.DataType.INT64)
            # (From -1 to 0 there is none; from -2 to -1 there is the last but one.)
            there = op("Where", op("Equal", place, -1), [_NOWHERE], place)
            made = op("Gather", x, there, axis=0)
        put_in_place(graph, types, node, made)
    return changed


def _is_single(node: ir.Node, types: GraphTypes) -> bool:
    """Whether a node takes at most one element of a vector, at a place that the run tells."""
    x, start, end, *rest = node.inputs
    axes, steps = (*rest, None, None)[:2]
    shapes = [shape_of(value, types) for value in (x, start, end)]
    if shapes[0] is None or len(shapes[0]) != 1 or shapes[1:] != [(1,), (1,)]:
        return False
    stride = constant(steps, types)
    if steps is not None and (stride is None or not np.array_equal(stride, [1])):
        return False
    if axes is not None and constant(axes, types) is None:
        return False
    assert start is not None
    assert end is not None
    (begun, first), (ended, last) = _sum(start, types), _sum(end, types)
    return begun is ended and last - first == 1 and constant(start, types) is None


def _sum(value: ir.Value, types: GraphTypes) -> tuple[ir.Value, int]:
    """Return a value and a number whose sum is another value."""
    added = 0
    while (node := producer(value, "Add")) is not None:
        numbers = [constant(each, types) for each in node.inputs]
        known = [i for i, one in enumerate(numbers) if one is not None and one.size == 1]
        if len(known) != 1:
            break
        number, other = numbers[known[0]], node.inputs[1 - known[0]]
        assert number is not None
        assert other is not None
        added += int(number.reshape(-1)[0])
        value = other
    return value, added


def _decides(graph: ir.Graph, value: ir.Value) -> bool:
    """Whether elementwise nodes lead from a value to the condition of an If of the same graph."""
    waiting, seen = [value], {value}
    while waiting:
        for use in waiting.pop().uses():
            node = use.node
            if node.graph is not graph or node.domain != "":
                continue
            if node.op_type == "If":
                return True
            keeps = has_trait(node, Trait.ELEMENTWISE) or (
                has_trait(node, Trait.RESHAPING) and use.idx == 0
            )
            if keeps and node.outputs[0] not in seen:
                seen.add(node.outputs[0])
                waiting.append(node.outputs[0])
    return False
