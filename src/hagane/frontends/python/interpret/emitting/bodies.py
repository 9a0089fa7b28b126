"""Bodies of loops and branches within functions over the builder, as graphs.

Loops of the program are the business of domains; these are parts of a library's function, such as
the elimination that solves linear equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from hagane.graph.types import Type
from hagane.ops.builder import Call, argument_types, interpreting, op

if TYPE_CHECKING:
    from hagane.frontends.python.interpret.emitting.emit import Emitter

Bodies = dict[ir.Graph, Sequence[Type | None]]
_Inferred = tuple[list[Type | None], list[Any]]


def traced(emit: Emitter, call: Call, name: str, bodies: Bodies) -> ir.Graph:
    """Return a body of a call as a graph, for operands of the call's types.

    Args:
        emit: Makes its nodes.
        call: The call, whose attribute ``name`` is a function from values to values.
        name: The attribute.
        bodies: Is given the types of the body's outputs.
    """
    graph = ir.Graph([], [], nodes=[], name=name)
    with emit.inside(graph), interpreting(emit):
        given = [emit.body_input(graph, type_) for _, type_ in argument_types(emit, call)]
        results = [op("Identity", result) for result in call.attributes[name](*given)]
        graph.outputs.extend(emit.value_of(result) for result in results)
    bodies[graph] = [emit.type_of(result) for result in results]
    return graph


def types_of(bodies: Bodies) -> Callable[..., _Inferred]:
    """Return the type rule of bodies that were traced."""

    def infer(graph: ir.Graph, inputs: Sequence[Type | None], values: Sequence[Any]) -> _Inferred:
        del inputs, values
        found = [*bodies[graph]]
        return found, [None] * len(found)

    return infer


__all__ = ["Bodies", "traced", "types_of"]
