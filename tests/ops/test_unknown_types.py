"""Element types that are none, and values of which the type is not known."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import hagane
from hagane.errors import TypeInferenceError
from hagane.ops.inference import infer_types
from hagane.ops.node import infer_node
from hagane.symbolic import Expr, symbol


@pytest.mark.parametrize("target", [0, -1, 99, 2**62])
@pytest.mark.parametrize("op", ["Cast", "BitCast"])
def test_a_cast_to_no_element_type_is_refused(op: str, target: int) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = onnx.ValueInfoProto(name="y")
    node = helper.make_node(op, ["x"], ["y"], name="it", to=target)
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)])
    with pytest.raises(TypeInferenceError, match=f"{op} 'it': to={target} is no element type"):
        hagane.InferenceSession(model.SerializeToString())


def test_dimensions_of_an_unknown_type_lead_to_no_type_and_no_error() -> None:
    def fresh(hint: str) -> Expr:
        return symbol(hint)

    value = np.array([symbol("n")], dtype=object)
    node = ir.Node("", "Identity", [ir.Value(name="x")], name="it")
    found = infer_node(node, [None], [value], fresh=fresh, infer_graph=lambda *_: ([], []))
    assert found[0][0] is None


@pytest.mark.parametrize("op", ["Max", "Sum", "Concat"])
@pytest.mark.parametrize("place", [0, 1])
def test_an_absent_operand_among_many_is_refused(op: str, place: int) -> None:
    names = ["x", "x"]
    names.insert(place, "")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    attributes = {"axis": 0} if op == "Concat" else {}
    node = helper.make_node(op, names, ["y"], name="it", **attributes)
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    with pytest.raises(
        TypeInferenceError, match=rf"{op} 'it': expected input .*number {place}\), which is absent"
    ):
        hagane.InferenceSession(model.SerializeToString())


def test_a_reshape_of_a_value_of_unknown_type_is_loaded_without_its_content() -> None:
    x = onnx.ValueInfoProto(name="x")
    shape = helper.make_tensor("shape", TensorProto.INT64, [1], [-1])
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="it")
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")], [shape])
    types = infer_types(ir.from_proto(helper.make_model(graph)))
    assert types.values.get("y") is None
