"""Orders as models: the call or its gradient, traced over the builder."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph import CURRENT_OPSETS
from hagane.graph.names import separate_names
from hagane.graph.types import TensorType, to_ir_shape
from hagane.graph.walk import all_nodes
from hagane.nn.eager.order import Operand, Order
from hagane.ops.builder import Call, Nodes, interpreting
from hagane.ops.definition import Unsupported
from hagane.ops.gradient import pull_back
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import operators
from hagane.ops.values import array_dtype
from hagane.passes.removing.merge_common import merge_common
from hagane.passes.removing.remove_dead import remove_dead
from hagane.symbolic import symbol

_IR_VERSION = 10


def model_of(order: Order) -> ir.Model:
    """Return the model of an order.

    Inputs are called ``x0``, ``x1``, … for operands, ``y0``, … for the outputs of the call, and
    ``g0``, … for their gradients; unread ones are left out.

    Raises:
        NotImplementedError: The operator has no gradient.
    """
    graph = ir.Graph([], [], nodes=[], name=order.name)
    types = GraphTypes()
    nodes = Nodes(graph, types)
    operands = [_operand(nodes, i, each) for i, each in enumerate(order.operands)]
    with interpreting(nodes):
        found = _traced(nodes, order, operands)
    for i, value in enumerate(found):
        _add_output(nodes, f"o{i}", value)
    merge_common(graph, types)
    remove_dead(graph, types)
    read = {value for node in graph for value in node.inputs if value is not None}
    read |= set(graph.outputs)
    for value in [value for value in graph.inputs if value not in read]:
        graph.inputs.remove(value)
    separate_names(graph)
    model = ir.Model(graph, ir_version=_IR_VERSION, producer_name="hagane", functions=[])
    model.opset_imports[""] = CURRENT_OPSETS[""]
    for node in all_nodes(graph):
        model.opset_imports.setdefault(node.domain, CURRENT_OPSETS.get(node.domain, 1))
    return model


def _traced(nodes: Nodes, order: Order, operands: Sequence[Any]) -> list[Any]:
    if order.kind == "operator":
        return _operator(nodes, order, operands)
    define = function_of(order.place, order.name)
    attributes = dict(order.attributes)

    def call(*values: Any) -> Sequence[Any]:
        made = define(*values, **attributes)
        return made if isinstance(made, tuple) else (made,)

    if not order.given:
        return list(call(*operands))
    results, pull = pull_back(call, *operands)
    seeds = [
        _input(nodes, f"g{i}", nodes.type_of(y)) if given else None
        for i, (y, given) in enumerate(zip(results, order.given, strict=True))
    ]
    found = pull(seeds)
    return [_present(order, found[i], i) for i in order.targets]


def _operator(nodes: Nodes, order: Order, operands: Sequence[Any]) -> list[Any]:
    definition = operators()[order.place, order.name]
    call = Call(definition, tuple(operands), dict(order.attributes))
    outputs = nodes.apply(call, order.n_outputs)
    if not order.given:
        return list(outputs)
    rule = definition.vjp
    if isinstance(rule, Unsupported):
        raise NotImplementedError(f"{order.name} has no gradient: {rule.reason}")
    results = [_input(nodes, f"y{i}", nodes.type_of(y)) for i, y in enumerate(outputs)]
    seeds = [
        _input(nodes, f"g{i}", nodes.type_of(y)) if given else None
        for i, (y, given) in enumerate(zip(outputs, order.given, strict=True))
    ]
    found = rule(
        Call(definition, tuple(operands), dict(order.attributes), tuple(results)), tuple(seeds)
    )
    made = [found[i]() if callable(found[i]) else found[i] for i in order.targets]
    return [_present(order, value, i) for value, i in zip(made, order.targets, strict=True)]


def _present(order: Order, value: Any, target: int) -> Any:
    if value is None:
        raise NotImplementedError(f"{order.name} does not depend on its operand {target}")
    return value


def function_of(module: str, name: str) -> Callable[..., Any]:
    """Return a function by its place."""
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _operand(nodes: Nodes, index: int, operand: Operand | None) -> Any:
    if operand is None:
        return None
    content = operand.array()
    if content is not None:
        return nodes.initializer(content, f"x{index}")
    dtype = array_dtype(np.empty(0, operand.dtype))
    dims = tuple(symbol(dim) if isinstance(dim, str) else dim for dim in operand.dims)
    return _input(nodes, f"x{index}", TensorType(dtype, dims))


def _input(nodes: Nodes, name: str, type_: Any) -> ir.Value:
    value = ir.Value(name=name, shape=to_ir_shape(type_.shape), type=ir.TensorType(type_.dtype))
    nodes.graph.inputs.append(value)
    nodes.types.types[value] = type_
    nodes.note_sizes(value)
    return value


def _add_output(nodes: Nodes, name: str, value: Any) -> None:
    from hagane.ops.builder import op

    with interpreting(nodes):
        made = op("Identity", value)
    made.name = name
    found = nodes.types.types[made]
    assert isinstance(found, TensorType)
    made.type = ir.TensorType(found.dtype)
    if found.shape is not None:
        made.shape = to_ir_shape(found.shape)
    nodes.graph.outputs.append(made)
