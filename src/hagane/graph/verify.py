"""Check that a graph is well-formed: defined names, single assignment, no cycles."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from hagane.errors import InvalidGraph, TypeInferenceError
from hagane.graph.types import DECLARED, dtype_name, from_ir_shape
from hagane.graph.walk import PLACE, all_graphs, bodies


def verify(model: ir.Model) -> None:
    """Raise ``InvalidGraph`` unless every name is defined once, before it is used.

    Nodes that merely stand in the wrong order are put in order; a cycle is an error that names
    the nodes on it.
    """
    for graph in all_graphs(model.graph):
        _check_names(graph)
    if not _is_sorted(model.graph, set()):
        try:
            model.graph.sort()
        except ValueError:
            raise InvalidGraph(f"the graph has a cycle: {_find_cycle(model.graph)}") from None


def verify_declarations(model: ir.Model) -> None:
    """Raise unless inputs have types and weights are what the file declares of their names.

    Raises:
        InvalidGraph: An input has no type.
        TypeInferenceError: A weight is of another element type, or has another shape.
    """
    for value in model.graph.inputs:
        if value.type is None and value.const_value is None and DECLARED not in value.meta:
            raise InvalidGraph(f"input '{value.name}' has no type information; declare its type")
    for graph in all_graphs(model.graph):
        for weight in graph.initializers.values():
            _check_weight(weight)


def _check_weight(value: ir.Value) -> None:
    tensor = value.const_value
    if tensor is None or not isinstance(value.type, ir.TensorType):
        return
    if value.type.dtype not in (tensor.dtype, ir.DataType.UNDEFINED):
        raise TypeInferenceError(
            f"initializer '{value.name}': its data is {dtype_name(tensor.dtype)}, but it is "
            f"declared {dtype_name(value.type.dtype)}"
        )
    shape, given = from_ir_shape(value.shape), tuple(int(str(dim)) for dim in tensor.shape)
    if shape is not None and (
        len(shape) != len(given)
        or any(isinstance(dim, int) and dim != own for dim, own in zip(shape, given, strict=True))
    ):
        declared = ", ".join("?" if dim is None else str(dim) for dim in shape)
        raise TypeInferenceError(
            f"initializer '{value.name}': its data has the shape {list(given)}, but it is declared "
            f"[{declared}]"
        )


def describe(node: ir.Node) -> str:
    """Return a node's operator, name and place in the source, as every message speaks of it."""
    domain = f"{node.domain}::" if node.domain else ""
    label = node.name or ", ".join(f"-> {value.name}" for value in node.outputs[:1] if value.name)
    name, where = f" '{label}'" if label else "", ""
    if PLACE in node.metadata_props:
        from hagane.graph.places import place_of  # of captured models alone

        where = f" ({place_of(node)})"
    return f"{domain}{node.op_type}{name}{where}"


def _check_names(graph: ir.Graph) -> None:
    defined: dict[str, str] = {}
    for value in graph.inputs:
        _define(defined, value.name, "a graph input")
    for name in graph.initializers:
        if name not in defined:
            _define(defined, name, "an initializer")
    for node in graph:
        for value in node.outputs:
            if value.name:
                _define(defined, value.name, describe(node))
        for index, used in enumerate(node.inputs):
            if used is None or used.producer() is not None:
                continue
            if not (used.is_graph_input() or used.is_initializer()):
                raise InvalidGraph(
                    f"{describe(node)}: input {index} is '{used.name}', "
                    "which no node, input or initializer defines"
                )
    for value in graph.outputs:
        if value.producer() is None and not (value.is_graph_input() or value.is_initializer()):
            raise InvalidGraph(
                f"graph '{graph.name}': output '{value.name}' is never computed: "
                "no node, input or initializer defines it"
            )


def _define(defined: dict[str, str], name: str | None, where: str) -> None:
    if not name:
        raise InvalidGraph(f"{where} has no name")
    if name in defined:
        raise InvalidGraph(f"'{name}' is defined twice: by {defined[name]} and by {where}")
    defined[name] = where


def _is_sorted(graph: ir.Graph, seen: set[ir.Node]) -> bool:
    for node in graph:
        for value in node.inputs:
            producer = None if value is None else value.producer()
            if producer is not None and producer not in seen:
                return False
        seen.add(node)
        if not all(_is_sorted(body, seen) for body in bodies(node)):
            return False
    return True


def _find_cycle(graph: ir.Graph) -> str:
    """Return the nodes of one cycle, each written as its operator and name."""
    done: set[ir.Node] = set()
    for start in graph:
        path: list[ir.Node] = []
        on_path: set[ir.Node] = set()
        stack: list[tuple[ir.Node, Iterator[ir.Node]]] = []
        if start in done:
            continue
        stack.append((start, iter(start.predecessors())))
        path.append(start)
        on_path.add(start)
        while stack:
            node, predecessors = stack[-1]
            following = next(predecessors, None)
            if following is None:
                stack.pop()
                path.pop()
                on_path.discard(node)
                done.add(node)
            elif following in on_path:
                cycle = path[path.index(following) :]
                return " <- ".join(map(describe, [*cycle, following]))
            elif following not in done:
                stack.append((following, iter(following.predecessors())))
                path.append(following)
                on_path.add(following)
    return "through a subgraph that captures a later value"
