"""A Loop of the graph while it is made: its body, and the values that iterations hand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.emitting.scope import Scope
from hagane.graph.types import TensorType
from hagane.ops.builder import node_of
from hagane.ops.registry import operators

_NUMBER_AND_CONDITION = (TensorType(ir.DataType.INT64, ()), TensorType(ir.DataType.BOOL, ()))


@dataclass(eq=False)
class Body:
    """A Loop being made.

    Attributes:
        node: The node, which joins the scope around when it is closed.
        inner: The scope of its body.
        outer: The scope around.
        emitter: Makes the nodes.
        states: How many values an iteration hands to the next one.
    """

    node: ir.Node
    inner: Scope
    outer: Scope
    emitter: GraphEmitter
    states: int = 0
    _exported: dict[ir.Value, ir.Value] = field(default_factory=dict)

    @staticmethod
    def opened(emitter: GraphEmitter, types: Sequence[TensorType]) -> Body:
        """Return a Loop in the current scope, with states of these types."""
        graph = ir.Graph([], [], nodes=[], name="body")
        node = node_of(operators()["", "Loop"], [None, None], {"body": graph}, 0)
        body = Body(node, emitter.open_scope(graph, emitter.scope), emitter.scope, emitter)
        body.inner.owner = body
        for type_ in (*_NUMBER_AND_CONDITION, *types):
            body.inner.nodes.note_sizes(body._input(type_))
        body.states = len(types)
        return body

    def _input(self, type_: TensorType) -> ir.Value:
        value = ir.Value(name=None)
        self.emitter.set_type(value, type_)
        self.emitter.add_home(value, self.inner)
        self.inner.graph.inputs.append(value)
        return value

    @property
    def inputs(self) -> list[ir.Value]:
        """The number of the iteration, the condition, and the states."""
        return list(self.inner.graph.inputs)

    def finish(self, going: ir.Value, states: Sequence[ir.Value]) -> None:
        """End the body: whether there is another iteration, and its states."""
        for value in (going, *states):
            self.inner.graph.outputs.append(self.emitter.own(value, self.inner))

    def add_states(self, types: Sequence[TensorType]) -> list[ir.Value]:
        """Add states that only the last iteration is asked for; return their initial values."""
        for type_ in types:
            self._input(type_)
        self.states += len(types)
        return [self.emitter.zeros(type_) for type_ in types]

    def close(
        self,
        limit: ir.Value | None,
        going: ir.Value | None,
        first: Sequence[ir.Value],
        types: Sequence[TensorType],
    ) -> list[ir.Value]:
        """Put the node into the scope around it, and return its outputs.

        Args:
            limit: The most iterations; None for no limit.
            going: Whether there is a first one; None where the limit says it.
            first: The states before it.
            types: The types of the node's outputs.
        """
        node = self.node
        node.resize_inputs(2 + len(first))
        for place, value in enumerate((limit, going, *first)):
            node.replace_input_with(place, value)
        node.resize_outputs(len(types))
        self.outer.nodes.insert(node)
        for made, type_ in zip(node.outputs, types, strict=True):
            self.emitter.set_type(made, type_)
            self.outer.nodes.note_sizes(made)
        self.states = len(first)
        return list(node.outputs)

    def export(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return the value of the last iteration; of none if there was none."""
        del scope
        if value not in self._exported:
            type_ = self.emitter.types.types[value]
            assert isinstance(type_, TensorType)
            self._exported[value] = self._handed(value, type_)
        return self._exported[value]

    def _handed(self, value: ir.Value, type_: TensorType) -> ir.Value:
        emitter = self.emitter
        rank = len(type_.shape or ())
        empty = emitter.root.nodes.initializer(np.zeros((1,) * rank, type_.dtype.numpy()), "filler")
        inside = ir.Value(name=None, type=ir.TensorType(type_.dtype))
        place = 2 + self.states
        self.inner.graph.inputs.insert(place, inside)
        self.inner.graph.outputs.insert(1 + self.states, emitter.own(value, self.inner))
        self.node.resize_inputs(place + 1)
        self.node.replace_input_with(place, empty)
        self.node.resize_outputs(len(self.node.outputs) + 1)
        self.states += 1
        made = self.node.outputs[-1]
        emitter.set_type(made, type_)
        emitter.add_home(made, self.outer)
        self.outer.nodes.note_sizes(made)
        return made
