"""A graph under construction: nodes, constants and new names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper


@dataclass(slots=True)
class Drawing:
    """Nodes and constants so far."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    made: int = 0

    def named(self, name: str) -> str:
        """Return a new name."""
        self.made += 1
        return f"{name}/blends/{self.made}"

    def constant(self, array: npt.NDArray[Any]) -> str:
        """Return the name of a new constant."""
        name = self.named("constant")
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integers(self, *values: int) -> str:
        """Return the name of a constant list of integers."""
        return self.constant(np.asarray(values, np.int64))

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = name or self.named(operator)
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def shaped(self, value: str, *sizes: int) -> str:
        """Return a value in another shape."""
        return self.node("Reshape", value, self.integers(*sizes))

    def again(self, node: onnx.NodeProto, *inputs: str) -> str:
        """Add a node of one output with other inputs, and return the name of its output."""
        copy = renamed(node, {})
        del copy.input[:]
        copy.input.extend(inputs)
        name = self.named(node.output[0])
        copy.name, copy.output[0] = "", name
        self.nodes.append(copy)
        return name


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return a copy of a node whose inputs have other names."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for index, name in enumerate(node.input):
        copy.input[index] = names.get(name, name)
    return copy
