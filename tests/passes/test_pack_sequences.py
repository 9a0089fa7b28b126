"""Sequences whose items differ in one length become their items and where these end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.errors import HaganeError
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied
from tests.passes.test_join_sequences import OPEN, sequence

CONSTANTS = {
    "zero": np.array(0),
    "zeros": np.array([0]),
    "one": np.array([1]),
    "last": np.array(-1),
    "first_item": np.array(0, np.int32),
    "two": np.array(2),
    "four": np.array([4]),
}
# As many rows as the data tell, some none at all.
ITEM = [
    node("Gather", "counts i", "count0"),
    node("Reshape", "count0 one", "count"),
    node("Concat", "count four", "shape", axis=0),
    node("Gather", "x i", "row0"),
    node("Expand", "row0 shape", "item"),
]
# The sum of an item, from which the next iteration's result follows.
READ = [
    node("Div", "i two", "half"),
    node("SequenceAt", "more half", "read"),
    node("ReduceSum", "read zeros", "sum", keepdims=0),
]


def body(nodes: Sequence[onnx.NodeProto]) -> onnx.GraphProto:
    """Return a body that makes the sequence ``more`` of ``s``, and leaves a row ``sum``."""
    return graph(
        [*nodes, node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), sequence("s")],
        [info("goes", BOOL), sequence("more"), info("sum", shape=(4,))],
    )


def looped(nodes: Sequence[onnx.NodeProto], start: str = "") -> list[onnx.NodeProto]:
    """Return a loop over rows, the sums of its iterations and the items that are left."""
    return [
        node("Shape", "x", "n1", end=1),
        node("Squeeze", "n1", "n"),
        node("SequenceConstruct" if start else "SequenceEmpty", start, "begun"),
        node("Loop", "n - begun", "q y", body=body(nodes)),
        node("SequenceLength", "q", "z"),
    ]


def check(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str] = ("y", "z")) -> None:
    """Compare with ONNX Runtime, sizes growing and shrinking; nothing runs in Python."""
    feeds = [
        {"x": draw((n, 4), n), "counts": (np.arange(n) * 7 + n) % 4} for n in (2, 7, 1, 40, 5, 40)
    ]
    proto = model(nodes, feeds[0], outputs, CONSTANTS, OPEN)
    assert applied(proto, feeds[0])[0].get("pack_sequences") == 1
    made = session(proto)
    assert refused(made) == {}
    for feed in feeds:
        for left, right in zip(made.run(None, feed), by_onnxruntime(proto, feed), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def branch(nodes: Sequence[onnx.NodeProto], result: str) -> onnx.GraphProto:
    return graph(nodes, [], [sequence(result)])


@pytest.mark.parametrize("start", ["", "x"])
@pytest.mark.parametrize("place", ["", " zero", " half0", " behind"])
def test_an_iteration_reads_an_item_of_its_choice(place: str, start: str) -> None:
    places = [node("Div", "i two", "half0"), node("Neg", "half0", "behind")]
    insert = node("SequenceInsert", f"s item{place}", "more")
    check(looped([*ITEM, *places, insert, *READ], start))


@pytest.mark.parametrize("place", ["first_item", "last", "half0"])
def test_items_leave_a_queue(place: str) -> None:
    nodes = [
        *ITEM,
        node("Div", "i two", "half0"),
        node("SequenceErase", f"s {place}", "left"),
        node("SequenceInsert", "left item", "once"),
        node("SequenceInsert", "once row", "more"),
        node("Unsqueeze", "row0 zeros", "row"),
        *READ,
    ]
    check(looped([*nodes[:-5], nodes[-4], nodes[-5], *nodes[-3:]], "x"))


def test_an_item_is_added_in_a_branch_alone() -> None:
    added = branch([node("SequenceInsert", "s item", "m1")], "m1")
    same = branch([node("Identity", "s", "m2")], "m2")
    nodes = [
        *ITEM,
        node("Cast", "count0", "some", to=BOOL),
        node("If", "some", "more", then_branch=added, else_branch=same),
        *READ,
    ]
    check(looped(nodes, "x"))


def test_items_differ_in_another_axis_and_are_joined() -> None:
    nodes = [
        *ITEM,
        node("Transpose", "item", "turned"),
        node("SequenceInsert", "s turned", "more"),
        node("SequenceAt", "more last", "read"),
        node("ReduceSum", "read one", "sum", keepdims=0),
    ]
    start = node("Transpose", "x", "xt")
    joined = node("ConcatFromSequence", "q", "w", axis=1)
    check([start, *looped(nodes, "xt"), joined], ("y", "z", "w"))


def test_a_loop_in_a_loop_adds_items() -> None:
    inner = graph(
        [node("SequenceInsert", "t item", "t2"), node("Identity", "g", "g2")],
        [info("j", INT64), info("g", BOOL), sequence("t")],
        [info("g2", BOOL), sequence("t2")],
    )
    check(looped([*ITEM, node("Loop", "count0 - s", "more", body=inner), *READ], "x"))


def test_lists_outside_of_loops_are_read_at_places_of_a_run() -> None:
    nodes = [
        node("SequenceConstruct", "x z x", "s"),
        node("SequenceInsert", "s z at", "t"),
        node("SequenceErase", "t zero", "u"),
        node("SequenceAt", "u at", "y"),
        node("SequenceLength", "u", "count"),
        node("ConcatFromSequence", "u", "all", axis=0),
    ]
    shapes = {"x": ["n", 4], "z": ["m", 4], "at": []}
    feed = {"x": draw((2, 4)), "z": draw((3, 4), 1), "at": np.array(1)}
    proto = model(nodes, feed, ["y", "count", "all"], {"zero": CONSTANTS["zero"]}, shapes)
    assert applied(proto, feed)[0]["pack_sequences"] == 1
    made = session(proto)
    assert refused(made) == {}
    for at in (0, 2, -1, -3):
        own = feed | {"at": np.array(at), "z": draw((at + 4, 4), 2)}
        for left, right in zip(made.run(None, own), by_onnxruntime(proto, own), strict=True):
            np.testing.assert_array_equal(left, right)
    for at in (3, -4, 5):
        with pytest.raises(HaganeError, match="out of range|out of bounds|not within"):
            made.run(None, feed | {"at": np.array(at)})


@settings(max_examples=12, deadline=None)
@given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_lists_of_any_lengths_keep_all_that_they_had(counts: list[int]) -> None:
    """Memory of the items is enlarged, and read where it was, while iterations add to it."""
    made = _PACKED.setdefault("made", session(_summing()))
    x = draw((len(counts), 4))
    sums = [x[i // 2] * counts[i // 2] for i in range(len(counts))]
    (rows,) = made.run(None, {"x": x, "counts": np.array(counts)})[:1]
    np.testing.assert_allclose(rows, np.stack(sums), rtol=1e-5, atol=1e-5)


_PACKED: dict[str, object] = {}


def _summing() -> onnx.ModelProto:
    early = [node("SequenceInsert", "s item", "more"), *READ]
    feed = {"x": draw((2, 4)), "counts": np.array([1, 2])}
    return model(looped([*ITEM, *early]), feed, ["y", "z"], CONSTANTS, OPEN)
