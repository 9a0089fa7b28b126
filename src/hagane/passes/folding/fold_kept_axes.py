"""Name the axes that Resize and Pad change where others are known to stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

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
    """Let Resize and Pad name the axes that they change, if the run computes by how much.

    Exporters join the sizes of batch and channels, which stay, to those that the run computes of
    floats. Nothing tells any size of the result then, that of the channels included, unless the
    axes that stay are named no more. Proportions that are kept, and regions, are for all axes
    together.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.op_type not in ("Resize", "Pad"):
            continue
        kept = _kept(node, types)
        own = shape_of(node.inputs[0], types)
        if own is None or not 0 < len(kept) < len(own):
            continue
        changed.append(name_of(node))
        axes = [axis for axis in range(len(own)) if axis not in kept]
        with building(graph, types, node, node.name or ""):
            made = _named(node, axes, len(own))
        types.types.pop(node.outputs[0], None)  # more is known of it now
        put_in_place(graph, types, node, made)
    return changed


def _named(node: ir.Node, axes: Sequence[int], rank: int) -> Any:
    """Return the result of a node that names axes."""
    x, at = node.inputs[0], _place(node)
    numbers = node.inputs[at]
    if node.op_type == "Pad":
        pads = op("Gather", numbers, [*axes, *(rank + axis for axis in axes)])
        value = node.inputs[2] if len(node.inputs) > 2 else None
        return op("Pad", x, pads, value, axes, **given(node))
    numbers = op("Gather", numbers, [*axes])
    ends = [numbers] if at == 2 else [None, numbers]
    return op("Resize", x, None, *ends, **given(node) | {"axes": [*axes]})


def _place(node: ir.Node) -> int:
    """Return which input has the numbers."""
    if node.op_type == "Pad":
        return 1
    return 3 if len(node.inputs) > 3 and node.inputs[3] is not None else 2


def _kept(node: ir.Node, types: GraphTypes) -> Sequence[int]:
    """Return the axes that are known to stay, if the numbers of others are not."""
    own, at = shape_of(node.inputs[0], types), _place(node)
    value = node.inputs[at] if at < len(node.inputs) else None
    if own is None or value is None or types.values.get(value) is not None:
        return ()
    if node.op_type == "Pad" and len(node.inputs) > 3 and node.inputs[3] is not None:
        return ()
    if node.op_type == "Resize":
        attributes = attributes_of(node)
        if "axes" in given(node) or attributes["keep_aspect_ratio_policy"] != "stretch":
            return ()
        if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
            return ()
    numbers = _numbers(value, types)
    rank = len(own)
    if node.op_type == "Pad":
        pairs = zip(numbers[:rank], numbers[rank:], strict=False)
        stay = [all(_is(one, 0) for one in pair) for pair in pairs]
    else:
        wanted = own if at == 3 else (1,) * rank
        stay = [_is(*pair) for pair in zip(numbers, wanted, strict=False)]
    if len(numbers) != (2 * rank if node.op_type == "Pad" else rank):
        return ()
    return [axis for axis, stays in enumerate(stay) if stays]


def _is(number: Any, wanted: Any) -> bool:
    return number is not None and bool(number == wanted)


def _numbers(value: ir.Value, types: GraphTypes) -> list[Any]:
    """Return the elements of a Concat, None for one that is unknown; none of other values."""
    maker = producer(value, "Concat")
    found: list[Any] = []
    for part in () if maker is None else maker.inputs:
        shape = shape_of(part, types)
        assert part is not None
        content = types.values.get(part)
        content = constant(part, types) if content is None else content
        if content is not None:
            found += content.reshape(-1).tolist()
        elif shape is not None and len(shape) == 1 and isinstance(shape[0], int):
            found += _numbers(part, types) or [None] * shape[0]
        else:
            return []
    return found
