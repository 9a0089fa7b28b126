"""Models of one operator with open sizes, and drawn values for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Feed = dict[str, np.ndarray]
RNG = np.random.default_rng(0)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Return normal numbers."""
    return RNG.standard_normal(shape).astype(dtype)


def model(
    operator: str,
    feed: Feed,
    fixed: Sequence[str] = (),
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, np.ndarray] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one node; sizes of inputs are open but for those named in ``fixed``."""
    domain, _, name = operator.rpartition(":")
    inputs = [
        helper.make_tensor_value_info(
            key,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [
                d if key in fixed or f"{key}:{i}" in fixed else f"{key}_{i}"
                for i, d in enumerate(array.shape)
            ],
        )
        for key, array in feed.items()
    ]
    node = helper.make_node(name, [*feed, *(constants or {})], outputs, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        inputs,
        [helper.make_tensor_value_info(key, TensorProto.UNDEFINED, None) for key in outputs],
        [numpy_helper.from_array(array, key) for key, array in (constants or {}).items()],
    )
    for value in graph.output:
        value.ClearField("type")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(
        graph, ir_version=9, opset_imports=[*opsets, helper.make_opsetid("com.microsoft", 1)]
    )


def trees(
    rows: int, count: int = 100, depth: int = 6, features: int = 30
) -> tuple[onnx.ModelProto, Feed]:
    """Return a regression forest and rows for it."""
    inner, found = 2**depth - 1, {}  # type: tuple[int, dict[str, list[Any]]]
    for tree in range(count):
        for i in range(2 * inner + 1):
            leaf = i >= inner
            entry = {
                "nodes_treeids": tree,
                "nodes_nodeids": i,
                "nodes_modes": "LEAF" if leaf else "BRANCH_LEQ",
                "nodes_featureids": 0 if leaf else int(RNG.integers(features)),
                "nodes_values": 0.0 if leaf else float(RNG.standard_normal()),
                "nodes_truenodeids": 0 if leaf else 2 * i + 1,
                "nodes_falsenodeids": 0 if leaf else 2 * i + 2,
            }
            if leaf:
                entry |= {
                    "target_treeids": tree,
                    "target_nodeids": i,
                    "target_ids": 0,
                    "target_weights": float(RNG.standard_normal()),
                }
            for key, value in entry.items():
                found.setdefault(key, []).append(value)
    feed = {"x": draw(rows, features)}
    return model("ai.onnx.ml:TreeEnsembleRegressor", feed, ["x:1"], n_targets=1, **found), feed


def case(
    operator: str, feed: Feed, fixed: Sequence[str] = (), **more: Any
) -> tuple[onnx.ModelProto, Feed]:
    """Return a model and its feed."""
    return model(operator, feed, fixed, **more), feed


def indices(count: int, *shape: int) -> np.ndarray:
    """Return drawn indices."""
    return RNG.integers(0, count, shape)


def numbers(*items: int) -> np.ndarray:
    """Return int64 numbers."""
    return np.array(items, np.int64)
