"""What turns of a loop only add to an end is stacked, and joined once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.native.agreement import same
from tests.native.bodies import BOOL, INT64, by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied

Nodes = Sequence[onnx.NodeProto]


def body(
    nodes: Nodes,
    shape: Sequence[int | str] = ("rows", 3),
    more: dict[str, tuple[str, Sequence[int | str]]] | None = None,
    goes: str = "goes",
    constants: dict[str, np.ndarray] | None = None,
    items: Sequence[str] = (),
) -> onnx.GraphProto:
    """Return a body that carries ``s`` on as ``t``, and other states by name."""
    states = {"s": ("t", shape), **(more or {})}
    if goes == "goes":
        nodes = [*nodes, node("Identity", "go", "goes")]
    outputs = [info(after, shape=kept) for after, kept in states.values()]
    return graph(
        nodes,
        [info("i", INT64), info("go", BOOL), *(info(n, shape=k) for n, (_, k) in states.items())],
        [info(goes, BOOL), *outputs, *(info(item, shape=(1, 3)) for item in items)],
        constants,
    )


def check(proto: onnx.ModelProto, feed: dict[str, np.ndarray], expected: int = 1) -> list[str]:
    """Compare the model with itself after the pass, and with ONNX Runtime; return what is left."""
    counts, left = applied(proto, feed)
    assert counts.get("stack_appended", 0) == expected
    made = session(proto)
    got = made.run(None, feed)
    for left_, right in zip(got, by_onnxruntime(proto, feed), strict=True):
        same("y", left_, right)
    if expected:
        assert refused(made) == {}
    return left


def fed(turns: int, shape: Sequence[int] = (2, 3), seed: int = 0) -> dict[str, np.ndarray]:
    return {"n": np.array(turns), "x": draw(shape, seed), "k": draw((1, 3), 9)}


GROWING = [node("Add", "k f", "item"), node("Cast", "i", "f", to=TensorProto.FLOAT)][::-1]


@pytest.mark.parametrize("turns", [0, 1, 2, 5])
@pytest.mark.parametrize("order", ["s item", "item s", "s item k", "k item s"])
def test_rows_added_to_either_end_are_joined_once(turns: int, order: str) -> None:
    inner = body([*GROWING, node("Concat", order, "t", axis=0)])
    feed = fed(turns)
    left = check(model([node("Loop", "n - x", "y", body=inner)], feed), feed)
    assert left[-1] == "Concat"


@pytest.mark.long
@settings(max_examples=15, derandomize=True)
@given(st.data())
def test_blocks_of_any_size_are_added_along_any_axis(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    start = list(shape)
    start[axis] = data.draw(st.integers(0, 3))
    grows: list[int | str] = list(shape)
    grows[axis] = "grows"
    order = data.draw(st.sampled_from(["s item", "item s"]))
    nodes = [GROWING[0], node("Mul", "k f", "item"), node("Concat", order, "t", axis=axis)]
    known = data.draw(st.booleans())
    turns = np.array(data.draw(st.sampled_from([0, 1, 4])))
    feed = {"x": draw(start), "k": draw(shape, 1)}
    constants = {} if not known else {"n": turns}
    feed |= {} if known else {"n": turns}
    proto = model([node("Loop", "n - x", "y", body=body(nodes, grows))], feed, ["y"], constants)
    check(proto, feed)


def test_a_scalar_with_an_axis_of_its_own_is_added() -> None:
    """The form in which exporters write ``numbers.append(number)``."""
    nodes = [GROWING[0], node("ReduceSum", "k -", "r", keepdims=0),
             node("Mul", "r f", "m"), node("Unsqueeze", "m zero", "item"),
             node("Concat", "s item", "t", axis=0)]  # fmt: skip
    inner = body(nodes, ("grows",), constants={"zero": np.array([0])})
    feed = {**fed(4), "x": np.zeros(0, np.float32)}
    check(model([node("Loop", "n - x", "y", body=inner)], feed), feed)


def test_what_hands_values_on_is_passed_over() -> None:
    nodes = [*GROWING, node("Identity", "s", "s1"), node("Concat", "s1 item", "t1", axis=0),
             node("Identity", "t1", "t")]  # fmt: skip
    feed = fed(3)
    check(model([node("Loop", "n - x", "y", body=body(nodes))], feed), feed)


def test_two_of_them_go_and_other_values_stay() -> None:
    nodes = [*GROWING, node("Concat", "s item", "t", axis=0), node("Tanh", "a", "b"),
             node("Concat", "a u", "v", axis=0), node("Add", "b k", "c"),
             node("Identity", "b", "kept")]  # fmt: skip
    more = {"u": ("v", ("more", 3)), "a": ("c", (1, 3))}
    inner = body(nodes, more=more, items=["kept"])
    feed = {**fed(3), "z": draw((5, 3), 4), "w": draw((1, 3), 5)}
    names = ["y", "p", "q", "all"]
    proto = model([node("Loop", "n - x z w", " ".join(names), body=inner)], feed, names)
    check(proto, feed, 2)


@pytest.mark.parametrize("begin", [True, False])
def test_a_condition_ends_it(begin: bool) -> None:
    nodes = [*GROWING, node("Concat", "item s", "t", axis=0), node("Less", "i last", "on")]
    inner = body(nodes, goes="on", constants={"last": np.array(3)})
    feed = {**fed(9), "begin": np.array(begin)}
    check(model([node("Loop", "n begin x", "y", body=inner)], feed), feed)


def test_readers_of_the_result_read_what_is_joined() -> None:
    inner = body([*GROWING, node("Concat", "s item", "t", axis=0)])
    nodes = [node("Loop", "n - x", "y", body=inner), node("Exp", "y", "e"),
             node("Shape", "y", "size")]  # fmt: skip
    feed = fed(3)
    check(model(nodes, feed, ["e", "y", "size"]), feed)


def test_a_result_that_nobody_reads_goes() -> None:
    nodes = [*GROWING, node("Concat", "s item", "t", axis=0), node("Tanh", "a", "c")]
    inner = body(nodes, more={"a": ("c", (1, 3))})
    feed = {**fed(3), "w": draw((1, 3), 5)}
    left = check(model([node("Loop", "n - x w", "y z", body=inner)], feed, ["z"]), feed)
    assert left == ["Loop"]


# ---- sequences ----


def collected(insert: str, item: Sequence[int], **attributes: int) -> onnx.ModelProto:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    kind = helper.make_sequence_type_proto(element)
    sequence = {name: helper.make_value_info(name, kind) for name in ("s", "t")}
    nodes = [node("Cast", "i", "f", to=TensorProto.FLOAT), node("Add", "k f", "item"),
             node("SequenceInsert", insert, "t"), node("Identity", "go", "goes")]  # fmt: skip
    inner = graph(
        nodes, [info("i", INT64), info("go", BOOL), sequence["s"]],
        [info("goes", BOOL), sequence["t"]], {"first": np.array(0)},
    )  # fmt: skip
    outer = [node("SequenceEmpty", "", "x"), node("Loop", "n - x", "q", body=inner),
             node("ConcatFromSequence", "q", "y", **attributes)]  # fmt: skip
    return model(outer, {"n": np.array(1), "k": draw(item, 3)})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("new", [0, 1])
def test_a_sequence_of_equal_shapes_is_no_sequence(axis: int, new: int) -> None:
    proto = collected("s item", (2, 3), axis=axis, new_axis=new)
    for turns in (1, 4):
        feed = {"n": np.array(turns), "k": draw((2, 3), 3)}
        left = check(proto, feed)
        assert not any("Sequence" in name for name in left)


def test_a_sequence_that_is_inserted_into_in_front_or_asked_for_its_length_is_none() -> None:
    feed = {"n": np.array(3), "k": draw((2, 3), 3)}
    check(collected("s item first", (2, 3), axis=0), feed)
    proto = collected("s item", (2, 3), axis=0)
    proto.graph.node.append(node("SequenceLength", "q", "z"))
    proto.graph.output.append(helper.make_tensor_value_info("z", INT64, ()))
    check(proto, feed)


# ---- what stays ----


@pytest.mark.parametrize(
    "nodes",
    [
        [node("ReduceSum", "s -", "sum"), node("Add", "k sum", "item"),
         node("Concat", "s item", "t", axis=0)],
        [*GROWING, node("Concat", "s item", "t1", axis=0), node("Tanh", "t1", "t")],
        [*GROWING, node("Concat", "s s item", "t", axis=0)],
        [*GROWING, node("Concat", "k s item", "t", axis=0)],
        [*GROWING, node("Concat", "s s", "t", axis=0)],
    ],
    ids=["read", "changed", "twice", "between", "doubled"],
)  # fmt: skip
def test_a_value_that_the_body_reads_otherwise_stays(nodes: Nodes) -> None:
    feed = fed(3)
    check(model([node("Loop", "n - x", "y", body=body(nodes))], feed), feed, 0)


def test_a_value_that_is_also_a_result_of_each_turn_stays() -> None:
    nodes = [*GROWING, node("Concat", "s item", "t", axis=0), node("Identity", "t", "u")]
    inner = body(nodes, more={"v": ("u", ("more", 3))})
    feed = {**fed(3), "z": draw((2, 3), 4)}
    check(model([node("Loop", "n - x z", "y z1", body=inner)], feed, ["y", "z1"]), feed, 0)


def test_a_value_that_a_nested_body_reads_stays() -> None:
    then = graph([node("ReduceSum", "s -", "a", keepdims=0)], [], [info("a")])
    other = graph([node("ReduceMax", "k -", "b", keepdims=0)], [], [info("b")])
    nodes = [node("If", "go", "d", then_branch=then, else_branch=other), node("Add", "k d", "item"),
             node("Concat", "s item", "t", axis=0)]  # fmt: skip
    feed = fed(3)
    check(model([node("Loop", "n - x", "y", body=body(nodes))], feed), feed, 0)


def test_a_value_that_the_condition_depends_on_stays() -> None:
    nodes = [*GROWING, node("Concat", "s item", "t", axis=0), node("Shape", "s", "size", end=1),
             node("Squeeze", "size", "rows"), node("Less", "rows last", "on")]  # fmt: skip
    inner = body(nodes, goes="on", constants={"last": np.array(4)})
    feed = fed(9)
    check(model([node("Loop", "n - x", "y", body=inner)], feed), feed, 0)


def test_items_that_grow_themselves_stay() -> None:
    nodes = [node("Concat", "a k", "c", axis=0), node("Concat", "s a", "t", axis=0)]
    inner = body(nodes, more={"a": ("c", ("more", 3))})
    feed = {**fed(3), "z": draw((2, 3), 4)}
    proto = model([node("Loop", "n - x z", "y z1", body=inner)], feed, ["y", "z1"])
    check(proto, feed, 0)


@pytest.mark.parametrize(("axis", "rows"), [(0, (2, 0)), (1, (1, 1))])
def test_items_whose_number_of_rows_is_named_are_stacked(axis: int, rows: tuple[int, int]) -> None:
    start = (4, 3) if axis == 0 else (rows[0], 2)
    nodes = [*GROWING, node("Concat", "s item", "t", axis=axis)]
    inner = body(nodes, ("a", "b"))
    proto = model(
        [node("Loop", "n - x", "y", body=inner)], fed(3, start), shapes={"k": ["some", 3]}
    )
    for count in rows if axis == 0 else rows[:1]:
        check(proto, {**fed(3, start), "k": draw((count, 3), 9)})
