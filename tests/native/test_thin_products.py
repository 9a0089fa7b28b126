"""Products of few rows, few columns and vectors, of sizes that only a run knows."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.native.agreement import agree_over
from tests.native.models import (
    RUNNABLE,
    every_level,
    every_low_precision_level,
    model,
    refused,
    session,
)

LEVEL = [name for name in RUNNABLE if name != "amx"][-1]
SIZES = (
    (1, 333, 77), (2, 40, 65), (3, 8, 64), (4, 300, 3), (5, 33, 4), (40, 300, 1), (41, 31, 2),
    (29, 257, 35), (1, 1, 1), (4, 600, 1025), (0, 3, 2), (3, 0, 5), (3, 5, 0),
)  # fmt: skip


def check(level: str, dtype: str) -> None:
    nodes = [
        helper.make_node("Transpose", ["t"], ["b2"], perm=[1, 0]),
        helper.make_node("MatMul", ["a", "b2"], ["turned"]),
        helper.make_node("MatMul", ["v", "b"], ["row"]),
        helper.make_node("MatMul", ["a", "v"], ["column"]),
        helper.make_node("MatMul", ["v", "v"], ["number"]),
        helper.make_node("MatMul", ["a", "b"], ["product"]),
        helper.make_node("Add", ["product", "c"], ["sum"]),
    ]
    outputs = ["turned", "row", "column", "number", "sum"]
    random = np.random.default_rng(0)
    feeds = []
    for m, k, n in SIZES:
        shapes = {"a": (m, k), "b": (k, n), "t": (n, k), "v": (k,), "c": (n,)}
        feeds.append(
            {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
        )
    names = {"a": "mk", "b": "kn", "t": "nk", "v": "k", "c": "n"}
    agree_over(nodes, feeds, level, names, outputs=outputs, length=2000)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.long)])
def test_products_of_few_numbers_agree_at_every_size(dtype: str) -> None:
    check(LEVEL, dtype)


@pytest.mark.long
@every_level
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_few_numbers_agree_at_every_level(dtype: str, level: str) -> None:
    check(level, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_stacks_meet_vectors(dtype: str) -> None:
    nodes = [
        helper.make_node("MatMul", ["a", "v"], ["left"]),
        helper.make_node("MatMul", ["v", "b"], ["right"]),
    ]
    random = np.random.default_rng(0)
    feeds = [
        {
            "a": random.standard_normal((s, 7, k)).astype(dtype),
            "b": random.standard_normal((s, k, 5)).astype(dtype),
            "v": random.standard_normal(k).astype(dtype),
        }
        for s, k in ((3, 40), (1, 700), (2, 0))
    ]
    names = {"a": ["s", 7, "k"], "b": ["s", "k", 5], "v": ["k"]}
    agree_over(nodes, feeds, LEVEL, names, outputs=["left", "right"], length=2000)


@every_low_precision_level
@pytest.mark.parametrize("length", [256, 512, 513])
def test_sums_of_bytes_from_several_streams_are_whole_numbers(level: str, length: int) -> None:
    """Negative ones too, whose bits are no floats to add."""
    random = np.random.default_rng(0)
    w = random.integers(-127, 128, (length, 19)).astype(np.int8)
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    for rows in (1, 3):
        x = random.integers(0, 256, (rows, length)).astype(np.uint8)
        made = session(model(nodes, {"x": x}, constants={"w": w}), instructions=level)
        assert refused(made) == {}
        (y,) = made.run(None, {"x": x})
        np.testing.assert_array_equal(y, x.astype(np.int32) @ w.astype(np.int32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("transposed", "rows"), [(True, 1), (True, 4), (True, 40), (False, 3)])
def test_equal_columns_have_equal_sums(dtype: str, transposed: bool, rows: int) -> None:
    """A softmax of large equal numbers is even only then, as in three networks of ONNX's suite."""
    nodes = [helper.make_node("Gemm", ["a", "b"], ["y"], transB=int(transposed))]
    random = np.random.default_rng(0)
    for columns in (1, 7, 251, 1000):
        a = (1e3 * random.random((rows, 333))).astype(dtype)
        b = np.full((columns, 333) if transposed else (333, columns), 0.02, dtype)
        made = session(model(nodes, {"a": a, "b": b}), instructions=LEVEL)
        assert refused(made) == {}
        (y,) = made.run(None, {"a": a, "b": b})
        np.testing.assert_array_equal(y, np.repeat(y[:, :1], columns, axis=1))
