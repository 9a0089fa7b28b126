"""Nodes of a graph as calls, and subgraphs as functions over the builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from hagane.graph.walk import bodies, captured
from hagane.ops.builder import Call, op
from hagane.ops.context import known_attributes
from hagane.ops.gradient.marks import limit, limited
from hagane.ops.registry import find
from hagane.ops.values import tensor_to_array


def call_of(node: ir.Node) -> Call:
    """Return the call that a node stands for; its subgraphs become functions."""
    outside = dict.fromkeys(value for body in bodies(node) for value in captured(body))
    call = Call(
        find(node), tuple(node.inputs), _attributes(node, {}), tuple(node.outputs), (*outside,)
    )
    return limited(node, call)


def _attributes(node: ir.Node, outer: Mapping[ir.Value, Any]) -> dict[str, Any]:
    found = known_attributes(node, {})
    return {
        name: Replayed(item, outer) if isinstance(item, ir.Graph) else item
        for name, item in found.items()
    }


@dataclass(frozen=True, slots=True)
class Replayed:
    """The function from inputs to outputs that a subgraph is.

    Attributes:
        graph: The subgraph.
        outer: The stand-ins of values from outside; others stand for themselves.
    """

    graph: ir.Graph
    outer: Mapping[ir.Value, Any]

    @property
    def inputs(self) -> Sequence[ir.Value]:
        """The values that its arguments stand for, whose types hold in all iterations of a loop."""
        return self.graph.inputs

    def __call__(self, *arguments: Any) -> list[Any]:
        """Return the outputs."""
        known = {**self.outer, **dict(zip(self.graph.inputs, arguments, strict=True))}
        for value in self.graph.initializers.values():
            assert value.const_value is not None
            known.setdefault(value, tensor_to_array(value.const_value))
        for node in self.graph:
            inputs = [None if v is None else known.get(v, v) for v in node.inputs]
            count = len(node.outputs)
            made = op(
                node.op_type, *inputs, outputs=count, domain=node.domain, **_attributes(node, known)
            )
            made = limit(node, inputs, (made,) if count == 1 else made)
            known.update(zip(node.outputs, made, strict=True))
        return [known.get(value, value) for value in self.graph.outputs]
