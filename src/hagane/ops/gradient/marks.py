"""Marks in the metadata of nodes: where a program lets no gradient through.

Operators of ONNX cannot say that a program detached a tensor, computed without gradients, or that
the row of an embedding's padding is not trained. Captured models have these marks in place of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.walk import all_nodes
from hagane.ops.builder import Call, dtype_of, is_continuous, op
from hagane.ops.definition import Unsupported
from hagane.ops.functions.numbers.elementary import where
from hagane.ops.layout.stopping import STOP, stopped
from hagane.ops.own_schemas import DOMAIN

_STOPPED = "hagane.stopped"  # no gradient goes through the results
_PASSED = "hagane.passed_over"  # gradients go to the content before a write, which is not known
_PADDING = "hagane.padding"  # the row of a table, which a Gather takes, that has no gradient


_PASSED_OVER = Unsupported(
    "a tensor is written while no gradients are recorded (torch.no_grad, .data, .detach()), and "
    "those of its new content are not known to the graph; make a new tensor there"
)


def mark_stopped(node: ir.Node) -> None:
    """Say that no gradient goes through a node's results."""
    node.metadata_props[_STOPPED] = "1"


def is_stopped(node: ir.Node) -> bool:
    """Whether no gradient goes through a node's results."""
    return _STOPPED in node.metadata_props or (node.op_type == STOP and node.domain == DOMAIN)


def mark_passed(node: ir.Node) -> None:
    """Say that a node's result has the gradients of what it was written over, without record."""
    node.metadata_props[_PASSED] = "1"


def passes_over(graph: ir.Graph) -> bool:
    """Whether a graph has results whose gradients go to what they were written over."""
    return any(_PASSED in node.metadata_props for node in all_nodes(graph))


def mark_padding(node: ir.Node, row: int) -> None:
    """Say that a row of the table from which a Gather takes rows has no gradient."""
    node.metadata_props[_PADDING] = str(row)


def mark_stops(graph: ir.Graph) -> None:
    """Let Identity stand for StopGradient, with a mark, in bodies too, in place."""
    for node in all_nodes(graph):
        if node.op_type == STOP and node.domain == DOMAIN:
            node.op_type, node.domain = "Identity", ""
            mark_stopped(node)


def sources_of(output: ir.Value) -> set[ir.Value]:
    """Return the values whose gradients a value has: inputs, initializers and what lies between.

    Of a node with bodies, all that these read counts.
    """
    seen: set[ir.Value] = set()
    waiting: list[ir.Value | None] = [output]
    while waiting:
        value = waiting.pop()
        if value is None or value in seen:
            continue
        seen.add(value)
        node = value.producer()
        if node is None:
            continue
        if any(isinstance(a.value, ir.Graph) for a in node.attributes.values()):
            waiting += [*node.inputs, *_read_within(node)]
        elif not is_stopped(node) and (value.dtype is None or value.dtype.is_floating_point()):
            waiting += node.inputs
    return seen


def _read_within(node: ir.Node) -> list[ir.Value | None]:
    """Return what the nodes in a node's bodies read."""
    bodies = [a.value for a in node.attributes.values() if isinstance(a.value, ir.Graph)]
    inner = [one for body in bodies for one in (*all_nodes(body),)]
    values: list[ir.Value | None] = [value for one in inner for value in one.inputs]
    return values + [value for body in bodies for value in body.outputs]


def limited(node: ir.Node, call: Call) -> Call:
    """Return the call that a node stands for, with the gradient that its marks leave."""
    rule = call.op.vjp
    if _PASSED in node.metadata_props:
        call.op = replace(call.op, vjp=_PASSED_OVER)
    elif _STOPPED in node.metadata_props:
        call.op = replace(call.op, vjp=lambda call, gradients: [None] * len(call.inputs))
    elif _PADDING in node.metadata_props and callable(rule):
        padding = int(node.metadata_props[_PADDING])

        def of_others(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
            (g,) = gradients
            zero = np.zeros((), dtype_of(g).numpy())
            found: Sequence[Any] = rule(call, [where(_rows(call.inputs[1], padding), zero, g)])
            return found

        call.op = replace(call.op, vjp=of_others)
    return call


def limit(node: ir.Node, inputs: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
    """Return the results of a node with the gradient that its marks leave them."""
    if _STOPPED in node.metadata_props:
        return [stopped(x) if is_continuous(x) else x for x in results]
    if _PADDING in node.metadata_props:
        rows = _rows(inputs[1], int(node.metadata_props[_PADDING]))
        return [where(rows, stopped(x), x) for x in results]
    return results


def _rows(places: Any, padding: int) -> Any:
    """Return which of the taken rows are padding, with an axis behind for their elements."""
    equal = op("Equal", places, np.array(padding, dtype_of(places).numpy()))
    return op("Unsqueeze", equal, [-1])


__all__ = ["limit", "limited", "mark_padding", "mark_passed", "mark_stopped", "mark_stops",
           "passes_over", "sources_of"]  # fmt: skip
