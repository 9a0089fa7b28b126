"""Sparse tensors of files, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import hagane
from hagane.errors import InvalidModel


def sparse(indices: Any, values: Any = (1.5, -2.0), dims: Any = (3, 2)) -> onnx.SparseTensorProto:
    made = onnx.SparseTensorProto(dims=dims)
    made.values.CopyFrom(numpy_helper.from_array(np.float32(values), "w"))
    made.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64)))
    return made


def model(tensor: onnx.SparseTensorProto, *, constant: bool = False) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [3, 2])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    if constant:
        node = helper.make_node("Constant", [], ["w"], sparse_value=tensor)
        graph.node.insert(0, node)
    else:
        graph.sparse_initializer.append(tensor)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("indices", [[1, 4], [[0, 1], [2, 0]]])
def test_a_sparse_tensor_is_read_as_by_onnxruntime(indices: Any, constant: bool) -> None:
    made = model(sparse(indices), constant=constant)
    feed = {"x": np.arange(6, dtype=np.float32).reshape(3, 2)}
    given = made.SerializeToString()
    (wanted,) = onnxruntime.InferenceSession(given).run(None, feed)
    for source in (made, given):
        np.testing.assert_array_equal(hagane.InferenceSession(source).run(None, feed)[0], wanted)
    assert made.SerializeToString() == given


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (sparse([1, 6]), r"sparse tensor 'w': an index lies outside of the shape \[3, 2\]"),
        (sparse([[0, 1], [2, -1]]), "an index lies outside"),
        (sparse([1, 2, 3]), r"expected indices of the shape \[2\] or \[2, 2\], got \[3\]"),
        (sparse([1, 2], dims=(2**40, 2)), "expected sizes of a tensor of at most"),
    ],
)
def test_a_damaged_sparse_tensor_is_named(tensor: onnx.SparseTensorProto, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        hagane.InferenceSession(model(tensor))
