"""Indices that come with the data: out of range they are an error, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import hagane
from hagane.errors import KernelError
from tests.drawing import few
from tests.native.models import draw, every_level, model, session

FAR = [2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63)]
ROWS, COLUMNS = 6, 33


def indices(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-ROWS, ROWS, shape)


def case(operator: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray], int]:
    """Return a model with a node 'look' that reads indices 'i', a feed, and the indexed size.

    A computation before the node and one after it share its compiled part and its memory.
    """
    x = draw((ROWS, COLUMNS))
    feeds: dict[str, dict[str, np.ndarray]] = {
        "Gather": {"i": indices((4, 3))},
        "GatherElements": {"i": indices((4, COLUMNS))},
        "GatherND": {"i": indices((5, 1))},
        "ScatterElements": {"i": np.arange(4 * COLUMNS).reshape(4, COLUMNS) % 4},
        "ScatterND": {"i": np.array([[4], [1], [-3]])},
        "ArrayFeatureExtractor": {"i": indices((4,))},
    }
    updates = {"ScatterElements": draw((4, COLUMNS), 2), "ScatterND": draw((3, COLUMNS), 2)}
    feed = {"x": x, **feeds[operator]}
    names = ["t", "i"]
    if operator in updates:
        feed["u"] = updates[operator]
        names.append("u")
    domain = "ai.onnx.ml" if operator == "ArrayFeatureExtractor" else ""
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node(operator, names, ["r"], "look", domain=domain),
        helper.make_node("Exp", ["r"], ["y"]),
        helper.make_node("MatMul", ["x", "w"], ["z"]),
    ]
    proto = model(nodes, feed, ["y", "z"], {"w": draw((COLUMNS, 20), 3)})
    if domain:
        proto.opset_import.append(helper.make_opsetid(domain, 1))
    size = COLUMNS if operator == "ArrayFeatureExtractor" else ROWS
    return proto, feed, size


OPERATORS = [
    "Gather",
    "GatherElements",
    "GatherND",
    "ScatterElements",
    "ScatterND",
    "ArrayFeatureExtractor",
]


def check_failure(
    made: hagane.InferenceSession, feed: dict[str, np.ndarray], bad: int, operator: str
) -> None:
    """Put one bad index in each of some places; each must be named, and change nothing."""
    wanted = made.run(None, feed)
    for at in {0, feed["i"].size // 2, feed["i"].size - 1}:
        wrong = {name: array.copy() for name, array in feed.items()}
        wrong["i"].reshape(-1)[at] = bad
        kept = {name: array.tobytes() for name, array in wrong.items()}
        with pytest.raises(KernelError, match=rf"{operator} 'look' failed: .*{bad}"):
            made.run(None, wrong)
        assert {name: array.tobytes() for name, array in wrong.items()} == kept
        for got, want in zip(made.run(None, feed), wanted, strict=True):
            np.testing.assert_array_equal(got, want)


@every_level
@pytest.mark.parametrize("operator", OPERATORS)
def test_an_index_out_of_range_names_the_node_and_the_index(level: str, operator: str) -> None:
    proto, feed, size = case(operator)
    made = session(proto, instructions=level)
    lowest = [] if operator == "ArrayFeatureExtractor" else [-size - 1]
    for bad in [size, *lowest, *FAR]:
        check_failure(made, feed, bad, operator)


@every_level
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_look_up_along_any_axis_is_checked(level: str, dtype: str, axis: int) -> None:
    feed = {"x": draw((6, 6, 6)), "i": indices((5,)).astype(dtype)}
    node = helper.make_node("Gather", ["x", "i"], ["y"], "look", axis=axis)
    made = session(model([node], feed), instructions=level)
    for bad in (6, -7, np.iinfo(dtype).max, np.iinfo(dtype).min):
        check_failure(made, feed, bad, f"Gather 'look' failed: index {bad} is out of range for "
                      f"axis {axis} with size 6|Gather")  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "int64"])
def test_an_embedding_of_any_element_type_is_checked(dtype: str) -> None:
    table = (np.arange(7 * 5).reshape(7, 5) % 2).astype(dtype)
    feed = {"i": indices((2, 3))}
    node = helper.make_node("Gather", ["table", "i"], ["y"], "look")
    check_failure(session(model([node], feed, constants={"table": table})), feed, 7, "Gather")


def test_a_look_up_in_a_table_whose_size_is_open_is_checked_against_the_size_it_has() -> None:
    feed = {"x": draw((4, 3)), "i": np.array([0, 3])}
    node = helper.make_node("Gather", ["x", "i"], ["y"], "look")
    made = session(model([node], feed, shapes={"x": ["rows", 3], "i": ["count"]}))
    larger = {"x": draw((9, 3)), "i": np.array([8, 0, -9])}
    for arrays, bad in ((feed, 4), (larger, 9), (feed, 4)):
        check_failure(made, arrays, bad, "Gather")


def test_the_first_of_two_wrong_look_ups_is_named_and_the_second_stays_in_bounds() -> None:
    feed = {"x": np.arange(6), "i": np.array([0, 5])}
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["r"], "look"),
        helper.make_node("Gather", ["x", "r"], ["y"], "again"),
    ]
    made = session(model(nodes, feed))
    check_failure(made, feed, 6, "Gather")
    with pytest.raises(KernelError, match="'again' failed: .*17"):
        made.run(None, {**feed, "x": np.array([17, 1, 2, 3, 4, 5])})


def test_a_look_up_in_a_loop_names_its_node() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["x", "n"], ["row"], "look"),
            helper.make_node("Add", ["sum", "row"], ["more"]),
            helper.make_node("Identity", ["go"], ["goes"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("n", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("goes", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("more", onnx.TensorProto.FLOAT, [3]),
        ],
    )
    feed = {"x": draw((5, 3)), "count": np.array(5), "go": np.array(True), "s": np.zeros(3, "f4")}
    node = helper.make_node("Loop", ["count", "go", "s"], ["y"], "loop", body=body)
    made = session(model([node], feed))
    (want,) = made.run(None, feed)
    with pytest.raises(KernelError, match="'look' failed: .*5"):
        made.run(None, {**feed, "count": np.array(6)})
    np.testing.assert_array_equal(made.run(None, feed)[0], want)


@every_level
@few(25)
@given(
    st.integers(1, 9),
    st.integers(0, 3),
    st.lists(st.integers(-14, 14), min_size=1, max_size=40),
    st.sampled_from(["int32", "int64"]),
)
def test_any_indices_give_what_numpy_gives_or_an_error(
    level: str, size: int, inner: int, drawn: list[int], dtype: str
) -> None:
    feed = {"x": draw((size, inner)), "i": np.array(drawn, dtype)}
    proto = model(
        [helper.make_node("Gather", ["x", "i"], ["y"], "look")],
        feed,
        shapes={"x": ["size", "inner"], "i": ["count"]},
    )
    made = session(proto, instructions=level)
    outside = [index for index in drawn if not -size <= index < size]
    if outside and inner:
        with pytest.raises(KernelError, match="Gather 'look' failed: index") as caught:
            made.run(None, feed)
        assert any(f"index {index} is out of range" in str(caught.value) for index in outside)
    elif not outside:
        np.testing.assert_array_equal(made.run(None, feed)[0], np.take(feed["x"], drawn, axis=0))


@every_level
@few(25)
@given(st.lists(st.sampled_from([0, 1, 3, 5, 99, -1, -5, -99, *FAR[2:]]), min_size=3, max_size=3))
def test_bounds_of_a_slice_from_the_data_are_clamped(level: str, drawn: list[int]) -> None:
    start, end, step = drawn
    step = step or 1
    feed: dict[str, Any] = {"x": draw((5, 4)), "s": np.array([start]), "e": np.array([end])}
    feed |= {"a": np.array([0]), "step": np.array([step])}
    made = session(
        model([helper.make_node("Slice", [*feed], ["y"], "cut")], feed), instructions=level
    )
    (got,) = made.run(None, feed)
    # As the specification has it: unlike NumPy, a backward slice starts within the axis.
    last = 4 if step < 0 else 5
    first = min(max(start + 5 if start < 0 else start, 0), last)
    stop = min(max(end + 5 if end < 0 else end, -1 if step < 0 else 0), last)
    np.testing.assert_array_equal(got, feed["x"][list(range(first, stop, step))])


def test_one_hot_of_an_index_out_of_range_is_all_off() -> None:
    feed = {"i": np.array([1, 4, -5, 2**62, -(2**63), -1])}
    constants = {"depth": np.array(4), "values": np.float32([0, 1])}
    node = helper.make_node("OneHot", ["i", "depth", "values"], ["y"])
    (got,) = session(model([node], feed, constants=constants)).run(None, feed)
    assert got.sum(axis=1).tolist() == [1, 0, 0, 0, 0, 1]


@every_level
@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_element_of_an_empty_axis_is_the_largest(level: str, operator: str, axis: int) -> None:
    feed = {"x": draw((3, 5))}
    node = helper.make_node(operator, ["x"], ["y"], "most", axis=axis, keepdims=0)
    made = session(model([node], feed, shapes={"x": ["rows", "columns"]}), instructions=level)
    (want,) = made.run(None, feed)
    shape = [4, 4]
    shape[axis] = 0
    with pytest.raises(KernelError, match=f"{operator} 'most' failed: axis {axis} is empty"):
        made.run(None, {"x": np.zeros(shape, np.float32)})
    shape = [4, 4]
    shape[1 - axis] = 0
    assert made.run(None, {"x": np.zeros(shape, np.float32)})[0].shape == (0,)
    np.testing.assert_array_equal(made.run(None, feed)[0], want)


@every_level
@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("axis", [0, 1])
def test_an_empty_axis_has_no_element_to_repeat(level: str, mode: str, axis: int) -> None:
    feed = {"x": draw((3, 5))}
    constants = {"pads": np.array([1, 0, 2, 0] if axis == 0 else [0, 1, 0, 2])}
    node = helper.make_node("Pad", ["x", "pads"], ["y"], "wide", mode=mode)
    proto = model([node], feed, constants=constants, shapes={"x": ["rows", "columns"]})
    made = session(proto, instructions=level)
    (want,) = made.run(None, feed)
    shape = [4, 4]
    shape[axis] = 0
    with pytest.raises(KernelError, match=f"Pad 'wide' failed: axis {axis} is empty"):
        made.run(None, {"x": np.zeros(shape, np.float32)})
    shape = [4, 4]
    shape[1 - axis] = 0
    assert made.run(None, {"x": np.zeros(shape, np.float32)})[0].size == 0
    np.testing.assert_array_equal(made.run(None, feed)[0], want)


@every_level
@pytest.mark.parametrize("index", [0, 3, -4])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_fixed_index_into_an_open_axis_is_checked(level: str, index: int, rank: int) -> None:
    feed = {"x": draw((4, 5))}
    constants = {"i": np.array(index).reshape((1,) * rank)}
    node = helper.make_node("Gather", ["x", "i"], ["y"], "look")
    proto = model([node], feed, constants=constants, shapes={"x": ["rows", "columns"]})
    made = session(proto, instructions=level)
    for rows in (4, 9):
        x = draw((rows, 5))
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], np.take(x, constants["i"], 0))
    for rows in range(0 if index == 0 else 3, 4 if index else 1):
        with pytest.raises(KernelError, match=f"Gather 'look' failed: index {index} .*size {rows}"):
            made.run(None, {"x": draw((rows, 5))})
