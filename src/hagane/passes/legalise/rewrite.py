"""The view that an adapter has of one node: attributes out, constants and nodes in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import UnsupportedModel
from hagane.graph.verify import describe
from hagane.ops.builder import Nodes


@dataclass(frozen=True)
class Site:
    """One node that is being brought to its current form, within its graph.

    While an adapter has it, ``op`` inserts nodes in front of the node. Types are found later, so
    numbers among their operands are int64, or float32 where they are no integers.
    """

    node: ir.Node
    graph: ir.Graph
    version: int

    @cached_property
    def nodes(self) -> Nodes:
        """The builder that inserts nodes in front of this one."""
        name = self.node.name or self.node.op_type
        return Nodes(self.graph, before=self.node, name=f"{name}.legalised", typed=False)

    def take(self, name: str, default: Any = None) -> Any:
        """Remove the attribute ``name`` and return its value."""
        attribute = self.node.attributes.pop(name, None)
        return default if attribute is None else attribute.value

    def put(self, name: str, value: Any) -> None:
        """Set the attribute ``name``."""
        self.node.attributes[name] = ir.convenience.convert_attribute(name, value)

    def constant(self, value: Any, dtype: type[np.generic] = np.int64) -> ir.Value:
        """Return a new constant."""
        return self.nodes.constant(np.asarray(value, dtype=dtype))

    def set_input(self, index: int, value: ir.Value | None) -> None:
        """Make ``value`` the input number ``index``, with absent inputs before it if needed."""
        if index >= len(self.node.inputs):
            self.node.resize_inputs(index + 1)
        self.node.replace_input_with(index, value)

    def replace(self, *made: ir.Value) -> None:
        """Put new values in the place of the outputs of this node, which goes.

        They take over the names of the outputs, and the maker of the first that of the node.
        """
        maker = made[0].producer()
        assert maker is not None
        maker.name = self.node.name
        ir.convenience.replace_nodes_and_values(
            self.graph, self.node, [self.node], [], self.node.outputs, made
        )

    def refuse(self, reason: str) -> None:
        """Report that this node has no current form."""
        raise UnsupportedModel([f"{describe(self.node)} (opset {self.version}): {reason}"])
