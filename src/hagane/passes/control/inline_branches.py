"""Replace If nodes whose condition is known by the branch that they take."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import onnx_ir as ir

from hagane.graph.walk import all_nodes, bodies
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import constant, name_of, remove, replace_value


def inline_branches(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Move the nodes of the branch that is taken in front of the If, and remove it.

    Conditions are known where they follow from constants or from sizes of the inputs. Names of the
    branch that the graph has already are made new.
    """
    changed: list[str] = []
    while (node := _known(graph, types)) is not None:
        condition = constant(node.inputs[0], types)
        assert condition is not None
        name = "then_branch" if bool(condition.reshape(-1)[0]) else "else_branch"
        changed.append(name_of(node))
        inline(graph, types, node, node.attributes[name].as_graph())
    return changed


def _known(graph: ir.Graph, types: GraphTypes) -> ir.Node | None:
    for node in graph:
        if node.op_type == "If" and node.domain == "":
            known = constant(node.inputs[0], types)
            if known is not None and known.size == 1:
                return node
    return None


def inline(graph: ir.Graph, types: GraphTypes, node: ir.Node, branch: ir.Graph) -> None:
    """Put the nodes of a branch in the place of the If that has it."""
    results = move_in_front(graph, node, branch)
    for out, result in zip(node.outputs, results, strict=True):
        replace_value(graph, types, out, result)
    remove(graph, [node])
    for other in bodies(node):  # what is not taken reads nothing any more
        clear(other)


def clear(graph: ir.Graph) -> None:
    """Let a body read nothing any more."""
    graph.outputs.clear()
    for inner in all_nodes(graph):
        for i in range(len(inner.inputs)):
            inner.replace_input_with(i, None)


def move_in_front(graph: ir.Graph, node: ir.Node, branch: ir.Graph) -> list[ir.Value]:
    """Move the nodes of a body in front of a node, under names of their own; return its outputs."""
    hoist_initializers(graph, branch)
    rename = _renaming(graph)
    results = list(branch.outputs)
    branch.outputs.clear()
    nodes = list(branch)
    branch.remove(nodes)
    for inner in nodes:
        for out in inner.outputs:
            if out.name:
                rename(out)
    graph.insert_before(node, nodes)
    return results


def hoist_initializers(graph: ir.Graph, body: ir.Graph) -> None:
    """Make the initializers of a body those of the graph around it, under names of their own."""
    rename = _renaming(graph)
    for value in list(body.initializers.values()):
        content, old = value.const_value, value.name
        del body.initializers[str(old)]
        value.const_value = None  # a model that the caller has keeps its names
        rename(value)
        value.const_value = content
        graph.register_initializer(value)


def _renaming(graph: ir.Graph) -> Callable[[ir.Value], None]:
    """Return a function that gives a value a name which the graph does not have yet."""
    taken = {
        *(str(value.name) for value in graph.inputs),
        *graph.initializers,
        *(str(out.name) for other in graph for out in other.outputs),
    }

    def rename(value: ir.Value) -> None:
        if value.name in taken:
            fresh = (f"{value.name}_{n}" for n in itertools.count(1))
            value.name = next(name for name in fresh if name not in taken)
        taken.add(str(value.name))

    return rename
