"""Each pass: outputs unchanged, the graph well formed, a second run changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.graph import load
from hagane.native.rules import RULES
from hagane.ops import infer_types
from hagane.passes import LACKING, PASSES, optimize
from hagane.passes.legalise import legalise
from tests.native.models import draw, model, session
from tests.passes.harness import applied


def test_every_pass_says_what_it_does() -> None:
    assert len({one.effect for one in PASSES}) == len(PASSES)
    assert all(one.run.__doc__ for one in PASSES)


def test_operators_that_passes_make_have_native_kernels_or_are_listed_as_lacking() -> None:
    assert {one.makes for one in PASSES if one.makes} - {name for _, name in RULES} == LACKING


def test_no_pass_makes_an_operator_that_the_engine_lacks() -> None:
    made = load(model([helper.make_node("Exp", ["x"], ["y"])], {"x": draw((2,))}))
    changes = optimize(made.graph, infer_types(made), lacking={"Gelu"})
    assert {one.name for one in PASSES} - {change.name for change in changes} == {"fuse_gelu"}


def test_zero_padding_becomes_the_convolutions_own() -> None:
    x = draw((1, 2, 5, 6))
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["p"]),
        helper.make_node("Conv", ["p", "w"], ["y"], pads=[1, 0, 0, 0]),
    ]
    constants = {"pads": np.array([0, 0, 1, 2, 0, 0, 3, 0]), "w": draw((3, 2, 3, 3))}
    counts, left = applied(model(nodes, {"x": x}, constants=constants), {"x": x})
    assert counts == {"fold_pads": 1}
    assert left == ["Conv"]


@pytest.mark.parametrize("channels", [True, False])
def test_padding_of_channels_or_by_reflection_stays(channels: bool) -> None:
    x = draw((1, 2, 5, 6))
    pads = [0, 1, 0, 0, 0, 0, 0, 0] if channels else [0, 0, 1, 1, 0, 0, 1, 1]
    mode = "constant" if channels else "reflect"
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["p"], mode=mode),
        helper.make_node("Conv", ["p", "w"], ["y"]),
    ]
    constants = {"pads": np.array(pads), "w": draw((3, 3 if channels else 2, 3, 3))}
    assert applied(model(nodes, {"x": x}, constants=constants), {"x": x})[0] == {}


@pytest.mark.parametrize("squared", ["power", "product"])
def test_layer_normalisation_is_recognised(squared: str) -> None:
    x = draw((2, 5, 24))
    square = ["d", "two"] if squared == "power" else ["d", "d"]
    nodes = [
        helper.make_node("ReduceMean", ["x", "last"], ["m"]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Pow" if squared == "power" else "Mul", square, ["s"]),
        helper.make_node("ReduceMean", ["s", "last"], ["v"]),
        helper.make_node("Add", ["v", "epsilon"], ["ve"]),
        helper.make_node("Sqrt", ["ve"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["n"]),
        helper.make_node("Mul", ["n", "scale"], ["p"]),
        helper.make_node("Add", ["p", "shift"], ["y"]),
    ]
    constants = {
        "last": np.array([-1]), "two": np.array(2, np.float32),
        "epsilon": np.array(1e-5, np.float32), "scale": draw((24,), 1), "shift": draw((24,), 2),
    }  # fmt: skip
    counts, left = applied(model(nodes, {"x": x}, constants=constants), {"x": x})
    assert counts["fuse_layer_norm"] == 1
    assert left == ["LayerNormalization"]


def test_identities_and_equal_nodes_go_and_outputs_keep_their_names() -> None:
    x = draw((2, 3))
    nodes = [
        helper.make_node("Identity", ["x"], ["i"]),
        helper.make_node("Exp", ["i"], ["a"]),
        helper.make_node("Exp", ["x"], ["b"]),
        helper.make_node("Dropout", ["a"], ["d"]),
        helper.make_node("Add", ["d", "b"], ["s"]),
        helper.make_node("Identity", ["s"], ["y"]),
        helper.make_node("Identity", ["x"], ["z"]),
        helper.make_node("Neg", ["x"], ["unused"]),
    ]
    proto = model(nodes, {"x": x}, ["y", "z"])
    counts, left = applied(proto, {"x": x})
    assert counts == {"remove_identity": 3, "merge_common": 1, "remove_dead": 1}
    assert left == ["Exp", "Add", "Identity"]
    assert [out.name for out in session(proto).get_outputs()] == ["y", "z"]


def test_random_numbers_are_drawn_as_often_as_before() -> None:
    x = draw((2, 3))
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"]),
        helper.make_node("RandomNormalLike", ["x"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["y"]),
    ]
    made = load(model(nodes, {"x": x}))
    legalise(made)
    assert all(change.count == 0 for change in optimize(made.graph, infer_types(made)))


def branch(name: str, nodes: Sequence[onnx.NodeProto], output: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    constant = numpy_helper.from_array(np.float32([2, 3, 4]), "k")
    return helper.make_graph(nodes, name, [], [value], [constant])


@pytest.mark.parametrize("taken", [True, False])
def test_a_known_branch_takes_the_place_of_its_if(taken: bool) -> None:
    x = draw((2, 3))
    then = [helper.make_node("Mul", ["x", "k"], ["t"]), helper.make_node("Neg", ["t"], ["r"])]
    other = [helper.make_node("Add", ["x", "k"], ["e"])]
    nodes = [
        helper.make_node("Exp", ["x"], ["t"]),
        helper.make_node(
            "If", ["c"], ["y"],
            then_branch=branch("then", then, "r"), else_branch=branch("else", other, "e"),
        ),
        helper.make_node("Sum", ["y", "t"], ["z"]),
    ]  # fmt: skip
    proto = model(nodes, {"x": x}, ["y", "z"], {"c": np.array(taken)})
    counts, left = applied(proto, {"x": x})
    assert counts["inline_branches"] == 1
    assert "If" not in left
    np.testing.assert_allclose(
        hagane.InferenceSession(proto).run(["z"], {"x": x})[0],
        np.exp(x) + (-(x * [2, 3, 4]) if taken else x + np.float32([2, 3, 4])),
        rtol=1e-5,
        atol=1e-6,
    )
