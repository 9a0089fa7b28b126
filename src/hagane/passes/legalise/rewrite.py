"""What an adapter needs to rewrite one node: attributes out, constants and nodes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import UnsupportedModel
from hagane.graph.verify import describe


@dataclass(frozen=True)
class Site:
    """One node that is being brought to its current form, within its graph."""

    node: ir.Node
    graph: ir.Graph
    number: Callable[[], int]
    version: int

    def take(self, name: str, default: Any = None) -> Any:
        """Remove the attribute ``name`` and return its value."""
        attribute = self.node.attributes.pop(name, None)
        return default if attribute is None else attribute.value

    def put(self, name: str, value: Any) -> None:
        """Set the attribute ``name``."""
        self.node.attributes[name] = ir.convenience.convert_attribute(name, value)

    def constant(self, value: Any, dtype: type[np.generic] = np.int64) -> ir.Value:
        """Return a new constant, made by a node before this one."""
        tensor = ir.tensor(np.asarray(value, dtype=dtype))
        return self.before("Constant", [], {"value": tensor})

    def before(
        self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Any = None
    ) -> ir.Value:
        """Insert a node before this one and return its only output."""
        new = ir.node(op_type, inputs, attributes or {})
        new.outputs[0].name = f"legalised.{self.number()}"
        new.name = f"{self.node.name or self.node.op_type}.{new.outputs[0].name}"
        self.graph.insert_before(self.node, new)
        return new.outputs[0]

    def set_input(self, index: int, value: ir.Value | None) -> None:
        """Make ``value`` the input number ``index``, with absent inputs before it if needed."""
        if index >= len(self.node.inputs):
            self.node.resize_inputs(index + 1)
        self.node.replace_input_with(index, value)

    def replace(
        self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Any = None
    ) -> None:
        """Put another node with the same outputs in place of this one."""
        new = ir.node(op_type, inputs, attributes or {}, num_outputs=len(self.node.outputs))
        new.name = self.node.name
        self.graph.insert_before(self.node, new)
        ir.convenience.replace_nodes_and_values(
            self.graph, self.node, [self.node], [], self.node.outputs, new.outputs
        )

    def refuse(self, reason: str) -> None:
        """Report that this node has no current form."""
        raise UnsupportedModel([f"{describe(self.node)} (opset {self.version}): {reason}"])
