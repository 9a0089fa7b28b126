"""Small models of many kinds, with feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.native.models import draw

Case = tuple[onnx.ModelProto, dict[str, np.ndarray]]
node = helper.make_node


def make(
    nodes: Sequence[onnx.NodeProto],
    shapes: Mapping[str, Sequence[int | str]],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray],
    feed: dict[str, np.ndarray],
) -> Case:
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(feed[name].dtype), shape
        )
        for name, shape in shapes.items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "model", inputs, results, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), feed


def images() -> Case:
    """Convolutions, one of them by channels, pooling and a product."""
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4),
        node("Relu", ["c"], ["r"]),
        node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["m", "d"], ["e"], group=24, pads=[1] * 4),
        node("GlobalAveragePool", ["e"], ["p"]),
        node("Flatten", ["p"], ["f"]),
        node("Gemm", ["f", "g"], ["y"], transB=1),
    ]
    constants = {
        "w": draw((24, 3, 3, 3), 1),
        "b": draw((24,), 2),
        "d": draw((24, 1, 3, 3), 3),
        "g": draw((7, 24), 4),
    }
    return make(nodes, {"x": (2, 3, 12, 10)}, ["y"], constants, {"x": draw((2, 3, 12, 10))})


def attention() -> Case:
    """A block of a transformer, of any batch and length."""
    width, heads = 16, 2
    constants = {
        **{name: draw((width, width), i) / 4 for i, name in enumerate("qkvo")},
        "split": np.array([0, 0, heads, width // heads]),
        "join": np.array([0, 0, width]),
        "scale": draw((width,), 5),
        "bias": draw((width,), 6),
    }
    nodes = []
    for name in "qkv":
        order = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        nodes += [
            node("MatMul", ["x", name], [f"{name}0"]),
            node("Reshape", [f"{name}0", "split"], [f"{name}1"]),
            node("Transpose", [f"{name}1"], [f"{name}2"], perm=order),
        ]
    nodes += [
        node("MatMul", ["q2", "k2"], ["s"]),
        node("Softmax", ["s"], ["a"], axis=-1),
        node("MatMul", ["a", "v2"], ["t"]),
        node("Transpose", ["t"], ["u"], perm=[0, 2, 1, 3]),
        node("Reshape", ["u", "join"], ["j"]),
        node("MatMul", ["j", "o"], ["p"]),
        node("Add", ["p", "x"], ["r"]),
        node("LayerNormalization", ["r", "scale", "bias"], ["n"]),
        node("Gelu", ["n"], ["y"]),
    ]
    return make(nodes, {"x": ("batch", "length", width)}, ["y"], constants, {"x": draw((2, 5, 16))})


def recurrent() -> Case:
    """An LSTM."""
    constants = {"w": draw((1, 20, 4), 1), "r": draw((1, 20, 5), 2), "b": draw((1, 40), 3)}
    nodes = [node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=5)]
    return make(nodes, {"x": (6, 3, 4)}, ["y"], constants, {"x": draw((6, 3, 4))})


def loop() -> Case:
    """A loop whose number of iterations an input tells, and whose slices are stacked."""
    body = helper.make_graph(
        [
            node("MatMul", ["s", "w"], ["m"]),
            node("Tanh", ["m"], ["next"]),
            node("Identity", ["next"], ["each"]),
            node("Identity", ["going"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [4, 4]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [4, 4]),
            helper.make_tensor_value_info("each", TensorProto.FLOAT, [4, 4]),
        ],
    )
    nodes = [
        node("Loop", ["count", "", "x"], ["last", "all"], body=body),
        node("ReduceSum", ["all"], ["y"], keepdims=0),
    ]
    feed = {"count": np.array(6), "x": draw((4, 4))}
    return make(
        nodes, {"count": (), "x": (4, 4)}, ["last", "all", "y"], {"w": draw((4, 4), 1)}, feed
    )


def growing() -> Case:
    """A loop that carries a list which grows, as decoders do."""
    body = helper.make_graph(
        [
            node("ReduceSum", ["list"], ["sum"], keepdims=1),
            node("Concat", ["list", "sum"], ["longer"], axis=0),
            node("Identity", ["going"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("list", TensorProto.FLOAT, ["k"]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("longer", TensorProto.FLOAT, ["k1"]),
        ],
    )
    nodes = [node("Loop", ["count", "", "x"], ["y"], body=body)]
    return make(nodes, {"count": (), "x": (3,)}, ["y"], {}, {"count": np.array(5), "x": draw((3,))})


def any_batch() -> Case:
    """Rows of any number, twice."""
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Concat", ["a", "a"], ["k"], axis=0),
        node("Softmax", ["k"], ["y"]),
    ]
    constants = {"w": draw((33, 17), 1), "b": draw((17,), 2)}
    return make(nodes, {"x": ("n", 33)}, ["y"], constants, {"x": draw((5, 33), 4)})


def look_up() -> Case:
    """Rows of a table, by indices that may be wrong."""
    nodes = [node("Gather", ["t", "i"], ["g"]), node("Add", ["g", "g"], ["y"])]
    feed = {"i": np.array([1, 9, 3])}
    return make(nodes, {"i": ("n",)}, ["y"], {"t": draw((10, 5))}, feed)


def plain() -> Case:
    """Outputs that are inputs, constants, and the same twice."""
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Identity", ["x"], ["same"]),
        node("Constant", [], ["k"], value=numpy_helper.from_array(draw((3,)))),
        node("Identity", ["r"], ["again"]),
    ]
    return make(nodes, {"x": ("n", 4)}, ["r", "same", "k", "again"], {}, {"x": draw((3, 4))})


CASES: Mapping[str, Callable[[], Case]] = {
    function.__name__: function
    for function in (*(images, attention, recurrent, loop, growing, any_batch, look_up, plain),)
}


def save(case: Case, path: Path) -> dict[str, np.ndarray]:
    """Write a model; return its feed."""
    onnx.save(case[0], path)
    return case[1]
