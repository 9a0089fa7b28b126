"""Indices, bounds and amounts from the data, at sizes that only a run knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests.native.written import check, check_fault, node

RNG = np.random.default_rng(0)
SHAPES = [(3, 4, 5), (1, 4, 1), (2, 0, 3), (7, 1, 33)]
TYPES = ["float32", "float16", "float64", "int8", "int64", "bool"]


def draw(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return (RNG.standard_normal(shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_are_gathered_along_any_axis(dtype: str) -> None:
    for axis in (0, -1):
        feeds = []
        for shape in SHAPES[:2] + SHAPES[3:]:
            index = RNG.integers(-shape[axis], shape[axis], shape)
            feeds.append({"x": draw(shape, dtype), "i": index})
        feeds.append({"x": draw((3, 4, 5), dtype), "i": np.zeros((2, 0, 5), np.int64)})
        check(node("GatherElements", ["x", "i"], axis=axis), feeds)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_elements_are_scattered_and_joined(reduction: str, dtype: str) -> None:
    axis = 1
    feeds = []
    for shape in [(3, 4, 5), (1, 4, 1), (2, 6, 40)]:
        index = np.argsort(RNG.random(shape), axis=axis)[:, :3]
        if reduction != "none":
            index = index % 2 - 2
        feeds.append({"x": draw(shape, dtype), "i": index, "u": draw(index.shape, dtype)})
    made = node("ScatterElements", ["x", "i", "u"], axis=axis, reduction=reduction)
    check(made, feeds, length=9)


def test_elements_are_scattered_along_the_last_axis() -> None:
    feeds = [
        {"x": draw((2, 9)), "i": np.array([[1, -1, 0], [2, 2, 2]]), "u": draw((2, 3))},
        {"x": draw((1, 3)), "i": np.zeros((1, 0), np.int64), "u": draw((1, 0))},
    ]
    check(node("ScatterElements", ["x", "i", "u"], axis=-1), feeds)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_tuples_scatter_slices(reduction: str) -> None:
    feeds = []
    for shape, count in (((4, 5, 6), 7), ((1, 5, 1), 3), ((9, 2, 33), 0)):
        index = np.stack(
            [RNG.integers(-shape[0], shape[0], count), RNG.integers(0, shape[1], count)], axis=-1
        )
        updates = draw((count, shape[2]))
        feeds.append({"x": draw(shape), "i": index.reshape(count, 2), "u": updates})
    check(node("ScatterND", ["x", "i", "u"], reduction=reduction), feeds, length=9)


def test_tuples_gather_slices_of_a_batch() -> None:
    shapes = [(2, 3, 4), (1, 3, 9), (5, 1, 2)]
    feeds = [{"x": draw(s), "i": RNG.integers(-s[1], s[1], (s[0], 1))} for s in shapes]
    check(node("GatherND", ["x", "i"], batch_dims=1), feeds, fixed=["i:1"])


@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
def test_sequences_are_reversed(batch: int, time: int) -> None:
    feeds = []
    for shape in [(3, 5, 2), (1, 1, 4), (4, 7, 0), (2, 3, 33)]:
        lengths = RNG.integers(0, shape[time] + 1, shape[batch])
        feeds.append({"x": draw(shape), "n": lengths})
    check(node("ReverseSequence", ["x", "n"], batch_axis=batch, time_axis=time), feeds)


FAULTS: list[tuple[str, dict[str, Any], dict[str, np.ndarray], dict[str, np.ndarray]]] = [
    ("GatherElements", {"axis": 1}, {"x": draw((2, 3)), "i": np.zeros((2, 3), np.int64)},
     {"i": np.array([[0, 3, 0], [0, 0, 0]])}),
    ("GatherND", {}, {"x": draw((2, 3)), "i": np.array([[1]])}, {"i": np.array([[-3]])}),
    ("ScatterElements", {}, {"x": draw((2, 3)), "i": np.array([[1]]), "u": draw((1, 1))},
     {"i": np.array([[2**62]])}),
    ("ScatterND", {}, {"x": draw((2, 3)), "i": np.array([[1]]), "u": draw((1, 3))},
     {"i": np.array([[2]])}),
    ("ReverseSequence", {}, {"x": draw((2, 3)), "n": np.array([1, 2, 0])},
     {"n": np.array([1, 3, 0])}),
    ("TopK", {}, {"x": draw((2, 3)), "k": np.array([1])}, {"k": np.array([4])}),
    ("OneHot", {}, {"x": np.array([0, 1]), "d": np.array([2]), "v": np.array([0, 1])},
     {"d": np.array([0])}),
    ("Reshape", {}, {"x": draw((2, 3)), "s": np.array([3, 2])}, {"s": np.array([3, 3])}),
    ("Split", {}, {"x": draw((5, 3)), "s": np.array([3, 2])}, {"s": np.array([3, 3])}),
    ("Expand", {}, {"x": draw((1, 3)), "s": np.array([3, 3])}, {"s": np.array([2, 2])}),
    ("Slice", {}, {"x": draw((5,)), "a": np.array([0]), "b": np.array([3]), "c": np.array([0]),
                   "s": np.array([1])}, {"s": np.array([0])}),
    ("Pad", {}, {"x": draw((2, 3)), "p": np.array([0, 0, 1, 1])},
     {"p": np.array([-1, 0, -2, 0])}),
    ("Range", {}, {"a": np.array(0), "b": np.array(3), "d": np.array(1)}, {"d": np.array(0)}),
    ("Tile", {}, {"x": draw((2, 3)), "r": np.array([2, 1])}, {"r": np.array([2, -1])}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "attributes", "feed", "bad"), FAULTS, ids=lambda v: str(v)[:15]
)
def test_a_fault_ends_in_the_error_of_the_reference_kernel(
    operator: str, attributes: Any, feed: Any, bad: Any
) -> None:
    outputs = ["y", "z"] if operator in ("TopK", "Split") else ["y"]
    made = node(operator, list(feed), outputs, **attributes)
    check_fault(made, feed, {**feed, **bad}, fixed=list(feed))


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_a_slice_has_any_bounds_axes_and_steps(dtype: str) -> None:
    feeds = []
    for shape in [(6, 5), (1, 7), (0, 3), (9, 33)]:
        for start, end, step, axis in [
            (1, 9, 2, 0),
            (-1, -(2**63), -1, 1),
            (5, 0, -2, -2),
            (3, 3, 1, 1),
        ]:
            feeds.append({
                "x": draw(shape, dtype), "a": np.array([start]), "b": np.array([end]),
                "c": np.array([axis]), "s": np.array([step]),
            })  # fmt: skip
    made = node("Slice", ["x", "a", "b", "c", "s"])
    check(made, feeds, fixed=["a", "b", "c", "s"])
    # Kernels behind it take the sizes that it found.
    chain = [
        helper.make_node("Slice", ["x", "a", "b", "c", "s"], ["t"]),
        helper.make_node("Transpose", ["t"], ["u"]),
        node("Concat", ["u", "u"], axis=0),
    ]
    check(chain, feeds, fixed=["a", "b", "c", "s"])


def test_sizes_that_follow_from_one_another_are_found_in_order() -> None:
    chain = [
        helper.make_node("Slice", ["x", "a", "b"], ["t"]),
        helper.make_node("Shape", ["t"], ["n"]),
        helper.make_node("Slice", ["t", "o", "h"], ["u"]),
        helper.make_node("Expand", ["u", "e"], ["v"]),
        helper.make_node("ReduceSum", ["v"], ["w"], keepdims=1),
        node("Add", ["v", "w"]),
    ]
    feeds = [
        {"x": draw((n, 4)), "a": np.array([a]), "b": np.array([b]), "o": np.array([1]),
         "h": np.array([h]), "e": np.array([3, 1, 4])}
        for n, a, b, h in [(9, 0, 7, 5), (20, 3, 19, 99), (5, 1, 3, -1)]
    ]  # fmt: skip
    check(chain, feeds, fixed=["a", "b", "o", "h", "e"], length=100)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads_come_with_the_data(mode: str) -> None:
    feeds = [
        {"x": draw(shape), "p": np.array(pads)}
        for shape, pads in [
            ((3, 4), [1, 2, 0, 3]), ((2, 5), [-1, 0, 2, -2]),
            ((6, 2), [0, 0, 0, 0]), ((4, 9), [2, 1, 3, 1]),
        ]
    ]  # fmt: skip
    check(node("Pad", ["x", "p"], mode=mode), feeds, fixed=["p"])


def test_shapes_and_counts_come_with_the_data() -> None:
    shapes = [np.array([2, 3]), np.array([0, 4]), np.array([1, 1])]
    check(node("ConstantOfShape", ["s"]), [{"s": s} for s in shapes], fixed=["s"])
    tiles = [{"x": draw((2, 3)), "s": s} for s in shapes]
    check(node("Tile", ["x", "s"]), tiles, fixed=["s"])
    crops = [{"x": draw((5, 2)), "s": s} for s in (np.array([2, 6]), np.array([9, 0]))]
    check(node("CenterCropPad", ["x", "s"]), crops, fixed=["s"])
    new = [{"x": draw((4, 6)), "s": np.array(s)} for s in ([3, 8], [-1, 2], [0, 6], [2, -1])]
    check(node("Reshape", ["x", "s"]), new, fixed=["s"])
    parts = [{"x": draw((6, 2)), "s": np.array(s)} for s in ([3, 3], [6, 0], [1, 5])]
    check(node("Split", ["x", "s"], ["y", "z"]), parts, fixed=["s"])
    for dtype in ("int64", "float32", "float16", "int16"):
        ranges = [
            {name: np.array(v, dtype) for name, v in zip("abd", ends, strict=True)}
            for ends in ((0, 10, 3), (5, -5, -2), (3, 3, 1), (-100, 100, 50))
        ]
        check(node("Range", ["a", "b", "d"]), ranges)


def test_a_triangle_has_a_diagonal_from_the_data() -> None:
    for upper in (0, 1):
        feeds = [{"x": draw((2, 3, 5)), "k": np.array(k)} for k in (0, -2, 9, 1)]
        check(node("Trilu", ["x", "k"], upper=upper), feeds, fixed=["k"])
