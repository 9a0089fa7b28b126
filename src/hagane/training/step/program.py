"""A training step as one graph: loss, gradients, and the update of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph import CURRENT_OPSETS
from hagane.graph.names import separate_names
from hagane.graph.places import line_of, place_of
from hagane.graph.types import TensorType, to_ir_shape
from hagane.graph.walk import all_nodes, read_values
from hagane.ops.builder import Nodes, dtype_of, interpreting, op
from hagane.ops.control.own_gradient import follow_hooks, remove_own_gradients
from hagane.ops.functions.numbers.elementary import cast
from hagane.ops.gradient.model import add_gradients
from hagane.ops.inference import GraphTypes, infer_types
from hagane.ops.layout.stopping import remove_stops
from hagane.passes.legalise import legalise
from hagane.passes.removing.merge_common import merge_common
from hagane.passes.removing.remove_dead import remove_dead
from hagane.training.step.accumulation import Share, sum_name
from hagane.training.step.flat_paths import behind_flat
from hagane.training.step.open_recurrent import open_recurrent
from hagane.training.step.own_operators import (
    divide_taken,
    join_batch_norms,
    join_selections,
    own_layer_norms,
)
from hagane.training.step.precision import lower_precision
from hagane.training.step.rules import Group, Rule
from hagane.training.step.scaling import FINITE, SCALE, all_finite, unscaled
from hagane.training.step.turned_products import turn_products

IR_VERSION = 10


@dataclass(frozen=True, slots=True)
class Updated:
    """A parameter that the step changes.

    Attributes:
        name: Its path, which is the name of its input; that of the output has ``.new`` appended.
        group: The number of the optimizer's group in which it is.
        states: The names of the tensors that the optimizer keeps for it; inputs and outputs are
            called ``<name>.<state>``.
        apart: Whether the graph only hands out its gradient, as ``<name>.gradient``; the caller
            updates it.
    """

    name: str
    group: int
    states: tuple[str, ...]
    apart: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The parameter's name, and those of its states."""
        return self.name, *(f"{self.name}.{state}" for state in self.states)


@dataclass(frozen=True, slots=True)
class StepProgram:
    """A training step.

    Attributes:
        model: Its graph: the loss is the first output.
        updated: The parameters that it changes.
        unreached: Names of parameters of the optimizer on which the loss does not depend.
        summed: The parameters whose gradients are summed over calls.
        conditional: The parameters whose gradients come in some runs only, as an output
            ``<name>.reached`` tells.
    """

    model: ir.Model
    updated: tuple[Updated, ...]
    unreached: tuple[str, ...]
    summed: tuple[str, ...] = ()
    conditional: tuple[str, ...] = ()


