"""Sequences that are only added to and joined become what is joined so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hagane.errors import HaganeError
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied

OPEN = {"x": ["n", 4], "counts": ["n"]}
CONSTANTS = {
    "zero": np.array(0),
    "zeros": np.array([0]),
    "one": np.array([1]),
    "none": np.float32(0),
    "four": np.array([4]),
    "row": np.array([-1, 4]),
}


def sequence(name: str) -> onnx.ValueInfoProto:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    return helper.make_value_info(name, helper.make_sequence_type_proto(element))


def loop(nodes: Sequence[onnx.NodeProto]) -> onnx.GraphProto:
    """Return a body that makes the sequence ``more`` of ``s``."""
    return graph(
        [*nodes, node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), sequence("s")],
        [info("goes", BOOL), sequence("more")],
    )


def outer(body: onnx.GraphProto, start: str = "", **join: int) -> list[onnx.NodeProto]:
    made = "SequenceConstruct" if start else "SequenceEmpty"
    return [
        node("Shape", "x", "n1", end=1),
        node("Squeeze", "n1", "n"),
        node(made, start, "begun"),
        node("Loop", "n - begun", "q", body=body),
        node("ConcatFromSequence", "q", "y", **({"axis": 0} | join)),
    ]


def check(nodes: Sequence[onnx.NodeProto], **changes: int) -> None:
    """Compare with ONNX Runtime, sizes growing and shrinking; nothing runs in Python."""
    used = {
        name: array for name, array in CONSTANTS.items() if any(name in reads(e) for e in nodes)
    }
    wanted = [name for name in OPEN if any(name in reads(each) for each in nodes)]
    feeds = [
        {"x": draw((n, 4), n), "counts": np.arange(n) % 3 if n > 1 else np.arange(n) + 1}
        for n in (2, 7, 1, 40, 5)
    ]
    feeds = [{name: feed[name] for name in wanted} for feed in feeds]
    proto = model(nodes, feeds[0], ["y"], used, {name: OPEN[name] for name in wanted})
    counts = applied(proto, feeds[0])[0]
    assert {name: counts.get(name, 0) for name in changes} == changes
    made = session(proto)
    assert refused(made) == {}
    for feed in feeds:
        for left, right in zip(made.run(None, feed), by_onnxruntime(proto, feed), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def reads(one: onnx.NodeProto) -> set[str]:
    bodies = [attribute.g for attribute in one.attribute if attribute.HasField("g")]
    return {*one.input, *(name for body in bodies for each in body.node for name in reads(each))}


@pytest.mark.parametrize("start", ["", "x"])
@pytest.mark.parametrize("place", ["", " zero"])
def test_items_have_as_many_rows_as_the_data_tell(place: str, start: str) -> None:
    rows = [
        node("Gather", "counts i", "count0"),
        node("Reshape", "count0 one", "count"),
        node("Concat", "count four", "shape", axis=0),
        node("Gather", "x i", "row0"),
        node("Expand", "row0 shape", "item"),
        node("SequenceInsert", f"s item{place}", "more"),
    ]
    check(outer(loop(rows), start), join_sequences=1)


@pytest.mark.parametrize("start", ["", "x"])
def test_items_are_inserted_in_a_branch_alone(start: str) -> None:
    then = graph(
        [node("Unsqueeze", "row0 zeros", "item"), node("SequenceInsert", "s item", "m1")],
        [],
        [sequence("m1")],
    )
    others = graph([node("Identity", "s", "m2")], [], [sequence("m2")])
    nodes = [
        node("Gather", "x i", "row0"),
        node("ReduceMax", "row0 -", "top", keepdims=0),
        node("Greater", "top none", "high"),
        node("If", "high", "more", then_branch=then, else_branch=others),
    ]
    changes = {} if not start else {"join_sequences": 1}
    check(outer(loop(nodes), start), **changes)


def test_loops_look_up_the_items_of_other_sequences() -> None:
    nodes = [
        node("SequenceAt", "counted i", "count"),
        node("SequenceAt", "pieces i", "item0"),
        node("Concat", "count four", "shape", axis=0),
        node("Expand", "item0 shape", "item1"),
        node("Reshape", "item1 row", "item"),
        node("SequenceInsert", "s item", "more"),
    ]
    ones = helper.make_tensor("", TensorProto.INT64, [1], [1])
    cut = [
        node("Shape", "counts", "n2"),
        node("ConstantOfShape", "n2", "ones", value=ones),
        node("SplitToSequence", "counts ones", "counted", axis=0),
        node("SplitToSequence", "x ones", "pieces", axis=0),
    ]
    check([*cut, *outer(loop(nodes))], slice_sequences=2)


def test_pieces_of_several_lengths_are_added_to() -> None:
    nodes = [
        node("SplitToSequence", "x two", "s", axis=0),
        node("Neg", "x", "m"),
        node("SequenceInsert", "s m", "t"),
        node("SequenceInsert", "t x zero", "u"),
        node("ConcatFromSequence", "u", "y", axis=0),
        node("Constant", "", "two", value_int=2),
    ]
    check([nodes[-1], *nodes[:-1]], join_sequences=1)


def test_items_that_do_not_fit_together_are_refused() -> None:
    nodes = [
        node("SequenceConstruct", "x x", "s"),
        node("SequenceInsert", "s z", "t"),
        node("ConcatFromSequence", "t", "y", axis=0),
    ]
    shapes = {"x": ["n", "a"], "z": ["m", "a"]}
    made = session(model(nodes, {"x": draw((2, 3)), "z": draw((1, 3))}, ["y"], shapes=shapes))
    assert refused(made) == {}
    assert made.run(None, {"x": draw((2, 5)), "z": draw((4, 5))})[0].shape == (8, 5)
    with pytest.raises(HaganeError, match="a"):
        made.run(None, {"x": draw((2, 5)), "z": draw((4, 6))})


def test_a_length_of_one_heeds_keepdims_as_exporters_mean_it() -> None:
    """PyTorch writes unbind as SplitToSequence of the length 1 with keepdims=0."""
    nodes = [
        node("Constant", "", "each", value_int=1),
        node("SplitToSequence", "x each", "p", axis=0, keepdims=0),
        node("SequenceAt", "p i", "row0"),
        node("CumSum", "row0 zero", "row1"),
        node("SequenceInsert", "s row1", "more"),
    ]
    check([*nodes[:2], *outer(loop(nodes[2:]), axis=1, new_axis=1)], stack_sequences=1)


def test_bounds_that_a_condition_compares_are_single_elements() -> None:
    """How onnxscript's functions sum the rows of bags (aten::embedding_bag)."""
    then = graph([node("ConstantOfShape", "wide", "r1")], [], [info("r1", shape=(1, 4))])
    others = graph(
        [node("Slice", "x start end", "rows"), node("ReduceSum", "rows zeros", "r2")],
        [],
        [info("r2", shape=(1, 4))],
    )
    nodes = [
        node("Reshape", "i one", "at"),
        node("Add", "at one", "next"),
        node("Add", "next one", "second"),
        node("Slice", "ends at next", "start"),
        node("Slice", "ends next second", "end"),
        node("Equal", "start end", "same"),
        node("If", "same", "item", then_branch=then, else_branch=others),
        node("SequenceInsert", "s item", "more"),
    ]
    made = [
        node("CumSum", "counts zero", "sums"),
        node("Concat", "zeros sums", "ends", axis=0),
        node("Constant", "", "wide", value_ints=[1, 4]),
    ]
    check([*made, *outer(loop(nodes))], gather_singles=2)


def test_a_bound_that_is_not_there_is_refused() -> None:
    branches = [
        graph([node(kind, "x", name)], [], [info(name, shape=("n", 4))])
        for kind, name in (("Neg", "a"), ("Exp", "b"))
    ]
    nodes = [
        node("Add", "at one", "next"),
        node("Slice", "counts at next", "c"),
        node("Cast", "c", "c1", to=BOOL),
        node("If", "c1", "y", then_branch=branches[0], else_branch=branches[1]),
    ]
    feed = {"x": draw((3, 4)), "counts": np.arange(3), "at": np.array([0])}
    proto = model(nodes, feed, ["y"], {"one": CONSTANTS["one"]}, OPEN | {"at": [1]})
    assert applied(proto, feed)[0]["gather_singles"] == 1
    made = session(proto)
    for place in (0, 2, -3, -2):
        own = feed | {"at": np.array([place])}
        np.testing.assert_allclose(made.run(None, own)[0], by_onnxruntime(proto, own)[0], rtol=1e-6)
    for place in (3, -1, -4):
        with pytest.raises(HaganeError, match="out of range|out of bounds"):
            made.run(None, feed | {"at": np.array([place])})
