"""Multiply a table by a matrix ahead, where rows of it are looked up and multiplied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    add_initializer,
    attributes_of,
    building,
    constant,
    name_of,
    producer,
    put_in_place,
    shape_of,
)

# Bytes of a product with a table; more than one lookup may serve in a run, but seldom many.
_MOST_BYTES = 1 << 20


def fold_looked_up(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace products of looked-up rows and a constant matrix by rows of a product; return where.

    `Gather(T, i) · W` becomes `Gather(T · W, i)`, and `Concat(Gather(T, i), x) · W` becomes
    `Gather(T · W₁, i) + x · W₂`: cells of recurrent models that are written by hand join the
    embedding of a word and their state. Table and matrix are constant and float32, the
    concatenation is along the last axis, and nothing else reads the value that is multiplied.
    Nothing changes where the product takes more than a megabyte, or more than four times the table.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "MatMul" or node.domain != "":
            continue
        left, weights = node.inputs[0], constant(node.inputs[1], types)
        if left is None or weights is None or weights.ndim != 2 or weights.dtype != np.float32:
            continue
        if len(left.uses()) != 1 or left.is_graph_output():
            continue
        parts = _parts(left, types)
        tables = [_table(part, weights, types) for part in parts]
        if all(table is None for table in tables):
            continue
        ends = [(shape_of(part, types) or (None,))[-1] for part in parts]
        sizes = [size for size in ends if isinstance(size, int)]
        if len(sizes) < len(parts):
            continue
        _replace(graph, types, node, weights, list(zip(parts, sizes, tables, strict=True)))
        changed.append(name_of(node))
    return changed


def _parts(value: ir.Value, types: GraphTypes) -> list[ir.Value]:
    """Return the values that are joined along the last axis, or the value alone."""
    joined = producer(value, "Concat")
    shape = shape_of(value, types)
    if joined is None or shape is None:
        return [value]
    if attributes_of(joined)["axis"] not in (-1, len(shape) - 1):
        return [value]
    return [part for part in joined.inputs if part is not None]


def _table(part: ir.Value, weights: Array, types: GraphTypes) -> Array | None:
    """Return the constant table of which a value is rows, if its product is small enough."""
    lookup = producer(part, "Gather")
    if lookup is None or attributes_of(lookup)["axis"] != 0:
        return None
    table = constant(lookup.inputs[0], types)
    if table is None or table.ndim != 2 or table.dtype != np.float32:
        return None
    bytes_ = len(table) * weights.shape[1] * 4
    return table if bytes_ <= min(_MOST_BYTES, 4 * table.nbytes) else None


def _replace(
    graph: ir.Graph,
    types: GraphTypes,
    node: ir.Node,
    weights: Array,
    parts: Sequence[tuple[ir.Value, int, Array | None]],
) -> None:
    """Put a sum of looked-up products and of one product of the rest in the place of a product."""
    at, rest, rows, looked_up = 0, [], [], []
    for part, size, table in parts:
        own = weights[at : at + size]
        at += size
        if table is None:
            rest.append(part)
            rows.append(own)
            continue
        # In float64: each element is as exact as one of float32 can be.
        product = (table.astype(np.float64) @ own.astype(np.float64)).astype(np.float32)
        lookup = part.producer()
        assert lookup is not None
        content = add_initializer(graph, f"{name_of(lookup)} product", product)
        looked_up.append((content, lookup.inputs[1]))
    with building(graph, types, node, name_of(node)):
        summands = [op("Gather", content, index, axis=0) for content, index in looked_up]
        if rest:
            joined = rest[0] if len(rest) == 1 else op("Concat", *rest, axis=-1)
            matrix = add_initializer(graph, f"{name_of(node)} rest", np.concatenate(rows))
            summands.insert(0, op("MatMul", joined, matrix))
        made = summands[0]
        for one in summands[1:]:
            made = op("Add", made, one)
    put_in_place(graph, types, node, made)
