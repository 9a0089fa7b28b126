"""Elementwise nodes that begin with integers: the rest of them is computed on vectors."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.native.models import compare, compiled, draw, every_level, model, session

NODES = [
    helper.make_node("Cast", ["s"], ["f"], to=1),
    helper.make_node("Mul", ["f", "scale"], ["m"]),
    helper.make_node("Sigmoid", ["m"], ["g"]),
    helper.make_node("Mul", ["m", "g"], ["y"]),
]
SUM = helper.make_node("Add", ["x", "b"], ["s"])
SCALE = {"scale": np.array(0.003, np.float32)}


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return whole numbers, some of which float32 has to round."""
    drawn = (draw(shape) * 1000).astype(dtype)
    drawn.reshape(-1)[::7] = 2**24 + 1
    return drawn


@every_level
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("size", [5, 37, 64])
def test_integers_are_loaded_as_floats(dtype: str, size: int, level: str) -> None:
    nodes = [*NODES[1:]]
    nodes.insert(0, helper.make_node("Cast", ["x"], ["f"], to=1))
    x = numbers((3, 4, size), dtype)
    compare(model(nodes, {"x": x}, ["y"], SCALE), {"x": x}, level)
    turned = [helper.make_node("Transpose", ["x"], ["t"], perm=[2, 0, 1]), *nodes]
    turned[1] = helper.make_node("Cast", ["t"], ["f"], to=1)
    compare(model(turned, {"x": x}, ["y"], SCALE), {"x": x}, level)


@every_level
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(1, 6, 5, 7), (2, 6, 1, 50)])
def test_sums_of_integers_are_parts_of_what_vectors_compute(
    dtype: str, shape: tuple[int, ...], level: str
) -> None:
    x = numbers(shape, dtype)
    b = np.arange(6).astype(dtype).reshape(6, 1, 1) * 100 - 250
    constants = {**SCALE, "b": b}
    proto = model([SUM, *NODES], {"x": x}, ["y"], constants)
    compare(proto, {"x": x}, level)
    opened = model([SUM, *NODES], {"x": x}, ["y"], constants)
    for i, dim in enumerate(opened.graph.input[0].type.tensor_type.shape.dim):
        if i != 1:
            dim.Clear()
            dim.dim_param = f"d{i}"
    compare(opened, {"x": x}, level)


def test_quotients_of_integers_are_not_taken_apart() -> None:
    """A divisor of zero is a failure of the kernel, which lanes beyond the end do not have."""
    x = numbers((3, 37), "int32")
    nodes = [helper.make_node("Div", ["x", "b"], ["s"]), *NODES]
    feed = {"x": x, "b": np.full((37,), 3, np.int32)}
    compare(model(nodes, feed, ["y"], SCALE), feed, "avx2")
    with pytest.raises(Exception, match="by zero"):
        session(model(nodes, feed, ["y"], SCALE)).run(None, {"x": x, "b": np.zeros(37, np.int32)})


def test_what_takes_long_is_computed_on_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a sum of integers, functions were computed number by number: 15 times as slow."""
    x = numbers((4, 64), "int32")
    proto = model([SUM, *NODES], {"x": x}, ["y"], {**SCALE, "b": np.arange(64, dtype=np.int32)})
    (kernel,) = compiled(monkeypatch, lambda: session(proto))
    assert "v_swish" in kernel.code
    assert "s_swish" not in kernel.code
