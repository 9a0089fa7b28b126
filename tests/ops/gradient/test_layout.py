"""Gradients of operators that move, take, put and fold elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.ops.builder import op
from hagane.ops.gradient import pull_back
from tests.ops.gradient.differences import check, check_operator

RNG = np.random.default_rng(11)


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-2, 2, shape))


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def test_shapes() -> None:
    x = draw(2, 3, 4)
    check_operator("Reshape", x, ints(4, -1))
    check_operator("Reshape", x, ints(0, 12))
    check_operator("Reshape", draw(0, 3), ints(3, 0), attributes={"allowzero": 1})
    check_operator("Flatten", x, attributes={"axis": -1})
    check_operator("Flatten", x, attributes={"axis": 0})
    check_operator("Squeeze", draw(1, 3, 1), ints(-1))
    check_operator("Squeeze", draw(1, 3, 1))
    check_operator("Unsqueeze", x, ints(-1, 0))
    check_operator("Expand", draw(3, 1), ints(2, 1, 4))
    check_operator("Expand", draw(3, 1), ints(1, 1))
    check_operator("Tile", draw(2, 3), ints(3, 2))
    check_operator("Tile", draw(2, 3), ints(0, 2))
    check_operator("Tile", draw(), ints())
    check_operator("Transpose", x)
    check_operator("Transpose", x, attributes={"perm": [2, 0, 1]})
    check_operator("ReverseSequence", draw(4, 3, 2), ints(1, 4, 0))
    flags = {"batch_axis": 0, "time_axis": 1}
    check_operator("ReverseSequence", draw(3, 4), ints(1, 4, 2), attributes=flags)


def test_joining_and_cutting() -> None:
    check_operator("Concat", draw(2, 3), draw(2, 1), draw(2, 0), attributes={"axis": -1})
    check_operator("Concat", draw(2, 3), attributes={"axis": 0})
    check_operator("Split", draw(2, 7), outputs=3, attributes={"axis": 1, "num_outputs": 3})
    check_operator("Split", draw(5, 2), ints(1, 4), outputs=2)
    first = lambda x: [op("Split", x, [1, 4], outputs=2)[1]]  # noqa: E731
    check(first, draw(5, 2))
    for mode in ("DCR", "CRD"):
        check_operator("DepthToSpace", draw(1, 8, 2, 3), attributes={"blocksize": 2, "mode": mode})
        check_operator("SpaceToDepth", draw(1, 2, 4, 6), attributes={"blocksize": 2, "mode": mode})


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [3], [0], None),
        ([-3, 1], [100, -1], [1, 0], None),
        ([0, 2], [5, 2], None, None),
        ([-100], [100], [-1], [1]),
        ([0, 6], [5, -100], [0, 1], [2, -2]),
        ([-1], [-100], [1], [-3]),
    ],
)
def test_slices(starts: Any, ends: Any, axes: Any, steps: Any) -> None:
    bounds = [None if v is None else ints(*v) for v in (starts, ends, axes, steps)]
    check_operator("Slice", draw(5, 7), *bounds)


def test_triangles_crops_and_conditions() -> None:
    for upper in (0, 1):
        check_operator("Trilu", draw(2, 3, 4), attributes={"upper": upper})
        check_operator("Trilu", draw(3, 4), np.array(-1), attributes={"upper": upper})
    check_operator("CenterCropPad", draw(5, 4), ints(2, 7))
    check_operator("CenterCropPad", draw(2, 5, 4), ints(7, 3), attributes={"axes": [1, -1]})
    condition = np.array([True, False, True])
    check_operator("Compress", draw(3, 2), condition, attributes={"axis": 0})
    check_operator("Compress", draw(2, 4), condition, attributes={"axis": -1})
    check_operator("Compress", draw(2, 2), condition)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_margins(mode: str) -> None:
    check_operator("Pad", draw(4, 5), ints(1, 2, 3, 0), attributes={"mode": mode})
    check_operator("Pad", draw(4, 5), ints(2, -1), None, ints(-1), attributes={"mode": mode})
    if mode == "constant":
        check_operator("Pad", draw(4, 5), ints(1, 2, -1, 0), draw(), attributes={"mode": mode})
        check_operator("Pad", draw(0), ints(1, 2), draw())


def test_fillings() -> None:
    check_operator("Range", np.array(0.3), np.array(2.1), np.array(0.5))
    check_operator("EyeLike", draw(3, 2))
    check_operator("OneHot", ints(1, -1, 7), np.array(4), draw(2), attributes={"axis": 0})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_taking(axis: int) -> None:
    x = draw(3, 4, 5)
    for indices in (np.array(1), ints(2, 0, -1, 0), np.array([[1, 1], [0, 2]]), ints()):
        check_operator("Gather", x, indices.astype(np.int64), attributes={"axis": axis})
    check_operator("Gather", x, np.array([1, 1], np.int32), attributes={"axis": axis})
    indices = RNG.integers(-3, 3, (2, 3, 4))
    check_operator("GatherElements", x, indices, attributes={"axis": axis})


def test_taking_by_tuples() -> None:
    x = draw(2, 3, 4)
    check_operator("GatherND", x, np.array([[0, 1], [1, -1], [0, 1]]))
    check_operator("GatherND", x, np.array([[[2], [0]], [[1], [1]]]), attributes={"batch_dims": 1})
    check_operator("GatherND", x, RNG.integers(0, 4, (2, 3, 5, 1)), attributes={"batch_dims": 2})
    check_operator("ArrayFeatureExtractor", draw(2, 4), ints(1, 1, 3), domain="ai.onnx.ml")
    check_operator("ArrayFeatureExtractor", draw(4), ints(1, 1, 3), domain="ai.onnx.ml")


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_putting(reduction: str) -> None:
    attributes = {"reduction": reduction}
    repeated = ints(1, 3) if reduction == "none" else ints(1, 1)
    elements = np.stack([repeated, repeated])
    check_operator(
        "ScatterElements", draw(2, 4), elements, draw(2, 2), attributes={**attributes, "axis": 1}
    )
    check_operator("ScatterND", draw(4, 3), repeated[:, None], draw(2, 3), attributes=attributes)


def test_products_with_zeros_have_gradients() -> None:
    x, updates = np.array([2.0, 3.0]), np.array([0.0, 5.0])
    product = lambda x, u: [  # noqa: E731
        op("ScatterND", x, np.array([[0], [0]]), u, reduction="mul")
    ]
    _, pull = pull_back(product, x, updates)
    of_x, of_updates = pull([np.ones(2)])
    assert of_x.tolist() == [0, 1]
    assert of_updates.tolist() == [10, 0]
    for values, want in (
        ([2.0, 0.0, 3.0], [0, 6, 0]),
        ([2.0, 0.0, 0.0], [0, 0, 0]),
        ([2.0, 4.0, 3.0], [12, 6, 8]),
    ):
        _, pull = pull_back(lambda x: [op("ReduceProd", x, keepdims=0)], np.array(values))
        assert pull([np.array(1.0)])[0].tolist() == want


def test_caches() -> None:
    for mode, start in (("linear", [0, 3]), ("circular", [4, 2])):
        check_operator(
            "TensorScatter",
            draw(2, 3, 5, 2),
            draw(2, 3, 2, 2),
            ints(*start),
            attributes={"mode": mode},
        )
    check_operator("TensorScatter", draw(2, 5, 3), draw(2, 2, 3))
    check_operator("TensorScatter", draw(2, 5, 3), draw(2, 5, 2), attributes={"axis": 2})


REDUCTIONS = [
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    x = np.abs(draw(2, 3, 4)) + 0.2
    for axes in (None, ints(), ints(1), ints(-1, 0)):
        for keepdims in (0, 1):
            for noop in (0, 1):
                flags = {"keepdims": keepdims, "noop_with_empty_axes": noop}
                check_operator(name, x, axes, attributes=flags, second=keepdims == noop)
    check_operator(name, np.abs(draw()) + 0.5)


def test_equal_elements_share_the_gradient_of_the_extreme() -> None:
    _, pull = pull_back(lambda x: [op("ReduceMax", x, keepdims=0)], np.array([3.0, 1.0, 3.0]))
    assert pull([np.array(1.0)])[0].tolist() == [0.5, 0, 0.5]


def test_logarithms_of_sums_of_nothing_have_no_gradient() -> None:
    x = np.full(3, -np.inf)
    _, pull = pull_back(lambda x: [op("ReduceLogSumExp", x, keepdims=0)], x)
    assert pull([np.array(1.0)])[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_totals(exclusive: int, reverse: int) -> None:
    flags = {"exclusive": exclusive, "reverse": reverse}
    for name in ("CumSum", "CumProd"):
        check_operator(name, draw(3, 4), np.array(1), attributes=flags)
    for zeros in ([1], [0, 2], [3]):
        x = draw(4)
        x[zeros] = 0
        check_operator("CumProd", x, np.array(0), attributes=flags, second=False)


def test_largest_and_distinct_elements() -> None:
    for axis, largest in ((0, 1), (1, 0), (-1, 1)):
        flags = {"axis": axis, "largest": largest}
        check_operator("TopK", draw(4, 5), ints(3), outputs=2, attributes=flags)
    check_operator("Unique", draw(5), outputs=4)
    check_operator("Unique", draw(3, 2), attributes={"axis": 0})
    check_operator("Unique", draw(3, 2), attributes={"sorted": 0})
