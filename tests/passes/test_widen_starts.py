"""States that broadcast in the first iteration of a loop begin with the shape of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from tests.native.agreement import same
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied

ROW = node("Gather", "x i", "row")


def summing(
    nodes: Sequence[onnx.NodeProto], start: np.ndarray, limit: int | None, *, kept: bool = False
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a loop over the rows of ``x`` whose state ``s`` becomes ``t``, and a feed.

    Args:
        nodes: Of the body.
        start: The initial value.
        limit: How many iterations there are, if the model says.
        kept: Whether the states of all iterations are results, too.
    """
    going = node("Identity", "go", "goes")
    kept_one = [node("Identity", "t", "all")] if kept else []
    states = [info(name) for name in ("s", "t", "all")[: 2 + kept]]
    for state in states:
        state.type.tensor_type.ClearField("shape")
    inner = graph(
        [*nodes, *kept_one, going],
        [info("i", INT64), info("go", BOOL), states[0]],
        [info("goes", BOOL), *states[1:]],
    )
    feed = {"x": draw((6, 5)), "s0": start}
    constants = {} if limit is None else {"n": np.array(limit)}
    if limit is None:
        feed["n"] = np.array(4)
    loop = node("Loop", "n - s0", "y z" if kept else "y", body=inner)
    shapes = {"x": ("rows", "width"), "s0": ("a",) * start.ndim}
    outputs = ("y", "z") if kept else ("y",)
    return model([loop], feed, outputs, constants, shapes), feed


def check(proto: onnx.ModelProto, feed: dict[str, np.ndarray], *, native: bool = True) -> None:
    """Compare with ONNX Runtime over several sizes and numbers of iterations."""
    made = session(proto)
    for width in (5, 1, 3):
        for turns in (4, 0, 1):
            given = feed | {"x": feed["x"][:, :width]}
            if "n" in feed:
                given["n"] = np.array(turns)
            for left, right in zip(
                made.run(None, given), by_onnxruntime(proto, given), strict=True
            ):
                if left.size or right.size:  # (ONNX Runtime's empty stacks have one axis)
                    same("y", left, right)
    if native:
        assert refused(made) == {}


@pytest.mark.parametrize(("limit", "kept"), [(4, False), (4, True), (None, False), (None, True)])
def test_a_sum_that_begins_with_one_element_is_native(limit: int | None, kept: bool) -> None:
    body = [ROW, node("Add", "s row", "u"), node("Tanh", "u", "t")]
    proto, feed = summing(body, draw((1,)), limit, kept=kept)
    counts, _ = applied(proto, feed)
    assert counts["widen_starts"] == 1
    check(proto, feed)


def choosing(then: onnx.NodeProto, other: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Return the nodes of a body that takes one node or another for ``t``, by the row's sum."""
    sides = []
    for each in (then, other):
        side = info(each.output[0])
        side.type.tensor_type.ClearField("shape")
        sides.append(graph([each], [], [side]))
    return [
        ROW,
        node("ReduceSum", "row", "sum", keepdims=0),
        node("Cast", "sum", "whole", to=INT64),
        node("Cast", "whole", "is", to=BOOL),
        node("If", "is", "t", then_branch=sides[0], else_branch=sides[1]),
    ]


@pytest.mark.parametrize("limit", [4, None])
def test_a_sum_whose_branches_both_broadcast_is_native(limit: int | None) -> None:
    body = choosing(node("Add", "s row", "a"), node("Sub", "s row", "b"))
    proto, feed = summing(body, draw((1,)), limit)
    counts, _ = applied(proto, feed)
    assert counts["widen_starts"] == 1
    check(proto, feed)


def test_a_branch_that_leaves_a_short_state_as_it_is_keeps_the_loop() -> None:
    body = choosing(node("Add", "s row", "a"), node("Neg", "s", "b"))
    proto, feed = summing(body, draw((1,)), 4)
    counts, _ = applied(proto, feed)
    assert "widen_starts" not in counts
    check(proto, feed, native=False)


def test_a_sum_that_begins_as_a_number_is_native_where_there_is_an_iteration() -> None:
    proto, feed = summing([ROW, node("Add", "s row", "t")], np.array(1.5, np.float32), 4)
    check(proto, feed)


@pytest.mark.parametrize("kept", [False, True])
def test_a_loop_that_begins_with_a_number_may_have_no_iteration(kept: bool) -> None:
    body = [ROW, node("Add", "s row", "t")]
    proto, feed = summing(body, np.array(1.5, np.float32), None, kept=kept)
    counts, left = applied(proto, feed)
    assert counts["widen_starts"] == 1
    assert left[-2:] == ["If", "Reshape"]
    check(proto, feed, native=False)


@pytest.mark.parametrize(
    "body",
    [
        [ROW, node("ReduceSum", "s", "m", keepdims=1), node("Add", "m row", "t")],
        [ROW, node("Shape", "s", "k"), node("Cast", "k", "f", to=1), node("Add", "f row", "t")],
        [ROW, node("Concat", "s row", "t", axis=0)],
    ],
    ids=["sum", "shape", "concat"],
)
def test_a_state_stays_as_it_is_where_its_shape_matters(body: list[onnx.NodeProto]) -> None:
    proto, feed = summing(body, draw((1,)), 4)
    counts, _ = applied(proto, feed)
    assert "widen_starts" not in counts
