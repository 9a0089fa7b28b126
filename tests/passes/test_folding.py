"""What is known before a run is computed before it."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hagane.graph import load
from hagane.ops import infer_types
from hagane.passes import optimize
from hagane.passes.legalise import legalise
from tests.native.models import draw, model
from tests.passes.harness import applied, node

X = draw((2, 6, 4))
NAMED = {"x": ["n", "l", 4]}


def test_constants_are_computed_ahead() -> None:
    nodes = [
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        node("Mul", "w two", "a"),
        node("Transpose", "a", "b"),
        node("MatMul", "x b", "y"),
    ]
    proto = model(nodes, {"x": X}, constants={"w": draw((5, 4))})
    counts, left = applied(proto, {"x": X})
    assert counts == {"fold_constants": 3}
    assert left == ["MatMul"]


def test_constants_that_nobody_reads_any_more_go() -> None:
    proto = model([node("Neg", "w", "a"), node("Add", "x a", "y")], {"x": X}, constants={"w": X})
    made = load(proto)
    legalise(made)
    optimize(made.graph, infer_types(made))
    assert len(made.graph.initializers) == 1


def test_a_result_much_larger_than_what_it_is_made_of_stays() -> None:
    nodes = [node("Expand", "w large", "a"), node("Slice", "a zero four", "y")]
    constants = {
        "w": np.ones((1, 1), np.float32), "large": np.array([1 << 10, 1 << 10]),
        "zero": np.array([0]), "four": np.array([4]),
    }  # fmt: skip
    proto = model([*nodes[:1], node("Mul", "a x", "y")], {"x": np.ones((1, 1), np.float32)},
                  constants=constants)  # fmt: skip
    assert applied(proto, {"x": np.ones((1, 1), np.float32)})[1] == ["Expand", "Mul"]


def test_a_constant_of_any_size_becomes_one_of_the_graph() -> None:
    large = draw((200, 100))
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(large)),
        node("MatMul", "x w", "y"),
    ]
    x = draw((2, 200))
    assert applied(model(nodes, {"x": x}), {"x": x})[1] == ["MatMul"]


def test_large_weights_are_left_for_kernels_to_pack() -> None:
    weights = {"w": draw((600, 500))}
    x = draw((2, 500))
    nodes = [node("Transpose", "w", "t"), node("MatMul", "x t", "y")]
    assert applied(model(nodes, {"x": x}, constants=weights), {"x": x})[0] == {}


def test_weights_that_others_read_are_not_doubled() -> None:
    nodes = [
        node("Gather", "w i", "a"),
        node("Transpose", "w", "b"),
        node("MatMul", "a b", "y"),
    ]
    feed = {"i": np.array([3, 1])}
    weights = {"w": draw((300, 100))}
    assert "Transpose" in applied(model(nodes, feed, constants=weights), feed)[1]


def test_quantised_weights_and_random_numbers_stay() -> None:
    weights = {"w": np.arange(6, dtype=np.int8), "s": np.array(0.5, np.float32)}
    nodes = [node("DequantizeLinear", "w s", "a"), node("Add", "a x", "y")]
    x = draw((6,))
    assert applied(model(nodes, {"x": x}, constants=weights), {"x": x})[0] == {}
    drawn = [
        helper.make_node("RandomNormal", [], ["r"], shape=[6]),
        node("Add", "r x", "y"),
    ]
    made = load(model(drawn, {"x": x}))
    legalise(made)
    assert all(change.count == 0 for change in optimize(made.graph, infer_types(made)))


def test_what_fails_when_it_is_run_is_left_to_fail_then() -> None:
    constants = {"a": np.array([1, 2]), "i": np.full(4000, 7)}
    made = load(model([node("Gather", "a i", "b"), node("Add", "b x", "y")],
                      {"x": np.array([1])}, constants=constants))  # fmt: skip
    legalise(made)
    optimize(made.graph, infer_types(made))
    assert [one.op_type for one in made.graph] == ["Gather", "Add"]


def test_constants_that_the_graph_returns_stay_nodes() -> None:
    constants = {"a": np.float32([1, 2])}
    proto = model([node("Neg", "a", "y"), node("Exp", "x", "z")], {"x": X}, ["y", "z"], constants)
    assert applied(proto, {"x": X})[1] == ["Neg", "Exp"]


def heads(last: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return nodes that compute sizes ``n`` and ``l`` of ``x`` as vectors, and others."""
    return [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Gather", "s one", "l"),
        *last,
    ]


SIZES = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2]), "all": np.array([-1])}


def test_named_sizes_that_reshape_takes_over_stay_open() -> None:
    split = heads([node("Concat", "n l two two", "r", axis=0), node("Reshape", "x r", "y")])
    proto = model(split, {"x": X}, constants=SIZES, shapes=NAMED)
    counts, left = applied(proto, {"x": X})
    assert counts["fold_shapes"] == 1
    assert left == ["Reshape"]
    empty = {"x": X[:0]}
    assert applied(proto, empty)[1] == ["Reshape"]


def test_one_other_size_is_left_to_the_count() -> None:
    rows = heads([
        node("Mul", "n l", "r0"),
        node("Concat", "r0 two two", "r", axis=0),
        node("Reshape", "x r", "y"),
    ])  # fmt: skip
    proto = model(rows, {"x": X}, constants=SIZES, shapes=NAMED)
    assert applied(proto, {"x": X})[1] == ["Reshape"]
    assert applied(proto, {"x": X[:0]})[1] == ["Reshape"]


def test_two_other_sizes_or_one_beside_an_axis_that_may_be_empty_stay_computed() -> None:
    swapped = heads([node("Concat", "l n two two", "r", axis=0), node("Reshape", "x r", "y")])
    proto = model(swapped, {"x": X}, constants=SIZES, shapes=NAMED)
    assert "Shape" in applied(proto, {"x": X})[1]
    beside = heads([
        node("Div", "l two", "h"),
        node("Concat", "n h two two two", "r", axis=0),
        node("Reshape", "x r", "y"),
    ])  # fmt: skip
    proto = model(beside, {"x": X}, constants=SIZES, shapes=NAMED)
    assert "Shape" in applied(proto, {"x": X})[1]
    assert "Shape" in applied(proto, {"x": X[:0]})[1]


def test_sizes_that_expand_leaves_as_they_are_become_one() -> None:
    nodes = heads([
        node("Unsqueeze", "x two", "u"),
        node("Concat", "n l two four", "r", axis=0),
        node("Expand", "u r", "y"),
    ])  # fmt: skip
    constants = {**SIZES, "four": np.array([4])}
    proto = model(nodes, {"x": X}, constants=constants, shapes=NAMED)
    counts, left = applied(proto, {"x": X})
    assert counts["fold_shapes"] == 1
    assert left == ["Unsqueeze", "Expand"]


def test_a_size_that_expand_makes_stays_computed() -> None:
    nodes = [node("Shape", "x", "r"), node("Expand", "w r", "e"), node("Add", "e x", "y")]
    proto = model(nodes, {"x": X}, constants={"w": draw((4,))}, shapes=NAMED)
    assert "Shape" in applied(proto, {"x": X})[1]


def test_equal_constants_are_kept_once() -> None:
    constants = {name: np.array(2, np.float32) for name in "ab"}
    nodes = [node("Mul", "x a", "t"), node("Mul", "x b", "u"), node("Sub", "t u", "y")]
    assert applied(model(nodes, {"x": X}, constants=constants), {"x": X})[1] == ["Mul", "Sub"]