def step_program(
    graph: ir.Graph,
    arrays: Sequence[str],
    trained: Mapping[str, int],
    groups: Sequence[Group],
    rule: Rule,
    prepare: Callable[[Mapping[str, tuple[Any, Any]]], Mapping[str, Any]] | None = None,
    share: Share | None = None,
    precision: ir.DataType | None = None,
    apart: int | None = None,
    unread: Mapping[str, TensorType] | None = None,
    held: Mapping[str, tuple[int, TensorType]] | None = None,
) -> StepProgram:
    """Return the step of a captured loss.

    Args:
        graph: The captured graph: its first output is the loss, others follow as they are. It is
            changed.
        arrays: Names of initializers that become inputs.
        trained: The names of parameters to update, with the number of their group.
        groups: The optimizer's settings.
        rule: The optimizer's rule.
        prepare: Is given parameters and gradients by name and returns the gradients to follow,
            over the builder; the parameters that it leaves out stay as they are.
        share: The part that this call has in the sums of gradients, if they are summed over calls.
        precision: The element type of the factors of products and convolutions; None for their own.
        apart: From how many elements on parameters are left to the caller to update; None for all
            in the graph.
        unread: The types of parameters that the graph may not read. If given, the gradients of
            parameters that the loss does not depend on are zeros; else these stay as they are.
        held: The group and type of parameters that have sums of earlier calls: these are followed
            whether or not this call's gradient reaches them.

    Raises:
        InvalidArgument: The loss is no floating-point number, or depends on no parameter.
        NotDifferentiable: An operator on the way has no gradient.
    """
    for name in arrays:
        value = graph.initializers.pop(name, None)
        if value is not None:
            value.const_value = None
            graph.inputs.append(value)
    model = ir.Model(graph, ir_version=IR_VERSION, producer_name="hagane", functions=[])
    model.graph.opset_imports[""] = CURRENT_OPSETS[""]
    legalise(model)
    types = infer_types(model)
    loss = graph.outputs[0]
    _check_loss(loss, types.types.get(loss))
    made = _made_at(loss)
    follow_hooks(graph)
    open_recurrent(graph, types)
    join_batch_norms(graph, types)
    own_layer_norms(graph, types)
    divide_taken(graph, types)
    if precision is not None:
        lower_precision(graph, types, precision)
    loss = graph.outputs[0]
    inputs = {str(value.name): value for value in graph.inputs}
    wanted = [name for name in trained if name in inputs]
    scale = None
    if precision == ir.DataType.FLOAT16:
        nodes = Nodes(graph, types, name="scale")
        scale = _input(nodes, SCALE, ir.DataType.FLOAT, ())
        with interpreting(nodes):
            scale_of_loss = op("Reshape", cast(scale, dtype_of(loss)), op("Shape", loss))
    come: dict[ir.Value, ir.Value] = {}
    flat = behind_flat(graph, types, loss)
    found = add_gradients(
        graph,
        types,
        [loss],
        [None if scale is None else scale_of_loss],
        [inputs[name] for name in wanted],
        come=come if unread is None else None,
    )
    remove_stops(graph)
    remove_own_gradients(graph)
    gradients = {name: g for name, g in zip(wanted, found, strict=True) if g is not None}
    zeros = [name for name in wanted if name not in gradients and inputs[name] in flat]
    if not gradients and not zeros:
        raise InvalidArgument(
            f"the loss{made} does not depend on any parameter of the optimizer that requires "
            "gradients: make the optimizer of the parameters of the model that the loss calls, "
            "and freeze not all of them"
        )
    known = {*gradients, *zeros}
    held = {name: found for name, found in (held or {}).items() if name not in known}
    missing = tuple(name for name in trained if name not in known and name not in held)
    nodes = Nodes(graph, types, name="update")
    for name in (*zeros, *(() if unread is None else missing)):
        if name not in inputs and unread is not None:
            found_type = unread[name]
            inputs[name] = _input(nodes, name, found_type.dtype, found_type.shape)
        with interpreting(nodes):
            gradients[name] = op("Mul", inputs[name], np.zeros((), dtype_of(inputs[name]).numpy()))
    conditional = tuple(name for name in gradients if inputs[name] in come)
    for name in conditional:
        with interpreting(nodes):
            _output(graph, op("Identity", come[inputs[name]]), reached_name(name), ir.DataType.BOOL)
    summed = (*gradients, *held) if share is not None else ()
    if scale is not None:
        with interpreting(nodes):
            gradients = unscaled(gradients, scale)
    before = set(graph)
    if share is not None:
        gradients = {
            name: _summed(nodes, name, inputs[name], g, share) for name, g in gradients.items()
        }
    for name, (_, found_type) in held.items():
        if name not in inputs:
            inputs[name] = _input(nodes, name, found_type.dtype, found_type.shape)
        gradients[name] = _input(nodes, sum_name(name), found_type.dtype, found_type.shape)
    updates = share is None or share.last
    if scale is not None and updates:
        _told(nodes, list(gradients.values()))
    updated = []
    if not updates:
        gradients = {}
    elif prepare is not None:
        with interpreting(nodes):
            gradients = dict(prepare({n: (inputs[n], g) for n, g in gradients.items()}))
    at: dict[int, dict[str, ir.Value]] = {}  # the numbers of groups that the graph updates
    for name, gradient in gradients.items():
        number = held[name][0] if name in held else trained[name]
        if apart is not None and _elements(types, inputs[name]) >= apart:
            updated.append(_handed_out(nodes, name, number, inputs[name], gradient, rule,
                                       groups[number]))  # fmt: skip
            continue
        if number not in at:
            names = rule.scalars(groups[number], 1, dict(rule.kept or {}))
            at[number] = {n: _input(nodes, f"group.{number}.{n}", ir.DataType.DOUBLE, ())
                          for n in names}  # fmt: skip
        updated.append(add_update(nodes, name, number, inputs[name], gradient, rule,
                                  groups[number], at[number]))  # fmt: skip
    _early(graph, before)
    merge_common(graph, types)
    turn_products(graph, types)
    join_selections(graph, types)
    remove_dead(graph, types)
    separate_names(graph)
    for node in all_nodes(graph):
        model.opset_imports.setdefault(node.domain, CURRENT_OPSETS.get(node.domain, 1))
    return StepProgram(model, tuple(updated), missing, summed, conditional)


