"""Name the axes that Resize changes where others are known to stay."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.graph.types import Shape
from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    given,
    name_of,
    producer,
    put_in_place,
    shape_of,
)


def fold_kept_axes(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let Resize name the axes whose sizes or scales the run computes; return where.

    Exporters join the sizes of batch and channels, which stay, to those that the run computes of
    floats. Nothing tells the sizes of the result then, channels included, unless the first ones
    are named no more. Proportions that are kept, and regions, are for all axes together.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Resize" or node.domain != "" or "axes" in given(node):
            continue
        attributes, own = attributes_of(node), shape_of(node.inputs[0], types)
        if own is None or attributes["keep_aspect_ratio_policy"] != "stretch":
            continue
        if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
            continue
        place = 3 if len(node.inputs) > 3 and node.inputs[3] is not None else 2
        rest = _rest(node.inputs[place], own, place == 3, types) if place < len(node.inputs) else ()
        if not rest:
            continue
        changed.append(name_of(node))
        count = sum(_count(value, types) or 0 for value in rest)
        with building(graph, types, node, node.name or ""):
            numbers = op("Concat", *rest, axis=0) if len(rest) > 1 else rest[0]
            ends = [numbers] if place == 2 else [None, numbers]
            axes = list(range(len(own) - count, len(own)))
            made = op("Resize", node.inputs[0], None, *ends, **given(node) | {"axes": axes})
        types.types.pop(node.outputs[0], None)  # more is known of it now
        put_in_place(graph, types, node, made)
    return changed


def _rest(value: ir.Value | None, own: Shape, sizes: bool, types: GraphTypes) -> Sequence[ir.Value]:
    """Return the values behind those that leave the first axes as they are; none if there is none.

    Args:
        value: The sizes or scales.
        own: The shape that is resized.
        sizes: Whether these are sizes.
        types: Of all values.
    """
    maker = producer(value, "Concat")
    if maker is None or value is None or types.values.get(value) is not None:
        return ()
    parts = [part for part in maker.inputs if part is not None]
    counts = [_count(part, types) for part in parts]
    if None in counts or sum(count or 0 for count in counts) != len(own):
        return ()
    axis = 0
    for i, part in enumerate(parts):
        content = types.values.get(part)
        content = constant(part, types) if content is None else content
        if content is None:
            return parts[i:] if i else ()
        for number in content.reshape(-1):
            if not (number == own[axis] if sizes else number == 1):
                return ()
            axis += 1
    return ()


def _count(value: ir.Value, types: GraphTypes) -> int | None:
    """Return the number of elements of a value with one axis."""
    shape = shape_of(value, types)
    return shape[0] if shape is not None and len(shape) == 1 and isinstance(shape[0], int) else None
