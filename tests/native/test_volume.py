"""Convolution of volumes, and products of numbers other than float32, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few
from tests.native.models import compare, draw, every_level, model

FEW = few(5)


@every_level
@FEW
@given(st.data())
def test_convolution_of_volumes_equals_the_reference(level: str, data: st.DataObject) -> None:
    groups, depth, each = (data.draw(st.integers(1, most)) for most in (3, 4, 9))
    kernel = [data.draw(st.integers(1, 3)) for _ in range(3)]
    dilations = [data.draw(st.integers(1, 2)) for _ in range(3)]
    strides = [data.draw(st.integers(1, 3)) for _ in range(3)]
    sizes = [
        (k - 1) * d + 1 + data.draw(st.integers(0, most))
        for k, d, most in zip(kernel, dilations, (4, 5, 20), strict=True)
    ]
    attributes = {"group": groups, "strides": strides, "dilations": dilations}
    mode = data.draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if mode == "pads":
        attributes["pads"] = [data.draw(st.integers(0, 2)) for _ in range(6)]
    else:
        attributes["auto_pad"] = mode
    feed = {"x": draw((2, groups * depth, *sizes))}
    constants = {"w": draw((groups * each, depth, *kernel), 1)}
    if data.draw(st.booleans()):
        constants["b"] = draw((groups * each,), 2)
    nodes = [
        helper.make_node("Conv", ["x", *constants], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    compare(model(nodes, feed, constants=constants), feed, level, rtol=1e-4, atol=1e-4)


@every_level
@pytest.mark.parametrize(
    ("rows", "strides"),
    [
        ((8, 8), (1, 1, 1)), ((1, 5), (1, 1, 1)), ((4, 14), (1, 1, 1)), ((7, 33), (1, 1, 1)),
        ((2, 1), (1, 1, 1)), ((8, 8), (2, 2, 2)), ((1, 5), (1, 3, 2)), ((7, 33), (2, 2, 1)),
        ((2, 1), (1, 2, 4)),
    ],
)  # fmt: skip
def test_rows_of_a_volume_share_vectors(
    level: str, rows: tuple[int, int], strides: tuple[int, int, int]
) -> None:
    """Sums over a border, which lie between those of two rows, are left out, infinite ones too."""
    x = draw((2, 3, 4, *rows))
    x[:, :, 1, -1, -1] = np.inf
    constants = {"w": draw((6, 3, 3, 3, 3), 1), "b": draw((6,), 2)}
    node = helper.make_node("Conv", ["x", *constants], ["y"], pads=[1] * 6, strides=strides)
    for shapes in ({}, {"x": ["n", 3, "d", "h", "w"]}):
        made = model([node], {"x": x}, constants=constants, shapes=shapes)
        compare(made, {"x": x}, level, rtol=1e-4, atol=1e-4)


@every_level
@pytest.mark.parametrize("dtype", ["float64", "int32", "int64", "uint32", "uint64"])
@FEW
@given(
    st.integers(1, 3), st.integers(1, 20), st.integers(1, 30), st.integers(1, 80),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_products_of_other_numbers_equal_the_reference(
    level: str, dtype: str, batch: int, m: int, k: int, n: int, transposed: bool, shared: bool
) -> None:
    random = np.random.default_rng(m * k)
    high = 2**31 - 1 if dtype.endswith("32") else 2**40
    low = 0 if dtype.startswith("u") else -high

    def numbers(*shape: int) -> np.ndarray:
        if dtype == "float64":
            return random.standard_normal(shape)
        return random.integers(low, high, shape).astype(dtype)

    feed = {"a": numbers(batch, m, k), "b": numbers(*(() if shared else (batch,)), k, n)}
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    if transposed:
        feed["b"] = np.ascontiguousarray(feed["b"].swapaxes(-1, -2))
        perm = [1, 0] if shared else [0, 2, 1]
        nodes.insert(0, helper.make_node("Transpose", ["b"], ["t"], perm=perm))
        nodes[1].input[1] = "t"
    shapes = {"a": [batch, "rows", k]}
    compare(model(nodes, feed), feed, level, rtol=1e-10, atol=1e-10)
    compare(model(nodes, feed, shapes=shapes), feed, level, rtol=1e-10, atol=1e-10)
