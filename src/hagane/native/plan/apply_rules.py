"""The rules, applied to the nodes of one part or body in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from hagane.native.kernels.tensor import Pads
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules import rule_of
from hagane.native.rules.bytes.convolution import border_of_quads
from hagane.native.rules.convolution.choose import border_read
from hagane.ops.inference import GraphTypes
from hagane.symbolic import maximum


def is_known(node: ir.Node, types: GraphTypes) -> bool:
    """Whether inference found the content of all that a node computes."""
    return bool(node.outputs) and all(value in types.values for value in node.outputs)


def has_rule(node: ir.Node, types: GraphTypes) -> bool:
    """Whether a node may have kernels, as far as its operator tells."""
    return rule_of(node) is not None or is_known(node, types)


def lower_nodes(low: Lowering, nodes: Sequence[ir.Node]) -> dict[ir.Node, str]:
    """Append the kernels of nodes, and return those that have none, with reasons."""
    low.forms.wanted_pads = _wanted_pads(low, nodes)
    refused: dict[ir.Node, str] = {}
    for node in nodes:
        if node in low.done:
            continue
        low.done.add(node)
        low.recorder.node = node
        if is_known(node, low.facts.types):
            continue
        rule = rule_of(node)
        if rule is None:
            refused[node] = "there is no kernel for it"
            continue
        try:
            rule(low, node)
        except NotNative as reason:
            refused[node] = str(reason)
    return refused


def _wanted_pads(low: Lowering, members: Sequence[ir.Node]) -> Mapping[ir.Value, Pads]:
    wanted: dict[ir.Value, Pads] = {}
    for node in members:
        value = node.inputs[0] if node.inputs else None
        if node.op_type == "QLinearConv":
            pads = border_of_quads(low, node)
        else:
            pads = border_read(low, node)
        if pads is None or value is None:
            continue
        have = wanted.get(value, (0, 0, 0, 0))
        wanted[value] = (
            maximum(have[0], pads[0]),
            maximum(have[1], pads[1]),
            maximum(have[2], pads[2]),
            maximum(have[3], pads[3]),
        )
    return wanted
