"""Operators that ONNX lacks become those that they are composed of."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from hagane.errors import HaganeError
from hagane.graph import load
from hagane.graph.walk import all_nodes
from hagane.ops import infer_types
from hagane.passes import optimize
from hagane.passes.legalise import legalise
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
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


def test_what_cannot_be_written_in_others_stays_where_it_is() -> None:
    feed = {"x": draw((1, 3)), "axis": np.array(1, np.int32)}
    made = load(with_domain(model([contrib("ExpandDims", "x axis", "y")], feed)))
    legalise(made)
    changes = optimize(made.graph, infer_types(made))
    assert [each.op_type for each in made.graph] == ["ExpandDims"]
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


OPEN_HEADS = {
    "MultiHeadAttention, bias": (
        contrib("MultiHeadAttention", "q k v bias", "y", num_heads=4),
        {"q": ["b", "s", "h"], "k": ["b", "l", "h"], "v": ["b", "l", "h"], "bias": ["all"]},
        lambda h: {
            "q": draw((2, 3, h)), "k": draw((2, 5, h), 1), "v": draw((2, 5, h), 2),
            "bias": draw((3 * h,), 3),
        },
    ),
    "Attention": (
        contrib("Attention", "x w bias", "y", num_heads=4),
        {"x": ["b", "s", "h"], "w": ["h", "all"], "bias": ["all"]},
        lambda h: {"x": draw((2, 3, h)), "w": draw((h, 3 * h), 1), "bias": draw((3 * h,), 2)},
    ),
    **{
        f"RotaryEmbedding, {kind}": (
            contrib("RotaryEmbedding", "x at cos sin", "y", **attributes),
            {"x": shape, "at": ["b", "s"] if wide else [1], "cos": ["m", "d"], "sin": ["m", "d"]},
            lambda h, shape=shape, wide=wide: {
                "x": draw((2, 3, 4 * h) if len(shape) == 3 else (2, 4, 3, h)),
                "at": np.array([[0, 2, 5], [1, 1, 6]]) if wide else np.array([2]),
                "cos": draw((7, h // 2), 1), "sin": draw((7, h // 2), 2),
            },
        )
        for kind, shape, wide, attributes in (
            ("4 axes", ["b", "n", "s", "h"], True, {}),
            ("neighbours", ["b", "n", "s", "h"], False, {"interleaved": 1}),
            ("3 axes", ["b", "s", "h"], True, {"num_heads": 4}),
            ("3 axes, neighbours", ["b", "s", "h"], False, {"num_heads": 4, "interleaved": 1}),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN_HEADS)
def test_heads_of_open_size_are_composed(name: str) -> None:
    one, shapes, feed = OPEN_HEADS[name]
    proto = with_domain(model([one], feed(16), shapes=shapes))
    assert applied(proto, feed(16))[0]["expand_composed"] == 1
    made = session(proto)
    assert refused(made) == {}
    for h in (16, 32, 8):
        want = by_onnxruntime(proto, feed(h))
        np.testing.assert_allclose(made.run(None, feed(h))[0], want[0], rtol=1e-4, atol=1e-5)
    wrong = feed(16)
    last = "bias" if "bias" in wrong else "cos"
    wrong[last] = wrong[last][..., :-1]
    with pytest.raises(HaganeError):
        made.run(None, wrong)
