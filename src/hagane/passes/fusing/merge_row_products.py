"""Multiply all rows of a value at once, where each is multiplied by the same matrix."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    name_of,
    producer,
    put_in_place,
    shape_of,
)

# Fewer rows than this are left alone.
_FEWEST = 4


def merge_row_products(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace products of rows of a value and one matrix by rows of one product; return where.

    A row is `Squeeze(Slice(x))` or `Gather(x)` at one place of the first axis, as loops over steps
    of a sequence leave it when they are unrolled; at least four rows of `x`, half of all, are
    multiplied, by a constant matrix. One product of many rows can be shared by threads; the small
    ones wait for one another behind the state that they are added to.

    `Gemm` counts as such a product if it adds a row of constants or nothing, and scales nothing.
    """
    groups: dict[tuple[Any, ...], list[tuple[ir.Node, int]]] = {}
    for node in graph:
        if node.op_type not in ("MatMul", "Gemm") or node.domain != "":
            continue
        row, matrix = node.inputs[:2]
        found = _row(row, types)
        content = constant(matrix, types)
        if found is None or matrix is None or content is None or content.ndim != 2:
            continue
        added, turned = None, False
        if node.op_type == "Gemm":
            if not _is_plain(node, types):
                continue
            added, turned = (*node.inputs[2:], None)[0], bool(attributes_of(node)["transB"])
        source, index = found
        groups.setdefault((source, matrix, added, turned), []).append((node, index))
    changed: list[str] = []
    for (source, matrix, added, turned), nodes in groups.items():
        length = (shape_of(source, types) or (None,))[0]
        rows = {index for _, index in nodes}
        if not isinstance(length, int) or len(rows) < max(_FEWEST, length / 2):
            continue
        first = nodes[0][0]
        with building(graph, types, first, name_of(first)):
            product: Any = op("MatMul", source, op("Transpose", matrix) if turned else matrix)
            if added is not None:
                product = op("Add", product, added)
        for node, index in nodes:
            # The slices before are read by nobody afterwards.
            with building(graph, types, node, name_of(node)):
                slice_ = op("Slice", product, [index], [index + 1], [0])
                made = op("Squeeze", slice_, [0])
            put_in_place(graph, types, node, made)
            changed.append(name_of(node))
    return changed


def _is_plain(gemm: ir.Node, types: GraphTypes) -> bool:
    """Whether a Gemm multiplies its left side as it is and adds a row of constants, or nothing."""
    attributes = attributes_of(gemm)
    if attributes["transA"] or attributes["alpha"] != 1 or attributes["beta"] != 1:
        return False
    added = (*gemm.inputs[2:], None)[0]
    row = constant(added, types)
    return added is None or (row is not None and row.ndim == 1)


def _row(value: ir.Value | None, types: GraphTypes) -> tuple[ir.Value, int] | None:
    """Return the value of which another is one row, and which; None if it is none."""
    lookup = producer(value, "Gather")
    if lookup is not None and lookup.inputs[0] is not None:
        index = constant(lookup.inputs[1], types)
        if attributes_of(lookup)["axis"] == 0 and index is not None and index.ndim == 0:
            return _of(lookup.inputs[0], int(index), types)
        return None
    squeezed = producer(value, "Squeeze")
    slice_ = None if squeezed is None else producer(squeezed.inputs[0], "Slice")
    if squeezed is None or slice_ is None or slice_.inputs[0] is None or len(squeezed.inputs) < 2:
        return None
    numbers = [constant(part, types) for part in (squeezed.inputs[1], *slice_.inputs[1:])]
    if any(number is None or number.size != 1 for number in numbers) or len(numbers) < 4:
        return None
    axes, start, end, axis, *step = (int(n.reshape(-1)[0]) for n in numbers if n is not None)
    if axes != 0 or axis != 0 or end != start + 1 or step not in ([], [1]):
        return None
    return _of(slice_.inputs[0], start, types)


def _of(source: ir.Value, index: int, types: GraphTypes) -> tuple[ir.Value, int] | None:
    shape = shape_of(source, types)
    # The matrix meets the last axis, which has to be another one than the first.
    if shape is None or len(shape) < 2 or not isinstance(shape[0], int):
        return None
    return (source, index) if 0 <= index < shape[0] else None
