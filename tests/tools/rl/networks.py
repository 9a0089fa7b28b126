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
    opset: int = 18,
) -> bytes:
    def named(items: dict[str, list[object]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in items.items()]

    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "agent", named(inputs), named(outputs), held)
    opsets = [helper.make_opsetid("", opset)]
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


def looking(
    channels: int = 4, last: bool = False, state: int = 0, old: int = 18, seed: int = 0
) -> bytes:
    """Two convolutions over pictures of any size, a policy of one branch, a value of another.

    Args:
        channels: of the picture.
        last: whether they come last, as bytes of 0 to 255, and are turned and scaled in the graph.
        state: the size of a recurrent state that is added, 0 for none.
        old: the opset.
        seed: of the weights.
    """
    draw = np.random.default_rng(seed)

    def weight(*shape: int) -> np.ndarray:
        return draw.normal(0, np.prod(shape[1:]) ** -0.5, shape).astype(np.float32)

    weights = {
        "a": weight(6, channels, 5, 3),
        "a_bias": weight(6, 1)[:, 0],
        "b": weight(5, 6, 3, 3),
        "b_bias": weight(5, 1)[:, 0],
        "v": weight(3, channels, 4, 4),
        "logits": weight(5, 3),
        "logits_bias": weight(3, 1)[:, 0],
        "value": weight(3, 1),
        "scale": np.float32([255]),
        "all": np.asarray([0, -1], np.int64),
        "mean": np.float32(0.5).reshape(1, 1, 1),
    }
    turned = [
        helper.make_node("Transpose", ["observation"], ["turned"], perm=[0, 3, 1, 2]),
        helper.make_node("Div", ["turned", "scale"], ["scaled"]),
        helper.make_node("Sub", ["scaled", "mean"], ["x"]),
    ]
    x = "x" if last else "observation"
    nodes = [
        *(turned if last else []),
        helper.make_node(
            "Conv", [x, "a", "a_bias"], ["h"], strides=[2, 3], pads=[1, 0, 2, 1], dilations=[1, 2]
        ),
        helper.make_node("Elu", ["h"], ["e"]),
        helper.make_node("Conv", ["e", "b", "b_bias"], ["i"], pads=[1, 1, 1, 1]),
        helper.make_node("Mul", ["i", "i"], ["squared"]),
        helper.make_node("GlobalAveragePool", ["squared"], ["pooled"]),
        helper.make_node("Reshape", ["pooled", "all"], ["flat"]),
        helper.make_node("Gemm", ["flat", "logits", "logits_bias"], ["action_logits"]),
        helper.make_node("Softmax", ["action_logits"], ["action_probs"], axis=1),
        helper.make_node("Conv", [x, "v"], ["w"], auto_pad="VALID"),
        helper.make_node("Relu", ["w"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["seen"]),
        helper.make_node("Flatten", ["seen"], ["line"]),
        helper.make_node("MatMul", ["line", "value"], ["state_value" if not state else "now"]),
    ]
    inputs: dict[str, list[object]] = {
        "observation": ["batch", "h", "w", channels] if last else ["batch", channels, "h", "w"]
    }
    outputs: dict[str, list[object]] = {
        "action_logits": ["batch", 3],
        "action_probs": ["batch", 3],
        "state_value": ["batch", 1],
    }
    if state:
        nodes += [
            helper.make_node("Add", ["state", "now"], ["next_state"]),
            helper.make_node("ReduceMean", ["next_state", "axis"], ["state_value"], keepdims=1),
        ]
        weights["axis"] = np.asarray([1], np.int64)
        inputs["state"], outputs["next_state"] = ["batch", state], ["batch", state]
    return model(nodes, weights, inputs, outputs, old)