def reached_name(parameter: str) -> str:
    """Return the name of the output that tells whether a gradient reached a parameter."""
    return f"{parameter}.reached"


def _output(
    graph: ir.Graph, value: ir.Value, name: str, dtype: ir.DataType, shape: Sequence[int] = ()
) -> None:
    value.name = name
    value.shape, value.type = ir.Shape(shape), ir.TensorType(dtype)
    graph.outputs.append(value)


def _told(nodes: Nodes, gradients: Sequence[ir.Value]) -> None:
    """Let the graph return whether gradients are finite."""
    with interpreting(nodes):
        _output(nodes.graph, op("Identity", all_finite(gradients)), FINITE, ir.DataType.BOOL)


def _summed(
    nodes: Nodes, name: str, parameter: ir.Value, gradient: ir.Value, share: Share
) -> ir.Value:
    """Return a gradient with those of the calls before; calls that are not the last return it."""
    found = nodes.types.types[parameter]
    assert isinstance(found, TensorType)
    shape = tuple(int(str(dim)) for dim in found.shape or ())
    before = _input(nodes, sum_name(name), found.dtype, shape)
    with interpreting(nodes):
        part = op("Div", gradient, np.array(share.count, found.dtype.numpy()))
        total: ir.Value = op("Add", before, part)
        if not share.last:
            name = f"{sum_name(name)}.new"
            _output(nodes.graph, op("Identity", total), name, found.dtype, shape)
    return total


def _early(graph: ir.Graph, before: set[ir.Node]) -> None:
    """Move the nodes of updates to where they can be computed, so that gradients live shortly.

    Args:
        graph: Its nodes are reordered.
        before: Nodes that stay in their order.
    """
    order = list(graph)
    bound: set[ir.Value] = set()  # values that follow from results of `before`
    waiting: dict[ir.Node, int] = {}
    readers: dict[ir.Value, list[ir.Node]] = {}
    for node in order:
        read = {value for value in read_values(node) if value in bound}
        if node in before or read:
            bound.update(node.outputs)
        if node not in before:
            waiting[node] = len(read)
            for value in read:
                readers.setdefault(value, []).append(node)
    found: dict[ir.Node, None] = {}

    def emit(node: ir.Node) -> None:
        """Add a node behind the nodes that it alone waits for."""
        for value in read_values(node):
            maker = value.producer()
            if maker in waiting and maker not in found and not waiting[maker]:
                emit(maker)
        found[node] = None

    for node in order:
        stack = [node] if node in before else []
        while stack:
            now = stack.pop()
            emit(now)
            for value in now.outputs:
                for reader in reversed(readers.get(value, ())):
                    waiting[reader] -= 1
                    if not waiting[reader]:
                        stack.append(reader)
    for node in order:  # those that follow from inputs alone
        if node not in found:
            emit(node)
    graph.remove(order)
    graph.extend(found)


