"""Branches that find the sizes of their results in the data."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from hagane.errors import HaganeError
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session

OPEN = {"x": ["n", 3], "at": ["m"], "go": []}


def branching(
    outputs: list[str], then: onnx.GraphProto, others: onnx.GraphProto, behind: list[onnx.NodeProto]
) -> onnx.ModelProto:
    names = " ".join(f"r{i}" for i in range(len(then.output)))
    made = [node("If", "go", names, then_branch=then, else_branch=others), *behind]
    feed = {"x": draw((2, 3)), "at": np.array([0]), "go": np.array(True)}
    return model(made, feed, outputs, shapes=OPEN)


def check(proto: onnx.ModelProto) -> None:
    """Compare with ONNX Runtime, both branches in turn and all sizes in one session."""
    made = session(proto)
    assert refused(made) == {}
    for rows, seed in ((3, 0), (40, 1), (1, 2), (7, 3), (7, 4)):
        x = draw((rows, 3), seed)
        at = np.arange(0, rows, 2)
        for go in (True, False, False, True):
            feed = {"x": x, "at": at, "go": np.array(go)}
            for left, right in zip(made.run(None, feed), by_onnxruntime(proto, feed), strict=True):
                assert left.dtype == right.dtype
                np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def picked(name: str) -> list[onnx.NodeProto]:
    """Rows of ``x`` whose sum is positive, as many as the data tell."""
    return [
        node("ReduceSum", "x axis", f"{name}s", keepdims=0),
        node("Constant", "", f"{name}0", value_float=0.0),
        node("Greater", f"{name}s {name}0", f"{name}p"),
        node("Compress", f"x {name}p", name, axis=0),
    ]


AXIS = node("Constant", "", "axis", value_ints=[1])


@pytest.mark.parametrize("behind", [False, True])
def test_one_branch_finds_a_size_and_the_other_knows_it(behind: bool) -> None:
    then = graph([AXIS, *picked("a")], [], [info("a", shape=("k", 3))])
    others = graph([node("Gather", "x at", "b")], [], [info("b", shape=("m", 3))])
    last = [node("Exp", "r0", "y"), node("Shape", "r0", "s")] if behind else []
    check(branching(["y", "s"] if behind else ["r0"], then, others, last))


def test_both_find_sizes_of_several_results() -> None:
    then = graph(
        [AXIS, *picked("a"), node("NonZero", "x", "i"), node("Neg", "x", "z")],
        [],
        [info("a", shape=("k", 3)), info("i", INT64, (2, "c")), info("z", shape=("n", 3))],
    )
    others = graph(
        [
            AXIS,
            node("Neg", "x", "x1"),
            *picked("b"),
            node("Identity", "x", "w"),
            node("NonZero", "at", "j1"),
            node("Concat", "j1 j1", "j", axis=0),
        ],
        [],
        [info("b", shape=("k", 3)), info("j", INT64, (2, "c")), info("w", shape=("n", 3))],
    )
    check(branching(["r0", "r1", "y"], then, others, [node("Exp", "r2", "y")]))


def test_a_branch_gives_a_part_of_a_value_at_a_place_that_it_finds() -> None:
    then = graph(
        [
            AXIS,
            *picked("a"),
            node("Shape", "a", "n1", end=1),
            node("Constant", "", "end", value_ints=[100]),
            node("Constant", "", "first", value_ints=[0]),
            node("Slice", "x n1 end first", "b"),
        ],
        [],
        [info("b", shape=("k", 3))],
    )
    others = graph([node("Identity", "x", "c")], [], [info("c", shape=("n", 3))])
    check(branching(["y"], then, others, [node("Tanh", "r0", "y")]))


def test_branches_within_loops_find_sizes_of_states() -> None:
    then = graph(
        [AXIS, *picked("a"), node("Concat", "rows a", "m1", axis=0)],
        [],
        [info("m1", shape=("p", 3))],
    )
    others = graph([node("Identity", "rows", "m2")], [], [info("m2", shape=("q", 3))])
    body = graph(
        [
            node("Gather", "at i", "t"),
            node("Mod", "t two", "odd"),
            node("Cast", "odd", "go1", to=BOOL),
            node("If", "go1", "more", then_branch=then, else_branch=others),
            node("Identity", "on", "goes"),
        ],
        [info("i", INT64), info("on", BOOL), info("rows", shape=("r", 3))],
        [info("goes", BOOL), info("more", shape=("s", 3))],
    )
    nodes = [
        node("Constant", "", "two", value_int=2),
        node("Size", "at", "count"),
        node("Loop", "count go x", "y", body=body),
    ]
    feed = {"x": draw((2, 3)), "at": np.array([0]), "go": np.array(True)}
    proto = model(nodes, feed, ["y"], shapes=OPEN)
    made = session(proto)
    assert refused(made) == {}
    for rows, count in ((2, 5), (9, 3), (1, 0), (4, 8)):
        feed = {"x": draw((rows, 3), rows), "at": np.arange(count), "go": np.array(True)}
        np.testing.assert_array_equal(made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])


def test_a_branch_that_fails_names_its_node() -> None:
    then = graph(
        [
            node("Gather", "x at", "taken"),
            AXIS,
            *picked("a"),
            node("Concat", "a taken", "a1", axis=0),
        ],
        [],
        [info("a1", shape=("k", 3))],
    )
    others = graph([node("Identity", "x", "b")], [], [info("b", shape=("n", 3))])
    made = session(branching(["r0"], then, others, []))
    feed = {"x": draw((2, 3)), "at": np.array([9]), "go": np.array(True)}
    with pytest.raises(HaganeError, match="Gather for taken"):
        made.run(None, feed)
    assert made.run(None, feed | {"go": np.array(False)})[0].shape == (2, 3)
