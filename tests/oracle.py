"""Small models, run by hagane and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import hagane

MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"


def node_model(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    n_outputs: int = 1,
    *,
    domain: str = "",
    opset: int = 17,
    constants: Sequence[int] = (),
    ml_opset: int = 3,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model of one node, and the feed of its inputs.

    Args:
        op_type: The operator.
        inputs: One array an input, None for an absent one.
        n_outputs: How many outputs the node has.
        domain: The operator's domain.
        opset: Version of ``ai.onnx``.
        constants: Which inputs are initializers.
        ml_opset: Version of ``ai.onnx.ml``.
        attributes: The node's attributes.
    """
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    present = {name: v for name, v in zip(names, inputs, strict=False) if v is not None}
    fixed = {f"x{i}" for i in constants}
    outputs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op_type, names, outputs, "node", domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in present.items()
            if name not in fixed
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [onnx.numpy_helper.from_array(present[name], name) for name in sorted(fixed)],
    )
    opsets = [("", opset), (MICROSOFT, 1), (ML, ml_opset)]
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*pair) for pair in opsets], ir_version=8
    )
    return model, {name: value for name, value in present.items() if name not in fixed}


def run_onnxruntime(model: onnx.ModelProto, feed: Mapping[str, Any]) -> list[Any]:
    """Return what ONNX Runtime computes, without rewriting the graph."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feed)))


def assert_agrees(
    model: onnx.ModelProto,
    feed: Mapping[str, Any],
    *,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    steps: int = 0,
) -> None:
    """Fail unless hagane and ONNX Runtime give the same types, shapes and numbers.

    ``steps`` is how far integer results may lie apart: one where both round a real number.
    """
    expected = run_onnxruntime(model, feed)
    found = hagane.InferenceSession(model).run(None, feed)
    assert len(found) == len(expected)
    for left, right in zip(found, expected, strict=True):
        if not isinstance(right, np.ndarray):
            assert left == right
            continue
        assert left.shape == right.shape
        if right.dtype == object:
            assert left.tolist() == right.tolist()
            continue
        assert left.dtype == right.dtype
        if right.dtype.kind in "iub":
            difference = np.abs(left.astype(np.int64) - right.astype(np.int64))
            assert difference.max(initial=0) <= steps
        else:
            np.testing.assert_allclose(left, right, rtol=rtol, atol=atol)


def assert_node_agrees(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    n_outputs: int = 1,
    *,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    steps: int = 0,
    **settings: Any,
) -> None:
    """Compare one node; see ``node_model`` and ``assert_agrees``."""
    model, feed = node_model(op_type, inputs, n_outputs, **settings)
    assert_agrees(model, feed, rtol=rtol, atol=atol, steps=steps)
