"""Replace sequences of pieces by the pieces."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    name_of,
    remove_unread,
    replace_value,
    type_of,
)


def unroll_sequences(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace SplitToSequence of which every piece is taken by SequenceAt by Split; return where.

    The sizes of the pieces and the positions must be known, and the pieces must keep the axis that
    they are cut along. Sequences that anything else reads stay.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.op_type != "SplitToSequence":
            continue
        sizes, uses = _sizes(node, types), list(node.outputs[0].uses())
        if sizes is None or node.outputs[0].is_graph_output() or not uses:
            continue
        positions = [_position(use.node, len(sizes), types) for use in uses]
        if all(position is not None for position in positions):
            changed.append(name_of(node))
            pieces = _split(graph, node, sizes, types)
            for use, position in zip(uses, positions, strict=True):
                assert position is not None
                taken = use.node
                replace_value(graph, types, taken.outputs[0], pieces[position])
                remove_unread(graph, taken)
    return changed


def _sizes(node: ir.Node, types: GraphTypes) -> list[int] | None:
    """Return the lengths of the pieces along the axis."""
    found = type_of(node.inputs[0], types)
    attributes = attributes_of(node)
    split = node.inputs[1] if len(node.inputs) > 1 else None
    given = constant(split, types)
    if found is None or found.shape is None or split is None or given is None:
        return None
    if given.ndim == 1:
        return [int(size) for size in given]
    length = found.shape[attributes["axis"]]
    step = int(given.reshape(-1)[0])
    if not isinstance(length, int) or step <= 0 or (step == 1 and not attributes["keepdims"]):
        return None
    return [min(step, length - start) for start in range(0, length, step)]


def _position(node: ir.Node, count: int, types: GraphTypes) -> int | None:
    """Return which piece a node takes."""
    if node.op_type != "SequenceAt" or node.domain != "":
        return None
    found = constant(node.inputs[1], types)
    position = None if found is None else int(found.reshape(-1)[0])
    return position % count if position is not None and -count <= position < count else None


def _split(
    graph: ir.Graph, node: ir.Node, sizes: Sequence[int], types: GraphTypes
) -> Sequence[ir.Value]:
    """Insert a Split in front of a node and return its outputs."""
    with building(graph, types, node, node.name or ""):
        made = op(
            "Split", node.inputs[0], sizes, axis=attributes_of(node)["axis"], outputs=len(sizes)
        )
    return made if isinstance(made, tuple) else (made,)
