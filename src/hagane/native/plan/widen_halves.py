"""Operators whose kernels compute in float32, on 16-bit floats: wide between two casts."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.graph.types import TensorType, to_ir_type
from hagane.graph.walk import all_graphs
from hagane.native.rules import RULES, movement
from hagane.native.rules.control import operators
from hagane.native.rules.formulas import BUILDERS
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.context import known_attributes
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of

HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
# These move elements, have expressions of their own for 16-bit floats, or have bodies.
_AS_THEY_ARE = frozenset({*BUILDERS, *movement.RULES, *operators.RULES} - {"Resize"})
# Of other domains.
_OTHERS = frozenset({("com.microsoft", "GroupQueryAttention")})
# Of loops in C: these count with places and angles, which 16 bits would round.
_PLACED = frozenset({"DFT", "DeformConv", "GridSample", "RoiAlign", "STFT"})
WIDENED = (frozenset(name for domain, name in RULES if not domain) - _AS_THEY_ARE) | _PLACED


def widen_halves(graph: ir.Graph, types: GraphTypes) -> int:
    """Let kernels of float32 compute nodes of float16 or bfloat16, and return how many.

    Each 16-bit input is cast to float32, each output back, as the reference kernels do. Casts
    become part of the kernels around them.
    """
    return sum(_widen_nodes(one, types) for one in list(all_graphs(graph)))


def _widen_nodes(graph: ir.Graph, types: GraphTypes) -> int:
    count = 0
    nodes = list(graph)
    for node, after in zip(nodes, [*nodes[1:], None], strict=False):
        if (node.domain, node.op_type) == ("", "Softmax") and _half(
            node.inputs[0], types
        ) == ir.DataType.FLOAT16:
            _take_softmax_apart(graph, node, types)
            count += 1
        elif (
            node.domain == "hagane"
            or (node.op_type in WIDENED and node.domain == "")
            or (node.domain, node.op_type) in _OTHERS
        ):
            count += _widen(graph, node, after, types)
    return count


def _widen(graph: ir.Graph, node: ir.Node, after: ir.Node | None, types: GraphTypes) -> int:
    """Put casts around a node; those of its outputs come in front of ``after``, or last."""
    halves = [_half(value, types) for value in node.inputs]
    if not any(halves):
        return 0
    with interpreting(Nodes(graph, types, before=node, name=str(node.name))):
        for index, value in enumerate(node.inputs):
            if halves[index] is not None:
                node.replace_input_with(index, op("Cast", value, to=ir.DataType.FLOAT))
    with interpreting(Nodes(graph, types, before=after, name=str(node.name))):
        for value in node.outputs:
            kind = _half(value, types)
            if kind is not None:
                _round_back(graph, value, kind, types)
    return 1


def _take_softmax_apart(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> None:
    """Write Softmax of float16 as ONNX's own cases fix it: every step is rounded to float16."""
    x, out = node.inputs[0], node.outputs[0]
    axis = known_attributes(node, schema_of(node).defaults)["axis"]
    with interpreting(Nodes(graph, types, before=node, name=str(node.name))):
        greatest = op("ReduceMax", x, [axis])
        shifted = op("Sub", x, greatest)
        grown = op("Exp", shifted)
        total = op("ReduceSum", grown, [axis])
        result = op("Div", grown, total)
    types.types[result] = types.types[out]
    _replace(graph, out, result, list(out.uses()))
    graph.remove(node, safe=True)
    for reduced, reader in ((greatest, shifted), (total, result)):
        _widen(graph, reduced.producer(), reader.producer(), types)


def _half(value: ir.Value | None, types: GraphTypes) -> ir.DataType | None:
    found = None if value is None else types.types.get(value)
    if isinstance(found, TensorType) and found.dtype in HALVES:
        return found.dtype
    return None


def _round_back(graph: ir.Graph, value: ir.Value, kind: ir.DataType, types: GraphTypes) -> None:
    """Make an output float32; its readers read a cast of it, which takes over its name."""
    found = types.types[value]
    assert isinstance(found, TensorType)
    wide = TensorType(ir.DataType.FLOAT, found.shape)
    types.types[value] = wide
    readers = list(value.uses())
    result: ir.Value = op("Cast", value, to=kind)
    _replace(graph, value, result, readers)
    value.name, value.type = f"{result.name} wide", to_ir_type(wide)


def _replace(
    graph: ir.Graph, old: ir.Value, new: ir.Value, uses: Sequence[tuple[ir.Node, int]]
) -> None:
    """Let readers of a value, and the graph's outputs, have a new one, which takes its name."""
    for reader, index in uses:
        reader.replace_input_with(index, new)
    for index, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[index] = new
    new.name, new.type, new.shape = old.name, old.type, old.shape
