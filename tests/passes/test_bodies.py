"""Passes reach the bodies of loops, scans and branches, and see the constants around them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import hagane
from hagane.graph import load
from hagane.graph.walk import all_nodes
from hagane.ops import infer_types
from hagane.passes import optimize
from hagane.passes.legalise import legalise
from tests.native.agreement import same
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied

CONSTANTS = {
    "root": np.float32(math.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5),
    "three": np.array(3), "yes": np.array(True),
}  # fmt: skip


def gelu(x: str, y: str) -> list[onnx.NodeProto]:
    """Return the nodes of a GELU whose constants lie outside of a body."""
    return [
        node("Div", f"{x} root", f"{y} scaled".replace(" ", "_")),
        node("Erf", f"{y}_scaled", f"{y}_erf"),
        node("Add", f"{y}_erf one", f"{y}_plus"),
        node("Mul", f"{x} {y}_plus", f"{y}_twice"),
        node("Mul", f"{y}_twice half", y),
    ]


def looped(inner: Sequence[onnx.NodeProto], shape: Sequence[int | str]) -> onnx.NodeProto:
    body = graph(
        [*inner, node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), info("s", shape=shape)],
        [info("goes", BOOL), info("t", shape=shape)],
    )
    return node("Loop", "three yes x", "y", body=body)


def operators(proto: onnx.ModelProto) -> list[str]:
    """Return the operators that passes leave, bodies included."""
    made = load(proto)
    legalise(made)
    optimize(made.graph, infer_types(made))
    return [each.op_type for each in all_nodes(made.graph)]


def agrees(proto: onnx.ModelProto, feed: dict[str, np.ndarray]) -> None:
    made = session(proto)
    for got, want in zip(made.run(None, feed), by_onnxruntime(proto, feed), strict=True):
        same("y", got, want)
    assert refused(made) == {}


@pytest.mark.parametrize("shape", [(2, 5), ("batch", 5)], ids=str)
def test_a_gelu_fuses_in_a_loop(shape: Sequence[int | str]) -> None:
    feed = {"x": draw((2, 5))}
    proto = model([looped(gelu("s", "t"), shape)], feed, constants=CONSTANTS, shapes={"x": shape})
    counts, _ = applied(proto, feed)
    assert counts["fuse_gelu"] == 1
    assert operators(proto) == ["Loop", "Gelu", "Identity"]
    agrees(proto, feed)


def test_a_gelu_fuses_in_both_branches_and_around_them() -> None:
    feed = {"x": draw((2, 5)), "c": np.array(True)}
    branches = {
        name: graph(gelu("g", name), [], [info(name, shape=(2, 5))]) for name in ("then", "other")
    }
    nodes = [
        *gelu("x", "g"),
        node("If", "c", "y", then_branch=branches["then"], else_branch=branches["other"]),
    ]
    proto = model(nodes, feed, constants=CONSTANTS)
    counts, _ = applied(proto, feed)
    assert counts["fuse_gelu"] == 3
    assert sorted(operators(proto)) == ["Gelu", "Gelu", "Gelu", "If"]
    for taken in (True, False):
        agrees(proto, {**feed, "c": np.array(taken)})


def test_a_gelu_fuses_in_a_scan_in_a_branch() -> None:
    feed = {"x": draw((4, 3)), "c": np.array(True)}
    scanned = graph(gelu("row", "out"), [info("row", shape=(3,))], [info("out", shape=(3,))])
    then = graph(
        [node("Scan", "x", "rows", body=scanned, num_scan_inputs=1)], [],
        [info("rows", shape=(4, 3))],
    )  # fmt: skip
    other = graph([node("Neg", "x", "less")], [], [info("less", shape=(4, 3))])
    proto = model(
        [node("If", "c", "y", then_branch=then, else_branch=other)], feed, constants=CONSTANTS
    )
    counts, _ = applied(proto, feed)
    assert counts["fuse_gelu"] == 1
    for taken in (True, False):
        agrees(proto, {**feed, "c": np.array(taken)})


def test_constants_of_the_graph_around_fold_in_a_body() -> None:
    feed = {"x": draw((2, 5))}
    inner = [
        node("Constant", "", "two", value_float=2.0),
        node("Add", "one two", "sum"),
        node("Sqrt", "sum", "factor"),
        node("Mul", "s factor", "t"),
    ]
    proto = model([looped(inner, (2, 5))], feed, constants=CONSTANTS)
    counts, _ = applied(proto, feed)
    assert counts["fold_constants"] == 3
    assert operators(proto) == ["Loop", "Mul", "Identity"]
    agrees(proto, feed)


def test_what_a_body_only_hands_through_stays_its_output() -> None:
    """A value from outside cannot be an output of a body: an Identity in it stands for it."""
    feed = {"x": draw((2, 5)), "z": draw((2, 5), 1)}
    inner = [
        node("Transpose", "z", "a", perm=[1, 0]),
        node("Transpose", "a", "t", perm=[1, 0]),
    ]
    proto = model([looped(inner, (2, 5))], feed, constants=CONSTANTS)
    applied(proto, feed)
    agrees(proto, feed)


def test_weights_outside_take_in_factors_of_a_body() -> None:
    feed = {"x": draw((2, 4))}
    inner = [node("MatMul", "s w", "p"), node("Mul", "p k", "q"), node("Relu", "q", "t")]
    constants = {**CONSTANTS, "w": draw((4, 4), 3), "k": draw((4,), 4)}
    proto = model([looped(inner, (2, 4))], feed, constants=constants)
    counts, _ = applied(proto, feed)
    assert counts["fold_affine"] == 1
    agrees(proto, feed)


def test_a_branch_that_is_known_goes_within_a_body() -> None:
    feed = {"x": draw((2, 4))}
    then = graph([node("Neg", "s", "a")], [], [info("a", shape=(2, 4))])
    other = graph([node("Abs", "s", "b")], [], [info("b", shape=(2, 4))])
    inner = [node("If", "yes", "t", then_branch=then, else_branch=other)]
    proto = model([looped(inner, (2, 4))], feed, constants=CONSTANTS)
    counts, _ = applied(proto, feed)
    assert counts["inline_branches"] == 1
    assert operators(proto) == ["Loop", "Neg", "Identity"]
    agrees(proto, feed)


def test_equal_nodes_merge_in_a_body_but_not_with_those_of_another() -> None:
    feed = {"x": draw((2, 4)), "c": np.array(True)}
    then = graph(
        [node("Exp", "x", "a"), node("Exp", "x", "b"), node("Add", "a b", "d")], [],
        [info("d", shape=(2, 4))],
    )  # fmt: skip
    other = graph([node("Exp", "x", "e")], [], [info("e", shape=(2, 4))])
    proto = model([node("If", "c", "y", then_branch=then, else_branch=other)], feed)
    counts, _ = applied(proto, feed)
    assert counts["merge_common"] == 1
    assert sorted(operators(proto)) == ["Add", "Exp", "Exp", "If"]
    agrees(proto, {**feed, "c": np.array(False)})


def test_a_body_of_halves_keeps_its_types() -> None:
    x = draw((2, 4)).astype(np.float16)
    body = graph(
        [node("Relu", "s", "r"), node("Identity", "r", "t"), node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), info("s", TensorProto.FLOAT16, (2, 4))],
        [info("goes", BOOL), info("t", TensorProto.FLOAT16, (2, 4))],
    )
    proto = model([node("Loop", "three yes x", "y", body=body)], {"x": x}, constants=CONSTANTS)
    counts, _ = applied(proto, {"x": x})
    assert counts["remove_identity"] == 1


def test_a_model_that_the_caller_has_keeps_the_names_in_its_branches() -> None:
    def side(number: float) -> onnx.GraphProto:
        nodes = [node("Add", "x w", "r")]
        return graph(nodes, [], [info("r", shape=("n",))], {"w": np.float32(number)})

    nodes = [
        node("If", "c", name, then_branch=side(number), else_branch=side(0))
        for number, name in ((1, "y"), (3, "z"))
    ]
    feed = {"x": np.zeros(2, np.float32)}
    proto = model(nodes, feed, ["y", "z"], {"c": np.array(True)})
    before = proto.SerializeToString()
    results = hagane.InferenceSession(proto).run(None, feed)
    assert [result.tolist() for result in results] == [[1, 1], [3, 3]]
    assert proto.SerializeToString() == before
