"""The reference kernels as a backend: every operator, a node at a time, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import HaganeError
from hagane.graph.verify import describe
from hagane.machine import is_of_handler
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array, RuntimeValue, Unsupported
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import find, schema_of
from hagane.ops.values import kernel_failed, tensor_to_array
from hagane.runtime.device import CPU, Device, Value
from hagane.runtime.port import Function, Part, Planned, Region, Watch


class ReferencePart(Part):
    """One node on its reference kernel.

    Its inputs are those of the node, then the values that its bodies capture.

    Attributes:
        kernel: From inputs to outputs; None if the node has bodies, or no kernel.
        named_bodies: The bodies of the node, by the names of attributes.
        attributes: The others.
    """

    backend = "reference"

    def __init__(self, node: ir.Node, bodies: Sequence[tuple[str, Function]]):
        self.node = node
        self.nodes = (node,)
        self.named_bodies = tuple(bodies)
        self.bodies = tuple(function for _, function in bodies)
        captured = (value for function in self.bodies for value in function.captured)
        self.inputs = (*node.inputs, *captured)
        self.outputs = tuple(node.outputs)
        self.op = find(node)
        self.attributes = plain_attributes(node)
        # Bodies are bound in each run, and a kernel that there is not is named in one.
        ready = not self.named_bodies and not isinstance(self.op.reference, Unsupported)
        self.kernel: Callable[..., Any] | None = None
        if ready:
            with suppress(Exception):  # it is raised, and named, by a run
                self.kernel = self.op.bound(self.attributes, len(self.outputs))

    def run(self, values: Sequence[Value], watch: Watch | None = None) -> list[Value]:
        """Return the outputs of the node.

        Raises:
            KernelError: The kernel failed; the message names the node and its inputs.
        """
        if self.kernel is not None:
            try:
                result = self.kernel(*values)
            except Exception as error:
                self.explain(error, values)
                raise
            if isinstance(result, np.ndarray | list):
                return [result]
            return _results(result if isinstance(result, tuple) else (result,))
        arguments, bodies = values, {}
        if self.named_bodies:
            at = len(self.node.inputs)
            arguments = values[:at]
            for name, function in self.named_bodies:
                end = at + len(function.captured)
                bodies[name] = function.bind(values[at:end], watch)
                at = end
        try:
            results = self.op(arguments, {**self.attributes, **bodies}, len(self.outputs))
        except Exception as error:
            self.explain(error, arguments)
            raise
        return _results(results)

    def explain(self, error: Exception, values: Sequence[Value]) -> None:
        """Raise the error of the kernel that raised another.

        One that tells its cause is left to the caller, and that of a signal's handler.

        Raises:
            KernelError: The kernel failed; the message names the node and its inputs.
        """
        if not isinstance(error, HaganeError) and not is_of_handler(error):
            raise kernel_failed(describe(self.node), error, values) from error


def _results(values: Sequence[Value]) -> list[Value]:
    return [np.asarray(value) if isinstance(value, np.generic) else value for value in values]


class ReferenceBackend:
    """Takes every node that no other backend takes."""

    name = "reference"
    provider = "CPUExecutionProvider"
    device: Device = CPU

    def adapt(self, graph: ir.Graph, types: GraphTypes) -> ReferenceBackend:
        """Change nothing."""
        return self

    def claims(self, node: ir.Node, types: GraphTypes) -> bool:
        """Whether the node can run: always."""
        return True

    def late(self, node: ir.Node, types: GraphTypes) -> Sequence[ir.Value]:
        """Return nothing: each node is a part of its own."""
        return ()

    def plan(self, region: Region) -> Planned:
        """Return a part for each node."""
        return Planned(tuple(ReferencePart(node, _bodies(node, region)) for node in region.nodes))


def _bodies(node: ir.Node, region: Region) -> list[tuple[str, Function]]:
    return [
        (name, region.function(attribute.as_graph()))
        for name, attribute in node.attributes.items()
        if attribute.type == ir.AttributeType.GRAPH
    ]


def plain_attributes(node: ir.Node) -> dict[str, Any]:
    """Return the attributes of a node, defaults filled in, bodies left out."""
    values = known_attributes(node, schema_of(node).defaults)
    return {name: value for name, value in values.items() if not isinstance(value, ir.Graph)}


def constant_output(node: ir.Node) -> Array:
    """Return the tensor of a Constant node."""
    (array,) = find(node)([], plain_attributes(node), 1)
    return np.asarray(array)


def constant_content(value: ir.Value) -> RuntimeValue:
    """Return a constant, computed by reference kernels if nodes make it of others."""
    if value.const_value is not None:
        return tensor_to_array(value.const_value)
    node = value.producer()
    assert node is not None, value
    arguments = [None if item is None else constant_content(item) for item in node.inputs]
    results = find(node)(arguments, plain_attributes(node), len(node.outputs))
    found: RuntimeValue = results[list(node.outputs).index(value)]
    return found
