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
from hagane.nn.eager.way import Passed, Way
from hagane.ops.builder import Call, Nodes, interpreting, op
from hagane.ops.definition import Unsupported
from hagane.ops.gradient import pull_back
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import operators
from hagane.ops.values import array_dtype
from hagane.passes.removing.merge_common import merge_common
from hagane.passes.removing.remove_dead import remove_dead
from hagane.symbolic import symbol

_IR_VERSION = 10


def model_of(order: Order | Way) -> ir.Model:
    """Return the model of an order, or of a way back.

    Inputs of an order are called ``x0``, ``x1``, … for operands, ``y0``, … for the outputs of the
    call, and ``g0``, … for their gradients; unread ones are left out. Those of a way are called
    ``x0``, ``x1``, … by the numbers of values, and ``g`` for the gradient of its start.

    Raises:
        NotImplementedError: An operator has no gradient.
    """
    graph = ir.Graph([], [], nodes=[], name=order.name if isinstance(order, Order) else "back")
    types = GraphTypes()
    nodes = Nodes(graph, types)
    given = order.operands if isinstance(order, Order) else order.values
    operands = [_operand(nodes, i, each) for i, each in enumerate(given)]
    with interpreting(nodes):
        if isinstance(order, Order):
            found = _traced(nodes, order, operands)
        else:
            found = _walked(nodes, order, operands)
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


def _walked(nodes: Nodes, way: Way, values: Sequence[Any]) -> list[Any]:
    """Return the gradients of the leaves of a way."""
    gradients: dict[int, Any] = {way.start: _input(nodes, "g", nodes.type_of(values[way.start]))}
    for step in way.steps:
        seeds = [None if i is None else gradients.get(i) for i in step.outputs]
        if all(seed is None for seed in seeds):
            continue
        operands = [None if i is None else values[i] for i in step.operands]
        outputs = [None if i is None else values[i] for i in step.outputs]
        for place, found in zip(step.targets, _pulled(step, operands, outputs, seeds), strict=True):
            number = step.operands[place]
            if found is None or number is None:
                continue
            before = gradients.get(number)
            gradients[number] = found if before is None else op("Add", before, found)
    found = [gradients.get(i) for i in way.leaves]
    if any(each is None for each in found):
        raise NotImplementedError("no gradient reaches a leaf")
    return found


def _pulled(
    step: Passed, operands: Sequence[Any], outputs: Sequence[Any], seeds: Sequence[Any]
) -> list[Any]:
    """Return the gradients of a function by its targets."""
    attributes = dict(step.attributes)
    if step.kind == "operator":
        definition = operators()[step.place, step.name]
        rule = definition.vjp
        if isinstance(rule, Unsupported):
            raise NotImplementedError(f"{step.name} has no gradient: {rule.reason}")
        gradients = rule(
            Call(definition, tuple(operands), attributes, tuple(outputs)), tuple(seeds)
        )
        return [gradients[i]() if callable(gradients[i]) else gradients[i] for i in step.targets]
    define = function_of(step.place, step.name)

    def call(*values: Any) -> Sequence[Any]:
        made = define(*values, **attributes)
        return made if isinstance(made, tuple) else (made,)

    _, pull = pull_back(call, *operands)
    found = pull(seeds)
    return [found[i] for i in step.targets]


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
    with interpreting(nodes):
        made = op("Identity", value)
    made.name = name
    found = nodes.types.types[made]
    assert isinstance(found, TensorType)
    made.type = ir.TensorType(found.dtype)
    if found.shape is not None:
        made.shape = to_ir_shape(found.shape)
    nodes.graph.outputs.append(made)
