"""Operators that ONNX lacks become those that they are composed of."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from hagane.graph import load
from hagane.graph.walk import all_nodes
from hagane.ops import infer_types
from hagane.passes import optimize
from hagane.passes.legalise import legalise
from tests.native.bodies import BOOL, INT64, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.oracle import MICROSOFT, assert_agrees
from tests.passes.harness import applied


def contrib(op_type: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    read = ["" if name == "-" else name for name in inputs.split()]
    written = ["" if name == "-" else name for name in outputs.split()]
    return helper.make_node(op_type, read, written, op_type, domain=MICROSOFT, **attributes)


def with_domain(proto: onnx.ModelProto) -> onnx.ModelProto:
    proto.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return proto


def test_outputs_that_nobody_reads_are_not_computed() -> None:
    feed = {name: draw((2, 3, 8), i) for i, name in enumerate("xs")}
    nodes = [
        contrib("SkipLayerNormalization", "x s g", "y - - t", epsilon=1e-5),
        node("Relu", "t", "z"),
    ]
    proto = with_domain(model(nodes, feed, ("y", "z"), {"g": draw((8,), 5)}))
    counts, left = applied(proto, feed)
    assert counts == {"expand_composed": 1}
    assert left == ["Add", "LayerNormalization", "Relu"]
    assert_agrees(proto, feed)
    assert refused(session(proto)) == {}


def test_what_is_composed_fuses_with_what_is_around_it() -> None:
    feed = {"x": draw((1, 3, 6, 6))}
    nodes = [
        contrib("FusedConv", "x w b", "c", activation="Relu"),
        node("BatchNormalization", "c one zero zero one", "n"),
        contrib("QuickGelu", "n", "y", alpha=1.702),
    ]
    constants = {
        "w": draw((4, 3, 3, 3), 1), "b": draw((4,), 2), "one": np.ones(4, np.float32),
        "zero": np.zeros(4, np.float32),
    }  # fmt: skip
    proto = with_domain(model(nodes, feed, constants=constants))
    counts, left = applied(proto, feed)
    assert counts["expand_composed"] == 2
    assert counts["fuse_activations"] == 1
    assert left == ["Conv", "Relu", "BatchNormalization", "Swish"]


def test_an_activation_that_is_not_known_stays_where_it_is() -> None:
    feed = {"x": draw((1, 3, 6, 6))}
    nodes = [contrib("FusedConv", "x w", "y", activation="Selu")]
    made = load(with_domain(model(nodes, feed, constants={"w": draw((4, 3, 3, 3), 1)})))
    legalise(made)
    changes = optimize(made.graph, infer_types(made))
    assert [each.op_type for each in made.graph] == ["FusedConv"]
    assert all(change.count == 0 for change in changes)


def test_what_is_not_typed_stays_where_it_is() -> None:
    feed = {"x": draw((2, 3))}
    proto = with_domain(model([contrib("Gelu", "x", "y")], feed))
    made = load(proto)
    legalise(made)
    types = infer_types(made)
    del types.types[made.graph.inputs[0]]
    made.graph.inputs[0].shape = None
    assert {change.count for change in optimize(made.graph, types)} == {0}


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_element_types_keep_theirs(dtype: type[np.generic]) -> None:
    feed = {"x": draw((2, 3)).astype(dtype), "b": draw((3,)).astype(dtype)}
    proto = with_domain(model([contrib("BiasGelu", "x b", "y")], feed))
    applied(proto, feed, tolerance=1e-3)
    assert session(proto).run(None, feed)[0].dtype == dtype


def test_a_body_is_expanded_too() -> None:
    body = graph(
        [contrib("FastGelu", "s", "t"), node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), info("s", shape=(2, "n"))],
        [info("goes", BOOL), info("t", shape=(2, "n"))],
    )
    constants = {"three": np.array(3), "yes": np.array(True)}
    feed = {"x": draw((2, 5))}
    proto = with_domain(
        model(
            [node("Loop", "three yes x", "y", body=body)], feed, constants=constants,
            shapes={"x": (2, "n")},
        )
    )  # fmt: skip
    counts, _ = applied(proto, feed)
    assert counts["expand_composed"] == 1
    made = load(proto)
    legalise(made)
    optimize(made.graph, infer_types(made))
    assert "Gelu" in [each.op_type for each in all_nodes(made.graph) if not each.domain]
    assert_agrees(proto, feed)
    assert refused(session(proto)) == {}


def test_nodes_are_named_after_what_they_are_part_of() -> None:
    feed = {"x": draw((2, 3)), "b": draw((3,))}
    made = load(with_domain(model([contrib("BiasGelu", "x b", "y")], feed)))
    legalise(made)
    optimize(made.graph, infer_types(made))
    assert [each.name for each in made.graph] == ["BiasGelu Add", "BiasGelu Gelu"]
    assert isinstance(made.graph.outputs[0], ir.Value)
    assert made.graph.outputs[0].name == "y"
