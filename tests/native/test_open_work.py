"""The time that kernels are taken to take, which says whether threads share them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from hagane.symbolic import Expr, number_of
from tests.native.models import compiled, draw, model, session

# Nanoseconds: below the first a kernel is not shared; above the second all threads should help.
SMALL, LARGE = 1500.0, 15000.0
WEIGHT = {"w": draw((64, 64))}


def one(operator: str, *inputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, ["y"], **attributes)


@pytest.mark.parametrize(
    ("node", "shapes", "constants"),
    [
        (one("MatMul", "x", "w"), {"x": ["n", 64]}, WEIGHT),
        (one("Gemm", "x", "w"), {"x": ["n", 64]}, WEIGHT),
        (one("MatMul", "x", "z"), {"x": ["n", 64], "z": [64, 32]}, {}),
        (one("MatMul", "x", "z"), {"x": ["n", 64, 8], "z": ["n", 8, 4]}, {}),
        (one("MatMulInteger", "i", "j"), {"i": ["n", 32], "j": [32, 16]}, {}),
        (one("MatMul", "i", "j"), {"i": ["n", 32], "j": [32, 16]}, {}),
        (one("Gather", "x", "at"), {"x": ["n", 64], "at": ["n"]}, {}),
        (one("Trilu", "x"), {"x": ["n", 64]}, {}),
        (one("ReduceMean", "x", axes=[0], keepdims=0), {"x": ["n", 64]}, {}),
        (one("CumSum", "x", "axis"), {"x": ["n", 64]}, {"axis": np.array(1, np.int64)}),
        (one("TopK", "x", "k"), {"x": ["n", 64]}, {"k": np.array([5], np.int64)}),
        (one("Softmax", "x"), {"x": ["n", 64]}, {}),
    ],
    ids=lambda each: each.op_type if isinstance(each, onnx.NodeProto) else "",
)
def test_kernels_of_open_sizes_are_shared_where_they_are_large(
    node: onnx.NodeProto,
    shapes: dict[str, Sequence[int | str]],
    constants: dict[str, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = {"i": np.uint8, "j": np.uint8, "at": np.int64}
    if node.op_type == "MatMul":
        types = dict.fromkeys(types, np.int32)
    feed = {
        name: np.zeros([1 if size == "n" else size for size in shape], types.get(name, np.float32))
        for name, shape in shapes.items()
    }
    if node.op_type == "TopK":
        node = helper.make_node("TopK", ["x", "k"], ["y", "which"])
    opset = 17 if node.op_type == "ReduceMean" else 21
    proto = model([node], feed, ["y"], constants, shapes, opset)
    kernels = compiled(monkeypatch, lambda: session(proto, instructions="portable"))
    assert kernels
    works = [kernel.work for kernel in kernels if isinstance(kernel.work, Expr)]
    assert works, "no kernel's time depends on the sizes"
    assert sum(number_of(work, {"n": 1}) for work in works) < SMALL
    assert sum(number_of(work, {"n": 100_000}) for work in works) > LARGE
    fixed = [kernel.work for kernel in kernels if not isinstance(kernel.work, Expr)]
    assert all(work < SMALL for work in fixed), "a time is guessed"
