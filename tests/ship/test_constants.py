"""Inputs that a build has as constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hagane
from hagane.errors import InvalidArgument, UnsupportedModel
from hagane.ship import BuildOptions, build_model
from tests.native.models import draw


def save_choice(path: Path) -> None:
    """Write a model whose rank depends on its input ``rate``."""

    def body(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=node.output[0])])

    nodes = [
        helper.make_node("Equal", ["rate", "fast"], ["is_fast"]),
        helper.make_node(
            "If", ["is_fast"], ["y"], "choice",
            then_branch=body("then", helper.make_node("Relu", ["x"], ["a"])),
            else_branch=body("else", helper.make_node("ReduceSum", ["x"], ["b"], keepdims=0)),
        ),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "choice",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("rate", TensorProto.INT64, []),
        ],
        [onnx.ValueInfoProto(name="y")],
        [helper.make_tensor("fast", TensorProto.INT64, [], [16000])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


@pytest.mark.parametrize("rate", [16000, 8000])
def test_an_input_that_decides_is_made_a_constant(tmp_path: Path, rate: int) -> None:
    save_choice(tmp_path / "m.onnx")
    build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(constants=(f"rate={rate}",)))
    built = hagane.load_built(tmp_path / "b")
    assert [item.name for item in built.get_inputs()] == ["x"]
    feed = {"x": draw((2, 3))}
    given = feed | {"rate": np.array(rate)}
    (expected,) = hagane.InferenceSession(tmp_path / "m.onnx").run(None, given)
    np.testing.assert_array_equal(built.run(None, feed)[0], expected)


def test_without_it_the_error_names_the_node_and_the_remedy(tmp_path: Path) -> None:
    save_choice(tmp_path / "m.onnx")
    with pytest.raises(UnsupportedModel) as caught:
        build_model(tmp_path / "m.onnx", tmp_path / "b")
    text = str(caught.value)
    assert "If 'choice' cannot be built" in text
    assert text.count("--constant INPUT=NUMBER") == 1


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        ("rate", "--constant 'rate': expected INPUT=16000"),
        ("speed=3", "--constant speed: the model has no such input; it has: x, rate"),
        ("rate=fast", r"--constant rate: expected INT64 numbers for shape \[\], got fast"),
        ("rate=1,2", r"--constant rate: expected INT64 numbers for shape \[\], got 1,2"),
    ],
)
def test_constants_that_do_not_fit_are_refused(tmp_path: Path, constant: str, text: str) -> None:
    save_choice(tmp_path / "m.onnx")
    with pytest.raises(InvalidArgument, match=text):
        build_model(tmp_path / "m.onnx", tmp_path / "b", BuildOptions(constants=(constant,)))
