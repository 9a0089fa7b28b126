"""A legalised model gets outputs that are gradients of its values."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.graph import CURRENT_OPSETS
from hagane.graph.names import separate_names
from hagane.graph.types import TensorType, to_ir_shape
from hagane.graph.walk import all_nodes
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.gradient.model import add_gradients
from hagane.ops.inference import GraphTypes, write_types
from hagane.passes.expanding.expand_composed import expand_own
from hagane.passes.removing.merge_common import merge_common
from hagane.passes.removing.remove_dead import remove_dead


def differentiate(
    model: ir.Model,
    types: GraphTypes,
    of: Sequence[ir.Value],
    with_respect_to: Sequence[ir.Value],
    *,
    seeds: bool,
) -> list[bool]:
    """Add outputs ``<name>.gradient`` in place; return which values have one.

    Args:
        model: A legalised model.
        types: The types of its values.
        of: The values to differentiate.
        with_respect_to: Those with respect to which that is done.
        seeds: Whether each value in ``of`` gets an input ``<name>.seed``, the gradient to start
            from, in place of 1.

    Raises:
        NotDifferentiable: An operator on the way has no gradient.
    """
    graph = model.graph
    starts = [_seed(graph, types, value) if seeds else None for value in of]
    found = add_gradients(graph, types, of, starts, with_respect_to)
    for value, gradient in zip(with_respect_to, found, strict=True):
        if gradient is not None:
            _add_output(graph, types, value, gradient)
    expand_own(graph, types)
    merge_common(graph, types)
    remove_dead(graph, types)
    separate_names(graph)
    write_types(types)  # a body was made for the types of its first iteration
    for node in all_nodes(graph):
        model.opset_imports.setdefault(node.domain, CURRENT_OPSETS.get(node.domain, 1))
    return [gradient is not None for gradient in found]


def _seed(graph: ir.Graph, types: GraphTypes, value: ir.Value) -> ir.Value:
    """Return a new input of the type of a value."""
    found = types.types[value]
    assert isinstance(found, TensorType)
    name = f"{value.name}.seed"
    seed = ir.Value(name=name, type=ir.TensorType(found.dtype), shape=to_ir_shape(found.shape))
    graph.inputs.append(seed)
    types.types[seed] = found
    return seed


def _add_output(graph: ir.Graph, types: GraphTypes, value: ir.Value, found: ir.Value) -> None:
    """Let the graph return a gradient under the name of its value."""
    with interpreting(Nodes(graph, types, name=f"{value.name}.gradient")):
        output = op("Identity", found)
    taken = {other.name for other in graph.outputs}
    name, number = f"{value.name}.gradient", 1
    while name in taken:
        number += 1
        name = f"{value.name}.gradient.{number}"
    output.name, output.type, output.shape = name, value.type, value.shape
    if value in types.types:
        types.types[output] = types.types[value]
    graph.outputs.append(output)


__all__ = ["differentiate"]
