"""Make zero padding a part of the convolution that reads it."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.context import known_attributes
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.passes.edit import constant, name_of, producer, remove, scalar


def fold_pads(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Fold a Pad with zeros along spatial axes into the Conv that alone reads it."""
    changed: list[str] = []
    for conv in list(graph):
        if conv.op_type != "Conv" or conv.domain != "":
            continue
        pad = producer(conv.inputs[0], "Pad")
        if pad is None or pad.graph is not graph or len(pad.outputs[0].uses()) != 1:
            continue
        added = _spatial_zeros(pad, types)
        attributes = known_attributes(conv, schema_of(conv).defaults)
        if added is None or pad.outputs[0].is_graph_output():
            continue
        if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
            continue
        have = list(attributes.get("pads") or [0] * len(added))
        if attributes.get("auto_pad") == "VALID":
            have = [0] * len(added)
            conv.attributes.pop("auto_pad")
        pads = [a + b for a, b in zip(have, added, strict=True)]
        conv.attributes["pads"] = ir.AttrInt64s("pads", pads)
        conv.replace_input_with(0, pad.inputs[0])
        remove(graph, [pad])
        changed.append(name_of(pad))
    return changed


def _spatial_zeros(pad: ir.Node, types: GraphTypes) -> list[int] | None:
    """Return begins and ends along the spatial axes, if that is all the node pads."""
    attributes = known_attributes(pad, schema_of(pad).defaults)
    pads = constant(pad.inputs[1], types)
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    axes = pad.inputs[3] if len(pad.inputs) > 3 else None
    if attributes["mode"] != "constant" or pads is None or axes is not None:
        return None
    if value is not None and scalar(value, types) != 0.0:
        return None
    numbers = [int(item) for item in pads.reshape(-1)]
    rank = len(numbers) // 2
    begin, end = numbers[:rank], numbers[rank:]
    if min(numbers) < 0 or any(begin[:2] + end[:2]):
        return None
    return begin[2:] + end[2:]
