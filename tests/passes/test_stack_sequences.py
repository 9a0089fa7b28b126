"""Sequences whose items have one type become rows of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hagane.errors import HaganeError
from tests.native.agreement import same
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied

Nodes = Sequence[onnx.NodeProto]
OPEN = {"xs": ["turns", "rows", 4], "h": ["rows", 4]}
CONSTANTS = {
    "zero": np.array(0), "one": np.array(1), "last": np.array(-1), "w": draw((4, 4), 5),
    "twos": np.array([2, 2]), "two": np.array(2),
}  # fmt: skip
STEP = [node("MatMul", "x w", "a"), node("Add", "h0 a", "b"), node("Tanh", "b", "t")]


def sequence(name: str) -> onnx.ValueInfoProto:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    return helper.make_value_info(name, helper.make_sequence_type_proto(element))


def loop(nodes: Nodes, *, carries: bool) -> onnx.GraphProto:
    """Return a body that carries ``h0`` on as ``t``, and a sequence ``s`` as ``more``."""
    own = [sequence("s")] if carries else []
    left = [sequence("more")] if carries else []
    return graph(
        [*nodes, node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), info("h0", shape=("rows", 4)), *own],
        [info("goes", BOOL), info("t", shape=("rows", 4)), *left],
    )


def check(nodes: Nodes, outputs: Sequence[str], changes: int, *, native: bool = True) -> None:
    """Compare with ONNX Runtime at several sizes; nothing runs in Python then."""
    feed = {"xs": draw((3, 2, 4)), "h": draw((2, 4), 1)}
    used = [name for name in CONSTANTS if any(name in reads(each) for each in nodes)]
    constants = {name: CONSTANTS[name] for name in used}
    for shapes in (None, OPEN):
        proto = model(nodes, feed, outputs, constants, shapes)
        assert applied(proto, feed)[0].get("stack_sequences", 0) == changes
        made = session(proto)
        assert (refused(made) == {}) is native
        for turns, rows in ((3, 2), (1, 5), (6, 0)) if shapes else ((3, 2),):
            own = {"xs": draw((turns, rows, 4), turns), "h": draw((rows, 4), 1)}
            got = made.run(None, own)
            for left, right in zip(got, by_onnxruntime(proto, own), strict=True):
                same("y", left, right, length=4)  # products round at the size of their terms


def reads(one: onnx.NodeProto) -> set[str]:
    bodies = [attribute.g for attribute in one.attribute if attribute.HasField("g")]
    return {*one.input, *(name for body in bodies for each in body.node for name in reads(each))}


LENGTH = [node("Shape", "xs", "n1", end=1), node("Squeeze", "n1", "n")]


@pytest.mark.parametrize("new", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("place", ["", " zero"])
def test_a_loop_inserts_items_at_an_end(place: str, axis: int, new: int) -> None:
    nodes = [node("Gather", "xs i", "x"), *STEP, node("SequenceInsert", f"s t{place}", "more")]
    outer = [*LENGTH, node("SequenceConstruct", "h h", "begun"),
             node("Loop", "n - h begun", "y q", body=loop(nodes, carries=True)),
             node("ConcatFromSequence", "q", "z", axis=axis, new_axis=new)]  # fmt: skip
    check(outer, ["y", "z"], 1)


def test_a_loop_reads_what_it_has_inserted() -> None:
    nodes = [node("Gather", "xs i", "x"), node("SequenceAt", "s last", "h1"),
             node("Mul", "h0 h1", "h2"), node("MatMul", "x w", "a"), node("Add", "h2 a", "t"),
             node("SequenceInsert", "s t", "more")]  # fmt: skip
    outer = [*LENGTH, node("SequenceConstruct", "h", "begun"),
             node("Loop", "n - h begun", "y q", body=loop(nodes, carries=True)),
             node("SequenceAt", "q one", "z"), node("SequenceLength", "q", "m")]  # fmt: skip
    check(outer, ["y", "z", "m"], 1)


def test_an_empty_sequence_gets_the_shape_of_what_is_inserted() -> None:
    nodes = [node("Gather", "xs i", "x"), *STEP, node("SequenceInsert", "s t zero", "more")]
    outer = [*LENGTH, node("SequenceEmpty", "", "begun"),
             node("Loop", "n - h begun", "y q", body=loop(nodes, carries=True)),
             node("SequenceAt", "q last", "z")]  # fmt: skip
    check(outer, ["y", "z"], 1)


@pytest.mark.parametrize("keep", [0, 1])
def test_a_loop_takes_pieces_by_its_number(keep: int) -> None:
    squeezed = [node("SequenceAt", "pieces i", "x" if not keep else "x1")]
    squeezed += [node("Squeeze", "x1 zeros", "x")] if keep else []
    body = loop([*squeezed, *STEP], carries=False)
    outer = [node("Constant", "", "zeros", value_ints=[0]),
             node("SplitToSequence", "xs", "pieces", axis=0, keepdims=keep),
             node("SequenceLength", "pieces", "n"),
             node("Loop", "n - h", "y", body=body)]  # fmt: skip
    check(outer, ["y"], 1)


def test_sequences_within_a_body_are_changed_at_known_places() -> None:
    nodes = [node("Gather", "xs i", "x"), node("SplitToSequence", "h0 twos", "s0", axis=-1),
             node("SequenceAt", "s0 zero", "left"), node("SequenceInsert", "s0 left", "s1"),
             node("SequenceInsert", "s1 left one", "s2"), node("SequenceErase", "s2 zero", "s3"),
             node("SequenceErase", "s3", "s4"), node("ConcatFromSequence", "s4", "j", axis=1),
             node("Add", "j x", "t")]  # fmt: skip
    outer = [*LENGTH, node("Loop", "n - h", "y", body=loop(nodes, carries=False))]
    check(outer, ["y"], 1)


@pytest.mark.parametrize("split", ["two", "twos"])
def test_pieces_of_one_length_are_taken_from_behind(split: str) -> None:
    nodes = [node("SplitToSequence", f"h {split}", "s", axis=1), node("Cast", "last", "p", to=6),
             node("SequenceAt", "s p", "a"), node("SequenceLength", "s", "m"),
             node("ReduceMax", "xs -", "r", keepdims=0), node("Add", "a r", "y"),
             node("Identity", "s", "s1"),
             node("ConcatFromSequence", "s1", "z", axis=-1)]  # fmt: skip
    check(nodes, ["y", "m", "z"], 1)


def test_branches_give_a_sequence_each() -> None:
    def branch(name: str, items: str) -> onnx.GraphProto:
        return graph([node("SequenceConstruct", items, name)], [], [sequence(name)])

    nodes = [node("ReduceSum", "xs -", "r", keepdims=0), node("Less", "r r", "never"),
             node("If", "never", "s", then_branch=branch("s0", "h h"),
                  else_branch=branch("s1", "h e")), node("Exp", "h", "e"),
             node("ConcatFromSequence", "s", "y", axis=0)]  # fmt: skip
    check([nodes[3], *nodes[:3], nodes[4]], ["y"], 2)


def test_sequences_that_callers_see_stay() -> None:
    feed = {"xs": draw((3, 2, 4)), "h": draw((2, 4), 1)}
    proto = model([node("SequenceConstruct", "h h", "y")], feed, [])
    proto.graph.output.append(sequence("y"))
    assert len(session(proto).run(None, feed)[0]) == 2


def test_items_are_erased_at_places_that_only_the_run_knows() -> None:
    nodes = [node("Gather", "xs i", "x"), *STEP, node("SequenceErase", "s", "more")]
    outer = [*LENGTH, node("SequenceConstruct", "h h h h h h h", "begun"),
             node("Loop", "n - h begun", "y q", body=loop(nodes, carries=True)),
             node("SequenceLength", "q", "z")]  # fmt: skip
    check(outer, ["y", "z"], 1)


@pytest.mark.parametrize("kind", ["SequenceInsert", "SequenceErase"])
def test_a_place_that_is_not_there_is_refused(kind: str) -> None:
    feed = {"h": draw((2, 4)), "at": np.array(0)}
    item = " h" if kind == "SequenceInsert" else ""
    nodes = [node("Exp", "h", "e"), node("SequenceConstruct", "h e h", "s"),
             node(kind, f"s{item} at", "t"), node("SequenceLength", "t", "n"),
             node("ConcatFromSequence", "t", "y", axis=0)]  # fmt: skip
    proto = model(nodes, feed, ["n", "y"], shapes={"h": ["rows", 4], "at": []})
    made = session(proto)
    assert refused(made) == {}
    last = 3 if kind == "SequenceInsert" else 2
    for place in range(-3, last + 1):
        own = feed | {"at": np.array(place)}
        for left, right in zip(made.run(None, own), by_onnxruntime(proto, own), strict=True):
            np.testing.assert_array_equal(left, right)
    for place in (-4, last + 1):
        with pytest.raises(HaganeError, match="out of range|out of bounds"):
            made.run(None, feed | {"at": np.array(place)})
