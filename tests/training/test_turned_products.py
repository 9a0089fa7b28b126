"""Products of which only the transpose is read."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from hagane.graph import CURRENT_OPSETS
from hagane.graph.types import TensorType
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.inference import GraphTypes
from hagane.runtime import InferenceSession
from hagane.training.step.turned_products import turn_products

FLOAT = ir.DataType.FLOAT


def drawn(kind: str) -> tuple[ir.Model, GraphTypes]:
    """Return a graph of ``a`` (4, 5) and ``b`` (5, 3) whose results are transposes of products."""
    graph = ir.Graph([], [], nodes=[], name="g", opset_imports={"": CURRENT_OPSETS[""]})
    types = GraphTypes()
    for name, shape in (("a", (4, 5)), ("b", (5, 3)), ("c", (2, 4, 5))):
        value = ir.Value(name=name, type=ir.TensorType(FLOAT), shape=ir.Shape(shape))
        graph.inputs.append(value)
        types.types[value] = TensorType(FLOAT, shape)
    a, b, c = graph.inputs
    with interpreting(Nodes(graph, types, name="n")):
        left = op("Transpose", op("Transpose", a)) if kind == "transposed sides" else a
        if kind == "stacks":
            found = [op("Transpose", op("MatMul", c, b), perm=[0, 2, 1])]
        elif kind == "16 bits":
            narrow = [op("Cast", x, to=ir.DataType.BFLOAT16) for x in (a, b)]
            product = op("Cast", op("MatMul", *narrow), to=FLOAT)
            found = [op("Transpose", product, perm=[1, 0])]
        else:
            product = op("MatMul", left, b)
            found = [op("Transpose", product)]
            if kind == "read twice":
                found.append(op("Neg", product))
        for i, value in enumerate(found):
            result = op("Identity", value)
            result.name, result.type = f"y{i}", ir.TensorType(FLOAT)
            graph.outputs.append(result)
    return ir.Model(graph, ir_version=10), types


@pytest.mark.parametrize(
    ("kind", "turned"),
    [("plain", True), ("transposed sides", True), ("16 bits", True), ("read twice", False),
     ("stacks", False)],
)  # fmt: skip
def test_a_product_is_turned_where_nothing_else_reads_it(kind: str, turned: bool) -> None:
    random = np.random.default_rng(0)
    shapes = {"a": (4, 5), "b": (5, 3), "c": (2, 4, 5)}
    feed = {name: random.standard_normal(shape).astype("f") for name, shape in shapes.items()}
    before, _ = drawn(kind)
    expected = InferenceSession(before).run(None, feed)
    model, types = drawn(kind)
    turn_products(model.graph, types)
    (product,) = [node for node in model.graph if node.op_type == "MatMul"]
    last = product.outputs[0]
    while [use.node.op_type for use in last.uses()] == ["Cast"]:
        last = next(iter(last.uses())).node.outputs[0]
    assert ("Transpose" in [use.node.op_type for use in last.uses()]) != turned
    for one, other in zip(InferenceSession(model).run(None, feed), expected, strict=True):
        np.testing.assert_array_equal(one, other)
