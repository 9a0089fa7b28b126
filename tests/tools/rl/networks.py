"""Small networks in ONNX for tests."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(
    nodes: list[onnx.NodeProto],
    weights: dict[str, np.ndarray],
    inputs: dict[str, list[object]],
    outputs: dict[str, list[object]],
) -> bytes:
    def named(items: dict[str, list[object]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in items.items()]

    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "agent", named(inputs), named(outputs), held)
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def values(shape: tuple[int, ...] = (4,), actions: int = 3, seed: int = 0) -> bytes:
    """Two layers over a flattened observation, values and a state value."""
    draw = np.random.default_rng(seed)
    size = int(np.prod(shape))
    weights = {
        "a": draw.normal(0, size**-0.5, (size, 16)).astype(np.float32),
        "b": draw.normal(0, 0.25, (16, actions)).astype(np.float32),
        "c": draw.normal(0, 0.25, (16, 1)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Flatten", ["observation"], ["flat"]),
        helper.make_node("MatMul", ["flat", "a"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("MatMul", ["t", "b"], ["action_values"]),
        helper.make_node("MatMul", ["t", "c"], ["state_value"]),
    ]
    outputs: dict[str, list[object]] = {
        "action_values": ["batch", actions],
        "state_value": ["batch", 1],
    }
    return model(nodes, weights, {"observation": ["batch", *shape]}, outputs)


def counter() -> bytes:
    """A recurrent agent whose state adds up what it has seen, and whose values are that."""
    nodes = [
        helper.make_node("ReduceSum", ["observation", "axis"], ["sum"], keepdims=1),
        helper.make_node("Add", ["state", "sum"], ["next_state"]),
        helper.make_node("Neg", ["next_state"], ["minus"]),
        helper.make_node("Concat", ["next_state", "minus"], ["action_values"], axis=1),
    ]
    return model(
        nodes,
        {"axis": np.asarray([1], np.int64)},
        {"observation": ["batch", 2], "state": ["batch", 1]},
        {"action_values": ["batch", 2], "next_state": ["batch", 1]},
    )
