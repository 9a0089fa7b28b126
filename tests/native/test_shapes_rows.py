"""Reductions, softmax, normalisation and products: huge, empty, with numbers at the edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper

from tests.drawing import few, many
from tests.native.agreement import agree, same
from tests.native.models import compare, draw, every_level, model, session
from tests.native.test_shapes_elements import EDGE, FLOATS, kind_of

FEW = few(3)
MANY = many(300)
SUMS = ["ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"]
OTHERS = ["ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSum", "ReduceLogSumExp"]


def reductions(names: list[str], keep: int, axes: str = "axes") -> list[Any]:
    """Return a node for each reduction of ``x`` over ``axes``."""
    return [helper.make_node(name, ["x", axes], [name], keepdims=keep) for name in names]


nothing = pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")


def check_reductions(level: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    rank = len(shape)
    axes = data.draw(st.lists(st.integers(-rank, rank - 1), unique_by=lambda a: a % max(1, rank)))
    keep = data.draw(st.integers(0, 1))
    x = np.abs(draw(shape)) + np.float32(0.1)
    names = SUMS + ([name for name in OTHERS if name != "ReduceProd"] if 0 not in shape else [])
    nodes = reductions(names, keep)
    # Products of many numbers leave the range of float32, where their order decides. These stay in.
    factors = np.exp(draw(shape, 1) / np.sqrt(np.float32(max(1, x.size))))
    nodes.append(helper.make_node("ReduceProd", ["factors", "axes"], ["ReduceProd"], keepdims=keep))
    feed = {"x": x, "factors": factors}
    agree(nodes, feed, level, constants={"axes": np.array(axes, np.int64)}, length=max(2, x.size))


@nothing
@every_level
@FEW
@given(hnp.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=9), st.data())
def test_axes_from_both_ends_are_reduced(
    level: str, shape: tuple[int, ...], data: st.DataObject
) -> None:
    check_reductions(level, shape, data)


@pytest.mark.long
@nothing
@every_level
@MANY
@given(hnp.array_shapes(min_dims=1, max_dims=5, min_side=0, max_side=12), st.data())
def test_many_axes_from_both_ends_are_reduced(
    level: str, shape: tuple[int, ...], data: st.DataObject
) -> None:
    check_reductions(level, shape, data)


@every_level
def test_a_number_without_axes_is_reduced_to_itself(level: str) -> None:
    nodes = [helper.make_node(name, ["x"], [name]) for name in SUMS + OTHERS]
    agree(nodes, {"x": np.array(np.float32(2.5))}, level)


@every_level
@pytest.mark.parametrize(
    ("shape", "axes"), [((3_000_001,), [0]), ((700_000, 3), [0]), ((2, 900_000), [1])]
)
def test_sums_of_millions_keep_their_digits(
    level: str, shape: tuple[int, ...], axes: list[int]
) -> None:
    x = np.abs(draw(shape)) + np.float32(1)
    names = ["ReduceSum", "ReduceMean", "ReduceL2", "ReduceMax", "ReduceMin"]
    proto = model(reductions(names, 1), {"x": x}, names, {"axes": np.array(axes)})
    found = session(proto, instructions=level).run(None, {"x": x})
    wide = x.astype(np.float64)
    over = {"axis": tuple(axes), "keepdims": True}
    want = [
        wide.sum(**over), wide.mean(**over), np.sqrt((wide * wide).sum(**over)),
        wide.max(**over), wide.min(**over),
    ]  # fmt: skip
    # One vector adds them all: a rounding error each, as in NumPy across rows and elsewhere.
    for name, left, right in zip(names, found, want, strict=True):
        same(name, left, right.astype(np.float32), length=4000)


@every_level
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_meet_numbers_at_the_edge(level: str, axis: int) -> None:
    x = np.stack([np.roll(draw((41,)), i) for i in range(len(EDGE) + 1)])
    for i, value in enumerate(EDGE):
        x[i, 3 * i % 41] = value
    x = np.ascontiguousarray(x if axis else x.T)
    constants = {"axes": np.array([axis])}
    names = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1"]
    nodes = [
        *reductions(names, 0),
        helper.make_node("Softmax", ["x"], ["soft"], axis=axis),
        helper.make_node("LogSoftmax", ["x"], ["log"], axis=axis),
    ]
    agree(nodes, {"x": x}, level, constants=constants, length=41)


@every_level
def test_masked_rows_of_softmax(level: str) -> None:
    x = draw((4, 37))
    x[1, 5:] = -np.inf
    x[2] = -np.inf
    x[3] = 1e30
    nodes = [helper.make_node("Softmax", ["x"], ["y"])]
    (y,) = agree(nodes, {"x": x}, level, native=True)
    assert np.all(y[1, 5:] == 0)


@every_level
@FEW
@given(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=40), st.data())
def test_rows_of_any_length_are_normalised(
    level: str, shape: tuple[int, ...], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    tail = shape[axis % len(shape) :]
    x = draw(shape) * 3
    nodes = [
        helper.make_node("Softmax", ["x"], ["soft"], axis=axis),
        helper.make_node("LogSoftmax", ["x"], ["log"], axis=axis),
        helper.make_node("LpNormalization", ["x"], ["lp"], axis=axis),
    ]
    if 0 not in shape:
        nodes += [
            helper.make_node("LayerNormalization", ["x", "w", "b"], ["norm"], axis=axis),
            helper.make_node("LayerNormalization", ["x", "w"], ["all", "mean", "dev"], axis=axis),
            helper.make_node("RMSNormalization", ["x", "w"], ["rms"], axis=axis),
            helper.make_node("ArgMax", ["x"], ["most"], axis=axis, select_last_index=1),
            helper.make_node("Hardmax", ["x"], ["hard"], axis=axis),
            helper.make_node("ArgMin", ["x"], ["least"], axis=axis, keepdims=0),
        ]
    constants = {"w": draw(tail, 1), "b": draw(tail, 2)}
    agree(nodes, {"x": x}, level, constants=constants, length=max(2, x.size), opset=23)


@every_level
@FEW
@given(
    st.integers(1, 3), st.integers(1, 4), st.integers(1, 9), st.lists(st.integers(1, 9), max_size=3)
)
def test_groups_and_instances_are_normalised(
    level: str, images: int, groups: int, each: int, size: list[int]
) -> None:
    channels = groups * each
    x = draw((images, channels, *(size or [4])))
    nodes = [
        helper.make_node("GroupNormalization", ["x", "w", "b"], ["g"], num_groups=groups),
        helper.make_node("InstanceNormalization", ["x", "w", "b"], ["i"]),
        helper.make_node("BatchNormalization", ["x", "w", "b", "m", "v"], ["n"]),
        helper.make_node("LRN", ["x"], ["l"], size=3),
        helper.make_node("MeanVarianceNormalization", ["x"], ["mvn"], axes=[0, *range(2, x.ndim)]),
    ]
    if x.ndim != 4:
        nodes.pop()
    constants = {name: draw((channels,), i) for i, name in enumerate("wbm")}
    constants["v"] = np.abs(draw((channels,), 9)) + np.float32(0.5)
    agree(nodes, {"x": x}, level, constants=constants, length=100 * x.size)


def check_products(level: str, data: st.DataObject) -> None:
    m, k, n = (data.draw(st.integers(0, high)) for high in (40, 70, 90))
    lead = data.draw(
        hnp.mutually_broadcastable_shapes(
            num_shapes=2, min_dims=0, max_dims=2, min_side=0, max_side=4
        )
    )
    first, second = lead.input_shapes
    feed = {"a": draw((*first, m, k)), "b": draw((*second, k, n), 1)}
    feed |= {"c": draw((m, k), 2), "v": draw((k,), 3)}
    constants = {"w": draw((k, n), 4), "r": draw((n,), 5), "q": draw((m, 1), 6)}
    ta, tb = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    scales = {"alpha": 0.5, "beta": 2.0}
    turned = {"transA": ta, "transB": tb, **scales}
    left, right = "ct" if ta else "c", "wt" if tb else "w"
    nodes = [
        helper.make_node("MatMul", ["a", "b"], ["ab"]),
        helper.make_node("MatMul", ["a", "w"], ["aw"]),
        helper.make_node("MatMul", ["v", "b"], ["vb"]),
        helper.make_node("MatMul", ["a", "v"], ["av"]),
        helper.make_node("MatMul", ["v", "v"], ["vv"]),
        helper.make_node("Transpose", ["c"], ["ct"]),
        helper.make_node("Transpose", ["w"], ["wt"]),
        helper.make_node("Gemm", [left, right, "r"], ["gr"], **turned),
        helper.make_node("Gemm", ["c", "w", "q"], ["gq"], **scales),
        helper.make_node("Gemm", ["c", "w"], ["g"]),
        helper.make_node("Einsum", ["c", "w"], ["e"], equation="mk,kn->nm"),
    ]  # fmt: skip
    agree(nodes, feed, level, constants=constants, length=max(2, k) * 16)


@every_level
@FEW
@given(st.data())
def test_products_of_any_shapes(level: str, data: st.DataObject) -> None:
    check_products(level, data)


@pytest.mark.long
@every_level
@MANY
@given(st.data())
def test_many_products_of_any_shapes(level: str, data: st.DataObject) -> None:
    check_products(level, data)


@every_level
@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64", "uint32"])
def test_products_and_sums_of_other_element_types(level: str, dtype: str) -> None:
    kind = kind_of(dtype)
    whole = kind in map(np.dtype, ("int32", "int64", "uint32"))
    random = np.random.default_rng(0)
    x = (random.integers(0, 9, (5, 21)) if whole else random.normal(0, 1, (5, 21))).astype(kind)
    w = (random.integers(0, 9, (21, 18)) if whole else random.normal(0, 1, (21, 18))).astype(kind)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        *reductions(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"], 0),
        helper.make_node("ArgMax", ["x"], ["most"], axis=1),
        helper.make_node("CumSum", ["x", "axis"], ["running"]),
    ]
    if not whole:
        nodes.append(helper.make_node("Softmax", ["y"], ["soft"]))
    constants = {"w": w, "axes": np.array([1]), "axis": np.array(1)}
    agree(nodes, {"x": x}, level, constants=constants, length=100)


@every_level
def test_equal_numbers_are_told_apart_by_their_place(level: str) -> None:
    x = np.resize(np.float32([1, 3, 3, 0, 0, 2]), (4, 50))
    nodes = [
        helper.make_node("ArgMax", ["x"], ["first"], axis=1),
        helper.make_node("ArgMax", ["x"], ["last"], axis=1, select_last_index=1),
        helper.make_node("ArgMin", ["x"], ["down"], axis=0),
        helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=1),
    ]
    outputs = ["first", "last", "down", "values", "places"]
    proto = model(nodes, {"x": x}, outputs, {"k": np.array([7])})
    compare(proto, {"x": x}, level, native=False)
