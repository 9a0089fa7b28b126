"""The rules, applied to the nodes of one part or body in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.native.kernels.tensor import Pads
from hagane.native.lowering.facts import NotNative, sizes_content
from hagane.native.lowering.state import Lowering
from hagane.native.rules import rules_of
from hagane.native.rules.bytes.convolution import border_of_bytes
from hagane.native.rules.control.operators import RULES as BODIES
from hagane.native.rules.convolution.choose import border_read
from hagane.ops.inference import GraphTypes
from hagane.symbolic import maximum, symbols_of


def is_known(node: ir.Node, types: GraphTypes) -> bool:
    """Whether inference found the content of all that a node computes."""
    return bool(node.outputs) and all(
        sizes_content(types, value) is not None for value in node.outputs
    )


def has_rule(node: ir.Node, types: GraphTypes) -> bool:
    """Whether a node may have kernels, as far as its operator tells."""
    return bool(rules_of(node)) or is_known(node, types)


def lower_nodes(low: Lowering, nodes: Sequence[ir.Node]) -> dict[ir.Node, str]:
    """Append the kernels of nodes, and return nodes without any, with reasons."""
    low.forms.wanted_pads = _wanted_pads(low, nodes)
    refused: dict[ir.Node, str] = {}
    for node in nodes:
        if node in low.done:
            continue
        low.done.add(node)
        low.recorder.node = node
        if is_known(node, low.facts.types):
            continue
        rules = rules_of(node)
        if _unknown(low, node):
            rules.reverse()  # those of any sizes find them
        if not rules:
            refused[node] = "there is no kernel for it"
        lowered = len(low.done)
        for rule in rules:
            try:
                rule(low, node)
                if _unknown(low, node):
                    raise NotNative("a size that only the data tell")
            except NotNative as reason:
                refused[node] = str(reason)
                low.done.take_back(lowered)
                low.forms.forget_results(node.outputs)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                # The reference kernel says it of the numbers of a run.
                refused[node] = f"its attributes do not make an operation ({error})"
                low.done.take_back(lowered)
                low.forms.forget_results(node.outputs)
            else:
                refused.pop(node, None)
                break
    return refused


def _unknown(low: Lowering, node: ir.Node) -> bool:
    """Whether a result has a size that neither inputs give nor kernels have found."""
    if node.op_type in BODIES and node.domain == "":
        return False  # their sizes are the loop's
    known = low.facts.given | low.found
    found = (low.facts.types.types.get(value) for value in node.outputs if value.name)
    shapes = [each.shape for each in found if isinstance(each, TensorType) and each.shape]
    dims = [dim for dims in (*shapes, *low.assumed(node)) for dim in dims]
    return any(symbols_of(dim) - known for dim in dims)


def _wanted_pads(low: Lowering, members: Sequence[ir.Node]) -> Mapping[ir.Value, Pads]:
    wanted: dict[ir.Value, Pads] = {}
    for node in members:
        value = node.inputs[0] if node.inputs else None
        if node.op_type in ("QLinearConv", "ConvInteger"):
            pads = border_of_bytes(low, node)
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
