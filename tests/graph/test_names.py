"""Names that no two values of a model share."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import parser

from hagane.graph.names import separate_names
from hagane.graph.walk import all_graphs


def test_a_new_name_is_none_of_a_value_that_is_still_to_come() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (bool b, float[n] x) => (float[n] y) <float k = {1.0}> {
        h = Add (x, k)
        y = If (b) <
            then_branch = t () => (float[n] s)
            <float k = {2.0}, float k_1 = {3.0}> { u = Mul (h, k) s = Add (u, k_1) },
            else_branch = e () => (float[n] r) <float k = {4.0}> { r = Mul (h, k) }
        >
    }
    """
    graph = ir.from_proto(parser.parse_model(text)).graph
    separate_names(graph)
    names = [
        name for inner in all_graphs(graph) for name in (*inner.initializers, *_results(inner))
    ]
    assert len(set(names)) == len(names)
    assert {"k", "k_1", "h", "y"} <= set(names)
    for inner in all_graphs(graph):
        assert all(value.name == name for name, value in inner.initializers.items())
    onnx.checker.check_model(ir.to_proto(ir.Model(graph, ir_version=8)))


def _results(graph: ir.Graph) -> list[str]:
    return [str(value.name) for node in graph for value in node.outputs]


def test_all_outputs_of_a_loop_have_names() -> None:
    body = ir.Graph([], [], nodes=[], name="body")
    loop = ir.Node("", "Loop", [], [ir.AttrGraph("body", body)], num_outputs=3)
    split = ir.Node("", "Split", [], num_outputs=2)
    graph = ir.Graph([], [loop.outputs[0], split.outputs[0]], nodes=[loop, split], name="graph")
    for value in (*loop.outputs, *split.outputs):
        value.name = None
    separate_names(graph)
    assert all(value.name for value in loop.outputs)
    assert [bool(value.name) for value in split.outputs] == [True, False]


def test_an_output_keeps_its_name_and_an_initializer_of_that_name_takes_another() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[n] x) => (float[n] y) <float k = {1.0}> { y = Add (x, k) }
    """
    graph = ir.from_proto(parser.parse_model(text)).graph
    graph.outputs[0].name = "k"
    separate_names(graph)
    assert [value.name for value in graph.outputs] == ["k"]
    assert list(graph.initializers) == ["k_1"]
