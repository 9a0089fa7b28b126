"""One function over the builder, in every meaning that it has."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from hagane.errors import KernelError, TypeInferenceError, UnsupportedModel
from hagane.graph.names import separate_names
from hagane.graph.types import TensorType
from hagane.ops.builder import (
    Nodes,
    Typed,
    branch,
    interpreting,
    loop,
    new_input,
    op,
    shape_of,
    tensor_type,
)
from hagane.ops.inference import GraphTypes
from hagane.symbolic import floordiv, maximum, minimum, mod, symbol

FLOAT = ir.DataType.FLOAT


def log_softmax(x: Any) -> Any:
    shifted = op("Sub", x, op("ReduceMax", x, [-1], keepdims=1))
    return op("Sub", shifted, op("Log", op("ReduceSum", op("Exp", shifted), [-1], keepdims=1)))


def run_as_graph(function: Any, shape: Any, *feeds: np.ndarray) -> list[np.ndarray]:
    """Run a function of one tensor as a graph in ONNX Runtime, once for each feed."""
    types = GraphTypes()
    x = new_input("x", TensorType(FLOAT, shape), types)
    graph = ir.Graph([x], [], nodes=[], name="g", opset_imports={"": 21})
    with interpreting(Nodes(graph, types, name="f")):
        graph.outputs.append(op("Identity", function(x)))
    separate_names(graph)
    proto = ir.to_proto(ir.Model(graph, ir_version=10))
    onnx.checker.check_model(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return [session.run(None, {"x": feed})[0] for feed in feeds]


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_arrays_types_and_nodes_agree() -> None:
    x = draw(3, 4)
    eager = log_softmax(x)
    np.testing.assert_allclose(eager, np.log(np.exp(x) / np.exp(x).sum(-1, keepdims=True)), 1e-5)
    batch = symbol("batch")
    typed = log_softmax(Typed(TensorType(FLOAT, (batch, 4))))
    assert typed.type == TensorType(FLOAT, (batch, 4))
    (ran,) = run_as_graph(log_softmax, (batch, 4), x)
    np.testing.assert_allclose(ran, eager, 1e-6)


def test_numbers_take_the_element_type_of_the_other_operand() -> None:
    assert op("Mul", draw(2).astype(np.float64), 2).dtype == np.float64
    assert op("Add", np.arange(3, dtype=np.int32), [1, 2, 3]).dtype == np.int32
    assert op("Add", 1, 2).dtype == np.int64


def test_sizes_are_computed_from_the_shapes_of_inputs() -> None:
    n, m = symbol("n"), symbol("m")

    def sizes(x: Any) -> Any:
        n, m = shape_of(x)
        formulas = [n * m + 3, floordiv(n - 7, 3), mod(m - 9, 4), minimum(n, m), maximum(n * n, 5)]
        return op("Cast", op("Concat", [*formulas], [m], axis=0), to=FLOAT)

    for shape in ((1, 1), (3, 5), (11, 2)):
        (ran,) = run_as_graph(sizes, (n, m), np.zeros(shape, np.float32))
        a, b = shape
        want = [a * b + 3, (a - 7) // 3, (b - 9) % 4, min(a, b), max(a * a, 5), b]
        assert ran.tolist() == want


def test_bodies_are_functions() -> None:
    def function(x: Any) -> Any:
        (last, items) = loop(
            3, None, [x], lambda i, going, s: (going, op("Add", s, 1), s), stacked=1
        )
        total = op("ReduceSum", last, keepdims=0)
        (y,) = branch(op("Greater", total, 0), lambda: (last,), lambda: (op("Neg", last),), 1)
        return op("Add", y, op("ReduceMean", items, [0], keepdims=0))

    positive, negative = np.abs(draw(2, 3)), -np.abs(draw(4, 3)) * 9
    for x in (positive, negative):
        sign = 1 if x.sum() + 3 * x.size > 0 else -1
        np.testing.assert_allclose(function(x), sign * (x + 3) + x + 1, 1e-5)
    ran = run_as_graph(function, (symbol("n"), 3), positive, negative)
    for x, y in zip((positive, negative), ran, strict=True):
        np.testing.assert_allclose(y, function(x), 1e-5)


def test_wrong_operands_are_refused_before_a_kernel_runs() -> None:
    with pytest.raises(TypeInferenceError, match=r"MatMul.*float32\[2, 3\].*float32\[2, 3\]"):
        op("MatMul", draw(2, 3), draw(2, 3))
    with pytest.raises(TypeInferenceError, match="unknown attribute 'made_up'"):
        op("Softmax", draw(2, 3), made_up=1)
    with pytest.raises(UnsupportedModel, match="operator 'Sinus' of domain 'ai.onnx'"):
        op("Sinus", draw(2))
    with pytest.raises(TypeInferenceError, match="Gather: index 99 is out of range"):
        op("Gather", draw(2), np.array([99], np.int64))
    with pytest.raises(KernelError, match="Gather failed: .*inputs: float32"):
        op("Gather", draw(2), np.full((99,), 99, np.int64))
    with pytest.raises(TypeInferenceError, match="expected a tensor whose type is known"):
        tensor_type(Typed(None))
    types = GraphTypes()
    graph = ir.Graph([new_input("x", TensorType(FLOAT, (2,)), types)], [], nodes=[])
    with (
        interpreting(Nodes(graph, types)),
        pytest.raises(TypeInferenceError, match="no tensor here has an axis of size 'n'"),
    ):
        op("Expand", graph.inputs[0], [symbol("n"), 2])


def test_zeros_take_no_memory_until_they_are_written() -> None:
    def resident() -> int:
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    before = resident()
    zeros = op("ConstantOfShape", np.array([25_000_000]))
    assert resident() - before < 20_000_000
    assert zeros.dtype == np.float32
    assert not zeros[::1_000_000].any()
    negative = op("ConstantOfShape", np.array([2]), value=np.array([-0.0]))
    assert np.signbit(negative).all()
