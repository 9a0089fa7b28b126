"""Gradients as nodes that are added to a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import Nodes, dtype_of, interpreting, op
from hagane.ops.gradient.accumulate import accumulate
from hagane.ops.gradient.reach import watching
from hagane.ops.gradient.replay import call_of
from hagane.ops.inference import GraphTypes, infer_added
from hagane.symbolic import Expr


def add_gradients(
    graph: ir.Graph,
    types: GraphTypes,
    of: Sequence[ir.Value],
    seeds: Sequence[ir.Value | None],
    with_respect_to: Sequence[ir.Value],
    *,
    come: dict[ir.Value, ir.Value] | None = None,
) -> list[ir.Value | None]:
    """Append the nodes that compute gradients and return these.

    Args:
        graph: A legalised graph, whose values ``types`` knows.
        types: The types of its values; the new ones are added.
        of: The value to differentiate.
        seeds: The gradient of each of these; 1 for None.
        with_respect_to: Inputs, initializers or values on the way.
        come: Takes a truth value for each value with a gradient that only some runs reach: whether
            the run does. That gradient is zeros otherwise.

    Returns:
        One value each; None where nothing in ``of`` depends on it.

    Raises:
        NotDifferentiable: An operator on the way has no gradient.
    """
    _keep_masks(graph, types)
    calls = [call_of(node) for node in graph]
    nodes = Nodes(graph, types, name="gradient")
    for value in _values(graph):
        nodes.note_sizes(value)
    with interpreting(nodes):
        starts = [
            nodes.constant(np.ones((), dtype_of(y).numpy())) if seed is None else seed
            for y, seed in zip(of, seeds, strict=True)
        ]
        # (A scalar may be of one axis of size 1.)
        starts = [
            op("Reshape", start, op("Shape", y)) if seed is None else start
            for y, seed, start in zip(of, seeds, starts, strict=True)
        ]
        if come is None:
            return accumulate(calls, of, starts, with_respect_to)
        with watching(_sizes(graph, types)) as reach:
            found = accumulate(calls, of, starts, with_respect_to)
        for value, gradient in zip(with_respect_to, found, strict=True):
            comes = reach.comes(gradient)
            if gradient is not None and comes is not True:
                come[value] = comes
        return found


def _sizes(graph: ir.Graph, types: GraphTypes) -> set[str]:
    """Return the names of sizes of inputs."""
    found = (types.types.get(value) for value in graph.inputs)
    return {
        str(size)
        for type_ in found
        if isinstance(type_, TensorType)
        for size in type_.shape or ()
        if isinstance(size, Expr)
    }


def _keep_masks(graph: ir.Graph, types: GraphTypes) -> None:
    """Let Dropout hand out its mask, which the gradient needs."""
    for node in graph:
        if node.op_type == "Dropout" and node.domain == "" and len(node.outputs) == 1:
            node.resize_outputs(2)
            node.outputs[1].name = f"{node.outputs[0].name}.mask"
            infer_added(node, types)


def _values(graph: ir.Graph) -> Iterable[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from node.outputs
