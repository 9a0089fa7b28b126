"""Make one reshape, or none, of several in a row."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    attributes_of,
    constant,
    name_of,
    remove_unread,
    replace_value,
    type_of,
)


def join_reshapes(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Let reshapes read the inputs of reshapes before them; return where.

    Reshape, Flatten, Squeeze and Unsqueeze keep the order of elements, so that in a row of them
    only the last shape counts. One that restores the shape of a value before the row is passed
    over; a Reshape reads the first value of the row, if its shape is constant and takes over no
    axis of its input (0).
    """
    changed: list[str] = []
    for node in list(graph):
        if not has_trait(node, Trait.RESHAPING):
            continue
        sources = _sources(node)
        out = node.outputs[0]
        wanted = type_of(out, types)
        if not sources or wanted is None:
            continue
        same = next((one for one in sources if type_of(one, types) == wanted), None)
        before = node.inputs[0]
        assert before is not None
        if same is not None:
            changed.append(name_of(node))
            replace_value(graph, types, out, same)
            remove_unread(graph, node)
        elif node.op_type == "Reshape" and _is_free(node, types):
            changed.append(name_of(node))
            node.replace_input_with(0, sources[-1])
            maker = before.producer()
            if maker is not None:
                remove_unread(graph, maker)
    return changed


def _sources(node: ir.Node) -> list[ir.Value]:
    """Return the inputs of the reshapes before a node, the nearest first."""
    found: list[ir.Value] = []
    value = node.inputs[0]
    while value is not None and (maker := value.producer()) is not None:
        if not has_trait(maker, Trait.RESHAPING) or maker.inputs[0] is None:
            break
        value = maker.inputs[0]
        found.append(value)
    return found


def _is_free(node: ir.Node, types: GraphTypes) -> bool:
    """Whether the sizes of a Reshape follow from its constant and the number of elements."""
    shape = constant(node.inputs[1], types)
    return shape is not None and (bool(attributes_of(node)["allowzero"]) or 0 not in shape)
