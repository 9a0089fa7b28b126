"""Loops, scans and branches over sizes of several names, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.native.agreement import same
from tests.native.bodies import BOOL, FLOAT, INT64, by_onnxruntime, check, graph, info, node
from tests.native.models import draw, model, refused, session

Feed = dict[str, np.ndarray]


def unshaped(name: str) -> onnx.ValueInfoProto:
    """Return a declared value of floats whose rank the file does not tell."""
    return helper.make_tensor_value_info(name, FLOAT, None)


def unshaped_ints(name: str) -> onnx.ValueInfoProto:
    """Return a declared vector of int64 whose length the file does not tell."""
    return helper.make_tensor_value_info(name, INT64, [None])


def body(
    nodes: Sequence[onnx.NodeProto], states: dict[str, str], kept: Sequence[str] = ()
) -> onnx.GraphProto:
    """Return a body of a loop that tells no shapes."""
    return graph(
        [*nodes, node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), *map(unshaped, states)],
        [info("goes", BOOL), *map(unshaped, states.values()), *map(unshaped, kept)],
    )


def opened(nodes: Sequence[onnx.NodeProto], feed: Feed, outputs: Sequence[str]) -> onnx.ModelProto:
    """Return a model each of whose sizes has a name of its own."""
    shapes = {key: [f"{key}_{i}" for i in range(a.ndim)] for key, a in feed.items()}
    return model(nodes, feed, outputs, shapes=shapes)


def summed() -> tuple[onnx.ModelProto, Feed]:
    """Return a loop that adds rows of one input to another."""
    inner = body(
        [node("Gather", "x i", "row"), node("Add", "s row", "t"), node("Neg", "t", "kept")],
        {"s": "t"},
        ["kept"],
    )
    feed = {"n": np.array(5), "x": draw((6, 7)), "s0": draw((7,), 1)}
    loop = node("Loop", "n - s0", "y all", body=inner)
    return opened([loop, node("Exp", "y", "z")], feed, ["z", "all"]), feed


def test_states_are_added_to_rows_whose_length_has_another_name() -> None:
    proto, feed = summed()
    made = check(proto, feed)
    other = {"n": np.array(3), "x": draw((4, 2)), "s0": draw((2,))}
    for left, right in zip(made.run(None, other), by_onnxruntime(proto, other), strict=True):
        same("y", left, right)


@pytest.mark.parametrize(("start", "rows"), [(1, 7), (7, 1), (1, 1)])
def test_states_of_another_length_than_the_rows_broadcast(start: int, rows: int) -> None:
    proto, feed = summed()
    made = session(proto)
    made.run(None, feed)
    other = {**feed, "x": feed["x"][:, :rows], "s0": feed["s0"][:start]}
    for left, right in zip(made.run(None, other), by_onnxruntime(proto, other), strict=True):
        assert left.shape == right.shape
        same("y", left, right)


def test_no_iteration_leaves_a_state_of_another_length_as_it_is() -> None:
    proto, feed = summed()
    made = session(proto)
    other = {**feed, "n": np.array(0), "s0": feed["s0"][:1]}
    same("z", made.run(["z"], other)[0], np.exp(other["s0"]))


def test_loops_in_loops_tell_each_other_of_their_sizes() -> None:
    inner = graph(
        [node("Gather", "x j", "row"), node("Add", "u row", "v"), node("Identity", "on", "on_")],
        [info("j", INT64), info("on", BOOL), unshaped("u")],
        [info("on_", BOOL), unshaped("v")],
    )
    nodes = [node("Loop", "m - s", "w", body=inner), node("Tanh", "w", "t"),
             node("Identity", "t", "kept")]  # fmt: skip
    outer = body(nodes, {"s": "t"}, ["kept"])
    feed = {"n": np.array(4), "m": np.array(3), "x": draw((3, 5)), "s0": draw((5,), 1)}
    proto = opened([node("Loop", "n - s0", "y all", body=outer)], feed, ["y", "all"])
    check(proto, feed)


def test_scans_carry_states_whose_sizes_have_other_names() -> None:
    inner = graph(
        [node("MatMul", "h r", "p"), node("Add", "p x", "c"), node("Tanh", "c", "t"),
         node("Identity", "t", "kept")],
        [unshaped("h"), unshaped("x")], [unshaped("t"), unshaped("kept")],
        {"r": draw((4, 4), 3) / 4},
    )  # fmt: skip
    feed = {"h0": draw((3, 4)), "xs": draw((6, 3, 4), 1)}
    scan = node("Scan", "h0 xs", "y all", body=inner, num_scan_inputs=1)
    check(opened([scan], feed, ["y", "all"]), feed)


def branching() -> tuple[onnx.ModelProto, Feed]:
    """Return an If whose branches give other shapes, and nodes that read its result."""
    sides = [
        graph([node(kind, f"{name} {name}", f"{kind} {name}".replace(" ", "_"))], [],
              [unshaped(f"{kind}_{name}")])
        for kind, name in (("Mul", "x"), ("Add", "z"))
    ]  # fmt: skip
    feed = {"c": np.array(True), "x": draw((3, 5)), "z": draw((4, 2), 1)}
    nodes = [node("If", "c", "y", then_branch=sides[0], else_branch=sides[1]),
             node("Tanh", "y", "t"), node("ReduceMax", "t", "m", keepdims=0)]  # fmt: skip
    return opened(nodes, feed, ["t", "m"]), feed


@pytest.mark.parametrize("condition", [True, False])
def test_branches_of_other_shapes_run_in_the_compiled_program(condition: bool) -> None:
    proto, feed = branching()
    check(proto, {**feed, "c": np.array(condition)})


def test_branches_of_other_shapes_run_at_any_size() -> None:
    proto, _ = branching()
    made = session(proto)
    for size in (1, 2, 9):
        for condition in (True, False):
            other = {"c": np.array(condition), "x": draw((size, 3)), "z": draw((2, size))}
            for left, right in zip(
                made.run(None, other), by_onnxruntime(proto, other), strict=True
            ):
                same("y", left, right)
    assert refused(made) == {}


def test_branches_of_other_shapes_lie_in_loops() -> None:
    sides = [
        graph([node("Mul", "row row", "a")], [], [unshaped("a")]),
        graph([node("Concat", "row row", "b", axis=0)], [], [unshaped("b")]),
    ]
    nodes = [node("Gather", "x i", "row"), node("Gather", "flags i", "c"),
             node("If", "c", "w", then_branch=sides[0], else_branch=sides[1]),
             node("ReduceSum", "w", "u", keepdims=0), node("Add", "s u", "t")]  # fmt: skip
    feed = {"n": np.array(4), "x": draw((4, 5)), "s0": draw((1,), 1),
            "flags": np.array([True, False, False, True])}  # fmt: skip
    proto = opened([node("Loop", "n - s0", "y", body=body(nodes, {"s": "t"}))], feed, ["y"])
    check(proto, feed)


def test_states_that_keep_what_data_tell_are_not_taken_for_steady() -> None:
    # Of those left, the first is taken, and what is near to it goes.
    inner = graph(
        [
            node("Slice", "left zero one", "first"),
            node("Slice", "left one most", "others"),
            node("Gather", "x others", "values"),
            node("Gather", "x first", "value"),
            node("Sub", "values value", "by"),
            node("Abs", "by", "far"),
            node("Greater", "far half", "kept"),
            node("Compress", "others kept", "rest"),
            node("Size", "rest", "count"),
            node("Greater", "count none", "goes"),
        ],
        [info("i", INT64), info("go", BOOL), unshaped_ints("left")],
        [info("goes", BOOL), unshaped_ints("rest"), unshaped_ints("first")],
    )
    feed = {"x": np.array([0, 0.1, 3, 3.2, 0.4, 9, 3.1, 8.9], np.float32)}
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "most": np.array([99]),
        "half": np.array(0.5, np.float32), "none": np.array(0), "step": np.array(1),
    }  # fmt: skip
    nodes = [
        node("Size", "x", "n"),
        node("Range", "none n step", "all"),
        node("Loop", "- yes all", "gone taken", body=inner),
    ]
    constants["yes"] = np.array(True)
    proto = model(nodes, feed, ["gone", "taken"], constants=constants, shapes={"x": ["n"]})
    made = session(proto)
    for x in (feed["x"], feed["x"][:1], np.arange(5, dtype=np.float32), feed["x"][::-1].copy()):
        for left, right in zip(
            made.run(None, {"x": x}), by_onnxruntime(proto, {"x": x}), strict=True
        ):
            same("taken", left, right)
    # Each iteration is compiled, so that no run falls back to the reference kernels as a whole.
    assert refused(made) == {"Loop": "'first' changes its type between iterations"}
