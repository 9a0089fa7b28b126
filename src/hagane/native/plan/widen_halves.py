"""Operators whose kernels compute in float32, on 16-bit floats: wide between two casts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.graph.walk import all_graphs
from hagane.native.rules import RULES, movement
from hagane.native.rules.control import operators
from hagane.native.rules.formulas import BUILDERS
from hagane.ops.context import known_attributes
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of

_HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
# These move elements, have expressions of their own for 16-bit floats, or have bodies.
_AS_THEY_ARE = frozenset({*BUILDERS, *movement.RULES, *operators.RULES} - {"Resize"})
WIDENED = frozenset(name for domain, name in RULES if not domain) - _AS_THEY_ARE


def widen_halves(graph: ir.Graph, types: GraphTypes) -> int:
    """Let kernels of float32 compute what is float16 or bfloat16, and return for how many nodes.

    Each 16-bit input is cast to float32, each output back, as the reference kernels do. Casts
    become part of the kernels around them.
    """
    return sum(_widen_nodes(one, types) for one in list(all_graphs(graph)))


def _widen_nodes(graph: ir.Graph, types: GraphTypes) -> int:
    count = 0
    for node in list(graph):
        if (node.domain, node.op_type) == ("", "Softmax") and _half(
            node.inputs[0], types
        ) == ir.DataType.FLOAT16:
            _take_softmax_apart(graph, node, types)
            count += 1
            continue
        if node.op_type not in WIDENED or node.domain != "":
            continue
        count += _widen(graph, node, types)
    return count


def _widen(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> int:
    halves = [_half(value, types) for value in node.inputs]
    if not any(halves):
        return 0
    for index, value in enumerate(node.inputs):
        if value is not None and halves[index] is not None:
            cast = _cast(value, ir.DataType.FLOAT, types)
            graph.insert_before(node, cast)
            node.replace_input_with(index, cast.outputs[0])
    for value in node.outputs:
        kind = _half(value, types)
        if kind is not None:
            _round_back(graph, node, value, kind, types)
    return 1


def _take_softmax_apart(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> None:
    """Write Softmax of float16 as what ONNX's own cases fix: every step is rounded to float16."""
    x, out = node.inputs[0], node.outputs[0]
    found = types.types[out]
    assert isinstance(found, TensorType)
    assert found.shape is not None
    axis = known_attributes(node, schema_of(node).defaults)["axis"] % len(found.shape)
    one = TensorType(found.dtype, tuple(1 if i == axis else d for i, d in enumerate(found.shape)))
    axes = ir.Value(name=f"{out.name} axes", const_value=ir.tensor(np.array([axis])))
    graph.register_initializer(axes)
    types.types[axes] = TensorType(ir.DataType.INT64, (1,))
    types.values[axes] = np.array([axis])
    made: list[ir.Node] = []

    def step(op_type: str, inputs: list[ir.Value | None], type_: TensorType) -> ir.Value:
        made.append(ir.Node("", op_type, inputs, name=f"{node.name} {op_type}"))
        result = made[-1].outputs[0]
        result.name, types.types[result] = f"{out.name} {op_type}", type_
        return result

    shifted = step("Sub", [x, step("ReduceMax", [x, axes], one)], found)
    grown = step("Exp", [shifted], found)
    result = step("Div", [grown, step("ReduceSum", [grown, axes], one)], found)
    graph.insert_before(node, made)
    for use in list(out.uses()):
        use.node.replace_input_with(use.idx, result)
    for index, output in enumerate(graph.outputs):
        if output is out:
            graph.outputs[index] = result
    result.type, result.shape, result.name = out.type, out.shape, out.name
    graph.remove(node, safe=True)
    for each in made:
        if each.op_type.startswith("Reduce"):
            _widen(graph, each, types)


def _half(value: ir.Value | None, types: GraphTypes) -> ir.DataType | None:
    found = None if value is None else types.types.get(value)
    if isinstance(found, TensorType) and found.dtype in _HALVES:
        return found.dtype
    return None


def _cast(value: ir.Value, to: ir.DataType, types: GraphTypes) -> ir.Node:
    name = f"{value.name} {to.name.lower()}"
    cast = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(to))], name=name)
    found = types.types[value]
    assert isinstance(found, TensorType)
    types.types[cast.outputs[0]] = TensorType(to, found.shape)
    cast.outputs[0].name = name
    return cast


def _round_back(
    graph: ir.Graph, node: ir.Node, value: ir.Value, kind: ir.DataType, types: GraphTypes
) -> None:
    """Make an output float32; what read it reads a cast of it, which takes over its name."""
    cast = _cast(value, kind, types)
    found = types.types[value]
    assert isinstance(found, TensorType)
    types.types[value] = TensorType(ir.DataType.FLOAT, found.shape)
    own, result = value.name, cast.outputs[0]
    for use in list(value.uses()):
        if use.node is not cast:
            use.node.replace_input_with(use.idx, result)
    value.name = f"{own} wide"
    result.name, result.type, result.shape = own, value.type, value.shape
    value.type = ir.TensorType(ir.DataType.FLOAT)
    graph.insert_after(node, cast)
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = result
