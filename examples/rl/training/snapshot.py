"""Networks of PyTorch as ONNX, node by node: what ``hagane rl serve POLICY.onnx`` opens.

The input is ``observation``, outputs bear the keys of the log, a recurrent state comes in as
``state`` and goes out as ``next_state``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import nn


class Drawing:
    """Collects the nodes and weights of one graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def constant(self, array: np.ndarray) -> str:
        """Add a weight and return its name."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: object) -> str:
        """Add a node and return its output's name."""
        output = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def linear(self, value: str, layer: nn.Linear, name: str = "") -> str:
        """Add a layer."""
        weight = self.constant(layer.weight.detach().numpy())
        bias = self.constant(layer.bias.detach().numpy())
        return self.node("Gemm", value, weight, bias, name=name, transB=1)

    def through(self, value: str, layers: nn.Sequential, name: str = "") -> str:
        """Add layers one after the other."""
        last = len(layers) - 1
        for index, layer in enumerate(layers):
            label = name if index == last else ""
            if isinstance(layer, nn.Linear):
                value = self.linear(value, layer, label)
            elif isinstance(layer, nn.Conv2d):
                weight = self.constant(layer.weight.detach().numpy())
                bias = self.constant(layer.bias.detach().numpy())
                value = self.node("Conv", value, weight, bias, strides=list(layer.stride))
            else:
                operator = {nn.ReLU: "Relu", nn.Tanh: "Tanh", nn.Flatten: "Flatten"}[type(layer)]
                value = self.node(operator, value, name=label)
        return value

    def shaped(self, value: str, *shape: int) -> str:
        """Add a reshape."""
        return self.node("Reshape", value, self.constant(np.asarray(shape, np.int64)))

    def save(
        self,
        path: Path,
        inputs: dict[str, list[object]],
        outputs: dict[str, list[object]],
        facts: dict[str, str],
    ) -> None:
        """Check the graph and write it with facts about the agent."""
        kind = TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "agent",
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
            self.weights,
        )
        opsets = [helper.make_opsetid("", 18)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        for key, text in facts.items():
            model.metadata_props.add(key=f"hagane.rl.{key}", value=text)
        onnx.checker.check_model(model, full_check=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.SerializeToString())


def body(shape: tuple[int, ...], width: int) -> nn.Sequential:
    """Return the layers below the heads: two wide ones, after a convolution for pictures."""
    if len(shape) == 3:
        channels, height, breadth = shape
        inner = 16 * (height - 2) * (breadth - 2)
        return nn.Sequential(
            nn.Conv2d(channels, 16, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(inner, width // 2),
            nn.ReLU(),
        )
    return nn.Sequential(
        nn.Linear(shape[0], width), nn.ReLU(), nn.Linear(width, width // 2), nn.ReLU()
    )