def _made_at(value: ir.Value) -> str:
    """Return the place in the source of what made a value, in words behind others."""
    node = value.producer()
    while node is not None and not line_of(node) and node.op_type == "Identity":
        source = node.inputs[0]
        node = None if source is None else source.producer()
    place = "" if node is None else place_of(node)
    return f", made at {place}," if place else ""


def _check_loss(loss: ir.Value, found: Any) -> None:
    """Raise ``InvalidArgument`` unless the loss is one floating-point number."""
    one = isinstance(found, TensorType) and found.dtype.is_floating_point()
    if not one or any(dim != 1 for dim in found.shape or ()):
        place = _made_at(loss).rstrip(",")
        remedy = "reduce it, as in loss.mean()"
        if isinstance(found, TensorType) and not found.dtype.is_floating_point():
            remedy = "no gradient goes through it; return the numbers that it is computed from"
        raise InvalidArgument(
            f"step: expected a loss of one floating-point number, got {found}{place}: {remedy}"
        )


def _input(nodes: Nodes, name: str, dtype: ir.DataType, shape: Any) -> ir.Value:
    value = ir.Value(name=name, type=ir.TensorType(dtype), shape=to_ir_shape(tuple(shape)))
    nodes.graph.inputs.append(value)
    nodes.types.types[value] = TensorType(dtype, tuple(shape))
    return value


def _elements(types: GraphTypes, parameter: ir.Value) -> int:
    found = types.types[parameter]
    assert isinstance(found, TensorType)
    return math.prod(int(str(dim)) for dim in found.shape or ())


def _handed_out(
    nodes: Nodes,
    name: str,
    number: int,
    parameter: ir.Value,
    gradient: ir.Value,
    rule: Rule,
    group: Group,
) -> Updated:
    """Let the graph return the gradient of a parameter."""
    found = nodes.types.types[parameter]
    assert isinstance(found, TensorType)
    shape = [int(str(dim)) for dim in found.shape or ()]
    with interpreting(nodes):
        _output(nodes.graph, op("Identity", gradient), f"{name}.gradient", found.dtype, shape)
    return Updated(name, number, tuple(rule.states(group)), apart=True)


def add_update(
    nodes: Nodes,
    name: str,
    number: int,
    parameter: ir.Value,
    gradient: ir.Value,
    rule: Rule,
    group: Group,
    scalars: Mapping[str, ir.Value],
) -> Updated:
    """Add the update of one parameter to a graph, with the states as inputs and outputs.

    Args:
        nodes: Take the nodes.
        name: Of the parameter.
        number: Of its group.
        parameter: Its value.
        gradient: Its gradient.
        rule: The optimizer's rule.
        group: The settings of the group.
        scalars: The numbers of a step.
    """
    found = nodes.types.types[parameter]
    assert isinstance(found, TensorType)
    shape = tuple(found.shape or ())
    names = tuple(rule.states(group))
    states = {state: _input(nodes, f"{name}.{state}", found.dtype, shape) for state in names}
    with interpreting(nodes):
        at = scalars
        if found.dtype != ir.DataType.DOUBLE:
            at = {key: op("Cast", value, to=found.dtype) for key, value in scalars.items()}
        new, kept = rule.update(parameter, gradient, states, at, group)
        for title, value in ((name, new), *((f"{name}.{state}", kept[state]) for state in names)):
            output = op("Identity", value)
            output.name = f"{title}.new"
            output.shape, output.type = to_ir_shape(shape), ir.TensorType(found.dtype)
            nodes.graph.outputs.append(output)
    return Updated(name, number, names)


__all__ = ["IR_VERSION", "StepProgram", "Updated", "add_update", "step_program"]
