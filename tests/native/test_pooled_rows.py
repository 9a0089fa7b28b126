"""Pools over few channels: rows of pixels where they lie, in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import hagane

CASES = [
    ("MaxPool", [1, 1, 9001], {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ("MaxPool", [2, 1, 4096], {"kernel_shape": [2], "strides": [1]}),
    ("MaxPool", [1, 2, 5000], {"kernel_shape": [9], "dilations": [7], "pads": [8, 3]}),
    ("AveragePool", [1, 1, 9001], {"kernel_shape": [5], "pads": [2, 4], "count_include_pad": 1}),
    ("AveragePool", [1, 3, 8200], {"kernel_shape": [10], "strides": [4], "ceil_mode": 1}),
    ("AveragePool", [1, 1, 5, 4200], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("MaxPool", [1, 3, 6, 4100], {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER"}),
    ("LpPool", [1, 1, 4100], {"kernel_shape": [3], "pads": [2, 0]}),
]


@pytest.mark.parametrize(("op", "shape", "attributes"), CASES)
def test_rows_longer_than_a_piece_agree_with_onnxruntime(
    op: str, shape: list[int], attributes: dict[str, Any]
) -> None:
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])
    data = made.SerializeToString()
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    session = hagane.InferenceSession(data)
    (found,) = session.run(None, {"x": x})
    (wanted,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    # In blocks of sixteen channels the image would take many times its bytes.
    assert session.memory_plan().values < 5 * x.nbytes
    assert "(reference)" not in str(session.profile({"x": x}, runs=1))
